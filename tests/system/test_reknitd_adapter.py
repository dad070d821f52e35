# SPDX-License-Identifier: Apache-2.0
"""reknitd with an adapter that does not do as docs/ADAPTER.md says, and with wishes that cannot be granted."""

import contextlib
import os
import pathlib
import signal
import time

import pytest
from api_daemon import Daemon, daemon_of, wait_for
from fake_adapter import World

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="its daemon is asked as several users")


def test_what_has_no_place_in_a_list_is_passed_over(tmp_path):
    with World(nodes=4) as world:
        for op in ("jobs", "nodes", "job", "config"):
            world.break_next(op, "odd", times=10_000)
        first = world.submit(n_nodes=2, comment="reknit", exclude=["n4"], runs=[(1, "failed", 1)])
        daemon = Daemon(tmp_path, world)
        try:
            daemon.until("/v1/decisions", lambda a: len(a["decisions"]) == 1)
            world.forget(first)  # "gone" of the next answer holds what is no number of a job
            second = world.submit(n_nodes=2, comment="reknit", runs=[(1, "failed", 1)])
            daemon.until("/v1/decisions", lambda a: [str(d["id"]) for d in a["decisions"]] == [str(second)])
            assert "is started again" not in daemon.log()
            wait_for(lambda: daemon.process.poll() is None, "reknitd is gone")
            daemon.stop()
        finally:
            daemon.process.kill()
            daemon.process.wait()


def updates(world):
    with world.lock:
        return [r["set"] for r in world.done if r["op"] == "update"]


def lose(world, job, node):
    """As Slurm does it: at first the node is silent, then it is given up, and the job queued again."""
    world.set_node(node, state="allocated", flags=["not-responding"])
    wait_for(lambda: world.job(job)["held"], "it is not guarded")
    world.set_node(node, state="down", flags=["not-responding"])


def test_a_lost_node_that_its_user_requires_makes_no_loop(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="act") as daemon:
        job = world.submit(n_nodes=2, comment="reknit", required=["n1", "n2"])
        daemon.until("/v1/jobs", lambda a: [j.get("attempt") for j in a["jobs"]] == [1])
        lose(world, job, "n2")
        decision = daemon.until("/v1/jobs", lambda a: "decision" in a["jobs"][0])["jobs"][0]["decision"]
        assert decision["action"] == "restart" and "requires n2" in decision["why"], decision
        wait_for(lambda: not world.job(job)["held"], "its hold is not taken back")
        record = world.job(job)
        assert record["state"] == "pending" and record["eligible"] > time.time() + 300, record
        before = len(updates(world))
        settled = time.monotonic() + 3
        wait_for(lambda: time.monotonic() > settled, "")
        assert len(updates(world)) == before <= 6, updates(world)


def test_a_job_is_guarded_though_others_use_its_comment(tmp_path, reknit):
    """A submit plugin's text, or an operator's: no second copy starts, and the hold is taken back."""
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="act") as daemon:
        job = world.submit(n_nodes=2, comment="reknit", admin_comment="billed to 17")
        daemon.until("/v1/jobs", lambda a: [j.get("attempt") for j in a["jobs"]] == [1])
        world.set_node("n2", state="allocated", flags=["not-responding"])
        wait_for(lambda: world.job(job)["held"], daemon.log)
        daemon.until("/v1/jobs", lambda a: a["jobs"][0].get("held_unnoted"))
        assert "no note says until when" in daemon.log()
        assert daemon.ask("/v1/health")[1]["holds"] == {"unnoted": 1, "unnoted_job": job}
        said = reknit("explain", job, env={"REKNIT_SOCKET": str(daemon.socket)}).stdout
        assert f"'scontrol release {job}' ends it" in said, said
        world.set_node("n2", state="allocated")
        wait_for(lambda: not world.job(job)["held"], daemon.log)
        assert world.job(job)["admin_comment"] == "billed to 17"
        daemon.until("/v1/health", lambda a: a["holds"] == {"unnoted": 0})


def test_a_hold_is_taken_back_though_its_note_was_written_over(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="act") as daemon:
        job = world.submit(n_nodes=2, comment="reknit")
        daemon.until("/v1/jobs", lambda a: [j.get("attempt") for j in a["jobs"]] == [1])
        world.set_node("n2", state="allocated", flags=["not-responding"])
        wait_for(lambda: "held_until" in world.job(job)["admin_comment"], daemon.log)
        world.change(job, admin_comment="looked at")
        daemon.until("/v1/jobs", lambda a: a["jobs"][0].get("held_unnoted"))
        world.set_node("n2", state="allocated")
        wait_for(lambda: not world.job(job)["held"], daemon.log)
        assert world.job(job)["admin_comment"] == "looked at"


