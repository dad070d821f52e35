# SPDX-License-Identifier: Apache-2.0
"""The webhook of reknitd: a receiver that works, fails, hangs, and what is said there."""

import contextlib
import http.server
import json
import pathlib
import shutil
import ssl
import subprocess
import threading
import time

import pytest

import api_daemon
from api_daemon import ALICE, Daemon, wait_for
from fake_adapter import World

FAILS = [(1, "failed", 1)]
SECRET = "T0PS3CRET"


class Receiver:
    """Answers as told, in turn: a status, (status, headers), or "hang"; then 200."""

    def __init__(self, tls=None):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.lock:
                    receiver.asked.append((time.monotonic(), dict(self.headers), json.loads(body), self.path))
                    answer = receiver.answers.pop(0) if receiver.answers else 200
                if answer == "hang":
                    receiver.released.wait(60)
                    return
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *args):
                pass

        self.lock, self.asked, self.answers, self.released = threading.Lock(), [], [], threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}/services/{SECRET}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def wait(self, count, timeout=40):
        wait_for(lambda: len(self.asked) >= count, lambda: f"{count} messages: {self.asked}", timeout)
        return self.asked[:count]

    def texts(self):
        return [body["text"] for _, _, body, _ in self.asked]

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver():
    r = Receiver()
    yield r
    r.close()


@pytest.fixture
def world():
    with World(nodes=64, config={"cluster": "alpha"}) as w:
        yield w


@contextlib.contextmanager
def running(folder, world, webhook, **config):
    d = Daemon(folder, world, webhook=webhook, cluster="alpha", **config)
    try:
        d.until("/v1/health", lambda a: a["ok"])
        yield d
        assert SECRET not in d.log()
    finally:
        d.process.kill()
        d.process.wait()


def submit(world, name="train", runs=FAILS, **members):
    return world.submit(name=name, user="alice", uid=ALICE, runs=runs, **members)


def test_a_decision_is_told(tmp_path, world, receiver):
    with running(tmp_path, world, {"url": receiver.url}) as daemon:
        job = submit(world)
        _, headers, body, path = receiver.wait(1)[0]
        decision = daemon.ask(f"/v1/jobs/{job}")[1]["decision"]
        assert path.endswith(SECRET) and headers["Content-Type"] == "application/json"
        assert headers["Idempotency-Key"] == f"alpha-{decision['seq']}-{decision['seq']}"
        assert f"alpha - job {job} may be restarted" in body["text"]
        assert f"reknit approve {job}" in body["text"] and "train, alice" in body["text"]
        assert [b["type"] for b in body["blocks"]] == ["header", "section"]
        assert all(b["text"]["type"] == "plain_text" for b in body["blocks"])
        daemon.ask("/v1/freeze", method="POST", body='{"reason":"a new switch"}')
        assert "frozen by root" in receiver.wait(2)[1][2]["text"]
        assert "a new switch" in receiver.texts()[1]
        daemon.stop()


def test_what_is_only_observed_is_not_told_unless_asked_for(tmp_path, world, receiver):
    with running(tmp_path, world, {"url": receiver.url}, mode="observe") as daemon:
        job = submit(world)
        daemon.until(f"/v1/jobs/{job}", lambda j: "decision" in j)
        daemon.configure(webhook={"url": receiver.url, "mode": "observe"}, mode="observe", cluster="alpha")
        assert "was read again" in daemon.reload()
        submit(world, "second")
        assert "would be restarted" in receiver.wait(1)[0][2]["text"]
        assert "second" in receiver.texts()[0]


def test_a_restart_that_is_refused_is_told(tmp_path, world, receiver):
    with running(tmp_path, world, {"url": receiver.url}, mode="act") as daemon:
        world.break_next("requeue", "error", times=10, error="not-allowed")
        job = submit(world)
        wait_for(lambda: any(f"job {job} could not be restarted" in t for t in receiver.texts()), receiver.texts)
        assert any("is restarted" in t or "decided: restart 1" in t for t in receiver.texts()), receiver.texts()
        assert "as the test wants" in receiver.texts()[-1], receiver.texts()
        daemon.stop()


def test_a_restart_that_never_came_is_told(tmp_path, world, receiver):
    """Once, also if reknitd dies before the receiver has it."""
    with running(tmp_path, world, {"url": receiver.url}, mode="act") as daemon:
        daemon.ask("/v1/freeze", method="POST", body="{}")
        job = submit(world)
        daemon.until(f"/v1/jobs/{job}", lambda j: "decision" in j)
        wait_for(lambda: any("is restarted" in t for t in receiver.texts()), receiver.texts)
        receiver.answers = [500] * 2
        world.forget(job)
        wait_for(lambda: not receiver.answers, receiver.texts)
        daemon.process.kill()
        daemon.process.wait()
        daemon.start()
        heard = f"alpha - job {job} was not restarted\n"
        wait_for(lambda: not receiver.answers and sum(heard in t for t in receiver.texts()) >= 3, receiver.texts)
        assert "actions are frozen" in receiver.texts()[-1] and f"reknit explain {job}" in receiver.texts()[-1]
        daemon.until("/v1/health", lambda a: a["ok"])
        daemon.stop()


