# SPDX-License-Identifier: Apache-2.0
"""The test cluster itself: what it starts, what can be broken in it, and that nothing is left."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import cluster as cluster_module
import pytest
import running
from cluster import Cluster, await_true

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=6) as c:
        yield c


def trainer(c, name, faults=(), nodes=4, tasks=None, options="", **submit):
    """Submits the light trainer; (job id, its folder)."""
    folder = c.work / name
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "faults.json").write_text(json.dumps(list(faults)))
    script = f"srun --kill-on-bad-exit=1 {cluster_module.TRAINER} --dir {folder} {options}"
    return c.submit(script, nodes=nodes, ntasks=tasks or nodes, job_name=name, **submit), folder


def attempts(folder):
    return [json.loads(line) for line in (folder / "attempts").read_text().splitlines()]


def steps_done(c, job, step):
    return await_true(lambda: f"step {step} of job {job}: {c.output(job)[-500:]}", lambda: f"step {step}/" in c.output(job))


def test_srun_runs_a_task_on_each_node(cluster):
    job = cluster.submit("srun bash -c 'echo $SLURM_PROCID $SLURMD_NODENAME'", nodes=4, ntasks=4)
    end = cluster.await_end(job)
    assert (end["job_state"], end["exit_code"]) == ("COMPLETED", 0)
    lines = sorted(cluster.output(job).split("\n")[:-1])
    assert [line.split()[0] for line in lines] == ["0", "1", "2", "3"]
    assert len({line.split()[1] for line in lines}) == 4


def test_jobs_of_an_ordinary_user(cluster):
    job = cluster.submit("srun id -un", user="daemon", nodes=1)
    assert cluster.await_end(job)["job_state"] == "COMPLETED"
    assert cluster.output(job).strip() == "daemon"
    assert cluster.job(job)["user_name"] == "daemon"


def test_a_requeued_job_goes_on_from_its_checkpoint(cluster):
    job, folder = trainer(cluster, "requeue", options="--steps 60")
    steps_done(cluster, job, 12)
    cluster.requeue(job)
    assert cluster.await_end(job)["job_state"] == "COMPLETED"
    assert "resuming from checkpoint" in cluster.output(job)
    assert {a["attempt"] for a in attempts(folder)} == {0, 1}
    assert all(a["from"] >= 10 for a in attempts(folder) if a["attempt"] == 1)
    assert not (folder / "violations").exists()


@pytest.mark.parametrize("fault, text", [
    ({"rank": 2, "step": 8, "do": "raise", "text": "CUDA error: uncorrectable ECC error encountered"},
     "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ({"rank": 1, "step": 0, "do": "import", "text": "flash_attn"}, "No module named 'flash_attn'"),
    ({"rank": 0, "step": 8, "do": "exit", "status": 7}, "Exited with exit code 7"),
], ids=["ecc", "import", "exit"])
def test_faults_of_the_trainer(cluster, request, fault, text):
    job, folder = trainer(cluster, f"fault-{request.node.callspec.id}", [fault])
    assert cluster.await_end(job)["job_state"] == "FAILED"
    assert text in cluster.output(job)
    if fault["step"] > 0:  # else the others may be ended before they have begun
        assert len(attempts(folder)) == 4


def test_a_killed_rank(cluster):
    job, _ = trainer(cluster, "killed", options="--steps 100000")
    steps_done(cluster, job, 3)
    task = cluster.kill_task(job, 3)
    assert cluster.await_end(job)["job_state"] == "FAILED"
    assert running.stat(task.pid) is None or running.stat(task.pid)[0] == "Z"
    assert cluster.pids(job) == []


def test_a_node_set_down_and_back(cluster):
    job, _ = trainer(cluster, "down", options="--steps 100000", requeue=False)
    lost = cluster.await_ranks(job, 4)[2].node
    cluster.set_node(lost, "DOWN")
    assert cluster.await_end(job)["job_state"] == "NODE_FAIL"
    assert "down" in cluster.node_states()[lost]
    cluster.set_node(lost, "RESUME")
    cluster.await_nodes([lost])


def test_a_partitioned_node_keeps_its_rank(cluster):
    job, _ = trainer(cluster, "partitioned", options="--steps 100000 --lost hang", requeue=False)
    task = cluster.await_ranks(job, 4)[2]
    steps_done(cluster, job, 1)  # before they have all met, a rank that loses another ends
    cluster.partition_node(task.node)
    cluster.set_node(task.node, "DOWN", "lost")  # sooner than Slurm would see it
    cluster.await_end(job)
    assert running.stat(task.pid)[0] != "Z"
    cluster.heal_node(task.node)
    cluster.set_node(task.node, "RESUME")
    cluster.await_nodes()
    await_true("the rank's end once its node is back", lambda: not cluster.pids(job))


def test_slurmd_stopped_leaves_its_steps(cluster):
    job, _ = trainer(cluster, "slurmd", options="--steps 100000")
    task = cluster.await_ranks(job, 4)[1]
    cluster.stop_slurmd(task.node)
    assert running.stat(task.pid)[0] != "Z"
    cluster.start_slurmd(task.node)
    cluster.run("scancel", job)
    assert cluster.await_end(job)["job_state"] == "CANCELLED"
    await_true("no process of the job", lambda: not cluster.pids(job))


def test_slurmctld_and_munge_stopped(cluster):
    job = cluster.submit("sleep 1000", nodes=1)
    cluster.await_state(job, "RUNNING")
    cluster.stop_slurmctld()
    assert "slurmctld" not in cluster.daemons()
    cluster.start_slurmctld()
    assert cluster.state(job) == "RUNNING"
    cluster.stop_munge()
    with pytest.raises(cluster_module.CommandFailed, match="(?i)munge|authentic"):
        cluster.run("scancel", job)
    cluster.start_munge()
    cluster.run("scancel", job)
    assert cluster.await_end(job)["job_state"] == "CANCELLED"


def test_two_side_by_side(cluster):
    with Cluster(nodes=1) as other:
        job = other.submit("sleep 1000", nodes=1)
        tasks = await_true("the job's process", lambda: other.pids(job))
        assert {task.env["SLURM_CONF"] for task in tasks} == {str(other.conf)}
        assert other.port != cluster.port and job not in [task.job for task in cluster.pids()]
        folder = other.dir
    assert not folder.exists()
    assert running.marked(f"SLURM_CONF={folder}/slurm.conf") == []


KILLED = """
import sys
sys.path.insert(0, {path!r})
from cluster import Cluster
c = Cluster(nodes=2, keep=True)
c.start()
job = c.submit("srun sleep 1000 & sleep 1000", nodes=2, ntasks=2)
c.await_ranks(job, 2)
print(c.conf, flush=True)
sys.stdin.read()
"""


def test_nothing_outlives_a_killed_test(tmp_path):
    here = pathlib.Path(__file__).parent
    owner = subprocess.Popen([sys.executable, "-c", KILLED.format(path=str(here))], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    conf = owner.stdout.readline().strip()
    mark = f"SLURM_CONF={conf}"
    try:
        assert len(running.marked(mark)) > 6  # daemons, steps, ranks
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
        await_true(lambda: f"the end of {running.marked(mark)}", lambda: not running.marked(mark), 20)
    finally:
        owner.kill()
        owner.communicate()
        subprocess.run(["rm", "-rf", os.path.dirname(conf)], check=True)