@pytest.mark.parametrize("cut", [[], ["dependency"]])
def test_who_was_stranded_is_told_his_dependency_only_whole(tmp_path, cut):
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="act") as daemon:
        other = world.submit(name="other", held=True)
        waits = world.submit(name="next", dependency=f"afterok:{other}")
        job = world.submit(comment="reknit")
        daemon.until("/v1/jobs", lambda a: any(j.get("attempt") == 1 for j in a["jobs"]))
        world.change(waits, dependency=f"afterok:{job}(failed):{other}", reason_kind="dependency-never", cut=cut)
        world.end(job)
        if cut:  # he may wait for its failure, too: only somebody who approves brings it back
            seq = daemon.until("/v1/decisions", lambda a: a["decisions"])["decisions"][0]["decision"]["seq"]
            assert daemon.ask(f"/v1/decisions/{seq}/approve", method="POST")[0] == 200
            wait_for(lambda: "is too long to be written anew" in daemon.log(), daemon.log)
            assert not [u for u in updates(world) if "dependency" in u]
        else:
            wait_for(lambda: {"dependency": f"afterok:{job}:{other}"} in updates(world), lambda: str(daemon.ask("/v1/jobs")), 8)
            with world.lock:
                told = [r for r in world.done if r["op"] == "update" and r["job"] == waits]
            assert told[0]["expect"]["dependency"] == f"afterok:{job}(failed):{other}", told


def decided(daemon):
    return daemon.until("/v1/jobs", lambda a: a["jobs"] and "decision" in a["jobs"][0])["jobs"][0]["decision"]


def test_what_its_user_does_not_let_be_requeued_is_not_proposed(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="propose") as daemon:
        world.submit(comment="reknit", requeue=False, runs=[(2, "failed", 1)])
        decision = decided(daemon)
        assert (decision["action"], decision["rule"]) == ("stop", "no-requeue"), decision
        assert updates(world) == [] and daemon.ask("/v1/decisions")[1]["decisions"] == []


def test_it_is_let_while_it_runs_where_reknit_acts(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="act") as daemon:
        job = world.submit(comment="reknit", requeue=False, runs=[(3, "failed", 1)])
        assert decided(daemon)["action"].startswith("restart")
        wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log)
        assert {"requeue": True} in updates(world)


def test_what_is_never_allowed_is_asked_for_once(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="act") as daemon:
        world.break_next("requeue", "error", times=10, error="not-allowed", text="permission denied")
        world.submit(comment="reknit", runs=[(2, "failed", 1)])
        daemon.until("/v1/jobs", lambda a: a["jobs"] and a["jobs"][0].get("decision", {}).get("rule") == "start-refused")
        assert daemon.log().count("asks for requeue") == 1, daemon.log()


def move_away(folder):
    away = folder.with_name("elsewhere")
    folder.rename(away)
    return lambda: away.rename(folder)


def replace_lock(folder):
    """As whoever tidies up does it: two reknitd could hold it then."""
    away = folder / "away"
    (folder / "lock").rename(away)
    (folder / "lock").touch()
    return lambda: away.rename(folder / "lock")


def move_journal(folder):
    (folder / "journal.db").rename(folder / "away")
    return lambda: (folder / "away").rename(folder / "journal.db")


@pytest.mark.parametrize("harm, lost", [(move_away, "lock"), (replace_lock, "lock"), (move_journal, "journal.db")])
def test_without_its_state_it_acts_on_nothing_until_that_is_back(tmp_path, harm, lost):
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="act") as daemon:
        def health():
            return daemon.ask("/v1/health")[1]

        job = world.submit(comment="reknit", runs=[(600, "failed", 1)])
        daemon.until("/v1/jobs", lambda a: a["jobs"])
        mend = harm(tmp_path / "state")
        told = wait_for(lambda: (h := health()).get("tilt") and h, "no tilt")
        assert not told["ok"] and told["tilt"].endswith(f"state/{lost} was moved away, removed or replaced"), told
        assert daemon.ask("/v1/freeze", method="POST")[0] == 503
        world.end(job)
        wait_for(lambda: "asks for requeue" in daemon.log(), daemon.log)
        assert world.done == [], world.done
        assert daemon.log().count("nothing is done until it can") == 1
        mend()
        wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log)
        assert "tilt" not in health()


def test_the_layouts_of_many_jobs_wait_for_no_look(tmp_path):
    """They are asked for one behind the other, a few at a time."""
    jobs = 400
    with World(nodes=jobs) as world:
        for _ in range(jobs):
            world.submit(comment="reknit")
        with daemon_of(tmp_path, world, mode="observe", poll="60s"):
            wait_for(lambda: world.asked["layout"] == jobs, lambda: str(world.asked), 40)
            assert 1 <= world.asked["steps"] <= 4  # looks are frequent in the first seconds


