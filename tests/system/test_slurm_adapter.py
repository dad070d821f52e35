# SPDX-License-Identifier: Apache-2.0
"""reknit-slurm on a real Slurm: what it tells, what it does, and above all what it does not."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
from adapter_client import Client
from cluster import Cluster, await_true

pytestmark = pytest.mark.slurm

MISSED_DEADLINE = 75


@pytest.fixture(scope="module")
def program(reknit):
    return reknit.path.with_name("reknit-slurm")


@pytest.fixture(scope="module")
def cluster():
    # Heterogeneous jobs are started by the backfill scheduler alone, every 30 s by default, and
    # what can never start is found by the main one, every 60 s.
    with Cluster(nodes=4, cpus=2, conf={"SchedulerParameters": "bf_interval=1,sched_interval=2"}) as c:
        yield c


@pytest.fixture
def adapter(cluster, program):
    with Client([program], env=cluster.env) as client:
        yield client


def await_job(adapter, job, condition):
    """The adapter's record of the job once the condition holds for it."""
    seen = {}

    def there():
        seen.update(adapter.job(str(job)))
        return condition(seen)

    await_true(lambda: f"job {job}: {seen}", there)
    return seen


def is_over(record):
    return record["state"] == "failed" and not record["completing"]


def failed_job(cluster, adapter, *options, **named):
    job = str(cluster.submit("exit 3", *options, **named))
    await_job(adapter, job, is_over)
    return job


def requeue(adapter, job, **more):
    return adapter.ask("requeue", job=job, expect=adapter.expect(job), **more)


def update(adapter, job, **members):
    return adapter.ask("update", job=job, set=members)


def array_tasks(adapter, job):
    """label -> record of the tasks of an array."""
    return {r["label"]: r for r in adapter.ask("jobs")["jobs"] if r["array"] and r["array"]["job"] == job}


# What it tells.

def test_the_cluster_is_described(cluster, adapter):
    assert adapter.hello["protocol"] == 1 and adapter.hello["adapter"] == "slurm"
    config = adapter.ask("config")["config"]
    assert config["cluster"] == "test" and config["version"].startswith(adapter.hello["version"][:5])
    assert (config["forget_s"], config["node_timeout_s"], config["operator"]) == (3600, 30, True)
    assert config["requeue_delay_s"] == 121
    ping = adapter.ask("ping")
    assert [c["up"] for c in ping["controllers"]] == [True] and abs(ping["clock"] - time.time()) < 60
    partitions = adapter.ask("partitions")["partitions"]
    assert [(p["name"], p["up"], p["default"], p["nodes"]) for p in partitions] == [("main", "up", True, cluster.nodes)]
    nodes = adapter.ask("nodes")["nodes"]
    assert [n["name"] for n in nodes] == cluster.nodes
    assert all(n["usable"] and n["partitions"] == ["main"] and n["cpus"] == 2 for n in nodes)


def test_reservations_name_their_nodes(cluster, adapter):
    cluster.run("scontrol", "create", "reservation", "ReservationName=later", "StartTime=now+1days",
                "Duration=60", "Users=root", "Nodes=n[3-4]", "Flags=maint")
    later, = adapter.ask("reservations")["reservations"]
    assert (later["name"], later["nodes"], later["active"]) == ("later", ["n3", "n4"], False)
    assert "maint" in later["flags"]
    cluster.run("scontrol", "delete", "ReservationName=later")
    assert adapter.ask("reservations")["reservations"] == []


def test_a_job_with_hostile_texts(cluster, adapter):
    name, comment = 'a"b\n|c\\\x1b[31m\té', '{"x":"\n"}|"\'`$(id)'
    job = str(cluster.submit("exit 3", f"--job-name={name}", f"--comment={comment}", output="out %j|\"x.log"))
    record = await_job(adapter, job, is_over)
    assert (record["name"], record["comment"]) == (name, comment)
    assert record["stdout_path"] == f"{cluster.work}/out {job}|\"x.log"
    assert (record["exit"], record["restarts"], record["batch"]) == ({"code": 3, "signal": 0}, 0, True)
    assert record["start"] >= record["submit"] > 0 and record["end"] >= record["start"]


