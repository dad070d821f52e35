# SPDX-License-Identifier: Apache-2.0
"""What befalls jobs of a cluster, all at once, under one reknitd: each ends as it should.

Every scenario is a function that runs in a thread of its own, beside all others, on the same 16
nodes; those that lose nodes have some to themselves. The tests are what became of them.
"""

import concurrent.futures
import json
import os
import signal
import subprocess
import time

import pytest
import reknitd
from cluster import CommandFailed, FINAL, await_true
from reknitd import Reknitd, Site

pytestmark = [pytest.mark.soak, pytest.mark.skipif(reknitd.missing() is not None, reason=str(reknitd.missing()))]

ECC = "CUDA error: uncorrectable ECC error encountered"
PARTITIONS = {
    "main": {"Default": "YES", "Nodes": "n[1-7]"},
    "watch": {"Nodes": "n[1-7]"},  # reknitd only observes there
    "down": {"Nodes": "n[8-10]"},
    "lost": {"Nodes": "n[11-13]"},
    "cut": {"Nodes": "n[14-16]"},
}
# So many jobs at once else wait for Slurm's turn of once a minute.
EAGER = {"SchedulerParameters": "sched_interval=2,bf_interval=2"}
SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


class Wave:
    """What the scenarios share."""

    def __init__(self, site, daemon):
        self.site, self.daemon, self.journal = site, daemon, daemon.journal
        self.took = {}
        self.settled = {}  # job -> (state, restarts) that must not change any more

    def run(self, name):
        begun = time.monotonic()
        SCENARIOS[name](self)
        self.took[name] = time.monotonic() - begun

    def train(self, name, *args, **kwargs):
        return self.site.train(name, *args, **kwargs)

    def end(self, job, state, restarts, timeout=150):
        """The job's record once it is over, for good."""
        try:
            record = self.site.await_state(job, FINAL, timeout, where=lambda j: j["restart_cnt"] >= restarts)
        except TimeoutError as e:
            raise AssertionError(f"{e}\n{self.account(job)}") from None
        assert (record["job_state"], record["restart_cnt"]) == (state, restarts), self.account(job)
        self.journal.wait(job, "job-ended")
        self.settled[job] = (state, restarts)
        return record

    def account(self, job):
        return f"{self.site.output(job)[-1500:]}\n{self.journal.story(job)}"

    def completed(self, training, restarts=1, timeout=150):
        """It was trained to its end, from its checkpoint on, and never twice at a time."""
        record = self.end(training.id, "COMPLETED", restarts, timeout)
        assert training.violations() == "", self.account(training.id)
        last = [a for a in training.attempts() if a["attempt"] == restarts]
        assert last and all(a["from"] >= 10 for a in last), last
        return record

    def verdict(self, job, attempt=1):
        return self.journal.wait(job, "verdict", lambda e: e.attempt == attempt).body

    def decision(self, job, attempt=1):
        return self.journal.wait(job, "decision", lambda e: e.attempt == attempt).body

    def stays(self, job):
        """Nothing is done for it, although reknitd looks on."""
        self.journal.wait(job, "job-ended")
        assert self.journal.intents(job, "requeue", "amend", "cancel") == [], self.account(job)


@pytest.fixture(scope="module")
def wave(request):
    names = [item.callspec.params["name"] for item in request.session.items if hasattr(item, "callspec")
             and item.callspec.params.get("name") in SCENARIOS]
    with Site(nodes=16, cpus=16, partitions=PARTITIONS, conf=EAGER) as site:
        daemon = Reknitd(site, spawner=True, log_level="debug",
                         rules=[{"partition": "watch", "mode": "observe"}]).start()
        w = Wave(site, daemon)
        with concurrent.futures.ThreadPoolExecutor(len(SCENARIOS)) as pool:
            w.results = {name: pool.submit(w.run, name) for name in names or SCENARIOS}
            yield w


@pytest.mark.parametrize("name", SCENARIOS)
def test_wave(wave, name):
    wave.results[name].result(200)
    print(f"{wave.took[name]:.0f} s")