ECC = "[rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"


def test_a_node_that_leaves_the_cluster_keeps_no_other_from_being_excluded(tmp_path):
    with World(nodes=6) as world, daemon_of(tmp_path, world, mode="act", max_excluded=100,
                                             fence=["/bin/true", "{node}"]) as daemon:
        job = world.submit(n_nodes=2, comment="reknit", exclude=["n6"])
        daemon.until("/v1/jobs", lambda a: [j.get("attempt") for j in a["jobs"]] == [1])
        lose(world, job, "n2")
        wait_for(lambda: world.job(job)["exclude"] == ["n6", "n2"], daemon.log)
        daemon.until("/v1/jobs", lambda a: a["jobs"][0].get("attempt") == 2)
        with world.lock:
            del world.nodes["n2"], world.nodes["n6"]
        guilty = world.job(job)["nodes"][0]
        lose(world, job, guilty)
        wait_for(lambda: world.job(job)["exclude"] == [guilty], lambda: (world.job(job), daemon.log()))
        daemon.until("/v1/jobs", lambda a: a["jobs"][0].get("attempt") == 3)
        wishes = [u["exclude"] for u in updates(world) if "exclude" in u]
        assert wishes.count([guilty]) <= 2, wishes  # what nothing can start on is not asked for again


def test_what_only_a_restart_can_change_is_kept_and_said(tmp_path):
    with World(nodes=1) as world, daemon_of(tmp_path, world) as daemon:
        before = daemon.until("/v1/health", lambda a: True)["config_hash"]
        daemon.configure(spawner="/run/elsewhere.sock", adapter={"command": ["/bin/false"]}, readers={"stall": "7s"},
                         state_dir=str(tmp_path / "elsewhere"))
        said = daemon.reload()
        for key in ("spawner", "adapter.command", "readers.stall", "state_dir"):
            assert f"{key}: what is new is used only after a restart" in said, said
        assert "was read again" in said
        assert daemon.ask("/v1/health")[1]["config_hash"] == before