def test_a_name_that_is_no_utf8(cluster, adapter):
    argv = [b"sbatch", b"--parsable", b"--job-name=bad\xff\xfename", b"-o", b"/dev/null", b"--wrap", b"exit 3"]
    done = subprocess.run(argv, env=cluster.env, cwd=cluster.work, capture_output=True, timeout=60, check=True)
    record = await_job(adapter, done.stdout.decode().strip(), is_over)
    assert record["name"] == "bad\ufffd\ufffdname"


@pytest.mark.parametrize("pattern", ["%x-%j-%u.log", "%%j-100%%", None, "%4j-%A.%x", "it's a \"log\"|%j"])
def test_the_log_is_where_it_is_said_to_be(cluster, adapter, pattern):
    folder = cluster.work / f"logs-{abs(hash(pattern))}"
    folder.mkdir()
    job = str(cluster.submit("echo here", output=pattern, job_name="50%t-off", chdir=folder))
    record = await_job(adapter, job, lambda r: r["state"] == "completed" and not r["completing"])
    assert record["stdout_path"] == record["stderr_path"]
    written, = folder.iterdir()
    assert record["stdout_path"].replace("%%", "%") == str(written)


def test_what_differs_between_nodes_and_tasks_is_left_in_a_pattern(cluster, adapter):
    job = str(cluster.submit("exit 0", output="%x-%N-%t-%n-%s-%J", error="/dev/null", job_name="train"))
    record = adapter.job(job)
    assert record["stdout"] == f"{cluster.work}/%x-%N-%t-%n-%s-%J"
    assert record["stdout_path"] == f"{cluster.work}/train-%N-%t-%n-%s-%J"
    assert record["stderr_path"] == "/dev/null"


def test_only_differences_are_told(cluster, adapter):
    first = adapter.ask("jobs", diff=True)
    assert first["full"]
    job = str(cluster.submit("sleep 1000"))
    news = adapter.ask("jobs", diff=True)
    assert not news["full"] and job in [r["id"] for r in news["jobs"]] and news["gone"] == []
    await_job(adapter, job, lambda r: r["state"] == "running")
    adapter.ask("jobs", diff=True)
    # A full list between two differences must not swallow one.
    cluster.run("scancel", job)
    await_job(adapter, job, lambda r: r["state"] == "cancelled" and not r["completing"])
    assert adapter.ask("jobs")["full"]
    assert [r["state"] for r in adapter.ask("jobs", diff=True)["jobs"] if r["id"] == job] == ["cancelled"]
    assert adapter.ask("jobs", diff=True)["unchanged"]
    assert adapter.ask("jobs", diff=True, fresh=True)["full"]


def test_a_node_that_changes_is_told_alone(cluster, adapter):
    assert adapter.ask("nodes", diff=True)["full"]
    cluster.set_node("n4", "drain", "broken fan")
    changed, = adapter.ask("nodes", diff=True)["nodes"]
    assert (changed["name"], changed["flags"], changed["usable"]) == ("n4", ["drain"], False)
    assert (changed["reason"], changed["reason_user"]) == ("broken fan", "root")
    assert changed["partitions"] == ["main"]
    cluster.set_node("n4", "resume")
    cluster.await_nodes(["n4"])
    assert [n["usable"] for n in adapter.ask("nodes", diff=True)["nodes"] if n["name"] == "n4"] == [True]


def test_the_layout_of_a_step_while_it_runs(cluster, adapter):
    job = str(cluster.submit("srun -N2 -n3 --distribution=block sleep 1000", nodes=2, ntasks=3))
    cluster.await_ranks(job, 3)
    steps = {s["step"]: s for s in adapter.ask("steps", job=job)["steps"]}
    assert set(steps) == {"batch", "0"} and len(steps["0"]["nodes"]) == 2
    layout = adapter.ask("layout", job=job, step="0")
    where = {rank: task.node for rank, task in cluster.ranks(job).items()}
    told = {int(rank): node for node, ranks in layout["nodes"].items() for rank in ranks.split(",")}
    assert (layout["n_tasks"], told) == (3, where)
    assert adapter.ask("layout", job=job, step="7")["error"] == "no-such-job"
    assert adapter.ask("cancel", job=job, expect=adapter.expect(job))["ok"]
    await_job(adapter, job, lambda r: r["state"] == "cancelled" and not r["completing"])
    assert adapter.ask("layout", job=job, step="0")["error"] == "no-such-job"