def test_nodes_that_cannot_be_kept_out_are_told(tmp_path, world, receiver):
    with running(tmp_path, world, {"url": receiver.url}, mode="act") as daemon:
        log = tmp_path / "job.log"
        log.write_text("0: [rank0]: ready\n1: [rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n")
        world.break_next("update", "error", times=2, error="failed")
        job = submit(world, stdout_path=str(log), n_nodes=2, n_tasks=2,
                     runs=[(5, "failed", 1)])  # long enough to be asked for its tasks
        wait_for(lambda: any("but not without n2" in t for t in receiver.texts()), receiver.texts, 60)
        assert any("is restarted without n2" in t for t in receiver.texts()), receiver.texts()
        wait_for(lambda: world.job(job)["state"] == "running", "it runs again")
        assert sum("but not without" in t for t in receiver.texts()) == 1, receiver.texts()
        daemon.stop()


def test_a_hold_that_failed_is_told(tmp_path, world, receiver):
    policies = [{"name": "held", "users": True, "policy": {"hold_on_stop": True, "causes": {"unknown": {"retries": 0}}}}]
    with running(tmp_path, world, {"url": receiver.url}, mode="act", policies=policies) as daemon:
        world.break_next("requeue", "error", error="failed")
        job = submit(world, comment='{"reknit":{"policy":"held"}}')
        wait_for(lambda: any(f"job {job} could not be held" in t for t in receiver.texts()), receiver.texts)
        assert any(f"job {job} is stopped" in t for t in receiver.texts()), receiver.texts()
        daemon.stop()


def test_what_had_ended_before_may_be_approved(tmp_path, world, receiver):
    """Also where others are restarted unasked; and who approved it is not asked again."""
    job = submit(world)
    world.end(job)
    with running(tmp_path, world, {"url": receiver.url}, mode="act") as daemon:
        assert f"job {job} may be restarted" in receiver.wait(1)[0][2]["text"]
        assert f"reknit approve {job}" in receiver.texts()[0]
        world.break_next("requeue", "error", error="failed")
        seq = daemon.ask(f"/v1/jobs/{job}")[1]["decision"]["seq"]
        status, answer = daemon.ask(f"/v1/decisions/{seq}/approve", method="POST", body="{}")
        assert status in (200, 202), answer
        wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log, 60)
        assert "could not be restarted, and is tried again" in receiver.wait(2)[1][2]["text"], receiver.texts()
        assert "approve" not in receiver.texts()[1]
        daemon.stop()


@pytest.mark.parametrize("answer", [500, (429, {"Retry-After": "3"}), (301, {"Location": "http://x/"})])
def test_a_receiver_that_refuses(tmp_path, world, receiver, answer):
    """What may pass is tried again with the same key; what will not is given up, and said."""
    with running(tmp_path, world, {"url": receiver.url}) as daemon:
        receiver.answers = [answer]
        submit(world)
        status = answer[0] if isinstance(answer, tuple) else answer
        if status >= 429:
            first, second = receiver.wait(2)
            assert second[2] == first[2] and second[1]["Idempotency-Key"] == first[1]["Idempotency-Key"]
            assert second[0] - first[0] >= (3 if isinstance(answer, tuple) else 2) - 0.2
            wait_for(lambda: "the webhook works again" in daemon.log(), daemon.log)
        else:
            receiver.wait(1)
            wait_for(lambda: f"it answers with status {status}" in daemon.log(), daemon.log)
            submit(world, "second")
            assert "second" in receiver.wait(2)[1][2]["text"]  # the first is not repeated


def test_a_receiver_that_hangs(tmp_path, world, receiver):
    """The daemon does not wait for it, and tries again later."""
    with running(tmp_path, world, {"url": receiver.url}) as daemon:
        receiver.answers = ["hang"]
        submit(world)
        receiver.wait(1)
        assert daemon.ask("/v1/health")[1]["ok"] is True
        assert "Timeout was reached" not in daemon.log()  # it did not wait for that
        first, second = receiver.wait(2, timeout=60)
        assert second[1]["Idempotency-Key"] == first[1]["Idempotency-Key"]
        assert "Timeout was reached" in daemon.log()


def test_nobody_listens_at_first(tmp_path, world, receiver):
    receiver.server.shutdown()
    receiver.server.server_close()
    with running(tmp_path, world, {"url": receiver.url}) as daemon:
        submit(world)
        wait_for(lambda: "the webhook: Couldn't connect" in daemon.log(), daemon.log)
        again = Receiver()
        daemon.configure(webhook={"url": again.url}, cluster="alpha")
        daemon.reload()
        assert "train" in again.wait(1)[0][2]["text"]
        again.close()


