# SPDX-License-Identifier: Apache-2.0
"""A real Slurm whose controller does not have the users' file system: reknitd and its spawner run in a mount namespace
in which something else is mounted where the jobs write. The logs are read on the nodes."""

import pytest
from cluster import Cluster, await_true
from reknitd import PLUGIN, Reknitd, Site
from test_node_readers import no_namespaces

ECC = "CUDA error: uncorrectable ECC error encountered"

pytestmark = [pytest.mark.slurm, pytest.mark.skipif(no_namespaces() is not None, reason=str(no_namespaces()))]


@pytest.fixture(scope="module")
def site():
    with Site(nodes=3, plugstack=Cluster.plugin(PLUGIN)) as s:
        yield s


@pytest.fixture(scope="module")
def daemon(site):
    blind = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', site.work]
    d = Reknitd(site, mode="observe", spawner=True, under=blind,
                agents={"listen": site.agents_address, "munge_socket": str(site.munge_socket)}).start()
    on_nodes = site.dir / "nodes.sock"  # one for all of them, as they are one machine
    site.start_daemon("nodes-spawner", [d.programs / "reknit-spawner", "--socket", on_nodes, "--user", "root",
                                        "--slurm-user", "root"])
    site.start_agents(d.programs / "reknit-agent", "--spawner", on_nodes)
    await_true("its agents", lambda: d.agents() == len(site.nodes))
    yield d
    assert d.stop() == 0


def train(site, name, **kwargs):
    """A job whose output only the nodes see; its second rank fails at step 150."""
    log = site.work / name / "out.log"
    return site.train(name, [{"rank": 1, "step": 150, "do": "raise", "text": ECC}], nodes=2, no_requeue=True,
                      options="--steps 100000 --step-ms 50", output=str(log), **kwargs), log


def check(daemon, job, log):
    verdict = daemon.journal.wait(job.id, "verdict").body
    assert ECC in log.read_text()
    assert (verdict["class"], verdict["cause"]) == ("crash", "gpu-hardware"), daemon.journal.story(job.id)
    assert verdict["culprits"]["nodes"] == [job.nodes(0)[1]], daemon.journal.story(job.id)


def reads(daemon, job):
    return daemon.ask(f"/v1/jobs/{job.id}")[1].get("logs", "")


def test_a_job_is_judged_by_a_log_that_only_its_nodes_see(site, daemon):
    job, log = train(site, "unseen")
    await_true(lambda: f"where it is read: {reads(daemon, job)}\n{daemon.log(3000)}",
               lambda: reads(daemon, job).startswith("read on node "))
    assert reads(daemon, job).split()[-1] == site.job(job.id)["batch_host"]
    assert daemon.doctor()["its readers"]["state"] == "ok"
    check(daemon, job, log)


def test_the_other_node_reads_on_when_an_agent_is_gone(site, daemon):
    job, log = train(site, "agent-gone")
    await_true(lambda: f"where it is read: {reads(daemon, job)}", lambda: reads(daemon, job).startswith("read on node "))
    first = reads(daemon, job).split()[-1]
    daemon.journal.wait(job.id, "signal", lambda e: e.body["kind"] == "step")
    site.stop_daemon(f"agent-{first}")
    await_true(lambda: f"where it is read: {reads(daemon, job)}\n{daemon.log(3000)}",
               lambda: reads(daemon, job).startswith("read on node ") and reads(daemon, job).split()[-1] != first)
    check(daemon, job, log)