# What it does.

def test_a_requeue_is_done_once(cluster, adapter):
    job = failed_job(cluster, adapter)
    expect = adapter.expect(job)
    assert adapter.ask("requeue", job=job, expect={**expect, "submit": expect["submit"] - 1})["error"] == "changed"
    assert adapter.ask("requeue", job=job, expect={**expect, "colour": "red"})["error"] == "invalid"
    assert adapter.ask("requeue", job=job)["error"] == "invalid"
    assert adapter.job(job)["restarts"] == 0
    before = time.time()
    assert adapter.ask("requeue", job=job, expect=expect)["ok"]
    again = adapter.ask("requeue", job=job, expect=expect)
    assert (again["error"], again["now"]["restarts"]) == ("changed", 1)
    assert requeue(adapter, job)["error"] == "already-done"
    waiting = adapter.job(job)
    assert (waiting["state"], waiting["restarts"], waiting["start"]) == ("pending", 1, 0)
    assert before + 118 < waiting["eligible"] <= time.time() + 122
    # The next attempt, elsewhere and soon: one update. Never before PENDING + 2 s.
    start = int(time.time()) + 3
    assert update(adapter, job, exclude=["n1"], eligible=start)["ok"]
    again = await_job(adapter, job, lambda r: is_over(r) and r["restarts"] == 1)
    assert again["start"] >= start and again["nodes"] != ["n1"] and again["exclude"] == ["n1"]


def test_a_running_job_is_requeued(cluster, adapter):
    job = str(cluster.submit("sleep 1000"))
    await_job(adapter, job, lambda r: r["state"] == "running")
    assert update(adapter, job, eligible=int(time.time()) + 60)["error"] == "changed"
    assert requeue(adapter, job, running_only=True)["ok"]
    record = await_job(adapter, job, lambda r: r["state"] == "pending" and not r["completing"])
    assert record["restarts"] == 1
    assert adapter.ask("cancel", job=job, expect=adapter.expect(job))["ok"]
    assert adapter.job(job)["state"] == "cancelled"


def test_what_was_cancelled_stays_so(cluster, adapter):
    job = str(cluster.submit("sleep 1000"))
    await_job(adapter, job, lambda r: r["state"] == "running")
    before = adapter.expect(job)
    cluster.run("scancel", job)
    for _ in range(2):  # while it completes, and after
        assert requeue(adapter, job)["error"] == "not-allowed"
        assert adapter.ask("requeue", job=job, expect={**before, "states": ["cancelled"]})["error"] == "not-allowed"
        assert adapter.ask("requeue", job=job, expect=before)["error"] == "changed"
        record = await_job(adapter, job, lambda r: r["state"] == "cancelled" and not r["completing"])
    assert record["restarts"] == 0
    assert adapter.ask("cancel", job=job, expect=adapter.expect(job))["error"] == "already-done"


def test_a_task_of_an_array_is_touched_alone(cluster, adapter):
    job = str(cluster.submit("exit 3", "--array=0-2"))
    await_true("the array", lambda: len(t := array_tasks(adapter, job)) == 3 and all(map(is_over, t.values())))
    tasks = array_tasks(adapter, job)
    assert job in {r["id"] for r in tasks.values()}, "one task has the array's own number"
    assert requeue(adapter, job)["ok"]
    assert update(adapter, job, exclude=["n1"])["ok"]
    after = array_tasks(adapter, job)
    assert {r["id"]: r["restarts"] for r in after.values()} == {r["id"]: int(r["id"] == job) for r in tasks.values()}
    assert [r["id"] for r in after.values() if r["exclude"]] == [job]
    other = next(r["id"] for r in tasks.values() if r["id"] != job)
    assert requeue(adapter, other)["ok"]
    assert adapter.ask("cancel", job=job, expect=adapter.expect(job))["ok"]
    states = {r["id"]: r["state"] for r in array_tasks(adapter, job).values()}
    assert states == {i: {job: "cancelled", other: "pending"}.get(i, "failed") for i in states}
    assert adapter.ask("cancel", job=other, expect=adapter.expect(other))["ok"]


