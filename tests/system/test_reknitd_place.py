# SPDX-License-Identifier: Apache-2.0
"""The place of a job on a full cluster, those that wait for it, and those that are stopped: real Slurm."""

import json
import secrets
import shutil
import subprocess

import pytest
from cluster import Cluster, await_true
from conftest import REKNIT
from reknitd import PLUGIN, QUEUE_BY_AGE, Reknitd, Site

AGENT, SEAL = REKNIT.parent / "reknit-agent", REKNIT.parent / "reknit-seal"

pytestmark = pytest.mark.slurm

AT_ONCE = {"causes": {"unknown": {"backoff": "0s"}, "user-code": {"backoff": "0s"}}}
POLICIES = [
    {"name": "first", "users": True, "policy": {"keep_place": "priority", **AT_ONCE}},
    {"name": "kept", "users": True, "policy": {"keep_place": "reservation", **AT_ONCE}},
    {"name": "plain", "users": True, "policy": AT_ONCE},
    {"name": "held", "users": True,
     "policy": {"hold_on_stop": True, "causes": {"unknown": {"retries": 0}, "user-code": {"retries": 0}}}},
]
# One rank dies at once; its script notices, as launchers do, some time later, and fails; the next attempt runs on.
DIES = """
test -n "$SLURM_RESTART_COUNT" && exec sleep 300
srun --kill-on-bad-exit=0 sh -c 'test "$SLURM_PROCID" != 1 || exit 1'
sleep 4
exit 1
"""
FAILS = 'test -n "$SLURM_RESTART_COUNT" && exec sleep 3\nsleep 3\nexit 1'


@pytest.fixture(scope="module")
def site():
    with Site(nodes=4, cpus=1, conf=QUEUE_BY_AGE, plugstack=Cluster.plugin(PLUGIN)) as s:
        yield s


@pytest.fixture(scope="module")
def daemon(site):
    d = Reknitd(site, spawner=False, policies=POLICIES,
                agents={"listen": site.agents_address, "munge_socket": str(site.munge_socket)})
    shutil.copy2(SEAL, d.programs)
    d.start()
    site.start_agents(AGENT)
    d.await_log("its agent is connected")
    await_true("all agents", lambda: d.log().count("its agent is connected") >= len(site.nodes))
    yield d
    assert d.stop() == 0
    assert "identical" in d.journal.replay()


@pytest.fixture(autouse=True)
def empty(site):
    yield
    site.run("scancel", "-u", "root")
    await_true("an empty cluster", lambda: all(
        job["job_state"] not in ("RUNNING", "PENDING", "COMPLETING") for job in site.jobs().values()))
    site.await_nodes(states=("idle",))


def submit(site, policy, script=DIES, nodes=3, **options):
    comment = json.dumps({"reknit": {"policy": policy}})
    options.setdefault("job_name", f"{policy}-{secrets.token_hex(3)}")  # one of that name would be its successor
    job = site.submit(script, nodes=nodes, ntasks=nodes, comment=comment, exclusive=True, **options)
    site.await_state(job, "RUNNING")
    return job


def crowd(site, count=3):
    """Others, that wait for more nodes than are idle."""
    return [site.submit("sleep 4", nodes=2, exclusive=True, comment="reknit:off", job_name=f"other-{n}")
            for n in range(count)]


def reservations(site):
    text = site.run("scontrol", "-o", "show", "reservation")
    return [line.split()[0] for line in text.splitlines() if line.startswith("ReservationName=")]


def begun(site, *jobs):
    """In the order in which their last attempts began."""
    return sorted(jobs, key=lambda job: site.job(job)["start_time"])


def test_priority_puts_it_before_the_others(site, daemon):
    job = submit(site, "first", nodes=4)
    others = crowd(site)
    for other in others:
        site.update_job(other, Priority=1000)
    site.await_state(job, "RUNNING", where=lambda j: j["restart_cnt"] == 1)
    raised = [e.body for e in daemon.journal.intents(job, "amend") if e.body.get("first")]
    assert len(raised) == 1, daemon.journal.story(job)
    assert site.state(others[-1]) == "PENDING", daemon.journal.story(job)
    daemon.journal.wait(job, "intent", lambda e: e.body["intent"] == "yield")
    await_true("its own priority", lambda: site.job(job)["priority"] < 1000)


