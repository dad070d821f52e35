# SPDX-License-Identifier: Apache-2.0
"""From the death of a task to the first word of the next attempt's batch script: with idle nodes, with
the plugin and without; what plain Slurm needs for the same; and on a full cluster, where a job also
queues. What is printed counts; the limits are those of the promise for the hundred restarts of `make
soak`, and far above it for a few.

Most of the time is Slurm's: it looks at its queue at most every three seconds (batch_sched_delay), at
whole seconds, and reknitd starts nothing in the first two. So each attempt lives for some seconds
more or less before it dies: a death right behind a start would always meet the same moment."""

import contextlib
import random
import statistics
import time

import pytest
from cluster import Cluster, FINAL, await_true
from reknitd import PLUGIN, QUEUE_BY_AGE, Reknitd, Site

pytestmark = pytest.mark.slurm

BEGUN = "date +%s.%N >> {folder}/begun"
LAUNCHER = "trap 'sleep 3' EXIT"  # it gives the other ranks some time to end
WITH, WITHOUT = "with the plugin", "without the plugin"
PROMISE = {WITH: 5, WITHOUT: 8}
PATIENCE = 240


@pytest.fixture(scope="module")
def site():
    with Site(nodes=16, plugstack=Cluster.plugin(PLUGIN)) as s:
        yield s


@contextlib.contextmanager
def reknitd_on(site, name, plugin, **policy):
    """Without agents nobody hears the plugin."""
    often = {"name": "often", "policy": {"max_restarts": 1000, "max_restarts_per_day": 256, **policy}}
    agents = {"listen": site.agents_address, "munge_socket": str(site.munge_socket)} if plugin else {}
    daemon = Reknitd(site, name=name, policies=[often], policy="often", agents=agents).start()
    if plugin:
        site.start_agents(daemon.programs / "reknit-agent")
        await_true("its agents", lambda: daemon.agents() == len(site.nodes))
    yield daemon
    for node in site.nodes if plugin else []:
        site.stop_daemon(f"agent-{node}")
    assert daemon.stop() == 0


def dying(site, name, deaths, before="", **submit):
    """A job whose rank 1 dies in each of so many attempts, every time a bit further on."""
    step, faults = 0, []
    for attempt in range(deaths):
        step += random.randint(35, 65)
        faults.append({"rank": 1, "step": step, "attempt": attempt, "do": "kill", "signal": 9})
    job = site.train(name, faults, options=f"--steps {step + 8} --step-ms 100",
                     before=f"{BEGUN.format(folder=site.work / name)}\n{before}", **submit)
    job.deaths = deaths
    return job


def times(path):
    return [float(line) for line in path.read_text().split()]


def gaps(job):
    begun, died = times(job.folder / "begun"), times(job.folder / "died")
    assert len(begun) == job.deaths + 1 and len(died) == job.deaths, (begun, died)
    return [after - before for before, after in zip(died, begun[1:])]


def ended(site, daemon, job):
    site.await_state(job.id, FINAL, PATIENCE + 30 * job.deaths, where=lambda j: j["restart_cnt"] >= job.deaths)
    record = site.job(job.id)
    assert (record["job_state"], record["restart_cnt"]) == ("COMPLETED", job.deaths), daemon.journal.story(job.id)
    assert job.violations() == ""
    return gaps(job)


def restart(site, daemon, jobs, deaths):
    """The pauses of all of them."""
    made = [dying(site, f"{daemon.name}-{n}", deaths) for n in range(jobs)]
    found = [gap for job in made for gap in ended(site, daemon, job)]
    assert daemon.journal.events(kind="launch-failed") == []  # none was lost to an early start
    assert "launch failed" not in site.log("slurmctld", 10**8)
    return found


def tell(capsys, found, name):
    with capsys.disabled():
        print(f"\n{name}: {len(found)} restarts, median {statistics.median(found):.1f} s, "
              f"{min(found):.1f} to {max(found):.1f} s")


def measure(site, capsys, how, name, jobs, deaths, limit):
    with reknitd_on(site, name, plugin=how == WITH) as daemon:
        found = restart(site, daemon, jobs, deaths)
    tell(capsys, found, f"reknitd, {how}")
    assert statistics.median(found) < limit


@pytest.mark.parametrize("how", PROMISE)
def test_restarts(site, capsys, how):
    measure(site, capsys, how, f"few-{how.split()[0]}", jobs=4, deaths=2, limit=4 * PROMISE[how])


@pytest.mark.soak
@pytest.mark.parametrize("how", PROMISE)
def test_a_hundred_restarts(site, capsys, how):
    measure(site, capsys, how, f"many-{how.split()[0]}", jobs=5, deaths=20, limit=PROMISE[how])


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


@pytest.mark.soak
@pytest.mark.parametrize("keep", ["none", "priority", "reservation"])
def test_full_cluster(capsys, keep):
    """Others have waited for longer, each for all its nodes: what reknit takes, and what the queue does."""
    with Site(nodes=4, conf=QUEUE_BY_AGE, plugstack=Cluster.plugin(PLUGIN)) as site, \
            reknitd_on(site, f"full-{keep}", plugin=True, keep_place=keep) as daemon:
        job = dying(site, f"full-{keep}", deaths=1, before=LAUNCHER, nodes=4, exclusive=True)
        await_true("its ranks", lambda: len(job.nodes(0)) == 4)
        others = [site.submit("sleep 20", nodes=4, exclusive=True, job_name=f"other-{n}") for n in range(3)]
        gap = ended(site, daemon, job)[0]
        asked = [e.time for e in daemon.journal.intents(job.id, "amend")]
        queued = times(job.folder / "begun")[1] - max(asked)
        for other in others:
            site.await_state(other, "COMPLETED", PATIENCE)
        before = sum(site.job(other)["start_time"] < times(job.folder / "begun")[1] for other in others)
        with capsys.disabled():
            print(f"\nfull cluster, keep_place {keep}: {gap:.1f} s, of it {queued:.1f} s in the queue; "
                  f"{before} of {len(others)} others went first")
        assert daemon.journal.events(kind="launch-failed") == []
