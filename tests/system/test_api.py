# SPDX-License-Identifier: Apache-2.0
"""reknitd's API on its socket: who may see what, and who may not harm whom."""

import contextlib
import json
import os
import pathlib
import re
import select
import socket
import sqlite3
import subprocess
import time

import pytest

from api_daemon import ALICE, BOB, REKNITD, Connection, Daemon, as_user, daemon_of, wait_for
from fake_adapter import World

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="asks as several users")


@pytest.fixture
def world():
    with World(nodes=4) as w:
        yield w


@pytest.fixture
def daemon(open_path, world):
    world.submit(n_nodes=1, comment="reknit", name="hers", user="alice", uid=ALICE, runs=[(1, "failed", 1)])
    world.submit(n_nodes=1, comment="reknit", name="his", user="bob", uid=BOB, runs=[(1, "failed", 1)])
    d = Daemon(open_path, world)
    try:
        d.until("/v1/decisions", lambda a: len(a["decisions"]) == 2)
        yield d
        d.stop()
    finally:
        d.process.kill()
        d.process.wait()


def test_each_sees_his_own(daemon):
    def names(path, key, uid):
        return [j.get("name", j.get("job")) for j in daemon.ask(path, uid)[1][key]]

    assert sorted(names("/v1/jobs", "jobs", 0)) == ["hers", "his"]
    assert names("/v1/jobs", "jobs", ALICE) == ["hers"]
    assert names("/v1/decisions", "decisions", BOB) == ["his"]
    keys = {j["name"]: j["key"] for j in daemon.ask("/v1/jobs")[1]["jobs"]}
    assert set(names("/v1/incidents", "incidents", BOB)) == {keys["his"]}
    seen = daemon.ask("/v1/events?limit=500", ALICE)[1]["events"]
    assert {e.get("job") for e in seen} == {keys["hers"]}
    for path in ("", "/attempts", "/events"):
        status, answer = daemon.ask(f"/v1/jobs/{keys['hers']}{path}", BOB)
        assert status == 404 and "hers" not in json.dumps(answer)
        missing = daemon.ask(f"/v1/jobs/77-1{path}", BOB)[1]["error"]
        assert answer["error"].replace(keys["hers"], "77-1") == missing


def test_nobody_commands_anothers_job(daemon):
    job = next(j for j in daemon.ask("/v1/jobs")[1]["jobs"] if j["name"] == "hers")
    seq = job["decision"]["seq"]
    assert daemon.ask(f"/v1/decisions/{seq}/approve", BOB, "POST")[0] == 404
    assert daemon.ask(f"/v1/jobs/{job['key']}/mode", BOB, "POST", '{"mode":"off"}')[0] == 404
    assert daemon.ask("/v1/freeze", BOB, "POST")[0] == 403
    assert daemon.ask("/metrics", BOB)[0] == 403
    assert daemon.ask(f"/v1/jobs/{job['key']}")[1]["decision"]["proposal"] == "open"
    assert daemon.ask(f"/v1/decisions/{seq}/approve", ALICE, "POST")[0] == 200
    daemon.until(f"/v1/jobs/{job['key']}", lambda j: j["restarts"] == 1 or j["attempt"] == 2)


def test_a_stream_shows_ones_own_and_goes_on(daemon):
    def read(last):
        with as_user(ALICE):
            c = Connection(daemon.socket)
            c.connect()
        c.request("GET", "/v1/events", headers={"Accept": "text/event-stream", "Last-Event-ID": last})
        r = c.getresponse()
        assert r.headers["Content-Type"] == "text/event-stream"
        ids, jobs = [], set()
        while not ids or ids[-1] < newest:
            line = r.readline().decode()
            if line.startswith("id: "):
                ids.append(int(line[4:]))
            elif line.startswith("data: "):
                jobs.add(json.loads(line[6:])["job"])
        c.close()
        return ids, jobs

    events = daemon.ask("/v1/events?limit=500", ALICE)[1]["events"]
    newest = events[-1]["seq"]
    ids, jobs = read("0")
    assert ids == [e["seq"] for e in events]
    assert len(jobs) == 1
    assert read(str(ids[2]))[0] == ids[3:]


