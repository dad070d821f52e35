# SPDX-License-Identifier: Apache-2.0
"""What befalls jobs of a cluster, many at once, under one reknitd: each ends as it should.

Every scenario is a function that runs in a thread of its own, beside others, on the same 16 nodes;
those that lose nodes have some to themselves. The tests are what became of them. No scenario helps
a job along: who starts it again is reknitd, or Slurm, whose delay after a requeue is shorter here.
What a job did is read from what its ranks wrote themselves.
"""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
import reknitd
from cluster import CommandFailed, FINAL, await_true
from conftest import REKNIT, TOP
from reknitd import Reknitd, Scenarios, Site

pytestmark = pytest.mark.slurm

ECC = "CUDA error: uncorrectable ECC error encountered"
PARTITIONS = {
    "main": {"Default": "YES", "Nodes": "n[1-4]"},
    "watch": {"Nodes": "n[1-4]"},  # reknitd only observes there
    "lies": {"Nodes": "n[1-3]"},
    "down": {"Nodes": "n[5-7]"},
    "lost": {"Nodes": "n[8-10]"},
    "cut": {"Nodes": "n[11-13]"},
    "fenced": {"Nodes": "n[14-16]"},
}
# So many jobs at once else wait for Slurm's turn of once a minute.
EAGER = {"SchedulerParameters": "sched_interval=2,bf_interval=2"}
DELAY = 20  # of a requeued job's start, by Slurm
PATIENCE = 240
scenario = Scenarios(10)  # at once; the machine has two cores

# Asked whether a node is off, it waits for the word of the scenario that lost it.
FENCE = """#!/bin/sh
touch "$1/asked-$2"
n=0
while [ ! -s "$1/power-$2" ] && [ $n -lt 500 ]; do sleep 0.1; n=$((n + 1)); done
exit "$(cat "$1/power-$2")"
"""


class Wave:
    """What the scenarios share."""

    def __init__(self, site):
        self.site = site
        self.liars = []  # jobs
        self.settled = {}  # job -> (state, restarts) that must not change any more
        self.power = site.dir / "power"
        self.power.mkdir()
        fence = self.power / "fence"
        fence.write_text(FENCE)
        fence.chmod(0o755)
        self.daemon = Reknitd(site, spawner=True, log_level="debug", poll="2s",
                              fence=[str(fence), str(self.power), "{node}"],
                              rules=[{"partition": "watch", "mode": "observe"}]).start()
        self.journal = self.daemon.journal

    def train(self, name, *args, **kwargs):
        return self.site.train(name, *args, **kwargs)

    def account(self, job):
        """For people: what a failed test shows."""
        told = [line for line in self.site.output(job).splitlines() if "step " not in line]
        return "\n".join(told[-30:]) + "\n" + self.journal.story(job)

    def end(self, job, state, restarts):
        """The job's record once it is over, for good."""
        try:
            record = self.site.await_state(job, FINAL, PATIENCE, where=lambda j: j["restart_cnt"] >= restarts)
        except TimeoutError as e:
            raise AssertionError(f"{e}\n{self.account(job)}") from None
        assert (record["job_state"], record["restart_cnt"]) == (state, restarts), self.account(job)
        self.journal.wait(job, "job-ended")
        self.settled[job] = (state, restarts)
        return record

    def completed(self, training, restarts=1):
        """It was trained to its end, each attempt from the last checkpoint on, never two at a time."""
        record = self.end(training.id, "COMPLETED", restarts)
        assert training.violations() == "", self.account(training.id)
        for attempt in range(1, restarts + 1):
            assert training.resumed(attempt), f"{training.attempts()}\n{self.account(training.id)}"
        return record

    def verdict(self, job, attempt=1):
        return self.journal.wait(job, "verdict", lambda e: e.attempt == attempt).body

    def decision(self, job, attempt=1):
        return self.journal.wait(job, "decision", lambda e: e.attempt == attempt).body

    def judged(self, job, cls, cause, action, rule=None, culprits=(), excluded=(), attempt=1):
        """The verdict on an attempt, and the first decision about it."""
        verdict, decision, account = self.verdict(job, attempt), self.decision(job, attempt), self.account(job)
        assert (verdict["class"], verdict["cause"]) == (cls, cause), account
        assert verdict.get("culprits", {}).get("nodes", []) == list(culprits), account
        assert decision["action"] == action and rule in (None, decision["rule"]), account
        assert decision.get("nodes", []) == list(excluded), account

    def recovered(self, training, cls, cause, bad=None):
        """Brought back once by reknitd, without that node, if there is one to blame."""
        record = self.completed(training)
        culprits = [bad] if bad else []
        self.judged(training.id, cls, cause, "restart-excluding" if bad else "restart",
                    culprits=culprits, excluded=culprits)
        assert record["excluded_nodes"] == (bad or ""), self.account(training.id)
        assert bad not in training.nodes(1).values(), self.account(training.id)
        assert len(self.journal.intents(training.id, "requeue")) == 1, self.account(training.id)
        return record

    def stays(self, job):
        """Nothing is done for it, although reknitd looks on."""
        self.journal.wait(job, "job-ended")
        assert self.journal.intents(job, "requeue", "amend", "cancel") == [], self.account(job)

    def alive(self, task):
        return task.pid in [t.pid for t in self.site.pids(task.job)]