def test_who_should_send_it_is_not_installed(tmp_path, world, receiver, monkeypatch):
    """That is no fault of the receiver."""
    built, programs = api_daemon.REKNITD.parent, tmp_path / "bin"
    programs.mkdir()
    for name in ("reknitd", "reknit-slurm", "reknit-reader", "reknit-seal"):
        shutil.copy2(built / name, programs)
    monkeypatch.setattr(api_daemon, "REKNITD", programs / "reknitd")
    why = "reknit-post cannot be started: No such file or directory"
    with running(tmp_path, world, {"url": receiver.url}) as daemon:
        submit(world)
        wait_for(lambda: f"the webhook: {why}" in daemon.log(), daemon.log)
        assert daemon.ask("/v1/health")[1]["webhook"]["trouble"] == why
        shutil.copy2(built / "reknit-post", programs)
        receiver.wait(1)


def test_a_storm_is_one_message(tmp_path, world, receiver):
    with running(tmp_path, world, {"url": receiver.url}) as daemon:
        jobs = [submit(world, f"job{n}") for n in range(60)]
        for job in jobs:
            daemon.until(f"/v1/jobs/{job}", lambda j: "decision" in j)
        receiver.wait(1)
        wait_for(lambda: sum(int(t.split(" - ")[1].split()[0]) if "decisions within" in t else 1
                             for t in receiver.texts()) == 60, receiver.texts)
        assert len(receiver.texts()) <= 2, receiver.texts()
        assert "60 decisions" in receiver.texts()[0] or len(receiver.texts()) == 2
        assert "causes: unknown" in receiver.texts()[0] and "for approval" in receiver.texts()[0]


def test_a_restart_repeats_and_skips_nothing(tmp_path, world, receiver):
    with running(tmp_path, world, {"url": receiver.url}) as daemon:
        submit(world, "first")
        receiver.wait(1)
        state = tmp_path / "state" / "webhook"
        wait_for(lambda: state.exists() and daemon.ask("/v1/decisions")[1]["decisions"][0]["decision"]["seq"]
                 <= int(state.read_text()), "its state")
        receiver.answers = [500] * 2
        submit(world, "second")
        receiver.wait(2)  # not taken
        daemon.process.kill()
        daemon.process.wait()
        daemon.start()
        wait_for(lambda: len(receiver.asked) >= 3 and not receiver.answers, lambda: receiver.texts(), 40)
        daemon.until("/v1/health", lambda a: a["ok"])
        told = receiver.wait(4)
        assert "second" in told[3][2]["text"] and "network" not in told[3][2]["text"]
        assert sum("first" in t for t in receiver.texts()) == 1
        keys = [headers["Idempotency-Key"] for _, headers, _, _ in told]
        assert keys[1] == keys[2] == keys[3] != keys[0]
        daemon.stop()


def test_names_can_call_nobody(tmp_path, world, receiver):
    name = "<!channel> @here <http://evil.example|x> & *bold* [a](http://evil.example)"
    with running(tmp_path, world, {"url": receiver.url}):
        submit(world, name)
        body = receiver.wait(1)[0][2]
        for text in (body["text"], *(b["text"]["text"] for b in body["blocks"])):
            assert "<" not in text and ">" not in text and "@h" not in text and "://" not in text
            assert "](" not in text and "&amp;" in text or "job" in text
        assert "&lt;!channel&gt;" in body["text"]


@pytest.fixture
def certificate(tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    folder = tmp_path / "tls"
    folder.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    return str(folder / "cert.pem"), str(folder / "key.pem")


def test_certificates_are_verified_and_tokens_sent(tmp_path, world, certificate):
    receiver = Receiver(tls=certificate)
    token = pathlib.Path(tmp_path / "token")
    token.write_text(f"{SECRET}-token\n")
    with running(tmp_path, world, {"url": receiver.url, "token_file": str(token)}) as daemon:
        submit(world)
        wait_for(lambda: "the webhook: " in daemon.log() and "certificate" in daemon.log(), daemon.log)
        assert receiver.asked == []
        daemon.configure(webhook={"url": receiver.url, "token_file": str(token), "ca_cert": certificate[0]},
                         cluster="alpha")
        daemon.reload()
        assert receiver.wait(1)[0][1]["Authorization"] == f"Bearer {SECRET}-token"
    receiver.close()


def test_the_url_is_shown_nowhere(reknit, tmp_path):
    config = tmp_path / "reknitd.yaml"
    config.write_text(f"webhook:\n  url: https://hooks.example/{SECRET}\n")
    config.chmod(0o644)
    shown = reknit("config", "show", config)
    assert shown.returncode == 0 and SECRET not in shown.stdout and "url: '' # there is one" in shown.stdout
    assert "readable for everybody" in reknit("config", "check", config).stdout
    config.chmod(0o600)
    assert "readable" not in reknit("config", "check", config).stdout
    for wrong in (f"hooks.example/{SECRET}", f"https://hooks.example/ {SECRET}", f"https://x/{SECRET * 40}",
                  f"[{SECRET}]"):
        config.write_text(f"webhook:\n  url: {wrong}\n")
        said = reknit("config", "check", config)
        assert said.returncode == 1 and "webhook.url" in said.stderr and SECRET not in said.stderr, said.stderr