def raw(daemon, *pieces):
    """What is answered to bytes that may be cut off at some point."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(str(daemon.socket))
    with contextlib.suppress(OSError):
        for piece in pieces:
            s.sendall(piece)
    answer = b""
    with contextlib.suppress(OSError):
        while piece := s.recv(65536):
            answer += piece
    s.close()
    return answer


def test_what_is_too_large_is_refused(daemon):
    post = b"POST /v1/freeze HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    assert b" 413 " in raw(daemon, post + b"Content-Length: 99999999\r\n\r\n")
    assert b" 200 " not in raw(daemon, post + b"Transfer-Encoding: chunked\r\n\r\n",
                               *[b"2000\r\n" + b"x" * 0x2000 + b"\r\n"] * 400)
    assert b" 200 " not in raw(daemon, b"GET /v1/" + b"x" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 200 " not in raw(daemon, b"GET /v1/health HTTP/1.1\r\n", *[b"X: " + b"y" * 1000 + b"\r\n"] * 100)
    assert daemon.ask("/v1/health")[1]["frozen"] is False


def test_a_journal_that_somebody_locked_is_told_by_a_loop_that_lives(daemon):
    def health():
        return daemon.ask("/v1/health")[1]

    path = daemon.folder / "state/journal.db"
    journal = sqlite3.connect(path, isolation_level=None)
    journal.execute("BEGIN IMMEDIATE")
    assert daemon.ask("/v1/freeze", method="POST")[0] == 200  # something to write
    told = wait_for(lambda: (h := health()).get("tilt") and h, "no tilt")
    assert told["tilt"] == f"the journal cannot be written: {path}: another process has locked it" and not told["ok"]
    assert daemon.ask("/v1/thaw", method="POST")[0] == 503
    journal.execute("ROLLBACK")
    journal.close()
    wait_for(lambda: "tilt" not in health() and health()["frozen"], "the tilt stays")


def test_odd_paths_lead_nowhere(daemon):
    for path in ("/v1/jobs/..%2f..%2fetc%2fpasswd", "/../../etc/passwd", "/v1/jobs/%00", "//v1//jobs", "/v1/jobs/%2e%2e",
                 "/v1/nodes/a%20b", "/v1/decisions/0x10/approve", "/v1/jobs/'%20or%201--"):
        assert daemon.ask(path)[0] == 404, path


def test_who_has_no_jobs_is_told_how_to_get_some(reknit, tmp_path):
    with World(nodes=1) as world, daemon_of(tmp_path, world) as daemon:
        daemon.until("/v1/health", lambda h: True)
        env = {**os.environ, "REKNIT_SOCKET": str(daemon.socket), "REKNIT_STATE_DIR": str(tmp_path / "rs")}
        assert "#SBATCH --comment=reknit" in reknit("jobs", env=env).stdout
        assert reknit("jobs", "--format", "json", env=env).stdout == ""


@pytest.mark.parametrize("count", [100, 500, 3000])
def test_more_arguments_than_there_is_room_for_are_refused(daemon, count):
    status, answer = daemon.ask("/v1/jobs?" + "&".join(f"a{i}=1" for i in range(count)))
    assert (status, answer) == (414, {"error": "too many arguments"})
    assert daemon.ask("/v1/jobs?" + "&".join(f"a{i}=1" for i in range(20)))[0] in (200, 400)


def test_one_user_cannot_take_all_connections(daemon, reknit):
    held = []
    with as_user(BOB):
        for _ in range(300):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(10)
            try:
                s.connect(str(daemon.socket))
            except BlockingIOError:
                break
            held.append(s)
    assert daemon.ask("/v1/health")[0] == 200  # operators
    assert daemon.ask("/v1/health", ALICE)[0] == 200
    for uid in range(ALICE + 10, ALICE + 20):  # and many users
        with as_user(uid):
            for _ in range(32):
                s = socket.socket(socket.AF_UNIX)
                s.connect(str(daemon.socket))
                held.append(s)
    assert daemon.ask("/v1/health")[0] == 200
    held[-1].settimeout(10)
    assert held[-1].recv(100).startswith(b"HTTP/1.1 503")
    env = {**os.environ, "REKNIT_SOCKET": str(daemon.socket)}
    told = reknit("jobs", "--cluster", env=env, user=BOB, group=BOB, extra_groups=[])
    assert (told.returncode, told.stderr) == (
        1, f"reknit: error: {daemon.socket} answers with HTTP status 503: too many connections\n")
    for s in held:
        s.close()
    daemon.until("/v1/health", lambda a: True, BOB)


def test_who_is_slow_is_dropped(daemon):
    """A request that never ends, byte by byte, and a stream that nobody reads."""
    slow = socket.socket(socket.AF_UNIX)
    slow.connect(str(daemon.socket))
    slow.sendall(b"GET /v1/health HTTP/1.1\r\n")
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(str(daemon.socket))
    stream.sendall(b"GET /v1/events?follow=1&kind=all HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 0\r\n\r\n")

    def is_dropped():
        with contextlib.suppress(OSError):
            slow.sendall(b"X")
        return select.select([slow], [], [], 1)[0]

    wait_for(is_dropped, "it is kept", timeout=120)
    assert daemon.ask("/v1/health")[0] == 200
    slow.close()
    stream.close()


def test_a_stream_tells_at_once(daemon, world):
    """What happens while nobody asks for anything else."""
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(30)
    stream.connect(str(daemon.socket))
    stream.sendall(b"GET /v1/events?follow=1&kind=all HTTP/1.1\r\nHost: x\r\n\r\n")
    seen = b""
    while b"retry:" not in seen:
        seen += stream.recv(4096)
    world.submit(n_nodes=1, comment="reknit", name="third", user="bob", uid=BOB, runs=[(1, "failed", 1)])
    while b"third" not in seen or b"event: verdict" not in seen:
        seen += stream.recv(65536)  # TimeoutError: it tells nothing
    stream.close()


def test_a_thousand_come_and_go(daemon):
    for _ in range(1000):
        s = socket.socket(socket.AF_UNIX)  # without a timeout: waits while too many wait
        s.connect(str(daemon.socket))
        s.close()
    fds = pathlib.Path(f"/proc/{daemon.process.pid}/fd")
    daemon.until("/v1/health", lambda a: True)
    deadline = time.monotonic() + 20
    while len(list(fds.iterdir())) > 60 and time.monotonic() < deadline:
        select.select([], [], [], 0.1)
    assert len(list(fds.iterdir())) <= 60


def test_the_verbs_ask_it(daemon, reknit, tmp_path):
    env = {**os.environ, "REKNIT_SOCKET": str(daemon.socket), "REKNIT_STATE_DIR": str(tmp_path / "rs")}
    jobs = [json.loads(line) for line in reknit("jobs", "--format", "json", env=env).stdout.splitlines()]
    assert {j["where"] for j in jobs} == {"cluster"}
    job = next(j for j in jobs if j["name"] == "hers")
    assert "on the cluster:" in reknit("jobs", env=env).stdout
    assert "no jobs yet" in reknit("jobs", "--local", env=env).stdout
    said = reknit("explain", job["id"], env=env).stdout
    assert "it waits for approval" in said and f"reknit approve {job['key']}" in said
    assert reknit("approve", "--decision", 1, job["id"], env=env).returncode == 1
    assert "approved" in reknit("approve", job["id"], env=env).stdout
    for verb in ("approve", "reject"):
        again = reknit(verb, job["id"], env=env)
        assert again.returncode == 1 and "was approved already, by root at 20" in again.stderr, again.stderr
    assert "opts a job in" in reknit("explain", 4711, env=env).stderr
    for verb in (["approve", ""], ["mode", "", "act"], ["explain", "--cluster", ""], ["approve", "../health"]):
        done = reknit(*verb, env=env)
        assert done.returncode == 1 and "is no job: a number (4242, 25_3)" in done.stderr, verb
    assert "no run 3 is recorded" in reknit("explain", "--run", 3, job["id"], env=env).stderr
    assert "reknitd's own journal" in reknit("replay", job["id"], env=env).stderr
    listed = reknit("incidents", env=env).stdout  # on a pipe: all of it
    assert re.search(rf"^{job['key']} +1  20\d\d-\d\d-\d\dT", listed, re.MULTILINE) and "…" not in listed
    summaries = [i["summary"] for i in daemon.ask("/v1/incidents")[1]["incidents"]]
    assert len(summaries) == 2 and all(line.endswith(s) for line, s in zip(listed.splitlines()[1:], summaries))
    assert reknit("freeze", "--reason", "a test", env=env).returncode == 0
    assert daemon.ask("/v1/health")[1]["frozen"] is True
    assert reknit("thaw", env=env).returncode == 0
    assert "mode observe" in reknit("mode", job["id"], "observe", env=env).stdout
    assert daemon.ask(f"/v1/jobs/{job['key']}")[1]["mode"] == "observe"
    assert "is taken back" in reknit("mode", job["id"], "default", env=env).stdout
    assert daemon.ask(f"/v1/jobs/{job['key']}")[1]["mode"] == "propose"
    gone = reknit("incidents", env={**env, "REKNIT_SOCKET": str(tmp_path / "no")})
    assert gone.returncode == 1
    assert f"no reknitd answers at {tmp_path}/no" in gone.stderr and "REKNIT_SOCKET" in gone.stderr
    gone = reknit("jobs", "--format", "json", env={**env, "REKNIT_SOCKET": str(tmp_path / "no")})
    assert gone.returncode == 1 and "there is no such socket" in gone.stderr


def test_what_a_comment_asks_for_in_vain_is_told(open_path, world, reknit):
    world.submit(n_nodes=1, comment="reknit:obsreve", name="typo", runs=[(600, "completed", 0)])
    world.submit(n_nodes=1, comment='{"reknit": {"polcy": "patient"}}', name="member", runs=[(600, "completed", 0)])
    world.submit(n_nodes=1, comment="reknit", name="sound", runs=[(600, "completed", 0)])
    d = Daemon(open_path, world, mode="act")
    env = {**os.environ, "REKNIT_SOCKET": str(d.socket), "REKNIT_STATE_DIR": str(open_path / "rs")}
    notes = {"typo": "there is no mode or policy obsreve: standard holds",
             "member": "comment: 'polcy' means nothing here"}
    try:
        jobs = d.until("/v1/jobs", lambda a: len(a["jobs"]) == 3 and all("started_us" in j for j in a["jobs"]))["jobs"]
        assert {j["name"]: (j["mode"], j.get("notes")) for j in jobs} == \
            {**{name: ("observe", text) for name, text in notes.items()}, "sound": ("act", None)}
        for job in jobs:
            said = " ".join(reknit("explain", job["id"], env=env).stdout.split())
            done = reknit("approve", job["id"], env=env)
            assert done.returncode == 1 and f"nothing is decided about job {job['key']}" in done.stderr
            if job["name"] in notes:
                assert f"mode observe: its comment is not understood; {notes[job['name']]}" in said
            else:
                assert "mode act: opted in" in said and "not understood" not in said
        d.stop()
    finally:
        d.process.kill()
        d.process.wait()


def test_explain_names_the_log_that_is_not_read(open_path, world, reknit):
    shared = open_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for name, owner in (("other.out", BOB), ("own.out", ALICE)):
        (shared / name).write_text("")
        os.chown(shared / name, owner, owner)
    daemon = Daemon(open_path, world, mode="observe")
    with contextlib.ExitStack() as stack:
        stack.callback(daemon.process.kill)
        why = "it lies where others can put a file, and is not the user's own"
        job = world.submit(name="planted", uid=ALICE, stdout_path=str(shared / "other.out"), stderr_path=str(shared / "own.out"),
                           work_dir=str(shared), comment="reknit")
        key = daemon.until("/v1/jobs", lambda a: any(j.get("name") == "planted" for j in a["jobs"]))["jobs"][-1]["key"]
        told = daemon.until(f"/v1/jobs/{key}/events?kind=log-named", lambda a: a["events"])["events"]
        assert [(e["log"]["path"], e["log"]["trouble"]) for e in told] == [(str(shared / "other.out"), why)]
        env = {**os.environ, "REKNIT_SOCKET": str(daemon.socket)}
        said = " ".join(reknit("explain", job, env=env).stdout.split())
        assert f"its log {shared}/other.out is not read: {why}" in said
        assert f"logs read on reknitd's host; {shared}/other.out is not read: {why}" in said
        run = json.loads(reknit("explain", "--format", "json", job, env=env).stdout)
        assert run["now"]["unread_logs"] == [{"path": f"{shared}/other.out", "why": why}]
        assert [e["log"]["trouble"] for e in run["attempts"][0]["events"] if e["kind"] == "log-named"] == [why]
        daemon.stop()


def test_what_was_observed_is_not_caught_up_with(open_path, world, reknit):
    world.submit(n_nodes=1, comment="reknit", name="fails", runs=[(1, "failed", 1)])
    world.submit(n_nodes=1, comment="reknit", name="late", runs=[(1, "timeout", 0)])
    over = world.submit(n_nodes=1, comment="reknit", name="over", runs=[(600, "completed", 0)])
    world.end(over)
    d = Daemon(open_path, world, mode="observe")
    env = {**os.environ, "REKNIT_SOCKET": str(d.socket), "REKNIT_STATE_DIR": str(open_path / "rs")}
    try:
        jobs = d.until("/v1/jobs", lambda a: len([j for j in a["jobs"] if "decision" in j]) == 3)["jobs"]
        assert "attempt 1  had ended when it was first seen\n" in reknit("explain", over, env=env).stdout
        key, late = (next(j["key"] for j in jobs if j["name"] == name) for name in ("fails", "late"))
        said = reknit("explain", late, env=env).stdout
        assert "exit status -1" not in said and "without an exit status" in said
        assert "not done reknit only observes" in " ".join(reknit("explain", key, env=env).stdout.split())
        assert reknit("mode", key, "propose", env=env).returncode == 0
        said = reknit("explain", key, env=env).stdout
        assert "was decided in mode observe" in said and "only observes" not in said
        done = reknit("approve", key, env=env)
        assert done.returncode == 1 and "waits for no approval: " in done.stderr and "mode observe" in done.stderr
        d.stop()
    finally:
        d.process.kill()
        d.process.wait()


def test_metrics_and_health_tell_what_happened(daemon):
    status, text = daemon.ask("/metrics")
    assert status == 200
    assert 'reknit_incidents_total{class="crash",cause="unknown"} 2' in text
    assert "reknit_adapter_up 1" in text and "alice" not in text
    health = daemon.ask("/v1/health")[1]
    assert health["ok"] is True and health["adapter"]["state"] == "connected"


def test_a_second_daemon_leaves_the_socket_alone(daemon, tmp_path, world):
    again = subprocess.run([str(REKNITD), "--config", str(daemon.config), "--drop-ins", str(tmp_path / "none")],
                           capture_output=True, text=True, timeout=20)
    assert again.returncode == 1
    assert daemon.ask("/v1/health")[0] == 200
