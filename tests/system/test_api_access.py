# SPDX-License-Identifier: Apache-2.0
"""Who is who for reknitd's API: tokens over TLS, the scheduler's user, a group; and all of it read again."""

import grp
import hashlib
import http.client
import json
import os
import select
import shutil
import signal
import socket
import ssl
import subprocess

import pytest

from api_daemon import ALICE, Connection, Daemon, as_user, wait_for
from fake_adapter import CONFIG, World

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="asks as several users")
TOKEN, OTHER = "a-token-of-at-least-20", "another-token-for-root"


@pytest.fixture
def world():
    with World(nodes=4) as w:
        yield w


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_certificate(folder, name):
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


class Site:
    """A daemon that listens with TLS for tokens."""

    def __init__(self, folder, world):
        self.port = free_port()
        self.tokens = folder / "tokens"
        self.write_tokens(f"nobody {TOKEN}\nroot {OTHER}\n")
        self.cert, self.key = make_certificate(folder, "first")
        self.daemon = Daemon(folder, world, api=self.api())
        self.daemon.until("/v1/health", lambda a: a["ok"])

    def api(self, **more):
        return {"listen": f"127.0.0.1:{self.port}", "tls_cert": str(self.cert), "tls_key": str(self.key),
                "token_file": str(self.tokens), **more}

    def write_tokens(self, text):
        self.tokens.write_text(text)
        self.tokens.chmod(0o600)

    def ask(self, path, token=None, method="GET", trust=None):
        context = ssl.create_default_context(cafile=str(trust or self.cert))
        c = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=context)
        c.request(method, path, None, {"Authorization": f"Bearer {token}"} if token else {})
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        return r.status, json.loads(text) if text.startswith("{") else text


@pytest.fixture
def site(open_path, world):
    s = Site(open_path, world)
    try:
        yield s
        s.daemon.stop()
    finally:
        s.daemon.process.kill()
        s.daemon.process.wait()


def test_a_token_over_tls(site, world):
    world.submit(n_nodes=1, comment="reknit", name="his", user="nobody", uid=65534, runs=[(600, "completed", 0)])
    world.submit(n_nodes=1, comment="reknit", name="hers", user="alice", uid=ALICE, runs=[(600, "completed", 0)])
    site.daemon.until("/v1/jobs", lambda a: len(a["jobs"]) == 2)
    assert site.ask("/v1/health")[0] == 401
    assert site.ask("/v1/health", "x" * 22)[0] == 401
    assert site.ask("/v1/health", TOKEN + "x")[0] == 401
    assert [j["name"] for j in site.ask("/v1/jobs", TOKEN)[1]["jobs"]] == ["his"]
    assert len(site.ask("/v1/jobs", OTHER)[1]["jobs"]) == 2
    assert site.ask("/metrics", TOKEN)[0] == 403 and site.ask("/metrics", OTHER)[0] == 200
    assert site.ask("/v1/freeze", TOKEN, "POST")[0] == 403
    plain = http.client.HTTPConnection("127.0.0.1", site.port, timeout=20)
    with pytest.raises((http.client.HTTPException, OSError)):
        plain.request("GET", "/v1/health")
        plain.getresponse()
    assert TOKEN not in site.daemon.log() and OTHER not in site.daemon.log()


