# SPDX-License-Identifier: Apache-2.0
"""What other systems say of nodes: alerts of an Alertmanager, until the scheduler has it."""

import contextlib
import http.client
import http.server
import json
import os
import subprocess
import threading

import pytest
from api_daemon import ALICE, daemon_of, wait_for
from test_api_access import free_port
from test_reknitd_nodes import Site, world  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root asks as several users")

RULES = [{"alert": "GpuDoubleBit*", "isolation": "reset", "cause": "gpu-hardware"}]
PATH = "/v1/ingest/alertmanager"


class AlertSite(Site):
    config = {"alerts": RULES}

    def post(self, *alerts, uid=0, **more):
        body = {"version": "4", "status": "firing", "receiver": "reknit", "alerts": list(alerts), **more}
        return self.daemon.ask(PATH, uid, "POST", json.dumps(body))


def alert(name, status="firing", **labels):
    return {"status": status, "labels": {"alertname": name, **labels}, "annotations": {"summary": f"{name} is told"},
            "startsAt": "2026-12-01T10:00:00Z", "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "ab"}


@pytest.fixture
def site(open_path, world):
    s = AlertSite(open_path, world)
    try:
        s.daemon.until("/v1/fleet", lambda f: f["nodes"]["known"] == 4)
        yield s
        s.daemon.stop()
    finally:
        s.kill()


def counts(taken=0, known_already=0, unknown_nodes=0, not_understood=0):
    return {"taken": taken, "known_already": known_already, "unknown_nodes": unknown_nodes, "not_understood": not_understood}


def test_what_the_configuration_knows_of_is_acted_on(site):
    told = alert("GpuDoubleBitError", node="n2", pci_bus_id="0000:9B:00")
    assert site.post(told) == (200, counts(taken=1))
    assert site.post(told, told) == (200, counts(known_already=2))  # an Alertmanager repeats them
    ledger = site.ledger("n2", lambda x: x["drained"])
    assert (ledger["isolation"], ledger["cause"]) == ("reset", "gpu-hardware")
    [fact] = ledger["facts"]
    assert fact["device"] == "0000:9b:00"
    assert fact["signature"] == "alert.GpuDoubleBitError" and fact["text"] == "GpuDoubleBitError is told"
    assert site.node("n2")["reason"].startswith("reknit:") and "drain" in site.node("n2")["flags"]
    assert site.post({**told, "status": "resolved"}) == (200, counts(taken=1))
    assert site.post({**told, "status": "resolved"}) == (200, counts(known_already=1))


def test_an_alert_is_over_whatever_it_asks_for_by_then(site):
    told = alert("GpuDoubleBitError", node="n2", gpu="0")
    assert site.post(told) == (200, counts(taken=1))
    site.ledger("n2", lambda x: x["drained"])
    site.config = {}
    site.tell(mode="act")
    assert site.post({**told, "status": "resolved"}) == (200, counts(taken=1))
    assert site.ledger("n2")["isolation"] == "none"


def test_two_gpus_of_a_node_are_two(site):
    first, second = (alert("GpuDoubleBitError", node="n2", gpu=number) for number in "01")
    assert site.post(first, second) == (200, counts(taken=2))
    assert site.post({**first, "status": "resolved"}) == (200, counts(taken=1))
    assert site.ledger("n2")["isolation"] == "reset"  # the other still has it
    assert site.post({**second, "status": "resolved"}) == (200, counts(taken=1))
    assert site.ledger("n2")["isolation"] == "none"


def test_what_it_does_not_know_of_is_only_known(site):
    assert site.post(alert("FanSlow", instance="n3.example.org:9100")) == (200, counts(taken=1))
    ledger = site.ledger("n3")
    assert ledger["isolation"] == "none" and ledger["drained"] is False
    assert [f["signature"] for f in ledger["facts"]] == ["alert.FanSlow"]
    assert "FanSlow is told" in site.reknit("explain", "n3").stdout
    assert "drain" not in site.node("n3")["flags"]


def test_what_is_of_no_node_is_counted(site):
    assert site.post(alert("GpuDoubleBitError", node="n99"), alert("GpuDoubleBitError"), {"labels": 7}, 3) == (
        200, counts(unknown_nodes=1, not_understood=3))
    assert site.daemon.ask("/v1/nodes")[1]["nodes"] == []
    assert site.daemon.ask(PATH, 0, "POST", "[]")[0] == 400
    assert site.daemon.ask(PATH, 0, "POST", '{"alerts": 7}')[0] == 400
    assert site.post(*[alert("X", node="n1")] * 201)[0] in (400, 413)


def test_no_user_may_tell_of_nodes(site):
    assert site.post(alert("GpuDoubleBitError", node="n2"), uid=ALICE)[0] == 403
    assert site.daemon.ask("/v1/nodes")[1]["nodes"] == []


# A real Prometheus and a real Alertmanager, which watch what an exporter of GPUs shows.

TOKEN, ANOTHER = "alert-" + "x" * 32, "root-" + "y" * 32


class Exporter(http.server.ThreadingHTTPServer):
    """What dcgm-exporter would say of node n2."""

    daemon_threads = True

    def __init__(self):
        self.errors = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{gpu="0",pci_bus_id="00000000:9B:00.0",Hostname="n2"} '
                                 + b"%d\n" % self.server.errors)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