def test_the_rest_of_an_array_has_no_record_of_its_own(cluster, adapter):
    job = str(cluster.submit("exit 3", "--array=0-3", "--hold", requeue=False))
    record = adapter.job(job)
    assert (record["array"], record["label"]) == ({"job": job, "tasks": "0-3"}, f"{job}_[0-3]")
    assert record["stdout_path"] == "" and record["held"]
    assert update(adapter, job, requeue=True)["ok"] and adapter.job(job)["requeue"]
    assert adapter.ask("cancel", job=job, expect=adapter.expect(job))["error"] == "not-allowed"
    cluster.run("scancel", job)


def test_a_heterogeneous_job_is_requeued_by_its_leader(cluster, adapter):
    argv = ["sbatch", "--parsable", "-n1", "-o", "/dev/null", ":", "-n1", "--wrap", "exit 3"]
    leader = cluster.run(*argv).strip()
    follower = str(int(leader) + 1)
    for part in (leader, follower):
        await_job(adapter, part, is_over)
    assert adapter.job(follower)["het"] == {"leader": leader, "offset": 1}
    assert requeue(adapter, follower)["error"] == "not-allowed"
    assert requeue(adapter, leader)["ok"]
    assert [adapter.job(part)["restarts"] for part in (leader, follower)] == [1, 1]
    cluster.run("scancel", leader)


def test_a_user_who_forbids_a_requeue_is_obeyed(cluster, adapter):
    job = str(cluster.submit("sleep 1000", requeue=False))
    await_job(adapter, job, lambda r: r["state"] == "running")
    assert requeue(adapter, job)["error"] == "not-allowed"
    assert update(adapter, job, requeue=True)["ok"]  # armed, which only works while it runs
    assert requeue(adapter, job)["ok"]
    cluster.run("scancel", job)


