# SPDX-License-Identifier: Apache-2.0
"""reknit doctor: each link broken in turn, with a scheduler in memory, stand-ins of MUNGE and of reknitd's
API, and last with a real Slurm."""

import http.server
import json
import os
import re
import shlex
import shutil
import socketserver
import subprocess
import threading
import time

import cluster as cluster_module
import pytest
from fake_adapter import World

HEALTH = {"ok": True, "frozen": False, "storm": False, "version": "VERSION", "cluster": "fake", "mode": "observe",
          "tilt": None, "adapter": {"ok": True, "state": "connected", "errors": 0},
          "readers": {"running": 3, "hung": 0, "replaced": 0}, "agents": {"listening": True, "connected": 2, "gone": 0, "gone_nodes": []}}
HOW_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes the owners of jobs")


class Api(socketserver.ThreadingUnixStreamServer):
    """Answers GET /v1/health with .health; a status instead, if that is a number."""

    daemon_threads = True

    def __init__(self, path, health):
        self.health = health

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                health = self.server.health if self.path == "/v1/health" else 404
                self.send_response(health if isinstance(health, int) else 200)
                self.end_headers()
                self.wfile.write(json.dumps(health).encode())

            def address_string(self):
                return "unix"

            def log_message(self, *_):
                pass

        super().__init__(str(path), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Site:
    """A folder with everything that doctor looks at, all of it well; tests break one thing."""

    def __init__(self, reknit, path, world):
        self.reknit, self.path, self.world = reknit, path, world
        self.version = reknit("--version").stdout.split()[1]
        (path / "bin").mkdir()
        self.program("munge", "echo MUNGE:credential:")
        self.program("unmunge", "read x; test $x = MUNGE:credential:")
        (path / "slurm.conf").write_text("ClusterName=x\n")
        (path / "spank_reknit.so").write_bytes(b"")
        (path / "plugstack.conf").write_text(f"optional {path}/spank_reknit.so\n")
        self.env = {"PATH": f"{path}/bin:/usr/bin:/bin", "SLURM_CONF": f"{path}/slurm.conf"}
        self.config = {"adapter": {"command": [str(w) for w in world.command]}, "state_dir": str(path),
                       "spawner": "", "api": {"socket": f"{path}/api"}, "log_level": "info"}
        self.api = Api(path / "api", {**HEALTH, "version": self.version})

    def program(self, name, script):
        program = self.path / "bin" / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def doctor(self):
        """(exit status, {check: row})"""
        config = self.path / "reknitd.yaml"
        config.write_text(json.dumps(self.config))  # is YAML too
        done = self.reknit("doctor", "--config", config, "--format", "json", env=self.env)
        told = self.told = json.loads(done.stdout)
        assert done.stdout.count("\n") == 1
        rows = {row["check"]: row for row in told["checks"]}
        states = [row["state"] for row in told["checks"]]
        assert {s: told[s] for s in ("ok", "skip", "warn", "fail")} == \
            {s: states.count(s) for s in ("ok", "skip", "warn", "fail")}
        assert done.returncode == (1 if "fail" in states else 0), done.stderr
        return done.returncode, rows

    def row(self, check):
        return self.doctor()[1][check]


@pytest.fixture
def world():
    with World(nodes=4) as w:
        yield w


@pytest.fixture
def site(reknit, open_path, world):
    s = Site(reknit, open_path, world)
    yield s
    s.api.shutdown()
    s.api.server_close()


def test_a_chain_that_works(site, world):
    log = site.path / "job.out"
    log.write_text("step 1\n")
    world.submit(uid=os.geteuid(), stdout_path=str(log), comment="reknit", runs=[(600, "completed", 0)])
    status, rows = site.doctor()
    assert status == 0, [r for r in rows.values() if r["state"] == "fail"]
    assert {name for name, row in rows.items() if row["state"] == "ok"} >= {
        "configuration", "programs", "state folder", "MUNGE", "plugin", "adapter", "slurmctld", "clock", "release",
        "permission", "MinJobAge", "JobRequeue", "KillOnBadExit", "jobs", "logs", "reknitd", "its adapter"}
    assert rows["jobs"]["found"].startswith("1 known: 1 opted in; would be acted on 0, ")
    assert all(row["mend"] is None for row in rows.values() if row["state"] == "ok")


@pytest.mark.parametrize("name", ["reknitd", "reknit-spawner", "reknit-slurm", "reknit-reader", "reknit-seal", "reknit-post"])
def test_a_program_that_is_missing(site, name):
    """reknitd would only notice when it needs it."""
    programs = site.path / "programs"
    shutil.copytree(site.reknit.path.parent, programs, ignore=shutil.ignore_patterns(name, "*.so", "reknit-agent"))
    done = subprocess.run([programs / "reknit", "doctor", "--config", "/dev/null", "--format", "json"],
                          env=site.env, capture_output=True, text=True, timeout=60)
    row = next(row for row in json.loads(done.stdout)["checks"] if row["check"] == "programs")
    assert row["state"] == "warn" and row["found"] == f"not found: {name}" and row["mend"], row


def test_people_read_the_same(site, reknit):
    site.config["state_dir"] = f"{site.path}/absent"
    _, rows = site.doctor()
    text = reknit("doctor", "--config", site.path / "reknitd.yaml", env=site.env).stdout
    for name, row in rows.items():
        assert re.search(rf"^{row['state']:<5}{name} +{re.escape(row['found'])}$", text, re.MULTILINE)
    assert f"\n     mend:           {rows['state folder']['mend']}\n" in text


@pytest.mark.parametrize("config, check, state, found", [
    ({"forget_s": 300}, "MinJobAge", "warn", "forgotten after 5min 00s: no restart can come later"),
    ({"forget_s": 120}, "MinJobAge", "fail", "forgotten after 2min 00s, a decision waits 4min 00s"),
    ({"requeue_default": False}, "JobRequeue", "warn", "may not be requeued"),
    ({"kill_on_bad_exit": False}, "KillOnBadExit", "warn", "lives on"),
    ({"operator": None}, "permission", "skip", "does not tell"),
    ({"version": "23.11.4"}, "release", "warn", "the scheduler is 23.11.4"),
    ({"version": "\x1b]0;x\x07"}, "release", "warn", "\ufffd]0;x\ufffd"),
])
def test_what_the_scheduler_says(site, world, config, check, state, found):
    world.config.update(config)
    row = site.row(check)
    assert row["state"] == state and found in row["found"], row
    assert state == "skip" or row["mend"] is None or "slurm.conf" in row["mend"] or check == "release"


def test_an_adapter_that_may_nothing(site, world):
    world.config["operator"] = False
    row = site.row("permission")
    assert row["state"] == ("fail" if os.geteuid() == 0 else "skip"), row


@pytest.mark.parametrize("off, state", [(40, "fail"), (-5, "warn")])
def test_clocks_that_differ(site, world, off, state):
    world.clock = lambda: time.time() + off
    row = site.row("clock")
    assert row["state"] == state and ("ahead" if off > 0 else "behind") in row["found"], row


@pytest.mark.parametrize("command, found", [
    (["/dev/null/adapter"], "/dev/null/adapter: "),
    (["/bin/false"], "/bin/false: "),
])
def test_an_adapter_that_does_not_start(site, command, found):
    site.config["adapter"]["command"] = command
    status, rows = site.doctor()
    assert status == 1
    assert rows["adapter"]["state"] == "fail" and rows["adapter"]["found"].startswith(found), rows["adapter"]
    assert rows["slurmctld"]["state"] == "skip"
    assert rows["reknitd"]["state"] == "ok"  # what can be tested is


def test_a_controller_that_is_down(site, world):
    world.break_next("ping", "error", times=9, error="unreachable", text="connection refused")
    status, rows = site.doctor()
    assert status == 1 and rows["slurmctld"]["state"] == "fail"
    assert "MinJobAge" not in rows and rows["reknitd"]["state"] == "ok"


def test_an_adapter_that_dies_when_asked(site, world):
    world.break_next("jobs", "die", times=9)
    _, rows = site.doctor()
    assert rows["jobs"]["state"] == "fail", rows["jobs"]
    assert rows["MinJobAge"]["state"] == "ok"


def test_an_adapter_that_finds_no_scheduler(site, world):
    world.break_next("ping", "die", times=9)
    status, rows = site.doctor()
    assert status == 1 and rows["adapter"]["state"] == "fail" and rows["slurmctld"]["state"] == "skip"
    assert "ends when Slurm is asked" in rows["adapter"]["found"] and "slurm.conf" in rows["adapter"]["mend"]


def test_a_socket_of_ones_own(site):
    site.env["REKNIT_SOCKET"] = f"{site.path}/other"
    assert site.row("reknitd")["found"] == f"it does not run ({site.path}/other)"


def test_comments_that_ask_in_vain(site, world):
    world.submit(comment="reknit:nope", runs=[(600, "completed", 0)])
    world.submit(comment='{"reknit": {"mode": "atc"}}', runs=[(600, "completed", 0)])
    site.doctor()
    rows = [row for row in site.told["checks"] if row["check"] == "comments"]
    assert [(row["state"], row["found"]) for row in rows] == [
        ("warn", "job 1, mode observe: there is no mode or policy nope: standard holds"),
        ("warn", "job 2, mode observe: comment: mode is none of off, observe, propose, act")]


@HOW_ROOT
@pytest.mark.parametrize("mode, found", [(0o600, "its owner may not read it here"), (0o644, None)])
def test_logs_are_tried_as_their_owner(site, world, mode, found):
    log = site.path / "job.out"
    log.write_text("x\n")
    log.chmod(mode)
    world.submit(uid=65534, user="nobody", stdout_path=str(log), runs=[(600, "completed", 0)])
    row = site.row("logs")
    assert row["state"] == ("fail" if found else "ok"), row
    assert not found or row["found"] == f"1 of 1 cannot be read: job 1, {log}: {found}"


@HOW_ROOT
def test_logs_that_are_elsewhere(site, world):
    world.submit(uid=0, stdout_path=f"{site.path}/absent/%N.out", runs=[(600, "completed", 0)])
    world.submit(uid=0, stdout_path=f"{site.path}/%N-%t.out", runs=[(600, "completed", 0)])
    row = site.row("logs")
    assert row["state"] == "warn"
    assert row["found"] == f"1 of 2 cannot be read: job 1, {site.path}/absent/%N.out: its folder is not on this host"


@HOW_ROOT
@pytest.mark.parametrize("read_at, state", [("auto", "ok"), ("nodes", "ok"), ("controller", "warn")])
def test_logs_that_nodes_read(site, world, read_at, state):
    site.config |= {"agents": {"listen": "127.0.0.1:6821"}, "readers": {"read_at": read_at}}
    for name in ("absent/x.out", "x.out"):
        world.submit(uid=0, stdout_path=f"{site.path}/{name}", runs=[(600, "completed", 0)])
    row = site.row("logs")
    assert row["state"] == state, row
    assert ("are to be read on the jobs' nodes" in row["found"]) == (state == "ok"), row


@HOW_ROOT
def test_an_owner_that_this_host_does_not_know(site, world):
    world.submit(uid=1234567, stdout_path="/etc/hostname", runs=[(600, "completed", 0)])
    assert "this host does not know its owner" in site.row("logs")["found"]


def test_munge_that_does_not_work(site):
    site.program("munge", "echo munge: Error: no socket >&2; exit 1")
    row = site.row("MUNGE")
    assert row["state"] == "fail" and "munge: Error: no socket" in row["found"], row
    site.program("munge", "echo other")
    assert site.row("MUNGE")["state"] == "fail"


def test_munge_is_asked_where_slurm_asks_it(site):
    (site.path / "slurm.conf").write_text("AuthInfo=cred_expire=60,socket=/run/m.sock # x\n")
    site.program("munge", 'test "$*" = "-n -S /run/m.sock" && echo MUNGE:credential:')
    site.program("unmunge", 'test "$*" = "-n -S /run/m.sock"')
    assert site.row("MUNGE")["state"] == "ok"


@pytest.mark.parametrize("conf, state", [
    ("", "skip"),
    ("# optional spank_reknit.so\noptional other.so\n", "skip"),
    ("required /x/spank_reknit.so\n", "fail"),
    ("include DIR/stack.d/*\n", "ok"),
    ("optional /nowhere/spank_reknit.so\n", "warn"),
    ("optional spank_reknit.so\n", "warn"),
    ("include DIR/plugstack.conf\n", "skip"),
])
def test_the_plugin(site, conf, state):
    (site.path / "stack.d").mkdir()
    (site.path / "stack.d/reknit.conf").write_text(f"optional\t{site.path}/spank_reknit.so  socket=/x\n")
    (site.path / "slurm.conf").write_text("PluginDir=/nowhere:/else\n")
    (site.path / "plugstack.conf").write_text(conf.replace("DIR", str(site.path)))
    row = site.row("plugin")
    assert row["state"] == state, row
    if state == "ok":
        assert f"'optional {site.path}/spank_reknit.so'" in row["found"]
    elif "required" not in conf and "plugstack" not in conf:
        assert re.match("'optional .*spank_reknit.so' in it", row["mend"])


def test_the_plugin_where_slurm_looks_for_it(site):
    (site.path / "other").write_text("required spank_reknit.so\n")
    (site.path / "slurm.conf").write_text(f"plugstackconfig={site.path}/other\n")
    assert site.row("plugin")["state"] == "fail"


def test_the_plugin_in_slurms_own_folder(site):
    (site.path / "plugstack.conf").write_text("optional spank_reknit.so\n")
    (site.path / "slurm.conf").write_text(f"PluginDir=/nowhere:{site.path}\n")
    assert site.row("plugin")["state"] == "ok"


def test_a_configuration_that_is_broken(site):
    site.config["modus"] = "act"
    status, rows = site.doctor()
    assert status == 1 and "there is no key 'modus'" in rows["configuration"]["found"]
    assert rows["MUNGE"]["state"] == "ok"


def test_what_the_configuration_names_is_not_there(site):
    site.config |= {"operators": "no-such-group", "fence": [f"{site.path}/absent", "{node}"],
                    "spawner": f"{site.path}/absent", "state_dir": "/proc"}
    _, rows = site.doctor()
    for check in ("operators", "fence", "spawner", "state folder"):
        assert rows[check]["state"] == "fail" and rows[check]["mend"], rows[check]


@pytest.mark.parametrize("health, check, state, found", [
    ({"version": "0.0.9"}, "reknitd", "fail", "of release 0.0.9"),
    ({"tilt": "the clock jumped"}, "reknitd", "fail", "acts on nothing: the clock jumped"),
    ({"frozen": True}, "reknitd", "warn", "is frozen"),
    ({"journal": {"bytes": 4096, "seq": 9, "lost": 3}}, "its journal", "warn", "3 entries were lost before it started"),
    ({"adapter": {"ok": False, "state": "it hangs"}}, "its adapter", "fail", "it hangs"),
    ({"readers": {"hung": 2}}, "its readers", "warn", "2 hang"),
    ({"readers": {"running": 3, "on_nodes": 2}}, "its readers", "ok", "2 of them on nodes"),
    ({"readers": {"unread": 4, "unread_job": "7-1", "unread_why": "not read on node n7: it hung"}}, "its readers", "warn",
     "the logs of 4 running jobs are not read; job 7-1: not read on node n7: it hung"),
    ({"holds": {"unnoted": 1, "unnoted_job": "17"}}, "its holds", "warn", "1 jobs are held without a note"),
    ({"agents": {"listening": True, "connected": 0}}, "agents", "warn", "hears of none"),
    ({"agents": {"listening": True, "connected": 7}}, "agents", "ok", "of 7 nodes"),
    ({"agents": {"listening": False}}, "agents", "warn", "does not listen"),
    ({"agents": {"listening": True, "connected": 6, "gone": 1, "gone_nodes": ["n9"]}}, "agents", "warn", "n9"),
    ({"agents": None}, "agents", "skip", "to operators only"),
])
def test_what_reknitd_says(site, health, check, state, found):
    site.config["agents"] = {"listen": "127.0.0.1:6821"}
    site.api.health = {**site.api.health, **health}
    row = site.row(check)
    assert row["state"] == state and found in row["found"], row


@pytest.mark.parametrize("health", [500, "nonsense"])
def test_a_reknitd_that_answers_nonsense(site, health):
    site.api.health = health
    assert site.row("reknitd")["state"] == "fail"


def test_no_reknitd(site):
    site.config["api"]["socket"] = f"{site.path}/other"
    row = site.row("reknitd")
    assert row["state"] == "fail" and row["mend"] == "systemctl start reknitd"


@pytest.mark.slurm
def test_a_real_slurm(site, reknit):
    if not (reknit.path.parent / "reknit-slurm").exists():
        pytest.skip("reknit-slurm was not built")
    site.config["adapter"]["command"] = []
    with cluster_module.Cluster(nodes=2) as c:
        site.env = c.env
        job = c.submit("sleep 600", job_name="a job", comment="reknit")
        c.await_state(job, "RUNNING")
        status, rows = site.doctor()
        expected = {"adapter": "ok", "slurmctld": "ok", "clock": "ok", "release": "ok", "permission": "ok",
                    "MinJobAge": "ok", "JobRequeue": "ok", "KillOnBadExit": "warn", "MUNGE": "ok", "jobs": "ok",
                    "logs": "ok"}
        assert {name: rows[name]["state"] for name in expected} == expected, rows
        assert "1 known: 1 opted in" in rows["jobs"]["found"]
        c.stop_munge()
        assert site.row("MUNGE")["state"] == "fail"
        c.start_munge()
        c.stop_slurmctld()
        status, rows = site.doctor()
        assert status == 1 and rows["slurmctld"]["state"] == "fail" and rows["MUNGE"]["state"] == "ok", rows


@HOW_ROOT
def test_the_adapter_of_the_spawner(site, reknit):
    """As reknitd has it: started by root's spawner, as SlurmUser, with the spawner's own idea of a program."""
    socket = site.path / "spawner"
    site.program("reknit-slurm", "exec " + shlex.join(str(c) for c in site.world.command))
    spawner = subprocess.Popen([reknit.path.parent / "reknit-spawner", "--socket", socket, "--user", "root",
                                "--slurm-user", "root", "--programs", site.path / "bin"])
    try:
        cluster_module.await_true("the spawner's socket", socket.exists)
        site.config |= {"spawner": str(socket), "adapter": {"command": []}}
        _, rows = site.doctor()
        assert rows["spawner"]["state"] == "ok"
        assert rows["adapter"] == {"check": "adapter", "state": "ok", "mend": None,
                                   "found": "the one that the spawner starts answers"}
        assert rows["slurmctld"]["state"] == "ok" and rows["jobs"]["state"] == "ok"
        site.program("reknit-slurm", "exit 3")
        _, rows = site.doctor()
        assert rows["adapter"]["state"] == "fail" and rows["slurmctld"]["state"] == "skip", rows["adapter"]
    finally:
        spawner.terminate()
        assert spawner.wait(timeout=30) == 0
