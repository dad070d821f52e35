# SPDX-License-Identifier: Apache-2.0
"""A job whose place another one takes when it fails is restarted by nobody but whoever approves it:
also when reknitd is started again and the other one has begun. And who is no such successor."""

import functools
import os
import signal
import time

import api_daemon
import pytest
from api_daemon import wait_for
from fake_adapter import World

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="its daemon is asked as several users")
daemon_of = functools.partial(api_daemon.daemon_of, mode="act", opt_in=False)
BESIDE = "would run beside it"


def looks(daemon, n=3):
    done = daemon.world.asked["jobs"] + n
    wait_for(lambda: daemon.world.asked["jobs"] >= done, "it does not look any more")


def held_back(daemon, job):
    return daemon.until("/v1/jobs", lambda a: any(
        str(j["id"]) == job and BESIDE in j.get("decision", {}).get("held_back", "") for j in a["jobs"]))


def end_daemon(daemon, how):
    daemon.process.send_signal(how)
    daemon.process.wait(20)
    daemon.socket.unlink(missing_ok=True)  # nobody asks until the next one listens


def next_second():
    """A scheduler tells no more of when."""
    now = int(time.time())
    wait_for(lambda: time.time() >= now + 1, "the clock stands still")


def submit_both(world, dependency):
    """A job, and the one that takes its place."""
    job = world.submit(comment="reknit", name="train")
    return job, world.submit(comment="reknit:off", name="next" if dependency else "train", n_nodes=2,
                             held=not dependency, dependency=dependency and f"{dependency}:{job}")


def begin(world, job):
    """It does not say any more what it waited for."""
    world.change(job, dependency="", held=False)
    wait_for(lambda: world.job(job)["state"] == "running", "it does not begin")


@pytest.mark.parametrize("dependency", ["afterany", "afternotok", ""])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_proposal_stays_one_when_reknitd_is_started_again(tmp_path, dependency, how):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job, other = submit_both(world, dependency)
        daemon.until("/v1/jobs", lambda a: any(j["phase"] == "running" for j in a["jobs"]))
        world.end(job)
        held_back(daemon, job)
        begin(world, other)
        end_daemon(daemon, how)
        daemon.start()
        held_back(daemon, job)
        looks(daemon)
        assert world.job(job)["restarts"] == 0, daemon.log()


@pytest.mark.parametrize("dependency", ["afterany", ""])
def test_a_successor_that_began_when_nobody_looked_is_one(tmp_path, dependency):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job, other = submit_both(world, dependency)
        daemon.until("/v1/jobs", lambda a: any(j["phase"] == "running" for j in a["jobs"]))
        looks(daemon)
        end_daemon(daemon, signal.SIGKILL)
        next_second()
        world.end(job)
        begin(world, other)
        daemon.start()
        held_back(daemon, job)
        looks(daemon)
        assert world.job(job)["restarts"] == 0, daemon.log()


def test_namesakes_that_begin_together_succeed_nobody(tmp_path):
    """As sweeps do; whether one look or two show that they began."""
    with World(nodes=6) as world, daemon_of(tmp_path, world) as daemon:
        jobs = [world.submit(comment="reknit", name="sweep", held=True) for _ in range(3)]
        daemon.until("/v1/jobs", lambda a: len(a["jobs"]) == 3)
        with world.lock:
            for job in jobs[:2]:
                world.change(job, held=False)
        daemon.until("/v1/jobs", lambda a: sum(j["phase"] == "running" for j in a["jobs"]) == 2)
        world.change(jobs[2], held=False)
        daemon.until("/v1/jobs", lambda a: sum(j["phase"] == "running" for j in a["jobs"]) == 3)
        next_second()
        with world.lock:
            for job in jobs:
                world.end(job)
        wait_for(lambda: all(world.job(job)["restarts"] == 1 for job in jobs), daemon.log)


@pytest.mark.parametrize("anew", [False, True])
def test_one_that_was_withdrawn_takes_nobodys_place(tmp_path, anew):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job, other = submit_both(world, "afternotok")
        daemon.until("/v1/jobs", lambda a: any(j["phase"] == "running" for j in a["jobs"]))
        looks(daemon)
        if anew:
            end_daemon(daemon, signal.SIGKILL)
        world.cancel(other)
        if anew:
            daemon.start()
            daemon.until("/v1/jobs", lambda a: any(j["phase"] == "running" for j in a["jobs"]))
        looks(daemon)
        world.end(job)
        wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log)


def test_of_two_the_one_that_began_still_takes_its_place(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job, first = submit_both(world, "afterany")
        second = world.submit(comment="reknit:off", name="second", dependency=f"afterany:{job}")
        daemon.until("/v1/jobs", lambda a: any(j["phase"] == "running" for j in a["jobs"]))
        looks(daemon)
        begin(world, second)
        world.cancel(first)
        looks(daemon)
        end_daemon(daemon, signal.SIGKILL)
        daemon.start()
        looks(daemon)
        world.end(job)
        held_back(daemon, job)
        looks(daemon)
        assert world.job(job)["restarts"] == 0, daemon.log()