def test_nothing_comes_back(wave):
    """Later, all is as it was when each job was over; and the journal says why."""
    concurrent.futures.wait(wave.results.values())
    jobs = wave.site.jobs()
    now = {job: (jobs[job]["job_state"], jobs[job]["restart_cnt"]) for job in wave.settled}
    assert now == wave.settled
    assert "identical" in wave.journal.replay()


def test_no_bystander_is_kept_out_or_drained(wave):
    concurrent.futures.wait(wave.results.values())
    for job, record in wave.site.jobs().items():
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


# Failures of the job's own nodes and programs.


@scenario
def ecc_error(w):
    job = w.train("ecc", [{"rank": 2, "step": 12, "attempt": 0, "do": "raise", "text": ECC}], nodes=3)
    record = w.completed(job)
    bad = job.nodes(0)[2]
    verdict, decision = w.verdict(job.id), w.decision(job.id)
    assert (verdict["class"], verdict["cause"]) == ("crash", "gpu-hardware")
    assert verdict["culprits"]["nodes"] == [bad]
    assert (decision["action"], decision["nodes"]) == ("restart-excluding", [bad])
    assert record["excluded_nodes"] == bad and bad not in job.nodes(1).values()


@scenario
def killed_task(w):
    job = w.train("killed", options="--steps 400 --step-ms 50")
    job.await_step(12)
    w.site.await_ranks(job.id, 2)
    w.site.kill_task(job.id, 1)
    record = w.completed(job)
    assert w.verdict(job.id)["class"] == "crash"
    assert w.decision(job.id)["action"] == "restart"
    assert record["excluded_nodes"] == ""  # one death proves nothing against its node


@scenario
def import_error(w):
    job = w.train("import", [{"rank": 1, "step": 0, "do": "import", "text": "flash_attn"}])
    w.end(job.id, "FAILED", 0)
    assert w.verdict(job.id)["cause"] == "user-config"
    decision = w.decision(job.id)
    assert (decision["action"], decision["rule"]) == ("stop", "hopeless")
    assert "before the first step" in decision["why"]
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
    assert not (folder / "1" / "violations").exists()


@scenario
def armed(w):
    """A job that its user submitted with --no-requeue, and opted in."""
    job = w.train("armed", [{"rank": 1, "step": 14, "attempt": 0, "do": "raise", "text": ECC}], requeue=False)
    w.completed(job)
    assert len(w.journal.intents(job.id, "arm")) >= 1


@scenario
def heterogeneous(w):
    folder = w.site.folder("het", [{"rank": 1, "step": 14, "attempt": 0, "do": "raise", "text": ECC}])
    script = (f"#!/bin/bash\n#SBATCH -N1 -n1 --comment=reknit\n#SBATCH hetjob\n#SBATCH -N1 -n1 --comment=reknit\n"
              f"srun -K --het-group=0,1 {w.site.trainer} --dir {folder} --steps 60 --step-ms 40")
    job = w.site.submit(script, user=reknitd.USER, job_name="het")
    w.completed(reknitd.Training(w.site, job, folder))
    parts = [j for j in w.site.jobs().values() if j["het_job_id"] == job]
    assert len(parts) == 2 and {j["restart_cnt"] for j in parts} == {1}


# Ends that are no failures.


@scenario
def time_limit(w):
    job = w.train("limit", options="--steps 100000 --step-ms 50")
    job.await_step(12)
    w.site.update_job(job.id, EndTime="now")
    w.end(job.id, "TIMEOUT", 0)
    assert w.verdict(job.id)["cause"] == "time-limit"
    assert (w.decision(job.id)["action"], w.decision(job.id)["rule"]) == ("stop", "time-limit")
    w.stays(job.id)


@scenario
def time_limit_continued(w):
    job = w.train("continued", options="--steps 1000 --step-ms 50",
                  comment='{"reknit": {"continue_after_time_limit": true}}')
    job.await_step(12)
    w.site.update_job(job.id, EndTime="now")
    await_true("its second attempt", lambda: job.nodes(1), 120)
    w.site.run("scancel", job.id)
    w.end(job.id, "CANCELLED", 1)
    assert w.verdict(job.id)["cause"] == "time-limit" and w.decision(job.id)["action"] == "restart"
    assert all(a["from"] >= 10 for a in job.attempts() if a["attempt"] == 1) and not job.violations()


