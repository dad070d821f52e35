# SPDX-License-Identifier: Apache-2.0
"""On which terms reknitd watches a job, when they change while it does: comments and rules that are lowered or raised."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import time

import api_daemon
import pytest
from api_daemon import ALICE, Daemon, wait_for
from cluster import await_true
from fake_adapter import World
from reading import BIN
from reknitd import CONFIG, Reknitd, Site

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="its daemon is asked as several users")

RULES_OFF = {"rules": [{"partition": "*", "mode": "off"}]}


daemon_of = functools.partial(api_daemon.daemon_of, mode="act", opt_in=False)


def job_of(daemon, is_so):
    return daemon.until("/v1/jobs", lambda a: len(a["jobs"]) == 1 and is_so(a["jobs"][0]))["jobs"][0]


def followed(daemon, attempt=1):
    return job_of(daemon, lambda j: j["phase"] == "running" and j.get("attempt") == attempt)


def let_go(daemon):
    return job_of(daemon, lambda j: j.get("let_go") and j["mode"] == "off" and j["phase"] == "ended")


def deeds(world, *ops):
    with world.lock:
        return [r for r in world.done if r["op"] in (ops or ("requeue", "update", "cancel", "reserve"))]


def explained(daemon, job, form="text"):
    return subprocess.run([BIN / "reknit", "explain", "--format", form, job], capture_output=True, text=True, check=True,
                          env={**os.environ, "REKNIT_SOCKET": str(daemon.socket)}).stdout


def settle(daemon, looks=3):
    """As many looks at the scheduler."""
    done = daemon.world.asked["jobs"] + looks
    wait_for(lambda: daemon.world.asked["jobs"] >= done, "it does not look any more")


@pytest.mark.parametrize("lowered", ["reknit:off", "reknit:observe", '{"reknit":{"max_restarts":0}}'])
def test_a_wish_that_is_lowered_while_it_runs_holds(tmp_path, lowered):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit")
        followed(daemon)
        world.change(job, comment=lowered)
        world.end(job)  # the next look shows both
        if "off" in lowered:
            let_go(daemon)
        else:
            job_of(daemon, lambda j: "decision" in j)
        settle(daemon)
        assert deeds(world) == []
        assert world.job(job)["state"] == "failed"


def test_a_wish_that_is_lowered_before_anything_was_done_holds(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit")
        followed(daemon)
        assert daemon.ask("/v1/freeze", method="POST", body="{}")[0] == 200
        world.end(job)
        job_of(daemon, lambda j: j.get("decision", {}).get("action") == "restart")
        world.change(job, comment="reknit:off")
        let_go(daemon)
        assert daemon.ask("/v1/thaw", method="POST", body="{}")[0] == 200
        settle(daemon)
        assert deeds(world) == []


def test_it_is_watched_again_from_when_that_is_wanted(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit")
        followed(daemon)
        world.change(job, comment="reknit:off")
        key = let_go(daemon)["key"]
        world.change(job, comment="reknit")
        followed(daemon)
        world.end(job)
        wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log)
        story = str(daemon.ask(f"/v1/jobs/{key}/events?kind=all")[1])
        assert "its comment asks for it" in story and "job-ended" in story
        assert len(daemon.ask(f"/v1/jobs/{key}/attempts")[1]["attempts"]) <= 2


def test_who_opts_in_while_it_runs_is_watched_from_then_on(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world, watch_all=False) as daemon:
        job = world.submit(comment="reknit:off")
        settle(daemon)
        assert daemon.ask("/v1/jobs")[1]["jobs"] == []
        world.change(job, comment="reknit")
        followed(daemon)
        world.end(job)
        wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log)


@pytest.mark.parametrize("again", ["comment", "reload", "word"])
def test_what_failed_unwatched_is_not_caught_up_with(tmp_path, again):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit", dependency="afterok:1")
        job_of(daemon, lambda j: j["phase"] == "new" and j["mode"] == "act")
        if again == "reload":
            daemon.configure(opt_in=False, **RULES_OFF)
            daemon.reload()
        else:
            world.change(job, comment="reknit:off")
        key = let_go(daemon)["key"]
        world.change(job, dependency="")
        settle(daemon)
        world.end(job)
        settle(daemon)
        if again == "reload":
            daemon.configure(opt_in=False, mode="act")
            daemon.reload()
        elif again == "word":
            assert daemon.ask(f"/v1/jobs/{key}/mode", method="POST", body='{"mode":"act"}')[0] == 200
        else:
            world.change(job, comment="reknit")
        shown = job_of(daemon, lambda j: j["mode"] == "act" and j.get("state") == "failed")
        settle(daemon)
        assert shown["phase"] == "ended" and deeds(world) == []
        world.change(job, state="pending", restarts=1, start=0, end=0)  # its user: scontrol requeue
        followed(daemon, attempt=2)


@contextlib.contextmanager
def braked(tmp_path, world):
    """A daemon, and a job that would be requeued if the brakes let it."""
    with daemon_of(tmp_path, world, brakes={"actions_per_hour": 1}) as daemon:
        first = world.submit(comment="reknit")
        followed(daemon)
        world.end(first)
        wait_for(lambda: world.job(first)["restarts"] == 1, daemon.log)
        world.forget(first)
        job = world.submit(comment="reknit")
        key = followed_of(daemon, job)["key"]
        world.end(job)
        daemon.until(f"/v1/jobs/{key}", lambda j: j.get("decision", {}).get("action") == "restart")
        settle(daemon)
        assert world.job(job)["restarts"] == 0
        yield daemon, job, key


def followed_of(daemon, job):
    jobs = daemon.until("/v1/jobs", lambda a: any(j["id"] == int(job) and j["phase"] == "running" for j in a["jobs"]))
    return next(j for j in jobs["jobs"] if j["id"] == int(job))


@pytest.mark.parametrize("mode", ["propose", "observe", "off"])
def test_one_edit_that_loosens_the_brakes_and_lowers_the_mode(tmp_path, mode):
    with World(nodes=4) as world, braked(tmp_path, world) as (daemon, job, key):
        daemon.configure(opt_in=False, mode=mode, brakes={"actions_per_hour": 100}, **(RULES_OFF if mode == "off" else {}))
        daemon.reload()
        settle(daemon)
        assert world.job(job)["restarts"] == 0
        assert "requeue" not in str(daemon.ask(f"/v1/jobs/{key}/events?kind=intent")[1])  # not even asked for
        daemon.configure(opt_in=False, mode="act", brakes={"actions_per_hour": 100})
        daemon.reload()
        settle(daemon)
        assert (world.job(job)["restarts"] == 1) == (mode != "off")  # it was decided in mode act, and waited


@pytest.mark.parametrize("said", ["freeze", "observe", "propose"])
def test_what_waits_for_the_scheduler_is_not_done_against_a_persons_word(tmp_path, said):
    with World(nodes=4) as world, braked(tmp_path, world) as (daemon, job, key):
        daemon.process.kill()
        daemon.process.wait()
        daemon.socket.unlink()
        world.break_next("jobs", "error", times=1000, error="unreachable")
        daemon.configure(opt_in=False, mode="act", brakes={"actions_per_hour": 100})
        daemon.start()
        daemon.until(f"/v1/jobs/{key}/events?kind=intent", lambda a: "requeue" in str(a))  # it waits to be done
        if said == "freeze":
            assert daemon.ask("/v1/freeze", method="POST", body="{}")[0] == 200
        else:
            assert say_mode(daemon, key, said, 0) == 200
        world.mend()
        settle(daemon)
        assert world.job(job)["restarts"] == 0
        if said == "freeze":
            assert daemon.ask("/v1/thaw", method="POST", body="{}")[0] == 200
            wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log)


def test_what_waits_behind_a_slow_scheduler_is_not_done_while_frozen(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        jobs = [world.submit(comment="reknit") for _ in range(3)]
        keys = [followed_of(daemon, job)["key"] for job in jobs]
        world.break_next("requeue", "lag", seconds=8)
        for job in jobs:
            world.end(job)
        for key in keys:
            daemon.until(f"/v1/jobs/{key}/events?kind=intent", lambda a: "requeue" in str(a))
        assert daemon.ask("/v1/freeze", method="POST", body="{}")[0] == 200
        settle(daemon)
        assert sum(world.job(job)["restarts"] for job in jobs) == 1
        assert daemon.ask("/v1/thaw", method="POST", body="{}")[0] == 200
        wait_for(lambda: all(world.job(job)["restarts"] == 1 for job in jobs), daemon.log)


@pytest.mark.parametrize("mode", ["act", "propose", "observe", "off"])
def test_no_node_is_fenced_against_a_mode_that_was_lowered_meanwhile(tmp_path, mode):
    """Of what is asked for between the start of reknitd and its first look, only that tells what is allowed now."""
    fence, fenced = tmp_path / "fence", tmp_path / "fenced"
    fence.write_text(f"#!/bin/sh\necho $1 >>{fenced}\n")
    fence.chmod(0o755)
    config = {"opt_in": False, "fence": [str(fence), "{node}"]}
    with World(nodes=4) as world, daemon_of(tmp_path, world, fence=config["fence"]) as daemon:
        job = world.submit(comment="reknit", n_nodes=4)
        key = followed(daemon)["key"]
        node = world.job(job)["nodes"][0]
        assert daemon.ask("/v1/freeze", method="POST", body="{}")[0] == 200
        world.set_node(node, state="down", flags=["not-responding"])
        daemon.until(f"/v1/jobs/{key}", lambda j: "restart" in j.get("decision", {}).get("action", ""))
        daemon.process.kill()
        daemon.process.wait()
        daemon.socket.unlink()
        world.break_next("jobs", "error", times=1000, error="unreachable")
        daemon.configure(**config, mode=mode, **(RULES_OFF if mode == "off" else {}))
        daemon.start()
        daemon.until("/v1/health", lambda a: True)
        assert daemon.ask("/v1/thaw", method="POST", body="{}")[0] == 200
        daemon.until(f"/v1/jobs/{key}/events?kind=intent", lambda a: "fence" in str(a))
        assert not fenced.exists()
        world.mend()
        if mode == "act":
            wait_for(lambda: fenced.exists() and fenced.read_text().split() == [node], daemon.log)
        else:
            daemon.until(f"/v1/jobs/{key}/events?kind=result", lambda a: "not wanted any more" in str(a))
            settle(daemon)
            assert not fenced.exists()


@pytest.mark.parametrize("member, to", [("partition", "quiet"), ("account", "quiet"), ("qos", "quiet")])
def test_the_rules_hold_for_where_a_job_is_moved_to(tmp_path, member, to):
    with World(nodes=4) as world, daemon_of(tmp_path, world, opt_in=True, rules=[{member: to, "mode": "off"}]) as daemon:
        job = world.submit(comment="")
        followed(daemon)
        world.change(job, **{member: to})
        let_go(daemon)
        world.end(job)
        settle(daemon)
        assert deeds(world) == []


def test_who_is_watched_again_between_two_looks_has_its_layout(tmp_path):
    """What core was told of its ranks went when it was let go."""
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit")
        key = followed(daemon)["key"]
        wait_for(lambda: world.asked["layout"] == 1, lambda: str(world.asked))
        for word in ("off", "act"):
            assert daemon.ask(f"/v1/jobs/{key}/mode", method="POST", body=json.dumps({"mode": word}))[0] == 200
        wait_for(lambda: world.asked["layout"] == 2, lambda: str(world.asked))


def test_who_waits_in_several_partitions_again_is_brought_back_on_the_terms_of_where_it_ran(tmp_path):
    """Rules count only where all that it waits in match; but it has run in one."""
    at_once = {"name": "at-once", "policy": {"causes": {"unknown": {"backoff": "0s"}}}}
    with World(nodes=4) as world:
        for node in world.nodes.values():
            node["partitions"] = ["gpu", "spare"]
        rules = {"mode": "observe", "policies": [at_once], "policy": "at-once",
                 "rules": [{"partition": "gpu", "mode": "act"}]}
        with daemon_of(tmp_path, world, **rules) as daemon:
            job = world.submit(comment="reknit", n_nodes=2, partition="gpu,spare", runs=[(2, "failed", 1)])
            wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log)
            assert job_of(daemon, lambda j: j["state"] == "pending")["mode"] == "act"
            daemon.stop()
            daemon.start()  # from its journal
            followed(daemon, attempt=2)
            assert world.job(job)["partition"] == "gpu"
            assert [d for d in deeds(world, "update") if "eligible" in d["set"]], deeds(world)
            asked = daemon.ask("/v1/jobs?partition=gpu")[1]["jobs"]
            assert [j["label"] for j in asked] == [job] and daemon.ask("/v1/jobs?partition=cpu")[1]["jobs"] == []


def test_who_waits_in_one_of_its_partitions_is_before_it(tmp_path):
    first = {"name": "first", "policy": {"keep_place": "priority", "causes": {"unknown": {"backoff": "0s"}}}}
    with World(nodes=4) as world, daemon_of(tmp_path, world, policies=[first], policy="first") as daemon:
        for node in world.nodes.values():
            node["partitions"] = ["gpu", "spare"]
        other = world.submit(name="other", partition="spare,last", held=True)
        world.change(other, held=False, eligible=int(time.time()) + 3600, priority=5000)
        job = world.submit(comment="reknit", partition="gpu,spare", runs=[(2, "failed", 1)])
        wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log)
        wait_for(lambda: any(d["set"].get("priority") == 5001 for d in deeds(world, "update")), daemon.log)


def hold(world, daemon, job):
    """One of its nodes does not answer."""
    node = world.job(job)["nodes"][0]
    world.set_node(node, state="allocated", flags=["not-responding"])
    wait_for(lambda: world.job(job)["held"], "it is not guarded")
    return node


def test_what_is_held_is_taken_back_when_the_rules_say_off(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit")
        followed(daemon)
        node = hold(world, daemon, job)
        daemon.configure(opt_in=False, **RULES_OFF)
        daemon.reload()
        settle(daemon)
        assert world.job(job)["held"]  # as long as there may be two copies of it
        world.set_node(node, state="allocated", flags=[])
        wait_for(lambda: not world.job(job)["held"], "it is still held")
        assert "held_until" not in json.dumps(world.job(job))
        let_go(daemon)


def test_what_is_held_is_taken_back_when_its_user_says_off(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit")
        followed(daemon)
        node = hold(world, daemon, job)
        world.change(job, comment="reknit:off")
        world.set_node(node, state="allocated", flags=[])
        wait_for(lambda: not world.job(job)["held"], "it is still held")
        let_go(daemon)
        world.cancel(job)
        settle(daemon)
        assert "state" not in let_go(daemon)  # nobody looks any more


@pytest.mark.parametrize("said", ["reknit:off", "reknit:observe", "rules", "word"])
def test_who_let_no_requeue_be_has_that_back(tmp_path, said):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit", requeue=False)
        key = followed(daemon)["key"]
        wait_for(lambda: world.job(job)["requeue"], daemon.log)
        if said == "rules":
            daemon.configure(opt_in=False, **RULES_OFF)
            daemon.reload()
        elif said == "word":
            assert say_mode(daemon, key, "observe", 0) == 200
        else:
            world.change(job, comment=said)
        wait_for(lambda: not world.job(job)["requeue"], daemon.log)
        if "observe" not in said and said != "word":
            let_go(daemon)
            assert "let it be queued again no more" in explained(daemon, key)
        settle(daemon)
        assert [d["set"] for d in deeds(world)] == [{"requeue": True}, {"requeue": False}]


def test_who_lets_it_be_requeued_himself_is_left_so(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit:observe", requeue=False)
        followed(daemon)
        world.change(job, requeue=True)
        world.change(job, comment="reknit")
        job_of(daemon, lambda j: j["mode"] == "act")
        world.change(job, comment="reknit:off")
        let_go(daemon)
        settle(daemon)
        assert world.job(job)["requeue"] and deeds(world) == []


def test_of_who_waited_when_it_was_let_go_no_wait_is_told(tmp_path):
    with World(nodes=1) as world, daemon_of(tmp_path, world) as daemon:
        first = world.submit(comment="reknit:off")
        job = world.submit(comment="reknit")
        job_of(daemon, lambda j: "waits_for" in j)
        world.change(job, comment="reknit:off")
        assert "waits_for" not in let_go(daemon)
        world.end(first)
        settle(daemon)
        assert "waits_for" not in let_go(daemon)


def test_a_start_that_was_moved_away_comes_back(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit", n_nodes=2)
        followed(daemon)
        node = hold(world, daemon, job)
        world.set_node(node, state="down", flags=["not-responding"])
        wait_for(lambda: world.job(job)["state"] == "pending" and world.job(job)["eligible"] > time.time() + 300
                 and not world.job(job)["held"], daemon.log)
        world.change(job, comment="reknit:off")
        settle(daemon)
        assert world.job(job)["eligible"] > time.time() + 300
        world.set_node(node, state="idle", flags=[])
        wait_for(lambda: world.job(job)["eligible"] < time.time() + 200, daemon.log)
        let_go(daemon)


def say_mode(daemon, key, mode, uid):
    return daemon.ask(f"/v1/jobs/{key}/mode", uid=uid, method="POST", body=json.dumps({"mode": mode}))[0]


def test_the_users_word_moves_within_the_rules(open_path):
    with World(nodes=4) as world, daemon_of(open_path, world) as daemon:
        job = world.submit(comment="reknit", uid=ALICE)
        key = followed(daemon)["key"]
        assert say_mode(daemon, key, "act", ALICE) == 200
        daemon.configure(opt_in=False, mode="observe")
        daemon.reload()
        assert followed(daemon)["mode"] == "observe"
        assert say_mode(daemon, key, "propose", ALICE) == 403
        world.end(job)
        job_of(daemon, lambda j: j.get("decision", {}).get("mode") == "observe")
        settle(daemon)
        assert deeds(world) == []


def test_what_a_user_lowered_stays_low_and_may_be_raised_again(open_path):
    with World(nodes=4) as world, daemon_of(open_path, world, mode="propose") as daemon:
        job = world.submit(comment="reknit", uid=ALICE)
        key = followed(daemon)["key"]
        assert say_mode(daemon, key, "observe", ALICE) == 200
        daemon.configure(opt_in=False, mode="act")
        daemon.reload()
        assert followed(daemon)["mode"] == "observe"
        assert say_mode(daemon, key, "act", ALICE) == 200
        world.end(job)
        wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log)
        text = explained(daemon, job)
        assert "mode observe from here on: not act (opted in), as a person asked" in text \
            or "mode observe from here on: not act (its comment asks for it), as a person asked" in text


def test_an_operators_word_stands_before_comments_and_rules(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit")
        key = followed(daemon)["key"]
        assert daemon.ask(f"/v1/jobs/{key}/mode", method="POST", body='{"mode":"act"}')[0] == 200
        world.change(job, comment="reknit:off")
        settle(daemon)
        daemon.configure(opt_in=False, **RULES_OFF)
        daemon.reload()
        settle(daemon)
        assert followed(daemon)["mode"] == "act"
        assert daemon.ask(f"/v1/jobs/{key}/mode", method="POST", body='{"mode":"off"}')[0] == 200
        let_go(daemon)
        assert daemon.ask(f"/v1/jobs/{key}/mode", method="POST", body='{"mode":"act"}')[0] == 200
        followed(daemon)
        world.end(job)
        wait_for(lambda: world.job(job)["restarts"] == 1, daemon.log)


def test_a_wish_that_is_lowered_while_reknitd_is_away_holds(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit")
        followed(daemon)
        daemon.process.kill()
        daemon.process.wait()
        daemon.socket.unlink()
        world.change(job, comment="reknit:off")
        world.end(job)
        daemon.start()
        let_go(daemon)
        settle(daemon)
        assert deeds(world) == []


def test_explain_says_that_it_is_not_watched(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        job = world.submit(comment="reknit")
        followed(daemon)
        world.change(job, comment="reknit:off")
        let_go(daemon)
        text = explained(daemon, job)
        assert "not watched any more, mode off" in text
        assert "mode off from here on: its comment asks for it" in text
        assert "exit status" not in text  # what becomes of it nobody looks at
        assert json.loads(explained(daemon, job, "json"))["exit_status"] is None


def test_a_state_folder_that_changes_needs_a_restart(tmp_path):
    with World(nodes=4) as world, daemon_of(tmp_path, world) as daemon:
        (tmp_path / "other").mkdir()
        daemon.until("/v1/jobs", lambda a: True)
        daemon.configure(opt_in=False, state_dir=str(tmp_path / "other"))
        said = daemon.reload()
        assert "state_dir" in said and "restart" in said
        settle(daemon)
        assert list((tmp_path / "other").iterdir()) == []
        told = subprocess.run([BIN / "reknit", "doctor", "--config", str(daemon.config)], capture_output=True, text=True,
                              env={**os.environ, "REKNIT_SOCKET": str(daemon.socket)}).stdout
        assert "it is another one than" in told, told


# On a real Slurm


@contextlib.contextmanager
def reknitd_on_slurm():
    with Site(nodes=4, cpus=16, requeue_delay=20) as site:
        daemon = Reknitd(site, poll="2s").start()
        yield site, daemon
        assert daemon.stop() == 0
        assert "identical" in daemon.journal.replay()


def steady(site, daemon, name):
    job = site.train(name, options="--steps 5000 --step-ms 50")
    daemon.journal.wait(job.id, "attempt-started")
    await_true("its ranks", lambda: len(job.nodes(0)) == 2)
    return job


@pytest.mark.slurm
def test_a_user_of_slurm_says_off_and_on_again():
    with reknitd_on_slurm() as (site, daemon):
        first, second = steady(site, daemon, "first"), steady(site, daemon, "second")
        for job in (first, second):
            site.update_job(job.id, comment="reknit:off")
            daemon.journal.wait(job.id, "job-ended")
        site.update_job(second.id, comment="reknit")
        daemon.journal.wait(second.id, "attempt-started", after=daemon.journal.wait(second.id, "job-ended").seq)
        for job in (first, second):
            site.kill_task(job.id, 1)
        daemon.journal.wait(second.id, "intent", lambda e: e.body["intent"] == "requeue")
        site.await_state(first.id, {"FAILED"})
        daemon.await_looks()
        assert not daemon.journal.intents(first.id) and site.restarts(first.id) == 0


@pytest.mark.slurm
def test_slurm_is_given_back_what_is_held():
    with reknitd_on_slurm() as (site, daemon):
        job = steady(site, daemon, "held")
        node = job.nodes(0)[1]
        site.partition_node(node)
        await_true("its hold", lambda: "held_until" in site.show(job.id))
        daemon.configure(**{**CONFIG, "mode": "off", "poll": "2s"})
        site.signal_daemon(daemon.name, signal.SIGHUP)
        daemon.await_log("was read again")
        site.heal_node(node)
        daemon.journal.wait(job.id, "job-ended")
        shown = site.show(job.id)
        assert "held_until" not in shown and "Priority=0" not in shown