@pytest.fixture(scope="module")
def wave(request):
    with Site(nodes=16, cpus=16, partitions=PARTITIONS, conf=EAGER, requeue_delay=DELAY) as site:
        w = Wave(site)
        with scenario.running(request, w):
            yield w
        assert w.daemon.stop() == 0


@pytest.mark.parametrize("name", scenario)
def test_wave(wave, name):
    scenario.result(name)


def test_nothing_comes_back(wave):
    """Later, all is as it was when each job was over; and the journal says why."""
    scenario.wait()
    wave.daemon.await_looks()
    jobs = wave.site.jobs()
    now = {job: (jobs[job]["job_state"], jobs[job]["restart_cnt"]) for job in wave.settled}
    assert now == wave.settled
    assert not [job for job in jobs.values() if "held_until" in job["admin_comment"]]
    replayed = wave.journal.replay()
    assert "identical" in replayed and "fitted nowhere" not in replayed


def test_no_bystander_is_kept_out_or_drained(wave):
    scenario.wait()
    for job in wave.site.jobs():
        kept = {node for e in wave.journal.events(job, "decision") for node in e.body.get("nodes", [])}
        ran = set()
        for look in wave.journal.events(job, "look"):
            ran |= set(hosts(look.body.get("nodes", "")))
        assert kept <= ran, wave.account(job)
    assert not any("DRAIN" in state for state in wave.site.node_states().values())


def hosts(text):
    """n[1-3,5] → n1, n2, n3, n5"""
    if "[" not in text:
        return [name for name in text.split(",") if name]
    prefix, ranges = text.rstrip("]").split("[")
    found = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        found += [f"{prefix}{n}" for n in range(int(first), int(last or first) + 1)]
    return found


# Nodes. What takes long begins first.

LOSABLE = "--steps 60 --step-ms 50 --lost hang"
CUT_OFF = [{"rank": 0, "step": 14, "attempt": 0, "do": "hang"}]  # nobody hears of anybody any more


def asked_whether_off(w, node):
    return await_true(f"the question whether {node} is off", (w.power / f"asked-{node}").exists, PATIENCE)


def say_off(w, node, yes):
    new = w.power / f"new-{node}"
    new.write_text("0" if yes else "1")
    new.rename(w.power / f"power-{node}")


def lost(w, job, task):
    """What all that lose a node have in common: class and cause, and that reknit queues nothing
    that Slurm queues again."""
    record = w.completed(job)
    w.judged(job.id, "crash", "node-failure", "restart-excluding", culprits=[task.node], excluded=[task.node])
    assert w.journal.intents(job.id, "requeue") == [], w.account(job.id)
    assert task.node not in job.nodes(1).values()
    assert record["excluded_nodes"] == task.node, w.account(job.id)


