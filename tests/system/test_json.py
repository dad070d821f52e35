# SPDX-License-Identifier: Apache-2.0
"""--format json of every verb: what comes out is JSON, its members are documented, errors go to standard error."""

import json
import os
import re
import select
import subprocess
import time

import pytest

import flight_dumps
from api_daemon import ALICE, Daemon, as_user
from fake_adapter import World
from test_help import page, verbs_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="its daemon is asked as several users")

# verb: calls that tell something, and where the members are documented beside the verb's own page: a schema of the
# API, or another page. {}: see asked(). The last member: it is one object, no list.
CALLS = {
    "diagnose": [("{log}", None, True), ("--each {log} {log}", None, False)],
    "run": [("--name other -- true", "reknit-explain.1", True)],
    "jobs": [("", "Job reknit-explain.1", False), ("--local", "reknit-explain.1", False), ("--cluster", "Job", False)],
    "explain": [("mine", None, True), ("{job}", None, True)],
    "incidents": [("", "Incident", False), ("{job}", "Incident", False)],
    "events": [("{job}", "Event", False)],
    "review": [("", None, True)],
    "approve": [("", "Job", False), ("{job}", None, True)],
    "reject": [("", "Job", False), ("{second}", None, True)],
    "mode": [("{job} propose", None, True), ("{job} default", None, True)],
    "health": [("", "Fleet", True)],
    "nodes": [("", "NodeLedger", False), ("n4", "Node", True), ("resume n4", None, True)],
    "freeze": [("", None, True)],
    "thaw": [("", None, True)],
    "flight-recorder": [("{dumps}", None, True)],
    "replay": [("mine", None, True), ("mine mine", None, False)],
    "catalog": [("check", None, True), ("explain line", None, True), ("explain -", None, False)],
    "config": [("check", None, False), ("show", None, False), ("check {config}", None, True), ("show {config}", None, True),
               ("check {policy}", None, True), ("show {policy}", None, True)],
    "doctor": [("--config {config}", None, True)],
    "release-stale": [("--config {other}", None, False)],
}
# What cannot be told: status 1, a reason, and no half an answer.
FAILURES = {
    "diagnose": "/no/such/file", "run": "--name x -- /no/such/program", "jobs": "--cluster", "explain": "nobody",
    "incidents": "99999", "events": "99999", "review": "", "approve": "99999", "reject": "99999",
    "mode": "99999 act", "health": "", "nodes": "resume n1", "freeze": "", "thaw": "", "replay": "nobody", "flight-recorder": "/no/such/folder", "catalog": "check --catalog /no/such/folder",
    "config": "show {log}", "doctor": None, "release-stale": "--config /no/such/file",
}


@pytest.fixture(scope="module")
def asked(reknit, tmp_path_factory):
    """Calls a verb in a world that has something to tell of everything."""
    folder = tmp_path_factory.mktemp("json")
    folder.chmod(0o755)
    names = {"log": folder / "train.log", "config": folder / "reknitd.yaml", "policy": folder / "policy.yaml",
             "other": folder / "other.yaml", "dumps": folder / "dumps"}
    job = flight_dumps.Job(flight_dumps.train(4))
    job.ranks[2].cpu_stop = 3
    flight_dumps.write(names["dumps"], job.run())
    names["log"].write_text("step 1: loss 2.0\n[rank0]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n")
    names["policy"].write_text("max_restarts: 3\n")
    with World(nodes=4) as world, World(nodes=1) as unwatched:
        for key in ("job", "second"):
            names[key] = world.submit(runs=[(1, "failed", 1)], user="alice", uid=ALICE, name='a "job"\n')
        world.set_node("n4", "idle", ["drain"], "reknit: of before", "root")
        held = {"reknit": {"held_until": 1}}  # a reknitd that sees it frees it, too
        unwatched.submit(held=True, priority=0, admin_comment=json.dumps(held))
        names["other"].write_text(json.dumps({"adapter": {"command": unwatched.command}}))
        daemon = Daemon(folder, world, webhook={"url": "http://127.0.0.1:9/secret"})
        env = {**os.environ, "REKNIT_SOCKET": str(daemon.socket), "REKNIT_STATE_DIR": str(folder / "mine"),
               "HOME": str(folder), "XDG_CONFIG_HOME": "", "SLURM_CONF": "/no/such/file"}

        def ask(verb, args, **more):
            words = [word.format(**names) for word in args.split()]
            at = words.index("--") if "--" in words else len(words)
            return subprocess.run([reknit.path, verb, *words[:at], "--format", "json", *words[at:]], text=True,
                                  capture_output=True, input="one\ntwo\n", timeout=60, **{"env": env, "cwd": folder, **more})

        try:
            for key in ("job", "second"):
                daemon.until(f"/v1/jobs/{names[key]}", lambda j: "decision" in j)
            daemon.until("/v1/nodes/n4", lambda n: "ledger" in n)
            assert ask("run", "--name mine -- true").returncode == 0
            yield ask, env, names
            assert daemon.process.poll() is None
        finally:
            daemon.process.kill()
            daemon.process.wait()


