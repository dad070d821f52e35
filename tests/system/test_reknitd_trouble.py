# SPDX-License-Identifier: Apache-2.0
"""What reknitd stands on fails while it brings a job back: the scheduler, its adapter, MUNGE, agents,
the disk under its journal, a user's file system, the clock. Nothing wrong is done, its log and doctor
say so, and it goes on when that is over.

Each scenario has a small cluster of its own, and some run beside each other.
"""

import contextlib
import os
import resource
import signal
import struct
import subprocess
import time

import pytest
import reknitd
import stuck
from cluster import Cluster, FINAL, await_true
from conftest import REKNIT
from reknitd import PLUGIN, Reknitd, Scenarios, Site

pytestmark = pytest.mark.slurm

ECC = "CUDA error: uncorrectable ECC error encountered"
PATIENCE = 240
DOUBT = 360  # a requeue whose answer was lost may yet be done: for so long, a job that is over may come back
NEVER = 10**6
CLOCK = REKNIT.parent.parent / "tests/system/set_clock.so"
scenario = Scenarios(4)


@pytest.fixture(scope="module")
def trouble(request):
    with scenario.running(request):
        yield


@pytest.mark.parametrize("name", scenario)
def test_trouble(trouble, name):
    scenario.result(name)


@contextlib.contextmanager
def reknitd_on(nodes=4, cluster=None, env=None, **config):
    with Site(nodes=nodes, cpus=16, requeue_delay=20, **(cluster or {})) as site:
        daemon = Reknitd(site, poll="2s", **config).start(env)
        yield site, daemon
        assert daemon.stop() == 0
        assert "identical" in daemon.journal.replay()


def failing(site, daemon, name="job", step=12, **kwargs):
    """A job that will fail once, or when its rank 1 is killed, and is known to reknitd."""
    job = site.train(name, [{"rank": 1, "step": step, "attempt": 0, "do": "raise", "text": ECC}],
                     options="--steps 60 --step-ms 50" if step != NEVER else "--steps 500 --step-ms 50", **kwargs)
    daemon.journal.wait(job.id, "attempt-started")
    await_true("its ranks", lambda: len(job.nodes(0)) == 2)
    return job


def brought_back(site, daemon, job, excluding=True):
    """Once, without the node at fault, from its checkpoint on, and never twice at a time."""

    def story():
        return f"{daemon.journal.story(job.id)}\n{daemon.log(3000)}"

    try:
        record = site.await_state(job.id, FINAL, PATIENCE, where=lambda j: j["restart_cnt"] >= 1)
    except TimeoutError as e:
        raise AssertionError(f"{e}\n{story()}") from None
    bad = job.nodes(0)[1]
    assert (record["job_state"], record["restart_cnt"]) == ("COMPLETED", 1), story()
    assert job.violations() == "" and job.resumed(1), story()
    assert record["excluded_nodes"] == (bad if excluding else ""), story()
    assert not excluding or bad not in job.nodes(1).values(), story()
    assert len(daemon.journal.intents(job.id, "requeue")) >= 1, story()
    daemon.journal.wait(job.id, "job-ended", timeout=DOUBT)


def complains(daemon, check, text="", state="fail", **kwargs):
    row = daemon.doctor(**kwargs)[check]
    assert row["state"] == state and text in row["found"] and row["mend"], row


def slurmctld_stops(seconds):
    with reknitd_on() as (site, daemon):
        job = failing(site, daemon)
        daemon.journal.wait(job.id, "interrupted")
        site.stop_slurmctld()
        stopped = time.monotonic()
        daemon.await_log("the scheduler cannot be asked")
        rows = daemon.doctor()
        assert rows["slurmctld"]["state"] == rows["its adapter"]["state"] == "fail", rows
        await_true("the end of the outage", lambda: time.monotonic() > stopped + seconds, 2 * seconds)
        site.start_slurmctld()
        daemon.await_log("the scheduler can be asked again")
        brought_back(site, daemon, job)


@scenario.soak
def slurmctld_stops_for_a_minute():
    slurmctld_stops(60)


@scenario
def slurmctld_is_started_anew():
    slurmctld_stops(5)


@scenario
def adapter_hangs():
    with reknitd_on(adapter={"timeout": "5s"}) as (site, daemon):
        job = failing(site, daemon)
        daemon.journal.wait(job.id, "interrupted")
        os.kill(await_true("an adapter", daemon.adapter), signal.SIGSTOP)
        daemon.await_log("it did not answer in time")
        brought_back(site, daemon, job)


@scenario
def adapter_dies():
    """... at every moment of a recovery, again and again."""
    with reknitd_on() as (site, daemon):
        job = failing(site, daemon)
        for kind in ("interrupted", "decision", "intent"):
            daemon.journal.wait(job.id, kind)
            pid = await_true("an adapter", daemon.adapter)
            os.kill(pid, signal.SIGKILL)
            await_true("another one", lambda old=pid: daemon.adapter() not in (None, old))
        brought_back(site, daemon, job)
        assert "the scheduler's adapter" in daemon.log() and "it is started again" in daemon.log()


