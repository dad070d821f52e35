# SPDX-License-Identifier: Apache-2.0
"""What reknitd stands on fails while it brings a job back: the scheduler, its adapter, MUNGE, the
disk under its journal. Nothing wrong is done, it is said, and it goes on when that is over."""

import os
import resource
import signal
import subprocess

import pytest
import reknitd
from cluster import FINAL, await_true
from reknitd import Reknitd, Site

pytestmark = [pytest.mark.soak, pytest.mark.skipif(reknitd.missing() is not None, reason=str(reknitd.missing()))]

ECC = "CUDA error: uncorrectable ECC error encountered"


@pytest.fixture(scope="module")
def site():
    with Site(nodes=8, cpus=16) as s:
        yield s


@pytest.fixture
def daemon(site, request):
    made = Reknitd(site, name=request.node.name.removeprefix("test_")).start()
    yield made
    if made.pid():
        made.stop()


def failing(site, daemon, name, step=12):
    """A job that will fail once, and is known to reknitd."""
    job = site.train(f"{daemon.name}-{name}", [
        {"rank": 1, "step": step, "attempt": 0, "do": "raise", "text": ECC}], options="--steps 60 --step-ms 50")
    daemon.journal.wait(job.id, "attempt-started")
    return job


def brought_back(site, daemon, job):
    """Once, without the node at fault, from its checkpoint on."""
    record = site.await_state(job.id, FINAL, 150, where=lambda j: j["restart_cnt"] >= 1)
    story = f"{daemon.journal.story(job.id)}\n{daemon.log(3000)}"
    assert (record["job_state"], record["restart_cnt"]) == ("COMPLETED", 1), story
    assert job.violations() == "" and all(a["from"] >= 10 for a in job.attempts() if a["attempt"] == 1), story
    assert job.nodes(0)[1] not in job.nodes(1).values(), story
    daemon.journal.wait(job.id, "job-ended")
    assert "identical" in daemon.journal.replay()


def test_slurmctld_stops(site, daemon):
    job = failing(site, daemon, "job")
    daemon.journal.wait(job.id, "interrupted")
    site.stop_slurmctld()
    daemon.await_log("the scheduler cannot be asked")
    site.start_slurmctld()
    daemon.await_log("the scheduler can be asked again")
    brought_back(site, daemon, job)


def test_munge_stops(site, daemon):
    job = failing(site, daemon, "job")
    daemon.journal.wait(job.id, "interrupted")
    site.stop_munge()
    daemon.await_log("the scheduler cannot be asked")
    site.start_munge()
    brought_back(site, daemon, job)


def test_adapter_dies(site, daemon):
    """... at every moment of a recovery, again and again."""
    job = failing(site, daemon, "job")
    for kind in ("interrupted", "decision", "intent"):
        daemon.journal.wait(job.id, kind)
        pid = await_true("an adapter", daemon.adapter)
        os.kill(pid, signal.SIGKILL)
        await_true("another one", lambda old=pid: daemon.adapter() not in (None, old))
    brought_back(site, daemon, job)
    assert "adapter" in daemon.log()


def test_adapter_hangs(site, daemon):
    job = failing(site, daemon, "job")
    daemon.journal.wait(job.id, "interrupted")
    pid = await_true("an adapter", daemon.adapter)
    os.kill(pid, signal.SIGSTOP)
    daemon.await_log("it did not answer in time")
    brought_back(site, daemon, job)


def test_disk_full(site, daemon):
    """Nothing is done that cannot be recorded first."""
    job = failing(site, daemon, "job", step=10**6)
    job.await_step(12)
    size = sum(path.stat().st_size for path in daemon.journal.path.parent.iterdir())
    resource.prlimit(daemon.pid(), resource.RLIMIT_FSIZE, (size, size * 1000))
    daemon.await_log("cannot be written")
    site.kill_task(job.id, 1)
    record = site.await_state(job.id, "FAILED")
    assert record["restart_cnt"] == 0
    resource.prlimit(daemon.pid(), resource.RLIMIT_FSIZE, (size * 1000, size * 1000))
    daemon.await_log("can be written again")
    record = site.await_state(job.id, FINAL, where=lambda j: j["restart_cnt"] >= 1, timeout=150)
    assert (record["job_state"], record["restart_cnt"]) == ("COMPLETED", 1), daemon.log(3000)
    assert job.violations() == ""
    assert "identical" in daemon.journal.replay()


def test_one_at_a_time(site, daemon):
    second = subprocess.run([daemon.programs / "reknitd", "--config", daemon.config, "--drop-ins", "/nonexistent"],
                            env=site.env, capture_output=True, text=True, timeout=20)
    assert second.returncode == 1 and "another reknitd" in second.stderr


def test_a_number_given_again():
    """A job's number comes again, at another job: the two have nothing to do with each other."""
    conf = {"FirstJobId": "5", "MaxJobId": "7", "MinJobAge": "2"}
    with Site(nodes=2, conf=conf) as site:
        daemon = Reknitd(site).start()
        seen = {}
        for n in range(3):
            job = site.submit(f"srun -K false # {n}" if n == 0 else "sleep 1", nodes=1, job_name=f"n{n}",
                              comment="reknit:observe", user=reknitd.USER)
            daemon.journal.wait(job, "job-ended" if n else "decision", lambda e: e.job not in seen.values())
            seen[n] = daemon.journal.events(job, "job-seen")[-1].job
            await_true("its end in Slurm's memory", lambda j=job: j not in site.jobs(), 90)
        keys = [e.job for e in daemon.journal.events(kind="job-seen")]
        assert len(keys) == len(set(keys)) == 3
        assert len({key.split("-")[0] for key in keys}) < 3
        last = daemon.journal.events(seen[2], "verdict")[-1].body
        assert last.get("class", "healthy") == "healthy"
        assert daemon.stop() == 0 and "identical" in daemon.journal.replay()