def test_strangers_keep_nobody_out(site):
    """Idle connections, of one address more than all may be, and of several: neither those who come
    are kept out by them, nor those dropped for them who have said who they are. Asking again and
    again without saying that makes nobody younger."""
    context = ssl.create_default_context(cafile=str(site.cert))
    known, busy = (http.client.HTTPSConnection("127.0.0.1", site.port, timeout=20, context=context) for _ in range(2))

    def status(connection, token):
        connection.request("GET", "/v1/health", None, {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def is_known():
        return status(known, OTHER) == 200

    def idle(address):
        return socket.create_connection(("127.0.0.1", site.port), timeout=20, source_address=(address, 0))

    assert is_known() and status(busy, "nobody") == 401
    sock, held = known.sock, [socket.create_connection(("127.0.0.1", site.port), timeout=20) for _ in range(8)]
    assert status(busy, "nobody") == 401
    bold = busy.sock
    try:
        for address, count in (("127.0.0.1", 300), ("127.0.0.2", 100), ("127.0.0.3", 100), ("127.0.0.4", 100),
                               ("127.0.0.5", 100)):
            held += [idle(address) for _ in range(count)]
            assert site.ask("/v1/jobs", OTHER)[0] == 200
            assert is_known() and known.sock is sock
            assert select.select([bold], [], [], 0)[0]
        dropped = [s for s in held if select.select([s], [], [], 0)[0]]
        assert len(held) - len(dropped) < 256 and held[-1] not in dropped and held[0] in dropped
    finally:
        for s in held:
            s.close()
        known.close()
        busy.close()


def test_a_known_user_keeps_nobody_out(site):
    """Who has said who he is, on as many connections as one address may have, and goes on asking."""
    context = ssl.create_default_context(cafile=str(site.cert))
    held = []

    def ask_on(connection):
        connection.request("GET", "/v1/jobs", None, {"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200

    def is_open(connection):
        return not select.select([connection.sock], [], [], 0)[0]

    try:
        for _ in range(80):
            held.append(http.client.HTTPSConnection("127.0.0.1", site.port, timeout=20, context=context))
            assert ask_on(held[-1])
            assert site.ask("/v1/health", OTHER)[0] == 200
        living = [c for c in held if is_open(c)]
        assert living == held[-32:] and all(ask_on(c) for c in living)
    finally:
        for c in held:
            c.close()


def test_tokens_are_read_again(site):
    site.write_tokens(f"nobody {TOKEN}-new\n")
    assert "was read again" in site.daemon.reload()
    assert site.ask("/v1/health", TOKEN)[0] == 401 and site.ask("/v1/health", OTHER)[0] == 401
    assert site.ask("/v1/health", f"{TOKEN}-new")[0] == 200
    site.write_tokens("nobody short\n")
    assert "too short" in site.daemon.reload()
    assert site.ask("/v1/health", f"{TOKEN}-new")[0] == 200  # what held still holds
    site.write_tokens(f"nobody {TOKEN}\n")
    site.tokens.chmod(0o644)
    assert "only its owner can read" in site.daemon.reload()
    assert site.ask("/v1/health", f"{TOKEN}-new")[0] == 200


def test_a_certificate_is_read_again(site, tmp_path):
    old = site.cert
    site.cert, site.key = make_certificate(tmp_path, "second")
    site.daemon.configure(api=site.api())
    assert "was read again" in site.daemon.reload()
    assert site.ask("/v1/health", TOKEN)[0] == 200
    with pytest.raises(ssl.SSLError):
        site.ask("/v1/health", TOKEN, trust=old)
    site.key.write_text("no key")
    assert "was read again" in site.daemon.reload()
    assert "certificate and key" in site.daemon.log()
    assert site.ask("/v1/health", TOKEN)[0] == 200


def test_listeners_move(site, tmp_path):
    before, site.port = site.port, free_port()
    site.daemon.configure(api=site.api())
    site.daemon.reload()
    assert site.ask("/v1/health", TOKEN)[0] == 200
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", before), timeout=5)
    old, site.daemon.socket = site.daemon.socket, tmp_path / "other.sock"
    site.daemon.configure(api=site.api())
    site.daemon.reload()
    assert site.daemon.ask("/v1/health")[0] == 200 and not old.exists()
    site.daemon.configure(api={})
    site.daemon.reload()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", site.port), timeout=5)
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    site.port = taken.getsockname()[1]
    site.daemon.configure(api=site.api())
    assert "still holds" in site.daemon.reload()
    assert site.daemon.ask("/v1/health")[0] == 200
    taken.close()


def shows_something(follower, site, request):
    """Something happens, and is seen; not at once, as long as the stream has not begun."""
    site.daemon.ask(f"/v1/{request}", method="POST")
    return select.select([follower.stdout], [], [], 0.5)[0] and request in os.read(follower.stdout.fileno(), 65536).decode()


def test_a_stream_ends_when_its_reader_is_somebody_else_now(site, reknit):
    """... and one of somebody who stays who he was goes on; 'reknit events' asks again."""
    env = {**os.environ, "REKNIT_SOCKET": str(site.daemon.socket)}
    site.daemon.reload()
    follower = subprocess.Popen([reknit.path, "events"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: shows_something(follower, site, "freeze"), "a first event")
    site.daemon.reload()
    wait_for(lambda: shows_something(follower, site, "thaw"), "an event after that")
    site.write_tokens(f"nobody {TOKEN}\n")
    plain = Connection(site.daemon.socket)
    plain.request("GET", "/v1/events?follow=1", headers={"Accept": "text/event-stream"})
    stream = plain.getresponse()
    site.daemon.reload()
    assert stream.read().endswith(b"\n\n")  # to its end
    plain.close()
    wait_for(lambda: shows_something(follower, site, "freeze"), "an event after the stream ended")
    site.daemon.stop()
    site.daemon.start()
    site.daemon.until("/v1/health", lambda a: True)
    wait_for(lambda: shows_something(follower, site, "thaw"), "an event of the daemon after that")
    assert follower.poll() is None
    site.daemon.stop()
    assert follower.wait(20) == 1
    assert "reknitd has ended the stream" in follower.stderr.read()
    site.daemon.start()
    site.daemon.until("/v1/health", lambda a: True)


def test_the_schedulers_user_is_an_operator(site):
    site.daemon.until("/metrics", lambda a: True, uid=CONFIG["scheduler_uid"])
    assert site.daemon.ask("/metrics", ALICE)[0] == 403


def test_a_group_of_operators(site):
    group = next(g for g in grp.getgrall() if g.gr_gid > 0 and g.gr_name in ("games", "users", "nogroup"))

    def status():
        os.setegid(group.gr_gid)
        try:
            return site.daemon.ask("/metrics", ALICE)[0]
        finally:
            os.setegid(0)

    assert status() == 403
    site.daemon.configure(api=site.api(), operators=group.gr_name)
    site.daemon.reload()
    assert status() == 200
    assert site.daemon.ask("/metrics", ALICE)[0] == 403
    site.daemon.configure(api=site.api(), operators="no-such-group")
    assert "there is no group" in site.daemon.reload()
    assert status() == 200


def test_a_daemon_with_an_old_configuration_is_seen(site, reknit):
    def row(name):
        said = json.loads(reknit("doctor", "--config", site.daemon.config, "--format", "json").stdout)
        return next((r for r in said["checks"] if r["check"] == name), None)

    assert row("its config")["state"] == "ok"
    site.daemon.configure(api=site.api(), poll="2s")
    stale = row("its config")
    assert stale["state"] == "warn" and stale["mend"] == "systemctl reload reknitd; restart, for state_dir"
    site.daemon.reload()
    assert row("its config")["state"] == "ok"


def test_drop_ins_lie_beside_a_configuration_given_by_hand(tmp_path, site):
    with World(nodes=1) as world:
        started_by_hand(tmp_path, world, site)


def started_by_hand(tmp_path, world, site):
    folder = tmp_path / "by-hand"
    (folder / "reknitd.d").mkdir(parents=True)
    (folder / "reknitd.yaml").write_text(json.dumps({
        "state_dir": str(folder / "state"), "spawner": "", "adapter": {"command": world.command}}))
    (folder / "reknitd.d" / "api.yaml").write_text(json.dumps({"api": {"socket": str(folder / "sock")}}))
    (folder / "reknitd.d" / "mode.yaml").write_text("mode: propose\n")
    with (folder / "log").open("w") as log:
        from api_daemon import REKNITD
        process = subprocess.Popen([REKNITD, "--config", folder / "reknitd.yaml"], stderr=log)
    try:
        wait_for((folder / "sock").exists, lambda: (folder / "log").read_text())
        with as_user(0):
            site.daemon.socket, before = folder / "sock", site.daemon.socket
            assert site.daemon.ask("/v1/health")[1]["mode"] == "propose"
            site.daemon.socket = before
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


@pytest.fixture
def munged(open_path):
    """A munged of this test; its socket."""
    if not shutil.which("munged", path="/usr/sbin:/usr/bin"):
        pytest.skip("no munged")
    folder = open_path / "munge"
    folder.mkdir(mode=0o755)
    (folder / "key").write_bytes(os.urandom(64))
    (folder / "key").chmod(0o600)
    process = subprocess.Popen([
        "/usr/sbin/munged", "--foreground", "--force", f"--socket={folder}/socket", f"--key-file={folder}/key",
        f"--pid-file={folder}/pid", f"--seed-file={folder}/seed", f"--log-file={folder}/log", "--num-threads=1"],
        stderr=subprocess.DEVNULL)
    wait_for((folder / "socket").exists, "munged")
    yield folder / "socket", process
    if process.poll() is None:
        process.terminate()
    process.wait(20)


def claim(method, target, body=""):
    """What a credential for that request says."""
    return f"{method} {target} {hashlib.sha256(body.encode()).hexdigest()}"


def credential(munge_socket, text, uid=0):
    def become():
        os.setuid(uid)
    return subprocess.run(["munge", "--socket", munge_socket, "--string", text], preexec_fn=become, check=True,
                          capture_output=True, text=True, timeout=20).stdout.strip()


def test_munge(tmp_path, open_path, world, munged, reknit):
    munge_socket, process = munged
    port = free_port()
    daemon = Daemon(open_path, world, api={"listen": f"127.0.0.1:{port}", "munge": True},
                    agents={"munge_socket": str(munge_socket)})

    def ask(path, header=None, method="GET", body=None):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        c.request(method, path, body, {"Authorization": header} if header else {})
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        return r.status, json.loads(text) if text.startswith("{") else text

    try:
        daemon.until("/v1/health", lambda a: a["ok"])
        world.submit(n_nodes=1, comment="reknit", name="hers", user="alice", uid=ALICE, runs=[(600, "completed", 0)])
        world.submit(n_nodes=1, comment="reknit", name="his", user="bob", uid=ALICE + 1, runs=[(600, "completed", 0)])
        daemon.until("/v1/jobs", lambda a: len(a["jobs"]) == 2)
        assert ask("/v1/jobs")[0] == 401
        hers = credential(munge_socket, claim("GET", "/v1/jobs?limit=5"), ALICE)
        assert [j["name"] for j in ask("/v1/jobs?limit=5", f"MUNGE {hers}")[1]["jobs"]] == ["hers"]
        assert ask("/v1/jobs", f"MUNGE {hers}")[0] == 401  # it is good once
        get = claim("GET", "/v1/jobs")
        for text, path in ((get, "/v1/health"), (claim("POST", "/v1/jobs"), "/v1/jobs"), ("", "/v1/jobs"),
                           (claim("GET", "/v1/job"), "/v1/jobs"), (claim("GET", "/v1/jobs/"), "/v1/jobs"),
                           (get, "/v1/jobs?limit=5"), (get + "0", "/v1/jobs"), (get[:-1], "/v1/jobs"),
                           (claim("GET", "/v1/jobs", "{}"), "/v1/jobs"), (claim("GET", "/v1/jobs?user=bob"), "/v1/jobs")):
            assert ask(path, f"MUNGE {credential(munge_socket, text, ALICE)}")[0] == 401, text
        status, answer = ask("/v1/jobs", f"MUNGE {credential(munge_socket, 'GET /v1/jobs', ALICE)}")
        assert status == 401 and "an older reknit" in answer["error"], answer
        job = daemon.ask("/v1/jobs")[1]["jobs"][0]["key"]
        gentle, harsh, target = '{"mode":"observe"}', '{"mode":"act"}', f"/v1/jobs/{job}/mode"
        for body, given, expected in ((gentle, harsh, 401), (gentle, None, 401), (gentle, gentle, 200)):
            proof = credential(munge_socket, claim("POST", target, body))
            assert ask(target, f"MUNGE {proof}", "POST", given)[0] == expected, given
        assert daemon.ask(f"/v1/jobs/{job}")[1]["mode"] == "observe"
        for odd in ("MUNGE ", "MUNGE x", "MUNGE \xff", "MUNGE " + "A" * 8000, "munge x"):
            assert ask("/v1/jobs", odd)[0] == 401
        freeze = claim("POST", "/v1/freeze")
        assert ask("/v1/freeze", f"MUNGE {credential(munge_socket, freeze, ALICE)}", "POST")[0] == 403
        assert ask("/v1/freeze", f"MUNGE {credential(munge_socket, freeze)}", "POST")[0] == 200
        assert daemon.ask("/v1/health")[1]["frozen"] is True

        env = {**os.environ, "REKNIT_SERVER": f"http://127.0.0.1:{port}", "REKNIT_MUNGE_SOCKET": str(munge_socket)}
        done = reknit("jobs", "--cluster", "--format", "json", env=env)
        assert len(done.stdout.splitlines()) == 2, done.stderr
        assert reknit("thaw", env=env).returncode == 0
        wrong = reknit("jobs", "--cluster", env={**env, "REKNIT_MUNGE_SOCKET": str(tmp_path / "no")})
        assert wrong.returncode == 1 and "MUNGE" in wrong.stderr

        process.terminate()  # nobody is known then, and nothing hangs
        process.wait(20)
        assert ask("/v1/jobs", "MUNGE MUNGE:AwQFAAAAAA==:")[0] == 401
        assert daemon.ask("/v1/health")[0] == 200
        daemon.stop()
    finally:
        daemon.process.kill()
        daemon.process.wait()


def test_a_token_for_the_command(site, reknit, tmp_path):
    """On a host without the socket."""
    mine = tmp_path / "mine"
    mine.write_text(f"{OTHER}\n")
    env = {**os.environ, "REKNIT_SERVER": f"https://127.0.0.1:{site.port}", "REKNIT_TOKEN_FILE": str(mine),
           "REKNIT_CA_CERT": str(site.cert)}
    assert reknit("freeze", env=env).returncode == 0
    assert site.daemon.ask("/v1/health")[1]["frozen"] is True
    untrusted = reknit("thaw", env={**env, "REKNIT_CA_CERT": ""})
    assert untrusted.returncode == 1 and "which REKNIT_SERVER names" in untrusted.stderr
    mine.write_text("x" * 30)
    assert reknit("thaw", env=env).returncode == 1