@scenario
def cancelled_while_it_runs(w):
    job = w.train("cancelled", options="--steps 100000")
    job.await_step(5)
    w.site.run("scancel", job.id, user=reknitd.USER)
    w.end(job.id, "CANCELLED", 0)
    assert w.decision(job.id)["action"] == "stop"
    w.stays(job.id)


@scenario
def cancelled_while_it_waits(w):
    job = w.train("waiting", begin="now+1hour")
    w.journal.wait(job.id, "job-seen")
    w.site.run("scancel", job.id, user=reknitd.USER)
    w.end(job.id, "CANCELLED", 0)
    w.stays(job.id)


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
    w.end(job.id, "CANCELLED", 1)
    assert w.decision(job.id, 1)["action"] == "restart-excluding"
    assert len(w.journal.intents(job.id, "requeue")) == 1


@scenario
def cancelled_while_it_runs_again(w):
    job = w.train("regretted", [{"rank": 1, "step": 12, "attempt": 0, "do": "raise", "text": ECC}],
                  options="--steps 100000")
    await_true("its second attempt", lambda: job.nodes(1), 120)
    w.site.run("scancel", job.id, user=reknitd.USER)
    w.end(job.id, "CANCELLED", 1)


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
    w.decision(job.id)
    time.sleep(3)
    if w.site.state(job.id) == "PENDING":
        w.site.update_job(job.id, StartTime="now")  # whoever queues it gives it its start, and Slurm two minutes
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
    assert w.journal.intents(job.id, "requeue") == []


@scenario
def held_by_its_user(w):
    """A hold that is not ours is left alone, and so is the job until it is released."""
    job = w.train("held", [{"rank": 1, "step": 12, "attempt": 0, "do": "raise", "text": ECC}])
    w.journal.wait(job.id, "result")
    w.site.run("scontrol", "hold", job.id)
    before = len(w.journal.intents(job.id, "amend"))
    time.sleep(8)  # longer than reknitd needs for anything
    record = w.site.job(job.id)
    if record["job_state"] == "PENDING":
        assert record["priority"] == 0 and len(w.journal.intents(job.id, "amend")) <= before + 1, w.account(job.id)
        w.site.run("scontrol", "release", job.id)
    w.completed(job)


@scenario
def interactive(w):
    """srun at a prompt cannot be started again by anybody else: watched only."""
    folder = w.site.folder("srun", [{"rank": 1, "step": 12, "do": "raise", "text": ECC}])
    srun = subprocess.Popen(
        ["srun", "-K", "-N2", "-n2", "--comment=reknit", "--job-name=interactive",
         f"--output={folder}/out", str(w.site.trainer), "--dir", str(folder), "--steps", "60"],
        env=w.site.env, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        user=reknitd.USER, group="nogroup", extra_groups=[])
    try:
        assert srun.wait(60) != 0
    finally:
        srun.kill()
    job = await_true("its record", lambda: next(
        (i for i, j in w.site.jobs().items() if j["name"] == "interactive"), None))
    w.journal.wait(job, "decision")
    assert w.journal.intents(job) == []
    assert w.site.restarts(job) == 0


@scenario
def with_a_dependent(w):
    """What waits for the end of a job would run beside it: a person is asked."""
    job = w.train("first", [{"rank": 1, "step": 25, "attempt": 0, "do": "raise", "text": ECC}])
    second = w.train("second", options="--steps 10", dependency=f"afterany:{job.id}")
    assert w.site.await_end(job.id)["job_state"] == "FAILED"
    assert w.site.await_end(second.id)["job_state"] == "COMPLETED"
    decision = w.decision(job.id)
    assert decision["action"] == "restart-excluding"
    w.settled[job.id] = ("FAILED", 0)
    assert w.journal.intents(job.id, "requeue") == []


# Nodes.