@scenario
def several_partitions():
    """A job that waits in more than one of them is acted on like any other, on the terms of the one that it ran in."""
    tiers = {"main": {"Default": "YES", "PriorityTier": "2"}, "spare": {}}
    with reknitd_on(cluster={"partitions": tiers}, mode="observe",
                    rules=[{"partition": "main", "mode": "act"}]) as (site, daemon):
        job = failing(site, daemon, partition="main,spare")
        brought_back(site, daemon, job)
        modes = [e.body["mode"] for e in daemon.journal.events(job.id, "mode")]
        assert modes == ["observe", "act"], daemon.journal.story(job.id)  # the first: no rule is about both


@scenario
def munge_stops():
    with reknitd_on() as (site, daemon):
        job = failing(site, daemon)
        daemon.journal.wait(job.id, "interrupted")
        site.stop_munge()
        daemon.await_log("the scheduler cannot be asked")
        complains(daemon, "MUNGE", "credentials cannot be made")
        site.start_munge()
        daemon.await_log("the scheduler can be asked again")
        brought_back(site, daemon, job)


@scenario
def file_system_hangs():
    """The log of a user's job cannot be opened: only that is not known, and his job comes back all
    the same. As soon as it can, it is read."""
    reason = stuck.missing()
    if reason:
        pytest.skip(reason)
    with reknitd_on(spawner=True, readers={"stall": "2s"}) as (site, daemon):
        logs = site.work / "logs"
        logs.mkdir()
        logs.chmod(0o777)
        with stuck.Stuck(logs, "reknit-reader") as fs:
            job = failing(site, daemon, "unread", step=NEVER, output=logs / "unread.out")
            daemon.await_log("its reader hung (a file system that does not answer?)")
            complains(daemon, "its readers", "hang", "warn")
            site.kill_task(job.id, 1)
            brought_back(site, daemon, job, excluding=False)
            verdict = daemon.journal.wait(job.id, "verdict").body
            status = daemon.journal.wait(job.id, "attempt-exited").body.get("code")  # of whom srun saw last
            assert verdict["class"] == "crash", verdict
            assert verdict["cause"] == ("host-oom" if status == 137 else "unknown"), (status, verdict)
            assert verdict["confidence"] < 50 and not verdict.get("evidence"), verdict
            told = len(daemon.log())
            fs.release()
            job = failing(site, daemon, "read", output=logs / "read.out")
            daemon.await_log("running", after=told)
            brought_back(site, daemon, job)
        assert daemon.ask("/v1/health")[1]["readers"]["hung"] == 0


@scenario
def agents_are_gone():
    """One of them dies, then all: what they tell is missing, and nothing else."""
    with Site(nodes=4, cpus=16, requeue_delay=20, plugstack=Cluster.plugin(PLUGIN)) as site:
        daemon = Reknitd(site, poll="2s", agents={"listen": site.agents_address,
                                                  "munge_socket": str(site.munge_socket)}).start()
        site.start_agents(REKNIT.parent / "reknit-agent")
        await_true("its agents", lambda: daemon.agents() == 4)
        job = failing(site, daemon)
        site.signal_daemon(f"agent-{job.nodes(0)[1]}", signal.SIGKILL)
        daemon.await_log(f"node {job.nodes(0)[1]}: its agent is not connected")
        assert daemon.agents() == 3
        brought_back(site, daemon, job)
        for node in site.nodes:
            if f"agent-{node}" in site.daemons():
                site.stop_daemon(f"agent-{node}")
        await_true("no agent", lambda: daemon.agents() == 0)
        complains(daemon, "agents", "those of 4 no more", "warn")
        brought_back(site, daemon, failing(site, daemon, "again"))
        assert daemon.stop() == 0 and "identical" in daemon.journal.replay()


@scenario
def disk_is_full():
    """Nothing is done that cannot be recorded first."""
    with reknitd_on() as (site, daemon):
        job = failing(site, daemon, step=NEVER)
        job.await_step(12)
        size = sum(path.stat().st_size for path in daemon.journal.path.parent.iterdir())
        resource.prlimit(daemon.pid(), resource.RLIMIT_FSIZE, (size, size * 1000))
        daemon.await_log("cannot be written")
        complains(daemon, "reknitd", "acts on nothing")
        site.kill_task(job.id, 1)
        record = site.await_state(job.id, "FAILED")
        daemon.await_looks()
        assert site.restarts(job.id) == record["restart_cnt"] == 0
        resource.prlimit(daemon.pid(), resource.RLIMIT_FSIZE, (size * 1000, size * 1000))
        daemon.await_log("can be written again")
        brought_back(site, daemon, job, excluding=False)


def first_death(daemon, job):
    """The plugin's word of a task, by the node's agent."""
    return daemon.journal.wait(job, "signal", lambda e: e.body["kind"] == "exit" and
                               e.body["provenance"] == "spank" and e.body["who"].get("node"))