@scenario
def node_lost(w):
    """Everything on it is gone at once, for good; and its power is off, as the site says."""
    job = w.train("lost", CUT_OFF, options=LOSABLE, partition="lost")
    job.await_step(12)
    task = w.site.ranks(job.id)[1]
    w.site.stop_slurmd(task.node)
    for pid in (task.parent, task.pid):  # slurmstepd, and the rank
        os.kill(pid, signal.SIGKILL)
    say_off(w, task.node, True)
    lost(w, job, task)
    assert len(w.journal.intents(job.id, "fence")) >= 1, w.account(job.id)


@scenario
def node_partitioned(w):
    """It cannot be reached, and its rank lives on. Nothing is started before it answers again."""
    job = w.train("cut", CUT_OFF, options=LOSABLE, partition="cut")
    job.await_step(12)
    task = w.site.ranks(job.id)[1]
    w.site.partition_node(task.node)
    asked_whether_off(w, task.node)
    say_off(w, task.node, False)
    w.journal.wait(job.id, "result", lambda e: "fence" in e.body.get("detail", ""), PATIENCE)
    record = w.site.await_state(job.id, "PENDING", PATIENCE, where=lambda j: j["restart_cnt"] == 1
                                and j["eligible_time"] > time.time() + 300)
    w.site.await_state(job.id, "PENDING", where=lambda j: j["priority"]["number"] > 0
                       if isinstance(j["priority"], dict) else j["priority"] > 0)
    assert w.alive(task) and job.nodes(1) == {}, record
    w.site.heal_node(task.node)
    lost(w, job, task)


@scenario
def node_fenced(w):
    """Likewise; the site's own program then ends it, and the job need not wait."""
    job = w.train("fenced", CUT_OFF, options=LOSABLE, partition="fenced")
    job.await_step(12)
    task = w.site.ranks(job.id)[1]
    w.site.partition_node(task.node)
    asked_whether_off(w, task.node)
    assert w.alive(task) and job.nodes(1) == {}
    w.site.signal_daemon(f"slurmd-{task.node}", signal.SIGKILL)
    for pid in (task.parent, task.pid):
        os.kill(pid, signal.SIGKILL)
    say_off(w, task.node, True)
    lost(w, job, task)


@scenario
def node_set_down(w):
    """Slurm ends and queues its jobs again by itself, and reknit not once more."""
    job = w.train("down", CUT_OFF, options=LOSABLE, partition="down")
    job.await_step(12)
    task = w.site.ranks(job.id)[1]
    w.site.set_node(task.node, "DOWN")
    lost(w, job, task)


# Ends that are no failures.


def expire(w, job):
    w.site.update_job(job.id, EndTime="now+3seconds")  # an end that has passed is refused


@scenario
def time_limit(w):
    job = w.train("limit", options="--steps 100000 --step-ms 50")
    job.await_step(12)
    expire(w, job)
    w.end(job.id, "TIMEOUT", 0)
    w.judged(job.id, "interrupted", "time-limit", "stop", "time-limit")
    w.stays(job.id)


@scenario
def time_limit_continued(w):
    job = w.train("continued", options="--steps 1000 --step-ms 50",
                  comment='{"reknit": {"continue_after_time_limit": true}}')
    job.await_step(12)
    expire(w, job)
    await_true("its second attempt", lambda: len(job.nodes(1)) == 2, PATIENCE)
    w.site.run("scancel", job.id)
    w.end(job.id, "CANCELLED", 1)
    w.judged(job.id, "interrupted", "time-limit", "restart", "not-its-fault")
    assert job.resumed(1) and not job.violations(), w.account(job.id)


@scenario
def cancelled_while_it_runs(w):
    job = w.train("cancelled", options="--steps 100000")
    job.await_step(5)
    w.site.run("scancel", job.id, user=reknitd.USER)
    w.end(job.id, "CANCELLED", 0)
    w.judged(job.id, "interrupted", "cancelled", "stop")
    w.stays(job.id)


