# SPDX-License-Identifier: Apache-2.0
"""reknitd is killed at random moments while it brings jobs back, and started again at once: nothing
is done twice or forgotten, no job is left behind."""

import os
import random
import time

import pytest
from cluster import FINAL
from reknitd import Reknitd, Site

pytestmark = pytest.mark.slurm

DEATHS = 3
ECC = "CUDA error: uncorrectable ECC error encountered"


@pytest.fixture(scope="module")
def site():
    with Site(nodes=16, cpus=16) as s:
        yield s


def dying(site, name):
    """A job that loses rank 1 in each of its first attempts, every time a bit further on."""
    faults = [{"rank": 1, "step": 10 * n + 9, "attempt": n, "do": "raise", "text": ECC} for n in range(DEATHS)]
    return site.train(name, faults, options=f"--steps {10 * DEATHS + 10} --step-ms 30",
                      before=f"echo >> {site.work / name}/begun")


def shown(job):
    """Which attempts' ranks got their last words into the log: srun may end before it has written all of them."""
    return [ECC in part for part in job.log.read_text(errors="replace").split("resuming from checkpoint")]


def check(site, journal, job):
    record = site.await_state(job.id, FINAL, 200, where=lambda j: j["restart_cnt"] >= DEATHS)
    story = journal.story(job.id)
    assert (record["job_state"], record["restart_cnt"]) == ("COMPLETED", DEATHS), story
    assert len((job.folder / "begun").read_text().splitlines()) == DEATHS + 1, story
    assert job.violations() == ""
    journal.wait(job.id, "decision", lambda e: e.attempt == DEATHS + 1)  # a lost requeue puts its end off for minutes
    for attempt in range(1, DEATHS + 1):
        verdicts = [e.body for e in journal.events(job.id, "verdict") if e.attempt == attempt]
        proven = shown(job)[attempt - 1]
        blamed = [job.nodes(attempt - 1)[1]] if proven else []
        assert [v["cause"] == "gpu-hardware" for v in verdicts] == [proven], f"attempt {attempt}\n{story}"
        assert verdicts[0].get("culprits", {}).get("nodes", []) == blamed, f"attempt {attempt}\n{story}"
        later = {node for n in range(attempt, DEATHS + 1) for node in job.nodes(n).values()}
        assert not later & set(blamed)  # it was kept out from then on


def kill_while_jobs_come_back(site, name, deaths):
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    daemon = Reknitd(site, name=name, spawner=True).start()
    jobs, kills = [], 0
    print(f"seed {seed}")
    while kills < deaths:
        running = [job for job in jobs if site.state(job.id) != "COMPLETED"]
        while len(running) < 4:
            running.append(dying(site, f"{name}-{len(jobs)}"))
            jobs.append(running[-1])
        time.sleep(chance.uniform(0, 2.5))
        daemon.kill()
        daemon.start()
        kills += 1
    for job in jobs:
        check(site, daemon.journal, job)
    assert daemon.stop() == 0
    replayed = daemon.journal.replay()
    assert "identical" in replayed and "fitted nowhere" not in replayed


def test_killed_while_jobs_come_back(site):
    kill_while_jobs_come_back(site, "few", 30)


@pytest.mark.soak
def test_killed_many_times(site):
    kill_while_jobs_come_back(site, "many", int(os.environ.get("REKNIT_TEST_KILLS", "300")))