def test_an_interactive_job_is_never_requeued(cluster, adapter):
    srun = subprocess.Popen(["srun", "-n1", "--job-name=inter", "sleep", "1000"], env=cluster.env,
                            cwd=cluster.work, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        record = await_true("srun's job", lambda: next(
            (r for r in adapter.ask("jobs")["jobs"] if r["name"] == "inter" and r["state"] == "running"), None))
        assert not record["batch"] and record["stdout_path"] == ""
        assert requeue(adapter, record["id"])["error"] == "not-allowed"
        assert adapter.ask("cancel", job=record["id"], expect=adapter.expect(record["id"]))["ok"]
    finally:
        srun.terminate()
        srun.wait(60)


def test_an_update_is_done_whole_or_not_at_all(cluster, adapter):
    job = failed_job(cluster, adapter)
    assert update(adapter, job, exclude=["n1"])["error"] == "not-allowed"  # it has ended
    assert update(adapter, job, requeue=False)["error"] == "not-allowed"
    assert requeue(adapter, job)["ok"]
    start = int(time.time()) + 3600
    for wrong in ({"exclude": ["n1", "nowhere"]}, {"exclude": ["n[1-2]"]}, {"exclude": "n1"}, {"colour": "red"},
                  {"held": True, "priority": 5}, {"reservation": "none such"}, {}):
        assert update(adapter, job, **{"eligible": start, **wrong} if wrong else {})["error"] == "invalid", wrong
    record = adapter.job(job)
    assert record["exclude"] == [] and record["eligible"] < start
    assert update(adapter, job, exclude=["n1", "n3"], eligible=start, time_limit=90)["ok"]
    record = adapter.job(job)
    assert (record["exclude"], record["eligible"], record["time_limit"]) == (["n1", "n3"], start, 120)
    assert update(adapter, job, held=True)["ok"] and adapter.job(job)["held"]
    assert update(adapter, job, held=False)["ok"] and not adapter.job(job)["held"]
    assert update(adapter, job, priority=77)["ok"] and adapter.job(job)["priority"] == 77
    cluster.run("scancel", job)


def test_too_many_exclusions_are_seen_and_taken_back(cluster, adapter):
    job = failed_job(cluster, adapter)
    assert requeue(adapter, job)["ok"]
    assert update(adapter, job, exclude=cluster.nodes, eligible=int(time.time()) + 3)["ok"]
    record = await_job(adapter, job, lambda r: r["reason_kind"] == "constraints")
    assert record["held"] and record["priority"] == 0
    assert update(adapter, job, exclude=[])["ok"]
    record = adapter.job(job)
    assert (record["held"], record["reason_kind"], record["exclude"]) == (False, "none", [])
    cluster.run("scancel", job)


def test_comments_are_shared(cluster, adapter):
    job = str(cluster.submit("sleep 1000", comment='{"APS":{"max_requeue_times":1}}'))
    other = str(cluster.submit("sleep 1000", comment="my own words"))
    assert update(adapter, job, comment={"a": '"|\n'}, admin_comment={"b": 1})["ok"]
    record = adapter.job(job)
    assert json.loads(record["comment"]) == {"APS": {"max_requeue_times": 1}, "reknit": {"a": '"|\n'}}
    assert json.loads(record["admin_comment"]) == {"reknit": {"b": 1}}
    assert update(adapter, job, comment=None)["ok"]
    assert json.loads(adapter.job(job)["comment"]) == {"APS": {"max_requeue_times": 1}}
    assert update(adapter, other, comment={"a": 1})["error"] == "not-allowed"
    assert adapter.job(other)["comment"] == "my own words"
    assert update(adapter, other, comment=None)["ok"]  # there is nothing of ours to take away
    assert adapter.job(other)["comment"] == "my own words"
    cluster.run("scancel", job, other)


def test_a_hold_needs_no_note(cluster, adapter):
    """Where others write what is no JSON into AdminComment, it can be set and taken back all the same."""
    job = str(cluster.submit("sleep 1000"))
    theirs = "looked at, \"thrice\""
    cluster.run("scontrol", "update", f"job={job}", f"admincomment={theirs}")
    note = {"held_until": int(time.time()) + 600}
    assert update(adapter, job, held=True, admin_comment=note)["error"] == "not-allowed"
    assert not adapter.job(job)["held"]
    answer = adapter.ask("update", job=job, set={"held": True, "admin_comment": note}, optional=["admin_comment"])
    assert answer["ok"] and answer["left_out"] == ["admin_comment"] and "other text" in answer["text"], answer
    record = adapter.job(job)
    assert record["held"] and record["admin_comment"] == theirs
    assert update(adapter, job, held=False, admin_comment=None)["ok"]
    record = adapter.job(job)
    assert not record["held"] and record["admin_comment"] == theirs
    cluster.run("scancel", job)


def test_a_dependent_is_repaired(cluster, adapter):
    job = failed_job(cluster, adapter)
    dependent = str(cluster.submit("exit 0", dependency=f"afterok:{job}"))
    await_job(adapter, dependent, lambda r: r["reason_kind"] == "dependency-never")
    assert requeue(adapter, job)["ok"]
    assert update(adapter, dependent, dependency=f"afterok:{job}")["ok"]
    assert adapter.job(dependent)["dependency"].startswith(f"afterok:{job}")
    assert await_job(adapter, dependent, lambda r: r["reason_kind"] == "dependency")
    assert update(adapter, dependent, dependency="")["ok"]
    assert await_job(adapter, dependent, lambda r: r["state"] == "completed")
    cluster.run("scancel", job)


def test_only_our_own_drains_are_undone(cluster, adapter):
    assert adapter.ask("node", node="n4", set="drain", reason="because")["error"] == "invalid"
    assert adapter.ask("node", node="n4", set="drain", reason="reknit: XID 79")["ok"]
    node = adapter.ask("node-look", node="n4")["node"]
    assert (node["flags"], node["reason"], node["usable"]) == (["drain"], "reknit: XID 79", False)
    assert adapter.ask("node", node="n4", set="drain", reason="reknit: again")["error"] == "already-done"
    changed = adapter.ask("node", node="n4", set="undrain", expect={"reason": "reknit: other"})
    assert (changed["error"], changed["now"]["reason"]) == ("changed", "reknit: XID 79")
    assert adapter.ask("node", node="n4", set="undrain", expect={"colour": 1})["error"] == "invalid"
    assert adapter.ask("node", node="n4", set="undrain", expect={"reason": "reknit: XID 79"})["ok"]
    assert adapter.ask("node", node="n4", set="undrain")["error"] == "already-done"
    cluster.set_node("n4", "drain", "broken fan")
    assert adapter.ask("node", node="n4", set="undrain")["error"] == "not-allowed"
    assert adapter.ask("node", node="n4", set="drain", reason="reknit: mine")["error"] == "already-done"
    assert adapter.ask("node-look", node="n4")["node"]["reason"] == "broken fan"
    cluster.set_node("n4", "resume")
    cluster.await_nodes(["n4"])
    for name in ("nowhere", "n[1-4]", "n1,n2", ""):
        assert adapter.ask("node", node=name, set="drain", reason="reknit: x")["error"] in ("no-such-job", "invalid")
    assert all(n["usable"] for n in adapter.ask("nodes")["nodes"])


def test_what_is_not_there(adapter):
    for op in ("job", "steps", "layout", "update"):
        assert adapter.ask(op, job="987654", step="0", set={"held": True})["error"] == "no-such-job", op
    for job in ("25_3", "", "-1", 0, 1.5, None, [], "99999999999999999999"):
        assert adapter.ask("job", job=job)["error"] == "invalid", job
    assert adapter.ask("frobnicate")["error"] == "invalid"


def test_another_users_jobs_are_not_touched(cluster, program, adapter):
    job = failed_job(cluster, adapter)
    copy = cluster.dir / "reknit-slurm"  # where that user may look
    shutil.copy(program, copy)
    with Client([copy], env=cluster.env, user="daemon", group="daemon", extra_groups=[]) as other:
        assert other.ask("config")["config"]["operator"] is None
        assert other.ask("requeue", job=job, expect=other.expect(job))["error"] == "not-allowed"
        assert other.ask("node", node="n1", set="drain", reason="reknit: x")["error"] == "not-allowed"
    assert adapter.job(job)["restarts"] == 0


def resident_kib(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1))