@scenario
def clock_is_set_before_agents_are_heard():
    """reknitd began an hour ahead, and NTP sets its host's clock back: so for an hour all that nodes
    tell is of before, by the clocks. Even of tasks that die before a look shows their job."""
    if not CLOCK.exists() or b"__asan_init" in (REKNIT.parent / "reknitd").read_bytes():
        pytest.skip("set_clock.so is not built, or the sanitizer does not let it")
    with Site(nodes=4, cpus=16, requeue_delay=20, plugstack=Cluster.plugin(PLUGIN)) as site:
        clock = site.dir / "clock"
        clock.write_bytes(struct.pack("=q", 3600 * 10**6))
        daemon = Reknitd(site, poll="5s", agents={"listen": site.agents_address,
                                                  "munge_socket": str(site.munge_socket)})
        daemon.start({"LD_PRELOAD": str(CLOCK), "REKNIT_TEST_CLOCK": str(clock)})
        site.start_agents(REKNIT.parent / "reknit-agent")
        await_true("its agents", lambda: daemon.agents() == 4)
        with clock.open("r+b") as f:
            f.write(struct.pack("=q", 0))
        daemon.await_log("this host's clock was set back by")
        short = site.submit("srun -K false", nodes=1, comment="reknit:observe", user=reknitd.USER)
        assert first_death(daemon, short).body["exit"]["code"] == 1
        job = failing(site, daemon, step=NEVER)
        job.await_step(12)
        site.kill_task(job.id, 1)
        first_death(daemon, job.id)
        brought_back(site, daemon, job, excluding=False)
        assert daemon.stop() == 0 and "identical" in daemon.journal.replay()


@scenario
def clock_is_set():
    """... of reknitd's host, while slurmctld's goes on: an hour forward, two back. No start is asked
    for at a time that is wrong for the scheduler, and no time in the journal runs back."""
    if not CLOCK.exists() or b"__asan_init" in (REKNIT.parent / "reknitd").read_bytes():
        pytest.skip("set_clock.so is not built, or the sanitizer does not let it")
    with Site(nodes=4, cpus=16, requeue_delay=20) as site:
        clock = site.dir / "clock"
        clock.write_bytes(struct.pack("=q", 0))
        env = {"LD_PRELOAD": str(CLOCK), "REKNIT_TEST_CLOCK": str(clock)}
        daemon = Reknitd(site, poll="2s").start(env)
        for n, (offset, told) in enumerate([(3600, "forward by"), (-3600, "back by")]):
            job = failing(site, daemon, f"job-{n}")
            daemon.journal.wait(job.id, "interrupted")
            with clock.open("r+b") as f:
                f.write(struct.pack("=q", offset * 10**6))
            daemon.await_log(f"this host's clock was set {told}")
            brought_back(site, daemon, job)
            begin = daemon.journal.wait(job.id, "attempt-started", lambda e: e.attempt == 2)
            assert begin.time - daemon.journal.wait(job.id, "decision").time < 1800  # the clock is off by 3600
            daemon.await_log(f"the scheduler's clock is 3600 s {'behind' if offset > 0 else 'ahead of'}")
            complains(daemon, "clock", "slurmctld's clock is 3600s", env={**site.env, **env})
        assert daemon.stop() == 0
        daemon.start(env)
        brought_back(site, daemon, failing(site, daemon, "again"))
        assert daemon.stop() == 0 and "identical" in daemon.journal.replay()
        times = [e.time for e in daemon.journal.events()]
        assert times == sorted(times)


@scenario
def only_one_at_a_time():
    with reknitd_on(nodes=1) as (site, daemon):
        second = subprocess.run([daemon.programs / "reknitd", "--config", daemon.config, "--drop-ins", "/nonexistent"],
                                env=site.env, capture_output=True, text=True, timeout=60)
        assert second.returncode == 1 and "another reknitd" in second.stderr


@scenario
def number_is_given_again():
    """A job's number comes again, at another job: the two have nothing to do with each other."""
    conf = {"FirstJobId": "5", "MaxJobId": "7", "MinJobAge": "2"}
    with reknitd_on(nodes=2, cluster={"conf": conf}) as (site, daemon):
        seen = {}
        for n in range(3):
            job = site.submit(f"srun -K false # {n}" if n == 0 else "sleep 1", nodes=1, job_name=f"n{n}",
                              comment="reknit:observe", user=reknitd.USER)
            daemon.journal.wait(job, "job-ended" if n else "decision", lambda e: e.job not in seen.values())
            seen[n] = daemon.journal.events(job, "job-seen")[-1].job
            await_true("its end in Slurm's memory", lambda j=job: j not in site.jobs(), PATIENCE)
        keys = [e.job for e in daemon.journal.events(kind="job-seen")]
        assert len(keys) == len(set(keys)) == 3
        assert len({key.split("-")[0] for key in keys}) < 3
        last = daemon.journal.events(seen[2], "verdict")[-1].body
        assert last.get("class", "healthy") == "healthy"
        assert not daemon.journal.intents(seen[1]) and not daemon.journal.intents(seen[2])
