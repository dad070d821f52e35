# SPDX-License-Identifier: Apache-2.0
"""From the death of a task to the first word of the next attempt's batch script, with idle nodes;
and what plain Slurm needs for the same. Nothing is timed here but what is printed: the only limits
are those of the promise, and far away."""

import statistics
import time

import pytest
import reknitd
from cluster import FINAL
from reknitd import Reknitd, Site
from running import FAST_POLICY

pytestmark = pytest.mark.skipif(reknitd.missing() is not None, reason=str(reknitd.missing()))

BEGUN = "date +%s.%N >> {folder}/begun"
SUBMIT = {"ntasks": 2, "nodes": 2}


@pytest.fixture(scope="module")
def site():
    with Site(nodes=16) as s:
        yield s


@pytest.fixture(scope="module")
def daemon(site):
    policy = {"name": "often", "policy": {"max_restarts": 1000, "max_restarts_per_day": 256}}
    return Reknitd(site, policies=[policy], policy="often").start()


def dying(site, name, deaths):
    """A job whose rank 1 dies in each of so many attempts, every time a bit further on."""
    faults = [{"rank": 1, "step": 8 * n + 7, "attempt": n, "do": "kill", "signal": 9} for n in range(deaths)]
    job = site.train(name, faults, options=f"--steps {8 * deaths + 8} --step-ms 20",
                     before=BEGUN.format(folder=site.work / name))
    job.deaths = deaths
    return job


def times(path):
    return [float(line) for line in path.read_text().split()]


def gaps(job):
    begun, died = times(job.folder / "begun"), times(job.folder / "died")
    assert len(begun) == job.deaths + 1 and len(died) == job.deaths, (begun, died)
    return [after - before for before, after in zip(died, begun[1:])]


def restart(site, daemon, jobs, deaths):
    """The pauses of all of them."""
    made = [dying(site, f"dying-{n}", deaths) for n in range(jobs)]
    found = []
    for job in made:
        record = site.await_state(job.id, FINAL, 60 + 20 * deaths, where=lambda j: j["restart_cnt"] >= deaths)
        assert (record["job_state"], record["restart_cnt"]) == ("COMPLETED", deaths), daemon.journal.story(job.id)
        assert job.violations() == ""
        found += gaps(job)
    assert daemon.journal.events(kind="launch-failed") == []  # none was lost to an early start
    assert "launch failed" not in site.log("slurmctld", 10**8)
    return found


def tell(capsys, found, name):
    with capsys.disabled():
        print(f"\n{name}: {len(found)} restarts, median {statistics.median(found):.1f} s, "
              f"{min(found):.1f} to {max(found):.1f} s")


def test_restarts(site, daemon, capsys):
    found = restart(site, daemon, jobs=4, deaths=3)
    tell(capsys, found, "reknitd, without the plugin")
    assert statistics.median(found) < 8


@pytest.mark.soak
def test_a_hundred_restarts(site, daemon, capsys):
    found = restart(site, daemon, jobs=5, deaths=20)
    tell(capsys, found, "reknitd, without the plugin")
    assert statistics.median(found) < 8


@pytest.mark.soak
def test_plain_slurm(site, capsys):
    """What a requeue alone takes."""
    folder = site.folder("plain")
    job = site.submit(BEGUN.format(folder=folder) + "\n[ -n \"$SLURM_RESTART_COUNT\" ] || exit 1", nodes=1)
    site.await_state(job, "FAILED")
    before = time.time()
    site.run("scontrol", "requeue", job)
    site.await_state(job, "COMPLETED", 200)
    tell(capsys, [times(folder / "begun")[1] - before], "plain Slurm, requeued by hand at once")