def test_memory_does_not_grow(cluster, adapter):
    job = str(cluster.submit("exit 0", "--hold"))
    assert update(adapter, job, admin_comment={"a": "b" * 12000})["ok"]

    def look(times):
        for _ in range(times):
            assert adapter.job(job)["held"]
        return resident_kib(adapter.process)

    before = look(50)
    assert look(500) - before < 2048  # libslurm's free function alone would lose 6 MB
    cluster.run("scancel", job)


# What it does when something is broken.

def test_slurmctld_is_down(cluster, program):
    cluster.stop_slurmctld()
    try:
        with Client([program], env=cluster.env, stderr=subprocess.DEVNULL) as adapter:
            answer = adapter.ask("jobs", diff=True, deadline_ms=30000)
            assert (answer["error"], adapter.process.poll()) == ("unreachable", None)
            # Back again: the same adapter goes on.
            cluster.start_slurmctld()
            assert adapter.ask("jobs", diff=True)["full"]
    finally:
        if "slurmctld" not in cluster.daemons():
            cluster.start_slurmctld()


def assert_deadline(cluster, program, daemon):
    """While a daemon does not answer, a request is answered at its deadline and the adapter ends."""
    cluster.signal_daemon(daemon, signal.SIGSTOP)
    try:
        with Client([program], env=cluster.env, stderr=subprocess.DEVNULL) as adapter:
            answer = adapter.ask("jobs", deadline_ms=1000)
            assert answer["error"] == "unreachable"
            assert adapter.read() is None and adapter.process.wait(60) == MISSED_DEADLINE
    finally:
        cluster.signal_daemon(daemon, signal.SIGCONT)
    with Client([program], env=cluster.env) as adapter:
        assert adapter.ask("jobs", deadline_ms=60000)["ok"]


def test_slurmctld_hangs(cluster, program):
    assert_deadline(cluster, program, "slurmctld")


def test_munged_hangs(cluster, program):
    assert_deadline(cluster, program, "munged")