@scenario
def node_set_down(w):
    """Slurm queues its jobs again by itself, and reknit not once more."""
    job = w.train("down", options="--steps 300 --step-ms 50", partition="down")
    job.await_step(12)
    lost = job.nodes(0)[1]
    w.site.set_node(lost, "DOWN")
    w.decision(job.id)
    time.sleep(3)
    if w.site.state(job.id) == "PENDING":
        w.site.update_job(job.id, StartTime="now")  # as in delayed()
    record = w.completed(job)
    verdict = w.verdict(job.id)
    assert verdict["cause"] == "node-failure" and verdict.get("culprits", {}).get("nodes", []) in ([], [lost])
    assert w.journal.intents(job.id, "requeue") == []
    assert lost not in job.nodes(1).values() and record["restart_cnt"] == 1


def delayed(w, job, node):
    """Slurm gives a job that lost a node two minutes before its next start. Only who knows that
    nothing of it is left there may shorten them, and that is not reknit; here it is the test."""
    record = w.site.await_state(job.id, "PENDING", 100, where=lambda j: j["restart_cnt"] == 1)
    verdict = w.verdict(job.id)
    assert (verdict["cause"], verdict["culprits"]["nodes"]) == ("node-failure", [node]), w.account(job.id)
    time.sleep(5)  # longer than reknitd needs for anything
    assert w.site.job(job.id)["eligible_time"] >= record["eligible_time"] > time.time() + 60
    assert w.journal.intents(job.id, "requeue") == []


def begin(w, job):
    """What reknitd asks for in the same moment may be meant for the delay: then once more."""

    def begun():
        if w.site.state(job.id) == "PENDING":
            w.site.update_job(job.id, StartTime="now")
            time.sleep(2)
        return w.site.state(job.id) != "PENDING"

    await_true("its start", begun)


@scenario
def node_lost(w):
    """Everything on it is gone at once."""
    job = w.train("lost", options="--steps 300 --step-ms 50 --lost hang", partition="lost")
    job.await_step(12)
    task = w.site.ranks(job.id)[1]
    w.site.stop_slurmd(task.node)
    os.kill(task.parent, signal.SIGKILL)  # slurmstepd
    os.kill(task.pid, signal.SIGKILL)
    delayed(w, job, task.node)
    begin(w, job)
    w.completed(job)
    assert task.node not in job.nodes(1).values()


@scenario
def node_partitioned(w):
    """It cannot be reached, and its rank lives on: never two copies."""
    job = w.train("cut", options="--steps 100000 --step-ms 50 --lost hang", partition="cut")
    job.await_step(12)
    task = w.site.ranks(job.id)[1]
    w.site.partition_node(task.node)
    delayed(w, job, task.node)
    assert task.pid in [t.pid for t in w.site.pids(job.id)]
    w.site.heal_node(task.node)
    await_true("the end of its old rank", lambda: task.pid not in [t.pid for t in w.site.pids(job.id)])
    begin(w, job)
    await_true("its second attempt", lambda: len(job.nodes(1)) == 2)
    w.site.run("scancel", job.id)
    w.end(job.id, "CANCELLED", 1)
    assert job.violations() == "" and all(a["from"] >= 10 for a in job.attempts() if a["attempt"] == 1)


# Observe mode: the same decisions, and Slurm's record is left as it is.


def observed(w, name, faults, **submit):
    """The decisions on it here and where reknitd acts."""
    job = w.train(name, faults, partition="watch", **submit)
    w.site.await_end(job.id)
    await_true("no process", lambda: "COMPLETING" not in str(w.site.show(job.id)))
    before = w.site.show(job.id)
    decision = w.decision(job.id)
    assert decision["mode"] == "observe"
    time.sleep(3)  # longer than an action takes
    assert w.site.show(job.id) == before
    assert w.journal.intents(job.id) == []
    assert w.site.restarts(job.id) == 0
    return w.verdict(job.id), decision


@scenario
def observed_ecc_error(w):
    verdict, decision = observed(w, "watch-ecc", [{"rank": 1, "step": 12, "do": "raise", "text": ECC}])
    assert verdict["cause"] == "gpu-hardware" and decision["action"] == "restart-excluding"
    assert decision["nodes"] == verdict["culprits"]["nodes"] != []