@scenario
def cancelled_while_it_waits(w):
    job = w.train("waiting", begin="now+1hour")
    w.journal.wait(job.id, "job-seen")
    w.site.run("scancel", job.id, user=reknitd.USER)
    w.end(job.id, "CANCELLED", 0)
    w.stays(job.id)
    assert w.journal.events(job.id, "attempt-started") == []  # it never was


@scenario
def cancelled_while_it_comes_back(w):
    """Its user sees it fail, and wants it away: from then on he repeats himself until it is."""
    job = w.train("unwanted", [{"rank": 1, "step": 12, "attempt": 0, "do": "raise", "text": ECC}],
                  options="--steps 100000 --step-ms 50")
    w.journal.wait(job.id, "interrupted")

    def cancelled():
        subprocess.run(["scancel", str(job.id)], env=w.site.env, capture_output=True, check=False)
        return w.site.state(job.id) == "CANCELLED"

    await_true("its end", cancelled)
    w.journal.wait(job.id, "job-ended")
    restarts = w.site.restarts(job.id)
    w.end(job.id, "CANCELLED", restarts)
    assert restarts <= 1 and len(w.journal.intents(job.id, "requeue")) <= 1, w.account(job.id)
    assert job.violations() == ""


@scenario
def cancelled_while_it_runs_again(w):
    job = w.train("regretted", [{"rank": 1, "step": 12, "attempt": 0, "do": "raise", "text": ECC}],
                  options="--steps 100000")
    await_true("its second attempt", lambda: job.nodes(1), PATIENCE)
    w.site.run("scancel", job.id, user=reknitd.USER)
    w.end(job.id, "CANCELLED", 1)
    assert len(w.journal.intents(job.id, "requeue")) == 1 and job.violations() == ""


# One launcher a node, as of torchrun: its tasks are none of the ranks.

LAUNCHERS = """
srun -l --kill-on-bad-exit=1 sh -c '
    for n in 0 1; do echo "[rank$((2 * SLURM_PROCID + n))]: joined"; done
    test -z "$SLURM_RESTART_COUNT" || exit 0
    while [ ! -e go ]; do sleep 0.1; done
    test "$SLURM_PROCID" = 1 || sleep 60
    echo "[rank2]: RuntimeError: {error}"
    exit 1'
"""


@scenario
def a_launcher_on_each_node(w):
    """Rank 2 is in task 1, and so on the second node; task 2, on the third, has nothing to do with it."""
    folder = w.site.folder("launchers")
    job = w.site.submit(LAUNCHERS.format(error=ECC), user=reknitd.USER, nodes=3, ntasks=3, comment="reknit",
                        chdir=folder, job_name="launchers")
    placed = {}
    while len(placed) < 3:
        told = w.journal.wait(job, "signal", lambda e: e.body["kind"] == "layout" and
                              e.body["who"]["node"] not in placed)
        placed[told.body["who"]["node"]] = told.body["who"]["tasks"]
    second = next(node for node, tasks in placed.items() if tasks == "1")
    (folder / "go").touch()
    w.end(job, "COMPLETED", 1)
    w.judged(job, "crash", "gpu-hardware", "restart-excluding", culprits=[second], excluded=[second])
    assert w.verdict(job)["culprits"]["ranks"] == [2]


# Somebody else acts, too.


@scenario
def requeued_by_its_user(w):
    """... in the same moment: whoever comes first, it is queued once; if he comes so late that it
    runs again already, that is a wish of his own."""
    job = w.train("impatient", [{"rank": 1, "step": 12, "attempt": 0, "do": "raise", "text": ECC}])
    w.journal.wait(job.id, "interrupted")
    try:
        w.site.run("scontrol", "requeue", job.id)
    except CommandFailed as e:
        assert "pending" in str(e)  # reknit was faster
    w.site.await_state(job.id, "COMPLETED", PATIENCE)
    restarts = w.site.restarts(job.id)
    w.completed(job, restarts)
    assert {a["attempt"] for a in job.attempts()} == set(range(restarts + 1))
    assert restarts in (1, 2) and len(w.journal.intents(job.id, "requeue")) <= 1, w.account(job.id)


