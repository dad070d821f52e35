# SPDX-License-Identifier: Apache-2.0
"""reknit review: what was decided, beside what people did."""

import json
import os
import time

import pytest

from api_daemon import ALICE, BOB, Daemon, as_user
from fake_adapter import World

FAILS = [(1, "failed", 1)]


@pytest.fixture
def world():
    with World(nodes=16) as w:
        yield w


@pytest.fixture
def daemon(open_path, world):
    d = Daemon(open_path, world, mode="observe")
    try:
        yield d
        d.stop()
    finally:
        d.process.kill()
        d.process.wait()


def submit(world, name, user="alice", uid=ALICE, runs=FAILS, **members):
    return world.submit(n_nodes=1, name=name, user=user, uid=uid, runs=runs, **members)


def decided(daemon, *jobs):
    for job in jobs:
        daemon.until(f"/v1/jobs/{job}", lambda j: "decision" in j)


def review(reknit, daemon, *args, uid=0):
    with as_user(uid):
        done = reknit("review", *args, env={**os.environ, "REKNIT_SOCKET": str(daemon.socket)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def cases(reknit, daemon, uid=0):
    return {c["name"]: c for c in json.loads(review(reknit, daemon, "--format", "json", uid=uid))["cases"]}


def test_what_people_did(reknit, daemon, world):
    requeued, again, alone = submit(world, "requeued"), submit(world, "again"), submit(world, "alone")
    gone_on = submit(world, "gone", runs=[(1, "failed", 1)], partition="main")
    decided(daemon, requeued, again, alone, gone_on)
    with world.lock:
        world._requeue(requeued, delay=0)
    second = submit(world, "again", runs=[(600, "completed", 0)])
    daemon.until(f"/v1/jobs/{requeued}", lambda j: j["attempt"] == 2)
    daemon.until(f"/v1/jobs/{second}", lambda j: True)
    seen = cases(reknit, daemon)
    assert (seen["requeued"]["afterwards"], seen["requeued"]["agreement"]) == ("requeued", "yes")
    assert (seen["again"]["afterwards"], seen["again"]["agreement"]) == ("resubmitted", "yes")
    assert seen["again"]["resubmitted_as"].startswith(f"{second}-")
    assert (seen["alone"]["afterwards"], seen["alone"]["agreement"]) == ("open", "unknown")
    answer = json.loads(review(reknit, daemon, "--format", "json"))
    assert answer["all"]["agreed"] == 2 and answer["all"]["rate"] == 100
    assert sum(c["decisions"] for c in answer["by_cause"]) == len(answer["cases"])
    assert sum(c["decisions"] for c in answer["by_rule"]) == len(answer["cases"])
    text = review(reknit, daemon)
    assert "requeued it" in text and f"submitted it again as {second}" in text.replace("\n", " ")
    assert "too few to let it act on" in text
    assert all(len(line) <= 80 for line in text.splitlines()), text


def test_each_sees_his_own(reknit, daemon, world):
    hers, his = submit(world, "hers"), submit(world, "his", user="bob", uid=BOB)
    decided(daemon, hers, his)
    assert set(cases(reknit, daemon)) == {"hers", "his"}
    assert set(cases(reknit, daemon, uid=BOB)) == {"his"}


def test_nothing_yet(reknit, daemon):
    daemon.until("/v1/health", lambda a: a["ok"])
    assert "no restart or stop was decided in the last 7d" in review(reknit, daemon)
    assert json.loads(review(reknit, daemon, "--format", "json"))["cases"] == []


def test_no_daemon_and_a_wrong_time(reknit, tmp_path):
    env = {**os.environ, "REKNIT_SOCKET": str(tmp_path / "no")}
    assert "no reknitd answers at" in reknit("review", env=env).stderr
    wrong = reknit("review", "--since", "yesterday", env=env)
    assert wrong.returncode == 2 and "7d" in wrong.stderr


def test_more_events_than_a_page(reknit, daemon, world):
    """The new job of the old name is beyond the first page of its kind."""
    failed = submit(world, "again")
    decided(daemon, failed)
    for n in range(600):
        submit(world, f"other{n}", runs=[(600, "completed", 0)])
    daemon.until("/v1/jobs/601", lambda j: True)
    last = submit(world, "again", runs=[(600, "completed", 0)])
    daemon.until(f"/v1/jobs/{last}", lambda j: True)
    assert cases(reknit, daemon)["again"]["afterwards"] == "resubmitted"


def test_nodes_that_people_took_out(reknit, daemon, world, tmp_path):
    """Their word about a node that was blamed counts, Slurm's own does not, nor that about another time."""
    jobs = []
    for n, name in enumerate(("theirs", "slurms", "before", "nobodys")):
        log = tmp_path / name
        log.write_text("0: [rank0]: ready\n1: [rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n")
        jobs.append(world.submit(n_nodes=2, n_tasks=2, name=name, user="root", uid=0, gid=0, stdout_path=str(log),
                                 required=[f"n{2 * n + 1}"], runs=[(5, "failed", 1)]))
    decided(daemon, *jobs)
    blamed = {name: c["nodes"] for name, c in cases(reknit, daemon).items()}
    assert all(len(nodes) == 1 for nodes in blamed.values()), blamed
    now = int(time.time())
    for name, reason, user, at in (("theirs", "bad HBM, ticket 12", "bob", now), ("slurms", "Not responding", "root", now),
                                   ("before", "bad HBM", "bob", now - 7200)):
        with world.lock:
            world.nodes[blamed[name][0]].update(flags=["drain"], usable=False, reason=reason, reason_user=user, reason_time=at)
    for nodes in blamed.values():
        if nodes != blamed["nobodys"]:
            daemon.until(f"/v1/nodes/{nodes[0]}", lambda a: a["scheduler"]["usable"] is False)
    seen = {name: [(w["node"], w["who"], w["reason"]) for w in c["taken_out"]] for name, c in cases(reknit, daemon).items()}
    assert seen == {"theirs": [(blamed["theirs"][0], "bob", "bad HBM, ticket 12")], "slurms": [], "before": [], "nobodys": []}
    text = review(reknit, daemon)
    assert f"took out {blamed['theirs'][0]} (bob)" in text
    assert "Nodes were blamed 4 times; 1 times people have taken" in text