def documented(top, verb, where):
    words = set()
    for name in (f"reknit-{verb}.1", *(where or "").split()):
        if name.endswith(".1"):
            words |= set(re.findall(r"[*_]([a-z_]+)[*_](?![a-z])", page(top, name)))
        else:
            schema = json.loads((top / "docs/openapi.json").read_text())["components"]["schemas"][name]
            words |= set(schema["properties"])
    return words


def told(verb, args, result):
    """The objects."""
    text = result.stderr if verb == "run" else result.stdout
    lines = [line for line in text.splitlines() if verb != "run" or line.startswith("{")]
    return [json.loads(line) for line in lines]


def test_every_verb_is_looked_at(reknit):
    assert set(CALLS) == set(FAILURES) == set(verbs_of(reknit))


@pytest.mark.parametrize("verb, args, where, single", [(verb, *call) for verb, calls in CALLS.items() for call in calls])
def test_what_is_told_is_json_and_documented(asked, reknit, top, verb, args, where, single):
    ask, env, names = asked
    if verb == "events":  # until somebody ends it; what happens before it listens is not told
        words = [str(reknit.path), "events", "--format", "json", str(names["job"])]
        process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while not select.select([process.stdout], [], [], 0.2)[0] and time.monotonic() < deadline:
            ask("mode", "{job} observe")
            ask("mode", "{job} propose")
        process.kill()
        objects = [json.loads(line) for line in process.communicate()[0].splitlines()]
    else:
        result = ask(verb, args)
        assert result.returncode == (1 if verb == "doctor" else 0), result.stderr
        objects = told(verb, args, result)
    assert all(isinstance(o, dict) for o in objects)
    assert len(objects) == 1 if single else len(objects) >= 1, objects
    known = documented(top, verb, where)
    if verb == "events":  # ... and what the kind says, by its name
        known |= {o["kind"] for o in objects}
    for o in objects:
        assert set(o) <= known, f"{verb} {args}: not documented: {set(o) - known}"


@pytest.mark.parametrize("verb", FAILURES)
def test_what_cannot_be_told(asked, verb):
    """Some of these can always be told; then by a user who may not, or where nobody answers."""
    ask, env, _ = asked
    if FAILURES[verb] is None:
        pytest.skip("doctor tells what does not work")
    more = {"env": {**env, "REKNIT_SOCKET": "/no/such/socket"}} if verb in ("jobs", "review", "freeze", "thaw", "health") else {}
    result = ask(verb, FAILURES[verb], **more)
    assert result.returncode == (127 if verb == "run" else 1), (result.returncode, result.stderr)
    assert result.stdout == "" and "reknit" in result.stderr, result.stdout
    if verb == "run":
        assert told(verb, "", result)[-1]["error"]


def test_secrets_are_in_no_json(asked):
    ask, _, _ = asked
    config = json.loads(ask("config", "show {config}").stdout)["config"]
    assert config["webhook"]["url"] is True and config["poll"] == "1s" and config["opt_in"] is True


def test_a_catalogue_at_fault_is_told_in_json(asked, tmp_path):
    ask, _, _ = asked
    (tmp_path / "site.yaml").write_text("signatures:\n  - id: site.wrong\n    role: root\n    cause: storage\n"
                                        "    blame: none\n    confidence: 80\n    patterns: ['the array is gone']\n"
                                        "    source: 'this test'\n    examples:\n      match: ['something else']\n")
    result = ask("catalog", f"check --catalog {tmp_path}")
    assert result.returncode == 1, result.stdout
    fault, = json.loads(result.stdout)["faults"]
    assert fault["entry"] == "site.wrong" and fault["line"] == 2 and fault["fault"], fault