@scenario
def requeued_by_its_user_while_it_runs(w):
    job = w.train("rerun", options="--steps 80 --step-ms 50")
    job.await_step(12)
    w.site.requeue(job.id)
    w.completed(job)
    w.judged(job.id, "interrupted", "preemption", "wait", "preempted")
    assert w.journal.intents(job.id, "requeue") == []


@scenario
def held_by_its_user(w):
    """A hold that is not ours is left alone, and so is the job until it is released."""
    job = w.train("held", [{"rank": 1, "step": 12, "attempt": 0, "do": "raise", "text": ECC}])
    w.journal.wait(job.id, "intent")
    w.site.run("scontrol", "hold", job.id)  # before its requeue, behind it, or once it runs again
    w.daemon.await_looks()
    before = len(w.journal.intents(job.id, "amend"))
    w.daemon.await_looks()
    if w.site.state(job.id) == "PENDING":
        assert len(w.journal.intents(job.id, "amend")) == before, w.account(job.id)
        assert w.site.show(job.id).count("Priority=0 ") == 1
    w.site.run("scontrol", "release", job.id)
    w.completed(job)


@scenario
def interactive(w):
    """srun at a prompt cannot be started again by anybody else: watched only."""
    folder = w.site.folder("srun", [{"rank": 1, "step": 12, "do": "raise", "text": ECC}])
    srun = subprocess.Popen(
        ["srun", "-K", "-N2", "-n2", "--comment=reknit", "--job-name=interactive",
         str(w.site.trainer), "--dir", str(folder), "--steps", "60"],
        env=w.site.env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, user=reknitd.USER, group="nogroup", extra_groups=[])
    try:
        assert srun.wait(PATIENCE) != 0
    finally:
        srun.kill()
    job = await_true("its record", lambda: next(
        (i for i, j in w.site.jobs().items() if j["name"] == "interactive"), None))
    assert w.journal.events(job, "mode")[-1].body["mode"] == "observe"
    w.judged(job, "crash", "unknown", "restart")  # its output goes to srun, and is in no file of the job
    w.daemon.await_looks()
    assert w.journal.intents(job) == []
    assert w.site.restarts(job) == 0


@scenario
def with_a_dependent(w):
    """What waits for the end of a job would run beside it: a person is asked."""
    job = w.train("first", [{"rank": 1, "step": 25, "attempt": 0, "do": "raise", "text": ECC}])
    second = w.train("second", options="--steps 10", dependency=f"afterany:{job.id}")
    assert w.site.await_end(job.id, PATIENCE)["job_state"] == "FAILED"
    assert w.site.await_end(second.id, PATIENCE)["job_state"] == "COMPLETED"
    bad = job.nodes(0)[1]
    w.judged(job.id, "crash", "gpu-hardware", "restart-excluding", culprits=[bad], excluded=[bad])
    w.daemon.await_looks()
    w.settled[job.id] = ("FAILED", 0)
    assert w.journal.intents(job.id, "requeue") == []


# Failures of the job's own nodes and programs.


@scenario
def ecc_error(w):
    job = w.train("ecc", [{"rank": 2, "step": 12, "attempt": 0, "do": "raise", "text": ECC}], nodes=3)
    job.await_step(5)
    w.recovered(job, "crash", "gpu-hardware", job.nodes(0)[2])


@scenario
def a_script_without_srun(w):
    """Only the scheduler says where it ran: on one node."""
    folder = w.site.folder("alone", [{"rank": 0, "step": 12, "attempt": 0, "do": "raise", "text": ECC}])
    job = w.site.submit(f"{w.site.trainer} --dir {folder} --steps 60 --step-ms 40", user=reknitd.USER, nodes=1,
                        ntasks=1, comment="reknit", job_name="alone")
    job = reknitd.Training(w.site, job, folder)
    job.await_step(5)
    w.recovered(job, "crash", "gpu-hardware", job.nodes(0)[0])


@scenario
def killed_task(w):
    """One death proves nothing against its node."""
    job = w.train("killed", options="--steps 400 --step-ms 50")
    job.await_step(12)
    w.site.await_ranks(job.id, 2)
    w.site.kill_task(job.id, 1)
    w.recovered(job, "crash", "unknown")


