# SPDX-License-Identifier: Apache-2.0
"""Jobs whose batch output says nothing: where their tasks' output goes is seen on the nodes."""

import os
import subprocess

import pytest
import reknitd
from cluster import Cluster, await_true
from conftest import REKNIT
from reknitd import PLUGIN, Reknitd, Site

ECC = "CUDA error: uncorrectable ECC error encountered"

pytestmark = pytest.mark.slurm

# {train} is the trainer of a rank. The samples of the agents come too late for any of these jobs.
SCRIPTS = {
    "a file of each task": "srun -K -o {folder}/train-%t.log {train}",
    "a file of all tasks, which srun writes": "srun -K -o {folder}/all.log {train}",
    "two files": "srun -K -o {folder}/out.log -e {folder}/err.log {train}",
    "a wrapper that redirects when it has begun":
        "srun -K bash -c 'sleep 1; exec > {folder}/rank-$SLURM_PROCID.txt 2>&1; exec {train}'",
}
WRITTEN = {"a file of each task": "train-1.log", "a file of all tasks, which srun writes": "all.log",
           "two files": "err.log", "a wrapper that redirects when it has begun": "rank-1.txt"}


@pytest.fixture(scope="module")
def site():
    with Site(nodes=2, plugstack=Cluster.plugin(PLUGIN)) as s:
        yield s


@pytest.fixture(scope="module")
def daemon(site):
    d = Reknitd(site, mode="observe", spawner=True,
                agents={"listen": site.agents_address, "munge_socket": str(site.munge_socket)}).start()
    site.start_agents(d.programs / "reknit-agent", "--sample", "1h")
    await_true("its agents", lambda: d.agents() == len(site.nodes))
    yield d
    assert d.stop() == 0


@pytest.fixture(scope="module")
def jobs(site, daemon):
    """All of them at once; the second rank fails."""
    made = {}
    for name, script in SCRIPTS.items():
        folder = site.folder(name.replace(" ", "-").replace(",", ""), [
            {"rank": 1, "step": 120, "do": "raise", "text": ECC}])
        train = f"{site.trainer} --dir {folder} --steps 100000 --step-ms 50"
        made[name] = folder, site.submit(script.format(folder=folder, train=train), user=reknitd.USER, nodes=2,
                                         ntasks=2, comment="reknit", no_requeue=True)
    return made


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_task_writes_is_read_wherever_it_goes(site, daemon, jobs, name):
    folder, job = jobs[name]
    verdict = daemon.journal.wait(job, "verdict").body
    node = reknitd.Training(site, job, folder).nodes(0)[1]
    assert ECC in (folder / WRITTEN[name]).read_text()
    assert ECC not in site.output(job)
    assert (verdict["class"], verdict["cause"]) == ("crash", "gpu-hardware"), daemon.journal.story(job)
    assert verdict["culprits"]["nodes"] == [node], daemon.journal.story(job)
    line, paths = verdict["evidence"][0]["line"], {log.get("file", 0): log["path"] for log in verdict["logs"]}
    assert paths[verdict["evidence"][0].get("file", 0)] == str(folder / WRITTEN[name]), verdict
    env = {**os.environ, "REKNIT_SOCKET": str(daemon.dir / "api.sock")}
    said = subprocess.run([REKNIT, "explain", "--cluster", str(job)], env=env, capture_output=True, text=True,
                          timeout=60, check=True).stdout
    assert f"evidence{folder / WRITTEN[name]},line{line},root" in "".join(said.split()), said