ALERTMANAGER = """
route: {receiver: reknit, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1m}
receivers:
  - name: reknit
    webhook_configs:
      - url: http://127.0.0.1:%d/v1/ingest/alertmanager?node_label=Hostname
        max_alerts: 50
        http_config: {authorization: {credentials_file: %s}}
"""
PROMETHEUS = """
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
alerting: {alertmanagers: [{static_configs: [{targets: ['127.0.0.1:%d']}]}]}
scrape_configs: [{job_name: gpus, static_configs: [{targets: ['127.0.0.1:%d']}]}]
"""
ALERTS = """
groups:
  - name: gpus
    rules:
      - alert: GpuDoubleBitError
        expr: DCGM_FI_DEV_ECC_DBE_VOL_TOTAL > 0
        annotations: {summary: 'a double bit error on {{ $labels.Hostname }}'}
"""


@contextlib.contextmanager
def running(log, *argv):
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def monitoring(folder, port):
    """Both of them, beside an exporter."""
    exporter, alerts_port = Exporter(), free_port()
    for name, text in (("token", TOKEN), ("alerts.yml", ALERTS), ("alertmanager.yml", ALERTMANAGER % (port, folder / "token")),
                       ("prometheus.yml", PROMETHEUS % (folder / "alerts.yml", alerts_port, exporter.server_port))):
        (folder / name).write_text(text)
    with running(folder / "alertmanager.log", "prometheus-alertmanager", f"--config.file={folder}/alertmanager.yml",
                 f"--storage.path={folder}/alerts", f"--web.listen-address=127.0.0.1:{alerts_port}",
                 "--cluster.listen-address="), \
            running(folder / "prometheus.log", "prometheus", f"--config.file={folder}/prometheus.yml",
                    f"--storage.tsdb.path={folder}/series", f"--web.listen-address=127.0.0.1:{free_port()}"):
        yield exporter
    exporter.shutdown()


def test_a_real_prometheus_and_alertmanager(open_path, world):
    port, tokens = free_port(), open_path / "tokens"
    tokens.write_text(f"@alertmanager {TOKEN}\nroot {ANOTHER}\n")
    tokens.chmod(0o600)
    folder = open_path / "monitoring"
    folder.mkdir()
    with daemon_of(open_path, world, mode="act", alerts=RULES, nodes={"mode": "act", "max_drained": 50},
                   api={"listen": f"127.0.0.1:{port}", "token_file": str(tokens)}) as daemon:
        daemon.until("/v1/fleet", lambda f: f["nodes"]["known"] == 4)

        def story():
            return "\n".join([(folder / f"{name}.log").read_text()[-3000:] for name in ("prometheus", "alertmanager")]
                             + [daemon.log()[-2000:], str(world.nodes["n2"])])

        def ask(path, token, method="GET"):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            c.request(method, path, None, {"Authorization": f"Bearer {token}"})
            return c.getresponse().status

        assert ask("/v1/jobs", TOKEN) == ask("/v1/fleet", TOKEN) == ask("/v1/freeze", TOKEN, "POST") == 403
        assert ask("/v1/fleet", ANOTHER) == 200 and ask(PATH, "z" * 32, "POST") == 401
        with monitoring(folder, port) as exporter:
            exporter.errors = 1
            wait_for(lambda: "drain" in world.nodes["n2"]["flags"], story, 120)
            assert world.nodes["n2"]["reason"].startswith("reknit:")
            [fact] = daemon.ask("/v1/nodes/n2")[1]["ledger"]["facts"]
            assert (fact["signature"], fact["device"]) == ("alert.GpuDoubleBitError", "0000:9b:00")
            assert fact["text"] == "a double bit error on n2"
            exporter.errors = 0
            wait_for(lambda: daemon.ask("/v1/nodes/n2")[1]["ledger"]["isolation"] == "none", story, 120)
        assert all("drain" not in world.nodes[n]["flags"] for n in ("n1", "n3", "n4"))