@scenario
def observed_import_error(w):
    verdict, decision = observed(w, "watch-import", [{"rank": 1, "step": 0, "do": "import", "text": "flash_attn"}])
    assert verdict["cause"] == "user-config" and decision["action"] == "stop"


@scenario
def observed_exit(w):
    verdict, decision = observed(w, "watch-exit", [{"rank": 1, "step": 12, "do": "kill", "signal": 9}], requeue=False)
    assert verdict["class"] == "crash" and decision["action"] == "restart"


# Hostile users.

LIES = """slurmstepd: error: *** JOB 1 ON n16 CANCELLED AT 2026-11-30T12:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***
srun: error: Node failure on n8
srun: error: n9: task 1: Killed
[ 4242.424242] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
n10 kernel: [ 4242.424243] NVRM: Xid (PCI:0000:3b:00): 48, pid=4242, DBE (double bit error)
n11: [rank0]: RuntimeError: CUDA error: uncorrectable ECC error encountered
[rank7]:[E ProcessGroupNCCL.cpp:1154] node n12 [Rank 7] NCCL watchdog thread terminated with exception: CUDA error: uncorrectable ECC error encountered
[n13:4242] RuntimeError: CUDA error: uncorrectable ECC error encountered"""


def liar(w, number):
    job = w.train(f"liar-{number}", [{"rank": 1, "step": 12, "attempt": 0, "do": "raise", "text": LIES}])
    w.site.await_state(job.id, "PENDING", where=lambda j: j["restart_cnt"] == 1)
    w.decision(job.id)
    time.sleep(3)
    w.site.update_job(job.id, StartTime="now")  # its own lie of a node's failure would delay it
    w.end(job.id, "COMPLETED", 1)
    for e in w.journal.events(job.id, "decision"):
        assert set(e.body.get("nodes", [])) <= set(job.nodes(0).values()), w.account(job.id)
    assert set(hosts(w.site.job(job.id)["excluded_nodes"])) <= set(job.nodes(0).values())


@scenario
def liar_1(w):
    liar(w, 1)


@scenario
def liar_2(w):
    liar(w, 2)


@scenario
def liar_3(w):
    liar(w, 3)


@scenario
def stolen_log(w):
    """A log that its owner cannot read is not read for him."""
    secret = w.site.dir / "secret.log"
    secret.touch(0o600)
    secret.write_text(f"RuntimeError: {ECC} the-secret-of-root\n")
    link = w.site.work / "link.log"
    link.symlink_to(secret)
    job = w.train("thief", [{"rank": 1, "step": 12, "attempt": 0, "do": "exit", "status": 3}],
                  comment=json.dumps({"reknit": {"logs": [str(link), str(secret)]}}))
    w.completed(job)
    assert "the-secret" not in json.dumps([e.body for e in w.journal.events(job.id)])
    assert w.verdict(job.id)["cause"] != "gpu-hardware"
    assert str(link) in w.daemon.log()  # that it could not be read is said


NASTY = "a|b \"c\" 'd' $(touch {0}) `touch {0}`; e\\n f\u001b[31m\u202eé{{}}"


@scenario
def nasty_texts(w):
    """Quotes, newlines, pipes, escapes, in names, comments and lines."""
    made = w.site.work / "made-by-a-shell"
    text = NASTY.format(made)
    comment = json.dumps({"reknit": {"logs": [text, "\n../../etc/passwd", "%j%t%N%%"]}, "x": text + "\n\t|"})
    job = w.train("nasty", [{"rank": 1, "step": 12, "attempt": 0, "do": "raise", "text": f"{text}\n{text}\r\n{ECC}"}],
                  job_name=text, comment=comment)
    w.end(job.id, "COMPLETED", 1)
    assert not made.exists()
    for e in w.journal.events(job.id):
        raw = json.dumps(e.body)
        assert "\\u001b" not in raw and "\\u202e" not in raw, raw
    lines = w.daemon.log().splitlines()
    assert all("\x1b" not in line for line in lines)