def reader_of(daemon):
    """The pid of its reader."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, rest = path.read_text(errors="replace").split("(", 1)[1].rsplit(")", 1)
            if name == "reknit-reader" and int(rest.split()[1]) == daemon.process.pid:
                return int(path.parent.name)
    return None


def fail_unread(tmp_path, world, daemon):
    """A job of which nobody has read the last line, when it is over."""
    job = world.submit(comment="reknit", work_dir=str(tmp_path))
    log = tmp_path / f"slurm-{job}.out"
    log.write_text("step 1/9 | loss 0.5\n")
    daemon.until("/v1/jobs", lambda a: a["jobs"] and a["jobs"][0].get("last_step") == 1)
    os.kill(reader_of(daemon), signal.SIGSTOP)
    with log.open("a") as f:
        f.write(ECC)
    world.end(job)
    daemon.until("/v1/jobs", lambda a: a["jobs"][0]["phase"] == "ending")


def causes(daemon):
    return [i["cause"] for i in daemon.until("/v1/incidents", lambda a: a["incidents"])["incidents"]]


PATIENT = {"policy": "patient", "policies": [{"name": "patient", "policy": {"verdict_wait": "5s"}}]}


def test_what_nobody_read_before_reknitd_was_killed_is_waited_for(tmp_path):
    """When the next one begins, more time than is waited for last lines is over: nobody read in it."""
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="observe", **PATIENT) as daemon:
        fail_unread(tmp_path, world, daemon)
        back = time.monotonic() + 6
        daemon.process.kill()
        daemon.process.wait()
        daemon.socket.unlink()
        wait_for(lambda: time.monotonic() > back, "")
        daemon.start()
        assert causes(daemon) == ["gpu-hardware"]


def fall_silent(tmp_path, world, daemon):
    """A job that wrote of an error last, and reknitd is killed for longer than it waits for more."""
    job = world.submit(comment="reknit", work_dir=str(tmp_path))
    log = tmp_path / f"slurm-{job}.out"
    log.write_text("step 1/9 | loss 0.5\n")
    daemon.until("/v1/jobs", lambda a: a["jobs"] and a["jobs"][0].get("last_step") == 1)
    with log.open("a") as f:
        f.write(ECC)
    key = daemon.ask("/v1/jobs")[1]["jobs"][0]["key"]
    daemon.until(f"/v1/jobs/{key}/events?kind=all", lambda a: "uncorrectable" in str(a))
    back = time.monotonic() + SILENCE + 1
    daemon.process.kill()
    daemon.process.wait()
    daemon.socket.unlink()
    wait_for(lambda: time.monotonic() > back, "")
    return log


SILENCE = 5
HASTY = {"policy": "hasty", "policies": [{"name": "hasty", "policy": {"hang": {"first_step": f"{6 * SILENCE}s"}}}]}


def test_what_got_on_while_reknitd_was_away_is_left_alone(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="act", **HASTY) as daemon:
        log = fall_silent(tmp_path, world, daemon)
        with log.open("a") as f:
            f.write("step 2/9 | loss 0.4\n")
        daemon.start()
        jobs = daemon.until("/v1/jobs", lambda a: a["jobs"] and a["jobs"][0].get("last_step") == 2)["jobs"]
        assert jobs[0]["phase"] == "running"
        assert not daemon.ask("/v1/incidents")[1]["incidents"]
        assert not [r for r in world.done if r["op"] == "requeue"]


def test_what_is_dead_when_reknitd_is_back_is_found(tmp_path):
    """But only when it was silent for long enough while somebody read."""
    with World(nodes=4) as world, daemon_of(tmp_path, world, mode="act", **HASTY) as daemon:
        fall_silent(tmp_path, world, daemon)
        back = time.monotonic()
        daemon.start()
        assert causes(daemon) == ["gpu-hardware"]
        assert time.monotonic() - back >= SILENCE
        wait_for(lambda: [r for r in world.done if r["op"] == "requeue"], "it is not started again")


class Toppling(World):
    """Its node goes down between two questions of one look, just before the jobs are answered."""

    toppled = None
    runs_again = False  # by then its job does, elsewhere

    def op_jobs(self, request, session):
        if self.toppled:
            node, self.toppled = self.toppled, None
            self.set_node(node, state="down", flags=["not-responding"])
            for job in self.jobs:  # queued again, it does not say which node that was
                self.change(job, failed_node="", **({"eligible": 0} if self.runs_again else {}))
            self._step()
        return super().op_jobs(request, session)


@pytest.mark.parametrize("runs_again", [False, True])
def test_a_node_that_goes_down_in_the_middle_of_a_look(tmp_path, runs_again):
    with Toppling(nodes=4) as world, daemon_of(tmp_path, world, mode="observe") as daemon:
        world.runs_again = runs_again
        job = world.submit(n_nodes=2, comment="reknit")
        daemon.until("/v1/jobs", lambda a: [j.get("attempt") for j in a["jobs"]] == [1])
        world.break_next("nodes", "lag", seconds=0.5)  # so slow, they are not asked for each time
        wait_for(lambda: not world.faults, "the nodes are not asked for")
        jobs = world.asked["jobs"]
        wait_for(lambda: world.asked["jobs"] > jobs, "the jobs are not asked for")
        world.toppled = world.job(job)["nodes"][1]
        answer = daemon.until("/v1/incidents", lambda a: a["incidents"])
        incident = answer["incidents"][0]
        assert incident["cause"] == "node-failure", answer
        assert incident["culprits"]["nodes"] == ["n2"], answer


@pytest.mark.parametrize("restarted", [False, True])
def test_a_node_that_is_done_sooner_than_others_is_blamed_all_the_same(tmp_path, restarted):
    """While a job is completing, Slurm lists those of its nodes alone that are not done yet."""
    with World(nodes=3, complete_s=600) as world, contextlib.ExitStack() as stack:
        daemon = stack.enter_context(daemon_of(tmp_path, world, mode="observe"))
        log = tmp_path / "job.out"
        log.write_text("".join(f"step {n}/100 loss 1.{n}\n" for n in range(1, 20)))
        job = world.submit(n_nodes=2, n_tasks=2, uid=0, comment="reknit", stdout_path=str(log), work_dir=str(tmp_path))
        key = daemon.until("/v1/jobs", lambda a: a["jobs"] and a["jobs"][0].get("last_step", -1) > 0)["jobs"][0]["key"]
        daemon.until(f"/v1/jobs/{key}/events?kind=signal&limit=500", lambda a: {
            e["signal"]["who"]["node"] for e in a["events"] if e["signal"]["kind"] == "layout"} == {"n1", "n2"})
        if restarted:
            daemon.process.kill()
            daemon.process.wait()
            daemon.socket.unlink()
        with world.lock:
            with log.open("a") as f:
                f.write("[rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
                        "[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4711\n")
            world.end(job, "failed", 1)
            world.change(job, nodes=["n1"], nodes_text="n1", n_nodes=1)
        if restarted:
            daemon.start()
        said = daemon.until("/v1/incidents", lambda a: a["incidents"])["incidents"][0]
        assert said["culprits"]["nodes"] == ["n2"], said
        looks = daemon.ask(f"/v1/jobs/{key}/events?kind=look&limit=500")[1]["events"]
        assert [e["look"]["nodes"] for e in looks if e["look"].get("completing")] == ["n1,n2"]
