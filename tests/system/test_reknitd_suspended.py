# SPDX-License-Identifier: Apache-2.0
"""A real Slurm suspends a job that runs: its silence is no hang, and what it does when it runs again counts."""

import pytest
from cluster import Cluster, await_true
from reknitd import PLUGIN, Reknitd, Site

pytestmark = pytest.mark.slurm

HANG = {"timeout_min": "3s", "first_step": "20s"}


@pytest.fixture(scope="module")
def site():
    with Site(nodes=2, plugstack=Cluster.plugin(PLUGIN)) as s:
        yield s


@pytest.fixture(scope="module")
def daemon(site):
    d = Reknitd(site, spawner=True, poll="1s", policy="quick", policies=[{"name": "quick", "policy": {"hang": HANG}}],
                agents={"listen": site.agents_address, "munge_socket": str(site.munge_socket)}).start()
    site.start_agents(d.programs / "reknit-agent", "--sample", "1s")
    await_true("its agents", lambda: d.agents() == len(site.nodes))
    yield d
    assert d.stop() == 0


def test_who_is_suspended_does_not_hang_and_is_watched_when_it_runs_again(site, daemon):
    job = site.train("suspended", [{"rank": 1, "step": 400, "attempt": 0, "do": "hang"}],
                     options="--steps 1000000 --step-ms 40 --lost hang")
    job.await_step(100)
    site.run("scontrol", "suspend", job.id)
    daemon.journal.wait(job.id, "look", lambda e: e.body["state"] == "suspended")
    daemon.await_looks(15)
    assert daemon.journal.events(job.id, "finding") == [], daemon.journal.story(job.id)
    site.run("scontrol", "resume", job.id)
    job.await_step(390)
    assert daemon.journal.events(job.id, "interrupted") == [], daemon.journal.story(job.id)
    found = daemon.journal.wait(job.id, "interrupted")
    assert found.attempt == 1
    daemon.journal.wait(job.id, "attempt-started", lambda e: e.attempt == 2)
    assert not job.violations()
    site.run("scancel", job.id)