def test_a_reservation_keeps_its_nodes(site, daemon):
    job = submit(site, "kept")
    filler = site.submit("sleep 300", nodes=1, exclusive=True, comment="reknit:off")
    site.await_state(filler, "RUNNING")
    where, others = site.job(job)["nodes"], crowd(site)
    site.await_state(job, "RUNNING", where=lambda j: j["restart_cnt"] == 1)
    story = daemon.journal.story(job)
    assert site.job(job)["nodes"] == where, story
    assert {site.state(other) for other in others} == {"PENDING"}, story
    reserved = daemon.journal.intents(job, "reserve")
    assert len(reserved) == 1 and reserved[0].attempt == 1, story
    assert reserved[0].seq < daemon.journal.intents(job, "requeue")[0].seq
    assert await_true("no reservation", lambda: not reservations(site)) and site.state(job) == "RUNNING"


def test_without_it_others_are_faster(site, daemon):
    """What the test above is about."""
    job = submit(site, "plain")
    filler = site.submit("sleep 300", nodes=1, exclusive=True, comment="reknit:off")
    site.await_state(filler, "RUNNING")
    others = crowd(site)
    daemon.journal.wait(job, "intent", lambda e: e.body["intent"] == "requeue")
    await_true("another that runs", lambda: any(site.state(other) == "RUNNING" for other in others))
    assert not daemon.journal.intents(job, "reserve")


def test_a_reservation_outlives_no_death_of_reknitd(site, daemon):
    job = submit(site, "kept")
    await_true("a reservation", lambda: reservations(site), poll=0.02)
    daemon.kill()
    site.run("scancel", job)
    row = daemon.doctor()["reservations"]
    daemon.start()
    await_true("no reservation", lambda: not reservations(site))
    assert (row["state"], f"reknit-{job}-0" in row["found"]) == ("warn", True), row


def test_release_stale_knows_reservations(site, daemon):
    site.run("scontrol", "create", "reservation", "ReservationName=reknit-999-0", "StartTime=now", "Duration=10",
             "Users=root", "Nodes=n1", "Flags=IGNORE_JOBS")
    site.run("scontrol", "create", "reservation", "ReservationName=other-999-0", "StartTime=now", "Duration=10",
             "Users=root", "Nodes=n2", "Flags=IGNORE_JOBS")
    argv = [daemon.programs / "reknit", "release-stale", "--config", daemon.config]
    done = subprocess.run(argv, env=site.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "reknit-999-0" in done.stdout, done
    assert reservations(site) == ["ReservationName=other-999-0"]
    site.run("scontrol", "delete", "reservation=other-999-0")


def test_those_that_wait_for_its_success_are_told_anew(site, daemon):
    job = submit(site, "plain", FAILS, nodes=1)
    follower = site.submit("true", dependency=f"afterok:{job}", comment="reknit:off")
    both = site.submit("true", dependency=f"afterany:{follower},afterok:{job}", comment="reknit:off")
    site.await_state(job, "COMPLETED")
    assert site.restarts(job) == 1
    for waiting in (follower, both):
        site.await_state(waiting, "COMPLETED")  # told so by Slurm in time, or anew by us


def test_who_is_stopped_is_held_if_the_policy_says_so(site, daemon):
    job = submit(site, "held", "test -n \"$SLURM_RESTART_COUNT\" && exit 0\nsleep 3\nexit 1", nodes=1)
    site.await_state(job, "SPECIAL_EXIT")
    daemon.journal.wait(job, "job-ended")
    site.run("scontrol", "release", job)
    site.update_job(job, StartTime="now")
    site.await_state(job, "COMPLETED")