FREE_PORT = ("/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); "
             "print(s.getsockname()[1])'")


@scenario
def pytorch(w):
    """A real DDP job (gloo) of the demo's trainer, whose rank 1 is killed."""
    if not importlib.util.find_spec("torch"):
        pytest.skip("python3-torch is not installed")
    folder = w.site.folder("pytorch")
    for path in (TOP / "demo/train.py", TOP / "README.md"):
        shutil.copy(path, folder)
    train = (f"exec /usr/bin/python3 {folder}/train.py --text {folder}/README.md --dir {folder} --steps 40 "
             "--step-seconds 0.1")
    job = w.site.submit(
        "export MASTER_ADDR=127.0.0.1 OMP_NUM_THREADS=1 TORCH_CPP_LOG_LEVEL=ERROR\n"
        f"export MASTER_PORT=$({FREE_PORT})\n"
        f"srun -K bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=0 {train}'",
        user=reknitd.USER, nodes=2, ntasks=2, comment="reknit", job_name="pytorch")
    training = reknitd.Training(w.site, job, folder)
    training.await_step(12, PATIENCE)
    w.site.kill_task(job, 1)
    w.end(job, "COMPLETED", 1)
    w.judged(job, "crash", "unknown", "restart")
    output = w.site.output(job)
    before, resumed, after = re.split(r"^resuming from checkpoint \S+ at step (\d+)", output, flags=re.MULTILINE)
    first, second = ([int(n) for n in re.findall(r"^step (\d+)/40 ", text, re.MULTILINE)] for text in (before, after))
    assert first == list(range(1, len(first) + 1)) and len(first) >= 12, output
    assert second == list(range(int(resumed) + 1, 41)) and 10 <= int(resumed) <= len(first), output
    assert after.count("training finished") == 1


@scenario
def import_error(w):
    job = w.train("import", [{"rank": 1, "step": 0, "do": "import", "text": "flash_attn"}])
    w.end(job.id, "FAILED", 0)
    w.judged(job.id, "crash", "user-config", "stop", "hopeless")
    assert "before the first step" in w.decision(job.id)["why"]
    w.stays(job.id)


@scenario
def array_task(w):
    """Only the task that failed is queued again."""
    folder = w.site.folder("array")
    for task in range(3):
        sub = w.site.folder(f"array/{task}", [{"rank": 0, "step": 12, "attempt": 0, "do": "raise", "text": ECC}]
                            if task == 1 else [])
        assert sub.parent == folder
    first = w.site.submit(
        f"srun -K {w.site.trainer} --dir {folder}/$SLURM_ARRAY_TASK_ID --steps 40 --step-ms 40",
        user=reknitd.USER, array="0-2", nodes=1, ntasks=1, comment="reknit", job_name="array",
        output=folder / "%A_%a.out")
    tasks = await_true("three tasks", lambda: len(found := {
        j["array_task_id"]: i for i, j in w.site.jobs().items() if j["array_job_id"] == first}) == 3 and found)
    for number, job in tasks.items():
        w.end(job, "COMPLETED", 1 if number == 1 else 0)
    assert w.verdict(tasks[1])["cause"] == "gpu-hardware"
    for number, job in tasks.items():  # one of them has kept the array's own number
        assert w.daemon.ask(f"/v1/jobs/{first}_{number}")[1]["id"] == job
    failed = reknitd.Training(w.site, tasks[1], folder / "1")
    assert failed.violations() == "" and {a["from"] for a in failed.attempts()} == {0, 10}


@scenario
def armed(w):
    """A job that its user submitted with --no-requeue, and opted in."""
    job = w.train("armed", [{"rank": 1, "step": 14, "attempt": 0, "do": "raise", "text": ECC}], requeue=False)
    job.await_step(5)
    w.recovered(job, "crash", "gpu-hardware", job.nodes(0)[1])
    assert len(w.journal.intents(job.id, "arm")) >= 1