class Wire:
    """Between a client and slurmctld: passes on what `rules` say, one for each connection in turn.
    "pass"; "lose-answer": slurmctld gets the request, the client no answer; "lose-request"."""

    def __init__(self, port, *rules):
        self.port, self.rules, self.open = port, list(rules), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self.listener.getsockname()[1]

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for s in self.open:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.open.append(client)
                rule = self.rules.pop(0) if self.rules else "pass"
                if rule == "lose-request":
                    continue
                server = socket.create_connection(("127.0.0.1", self.port))
                self.open.append(server)
                self._pump(client, server)
                if rule == "pass":
                    self._pump(server, client)

    @staticmethod
    def _pump(source, target):
        def run():
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)

        threading.Thread(target=run, daemon=True).start()


@pytest.mark.parametrize("lost, restarts", [("lose-answer", 1), ("lose-request", 0)])
def test_a_requeue_without_an_answer_is_unknown(cluster, program, adapter, lost, restarts):
    job = failed_job(cluster, adapter)
    expect = adapter.expect(job)
    with Wire(cluster.port, "pass", lost) as port:  # the look before it, and the requeue
        conf = cluster.dir / f"{lost}.conf"
        conf.write_text(cluster.conf.read_text().replace(f"SlurmctldPort={cluster.port}", f"SlurmctldPort={port}"))
        env = {**cluster.env, "SLURM_CONF": str(conf)}
        with Client([program], env=env, stderr=subprocess.DEVNULL) as cut_off:
            answer = cut_off.ask("requeue", job=job, expect=expect, deadline_ms=2000)
            assert answer["error"] == "unknown"
            assert cut_off.process.wait(60) == MISSED_DEADLINE
    assert await_job(adapter, job, lambda r: r["restarts"] == restarts)
    # To repeat it is safe: what was done is not what is expected.
    again = adapter.ask("requeue", job=job, expect=expect)
    assert again["ok"] if restarts == 0 else again["error"] == "changed"
    assert adapter.job(job)["restarts"] == 1
    cluster.run("scancel", job)


def test_nonsense_is_answered_and_does_no_harm(cluster, program):
    with Client([program], env=cluster.env) as adapter:
        def say(data):
            adapter.process.stdin.write(data)
            adapter.process.stdin.flush()
            return adapter.read()

        for line in (b"x\n", b"\n", b"[]\n", b'{"id":1}\n', b"\xff\xfe\0\n", b'{"id":1,"op":"jobs","deadline_ms":0}\n'):
            assert say(line)["error"] == "invalid", line
        adapter.process.stdin.write(b"a" * 1_000_000)
        assert say(b'\n')["id"] is None
        assert adapter.ask("ping")["ok"]
        adapter.process.stdin.write(b'{"id":99,"op":"ping"}')  # no newline: no request
        assert adapter.close() == 0


def test_a_client_that_is_gone(cluster, program):
    with Client([program], env=cluster.env) as adapter:
        adapter.process.stdout.close()
        adapter.send("ping")
        assert adapter.process.wait(60) in (1, -signal.SIGPIPE)


def once(program, *args, **kwargs):
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=60, **kwargs)


def test_a_person_asks(cluster, program, adapter):
    job = failed_job(cluster, adapter)
    done = once(program, "--once", "config", env=cluster.env)
    assert done.returncode == 0 and json.loads(done.stdout)["config"]["cluster"] == "test"
    done = once(program, "--once", json.dumps({"op": "job", "job": job}), env=cluster.env)
    assert json.loads(done.stdout)["job"]["id"] == job
    done = once(program, "--once", "nonsense", env=cluster.env)
    assert done.returncode == 1 and json.loads(done.stdout)["error"] == "invalid"
    assert "--once" in once(program, "--help").stdout
    assert once(program, "--version").stdout.startswith("reknit-slurm ")
    for wrong in (["--nonsense"], ["jobs"], ["--once"]):
        done = once(program, *wrong)
        assert done.returncode == 2 and done.stderr


def test_without_a_configuration_it_says_so(program, tmp_path):
    env = {**os.environ, "SLURM_CONF": str(tmp_path / "none")}
    done = once(program, "--once", "config", env=env)
    assert done.returncode != 0 and "none" in done.stderr