@scenario
def disarmed(w):
    """Likewise, until he opts out again."""
    job = w.train("disarmed", options="--steps 100000 --step-ms 50", requeue=False)
    await_true("that it may be requeued", lambda: "Requeue=1" in w.site.show(job.id), PATIENCE)
    w.site.update_job(job.id, Comment="reknit:off")
    await_true("that it may not any more", lambda: "Requeue=0" in w.site.show(job.id), PATIENCE)
    w.journal.wait(job.id, "job-ended")
    w.site.run("scancel", job.id)


@scenario
def heterogeneous(w):
    folder = w.site.folder("het", [{"rank": 1, "step": 14, "attempt": 0, "do": "raise", "text": ECC}])
    script = (f"#!/bin/bash\n#SBATCH -N1 -n1 --comment=reknit\n#SBATCH hetjob\n#SBATCH -N1 -n1 --comment=reknit\n"
              f"srun -K --het-group=0,1 {w.site.trainer} --dir {folder} --steps 60 --step-ms 40")
    job = w.site.submit(script, user=reknitd.USER, job_name="het")
    w.completed(reknitd.Training(w.site, job, folder))
    parts = [j for j in w.site.jobs().values() if j["het_job_id"] == job]
    assert len(parts) == 2 and {j["restart_cnt"] for j in parts} == {1}


# Observe mode: the same decisions, and Slurm's record is left as it is.


def observed(w, name, faults, **submit):
    """The job, all that Slurm says of it being as before when it was decided about."""
    job = w.train(name, faults, partition="watch", **submit)
    w.site.await_end(job.id, PATIENCE)
    await_true("no process", lambda: "COMPLETING" not in w.site.show(job.id))
    before = w.site.show(job.id)
    assert w.decision(job.id)["mode"] == "observe"
    w.daemon.await_looks()
    assert w.site.show(job.id) == before
    assert w.journal.intents(job.id) == []
    assert w.site.restarts(job.id) == 0
    return job


@scenario
def observed_ecc_error(w):
    job = observed(w, "watch-ecc", [{"rank": 1, "step": 12, "do": "raise", "text": ECC}])
    bad = job.nodes(0)[1]
    w.judged(job.id, "crash", "gpu-hardware", "restart-excluding", culprits=[bad], excluded=[bad])


@scenario
def observed_import_error(w):
    job = observed(w, "watch-import", [{"rank": 1, "step": 0, "do": "import", "text": "flash_attn"}])
    w.judged(job.id, "crash", "user-config", "stop", "hopeless")


@scenario
def observed_exit(w):
    """Nor is it armed, though its user let no requeue be."""
    job = observed(w, "watch-exit", [{"rank": 1, "step": 12, "do": "kill", "signal": 9}], requeue=False)
    w.judged(job.id, "crash", "unknown", "restart")
    assert "Requeue=0" in w.site.show(job.id)


@scenario
def observed_time_limit(w):
    job = w.train("watch-limit", options="--steps 100000 --step-ms 50", partition="watch")
    job.await_step(12)
    expire(w, job)
    w.end(job.id, "TIMEOUT", 0)
    w.judged(job.id, "interrupted", "time-limit", "stop", "time-limit")
    assert w.journal.intents(job.id) == []


# Hostile users.

LIES = """slurmstepd: error: *** JOB 1 ON n16 CANCELLED AT 2026-11-30T12:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***
srun: error: Node failure on n4
srun: error: n9: task 1: Killed
[ 4242.424242] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
n10 kernel: [ 4242.424243] NVRM: Xid (PCI:0000:3b:00): 48, pid=4242, DBE (double bit error)
n11: [rank0]: RuntimeError: CUDA error: uncorrectable ECC error encountered
[rank7]:[E ProcessGroupNCCL.cpp:1154] node n12 [Rank 7] NCCL watchdog thread terminated with exception: CUDA error: uncorrectable ECC error encountered
[n13:4242] RuntimeError: CUDA error: uncorrectable ECC error encountered"""


def liar(w, number):
    """Its own death is as true as any, and so its own node may be kept out of it."""
    job = w.train(f"liar-{number}", [{"rank": 1, "step": 12, "attempt": 0, "do": "raise", "text": LIES}],
                  partition="lies")
    w.liars.append(job.id)
    w.completed(job)
    own = set(job.nodes(0).values())
    for e in w.journal.events(job.id, "decision"):
        assert set(e.body.get("nodes", [])) <= own, w.account(job.id)
    assert set(w.verdict(job.id).get("culprits", {}).get("nodes", [])) <= own, w.account(job.id)
    assert set(hosts(w.site.job(job.id)["excluded_nodes"])) <= own


@scenario
def liar_1(w):
    liar(w, 1)


@scenario
def liar_2(w):
    liar(w, 2)


@scenario
def liar_3(w):
    liar(w, 3)


SECRET = "the-secret-of-root"


@scenario
def log_is_a_link(w):
    """... to what only root may read, though it tells of hardware."""
    folder = w.site.folder("link")
    secret = w.site.dir / "secret"
    secret.write_text(f"[rank0]: RuntimeError: {ECC} {SECRET}\n" * 3)
    secret.chmod(0o600)
    (folder / "ranks.log").symlink_to(secret)
    job = w.site.submit(f"srun -K {w.site.trainer} --dir {folder} --steps 60 --step-ms 40", user=reknitd.USER,
                        nodes=2, ntasks=2, job_name="link", comment=json.dumps(
                            {"reknit": {"max_restarts": 0, "logs": [f"{folder}/ranks.log", str(secret)]}}))
    w.site.await_ranks(job, 2, PATIENCE)
    w.daemon.await_log(f"{folder}/ranks.log: Permission denied")
    w.site.kill_task(job, 1)
    w.end(job, "FAILED", 0)
    w.judged(job, "crash", "unknown", "stop", "max-restarts")
    assert SECRET not in json.dumps([e.body for e in w.journal.events(job)]) + w.daemon.log(10**7)


HOSTILE = "a\"b'c|d\\n\n\x1b[31m$(id)`id`;\x1b]0;x\x07\u202e"


@scenario
def hostile_texts(w):
    """In name, comment, account of the error and log: shown harmless, and taken for nothing else."""
    job = w.train("hostile", [{"rank": 1, "step": 12, "attempt": 0, "do": "raise",
                               "text": f"{ECC}\r\x1b[2J\x00\x9b31m {HOSTILE}"}], job_name=HOSTILE,
                  comment=json.dumps({"x": HOSTILE, "reknit": {"policy": HOSTILE[:20]}}))
    w.site.await_state(job.id, "FAILED", PATIENCE)
    w.verdict(job.id)
    w.daemon.await_looks()
    w.settled[job.id] = ("FAILED", 0)  # there is no such policy: observed only
    assert w.decision(job.id)["mode"] == "observe" and w.journal.intents(job.id) == []
    env = {**os.environ, "REKNIT_SOCKET": str(w.daemon.dir / "api.sock")}
    for argv in (["jobs", "--cluster"], ["explain", "--cluster", str(job.id)], ["incidents"]):
        done = subprocess.run([REKNIT, *argv], env=env, capture_output=True, timeout=60, check=True)
        text = done.stdout.decode()  # strictly
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text), text
    for path in (f"/v1/jobs?id={job.id}", "/v1/incidents", "/v1/events?limit=500"):
        assert w.daemon.ask(path)[0] == 200
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", w.daemon.log(10**7))


@scenario
def slandered(w):
    """It runs on a node that three liars accuse, who did not run there."""
    job = w.train("slandered", nodes=1, ntasks=2, nodelist="n4", options="--steps 600 --step-ms 50")
    scenario.wait(["liar_1", "liar_2", "liar_3"])
    status, node = w.daemon.ask("/v1/nodes/n4")
    blamed = {int(told["job"].split("-")[0]) for told in node["kept_out_of"] + node["blamed_in"]}
    assert status == 200 and not blamed & set(w.liars), node
    w.end(job.id, "COMPLETED", 0)
    assert w.journal.intents(job.id) == [] and job.violations() == ""
