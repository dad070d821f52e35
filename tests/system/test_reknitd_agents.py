# SPDX-License-Identifier: Apache-2.0
"""What a node's root may tell reknitd, and that it is not lost: with a scheduler in memory, and the
test in place of the agents."""

import json
import os
import socket
import subprocess
import time

import pytest
from api_daemon import Daemon, wait_for
from conftest import REKNIT
from fake_adapter import World
from greeting import greet_reknitd
from reknitd import Journal

SEAL = REKNIT.parent / "reknit-seal"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="what is told comes from root")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Node:
    """The agent of a node: proves itself, and says what it is told to."""

    def __init__(self, place, name):
        self.place, self.name = place, name
        self.file = wait_for(self.connect, lambda: place.daemon.log()[-2000:])
        self.word = greet_reknitd(self.file, name)
        assert self.say("alive", 0, version="1", dropped=0, refused=0, watched=0) == {"ack": 0, "origin": 0}

    def connect(self):
        try:
            return socket.create_connection(("127.0.0.1", self.place.port), timeout=20).makefile("rw")
        except ConnectionError:
            return None

    def send(self, kind, number, **members):
        body = {"v": 1, "kind": kind, "node": self.name, "time": int(time.time() * 1e6), "uid": 1000, **members}
        text = json.dumps({"v": 2, "word": self.word, "node": self.name, "origin": 7 if number else 0, "id": number,
                           "body": body})
        done = subprocess.run([SEAL, "--key", self.place.key], text=True, capture_output=True, check=True,
                              input=json.dumps({"seal": text}) + "\n")
        self.file.write(json.dumps({"sealed": json.loads(done.stdout)["sealed"]}) + "\n")
        self.file.flush()

    def hear(self):
        return json.loads(self.file.readline() or "null")

    def say(self, kind, number, **members):
        self.send(kind, number, **members)
        return self.hear()

    def alive(self):
        return self.say("alive", 0, version="1", dropped=0, refused=0, watched=0)

    def death(self, number, job, rank=0, status=9, **members):
        """Of a task; the answer is to be heard."""
        self.send("exit", number, job=int(job), restart=0, step="0", rank=rank, local=0, tasks=4, pid=77,
                  status=status, **members)


class Place:
    def __init__(self, folder, world):
        self.port, self.key = free_port(), folder / "key"
        self.make_key()
        self.daemon = Daemon(folder, world, mode="observe", agents={
            "listen": f"127.0.0.1:{self.port}", "auth": "key", "key_file": str(self.key)})
        self.journal = Journal(folder / "state" / "journal.db")
        self.await_listening()

    def make_key(self):
        self.key.touch(0o600)
        self.key.write_bytes(os.urandom(64))

    def await_listening(self, times=1):
        wait_for(lambda: self.daemon.log().count("agents are heard at") >= times, lambda: self.daemon.log()[-2000:])

    def kill(self):
        self.daemon.process.kill()
        self.daemon.process.wait()

    def deaths(self, job):
        return [e.body for e in self.journal.events(job, "signal") if e.body["kind"] == "exit"]

    def causes(self, job):
        """That its logs tell of."""
        return [e.body["cause"] for e in self.journal.events(job, "signal") if e.body.get("cause")]


@pytest.fixture
def world():
    with World(nodes=4) as w:
        yield w


@pytest.fixture
def place(tmp_path, world):
    p = Place(tmp_path, world)
    try:
        yield p
        p.daemon.stop()
    finally:
        p.daemon.process.kill()
        p.daemon.process.wait()


def running(place, world, **members):
    job = world.submit(comment="reknit", **members)
    place.journal.wait(job, "attempt-started", timeout=20)
    return job


def unreachable(world):
    world.break_next("jobs", "error", times=10**6, error="unreachable")


def test_a_death_is_acknowledged_when_the_journal_has_it(place, world):
    node = Node(place, "n1")
    unreachable(world)
    node.death(1, 1, rank=2)  # nothing is known of that job yet, and what is in memory only may be lost
    assert node.alive() == {"ack": 0, "origin": 0}
    place.kill()
    world.mend()
    place.daemon.start()
    node = Node(place, "n1")
    job = running(place, world)
    node.death(1, job, rank=2)  # as an agent does with what was not acknowledged
    assert node.hear() == {"ack": 1, "origin": 7}
    assert [d["who"] for d in place.deaths(job)] == [{"node": "n1", "tasks": "2"}]
    node.death(1, job, rank=2)
    assert node.hear() == {"ack": 1, "origin": 7}
    assert len(place.deaths(job)) == 1


def test_what_is_held_holds_up_the_acknowledgement_of_others_and_nothing_else(place, world):
    node = Node(place, "n1")
    job = running(place, world)
    unreachable(world)
    node.death(1, int(job) + 1, rank=1)
    node.death(2, job, rank=0)
    place.journal.wait(job, "signal", lambda e: e.body["kind"] == "exit", timeout=20)
    assert node.alive() == {"ack": 0, "origin": 0}
    world.end(job, "completed", 0)
    assert world.submit(comment="reknit") == str(int(job) + 1)
    wait_for(lambda: world.job(str(int(job) + 1))["state"] == "running", lambda: place.daemon.log()[-2000:])
    assert node.alive() == {"ack": 0, "origin": 0}  # for as long as nobody can be asked
    world.mend()
    assert node.hear() == {"ack": 2, "origin": 7}
    assert len(place.deaths(int(job) + 1)) == 1


def test_an_old_message_about_nothing_that_is_known_is_not_waited_for(place, world):
    node = Node(place, "n1")
    for number in range(1, 9):
        node.death(number, 4711, time=int((time.time() - 3600) * 1e6))
        assert node.hear() == {"ack": number, "origin": 7}


def test_a_message_about_nothing_that_there_is_waits_for_one_look(place, world):
    node = Node(place, "n1")
    unreachable(world)
    node.death(1, 4711)
    assert node.alive() == {"ack": 0, "origin": 0}
    world.mend()
    assert node.hear() == {"ack": 1, "origin": 7}
    assert not place.deaths("4711")


def test_a_node_whose_clock_is_wrong_is_heard(place, world, monkeypatch):
    """By hours, before and behind; the second of them about a job that no look has shown yet."""
    began = time.time()
    for number, wrong in enumerate((3 * 3600, -3 * 3600), 1):
        monkeypatch.setattr(time, "time", lambda wrong=wrong: began + wrong)
        node = Node(place, f"n{number}")
        unreachable(world)
        job = world.submit(comment="reknit", n_nodes=number)
        wait_for(lambda job=job: world.job(job)["state"] == "running", "a job")
        node.death(1, job)
        world.mend()
        assert node.hear() == {"ack": 1, "origin": 7}
        assert len(place.deaths(job)) == 1
        world.end(job, "completed", 0)


def test_a_node_speaks_of_its_own_jobs_only(place, world):
    job = running(place, world, n_nodes=1)
    assert world.job(job)["nodes"] == ["n1"]
    stranger, node = Node(place, "n2"), Node(place, "n1")
    stranger.death(1, job, rank=3)
    assert stranger.hear() == {"ack": 1, "origin": 7}
    node.death(1, job, rank=0)
    assert node.hear() == {"ack": 1, "origin": 7}
    assert [d["who"]["node"] for d in place.deaths(job)] == ["n1"]
    assert f"what node n2 tells of job {job} is left out: the job does not run there" in place.daemon.log()


def test_processes_of_another_user_are_not_of_the_job_whatever_they_are_called(place, world, tmp_path):
    for name in ("theirs", "own"):
        (tmp_path / name).write_text(f"{name}: {ECC}")
    job = running(place, world, stdout_path=str(tmp_path / "none"))
    node = Node(place, "n1")
    node.death(1, job, rank=3, uid=1001)
    assert node.hear() == {"ack": 1, "origin": 7}
    node.say("logs", 0, job=int(job), restart=0, paths=[str(tmp_path / "theirs")], uid=1001)
    node.say("logs", 0, job=int(job), restart=0, paths=[str(tmp_path / "own")])
    node.death(2, job, rank=0)
    assert node.hear() == {"ack": 2, "origin": 7}
    place.journal.wait(job, "signal", lambda e: e.body.get("cause"), timeout=20)
    assert [d["who"]["tasks"] for d in place.deaths(job)] == ["0"]
    assert [e.body["text"][:3] for e in place.journal.events(job, "signal") if e.body.get("cause")] == ["own"]
    assert "or is another user's" in place.daemon.log()


def test_a_part_of_a_heterogeneous_job_is_of_the_job(place, world):
    members = {"comment": "reknit", "n_nodes": 1}
    first = str(world.last_id + 1)
    world.submit(n_tasks=2, het={"leader": first, "offset": 0}, **members)
    second = world.submit(n_tasks=4, het={"leader": first, "offset": 1}, **members)
    third = world.submit(n_tasks=1, het={"leader": first, "offset": 2}, **members)
    place.journal.wait(first, "attempt-started", timeout=20)
    nodes = [Node(place, world.job(job)["nodes"][0]) for job in (first, second, third)]
    for node, job, rank in zip(nodes, (first, second, third), (1, 3, 0)):
        node.death(1, job, rank=rank)
        assert node.hear() == {"ack": 1, "origin": 7}
    assert [d["who"]["tasks"] for d in place.deaths(first)] == ["1", "5", "6"]
    assert [d["who"]["node"] for d in place.deaths(first)] == [n.name for n in nodes]


def test_no_message_keeps_reknitd_from_starting_again(place, world):
    job = running(place, world)
    node = Node(place, "n1")
    node.death(1, job, status=100)
    assert node.hear() == {"ack": 1, "origin": 7}
    assert node.say("activity", 2, job=int(job), restart=0, signal={
        "kind": "activity", "activity": {"processes": -1}}) == {"ack": 2, "origin": 7}
    node.death(3, job)
    assert node.hear() == {"ack": 3, "origin": 7}
    place.kill()
    place.daemon.start()
    place.await_listening(2)
    assert len(place.deaths(job)) == 1


def test_a_reload_that_changes_nothing_of_the_agents_is_not_noticed_by_them(place, world):
    job = running(place, world)
    node = Node(place, "n1")
    node.death(1, job)
    assert node.hear() == {"ack": 1, "origin": 7}
    place.daemon.reload()
    assert node.alive() == {"ack": 0, "origin": 0}
    place.make_key()  # another one under the same name
    place.daemon.reload()
    assert node.hear() is None
    place.await_listening(2)
    node = Node(place, "n1")
    node.death(1, job)
    assert node.hear() == {"ack": 1, "origin": 7}
    assert len(place.deaths(job)) == 1  # what was told stays told


ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"


def test_a_log_that_a_node_tells_of_is_read_once(place, world, tmp_path):
    log = tmp_path / "train-0.log"
    node = Node(place, "n1")
    log.write_text(ECC)
    unreachable(world)
    job = world.submit(comment="reknit", stdout_path=str(tmp_path / "none"))
    node.say("logs", 0, job=int(job), restart=0, paths=[str(log)])  # before a look has shown that it runs
    world.mend()
    place.journal.wait(job, "signal", lambda e: e.body.get("cause") == "gpu-hardware", timeout=20)
    for name in ("n1", "n2"):  # again, and from others
        Node(place, name).say("logs", 0, job=int(job), restart=0, paths=[str(log)])
    with log.open("a") as f:
        f.write("RuntimeError: CUDA error: an illegal memory access was encountered\n")
    wait_for(lambda: len(place.causes(job)) > 1, lambda: place.journal.story(job))
    assert place.causes(job).count("gpu-hardware") == 1


def test_no_other_node_and_no_earlier_attempt_names_a_log(place, world, tmp_path):
    names = "stranger", "later", "right"
    for name in names:
        (tmp_path / name).write_text(f"{name}: {ECC}")
    job = running(place, world, n_nodes=1, stdout_path=str(tmp_path / "none"))
    stranger, node = Node(place, "n2"), Node(place, "n1")
    stranger.say("logs", 0, job=int(job), restart=0, paths=[str(tmp_path / "stranger")])
    node.say("logs", 0, job=int(job), restart=1, paths=[str(tmp_path / "later")])
    node.say("logs", 0, job=int(job), restart=0, paths=[str(tmp_path / "right")])
    place.journal.wait(job, "signal", lambda e: e.body.get("cause"), timeout=20)
    assert f"what node n2 tells of job {job} is left out: the job does not run there" in place.daemon.log()
    texts = [e.body["text"] for e in place.journal.events(job, "signal") if e.body.get("cause")]
    assert len(texts) == 1 and texts[0].startswith("right")


def test_a_log_is_read_on_after_a_restart_whoever_tells_of_it(place, world, tmp_path):
    """The agents tell again; and what reknitd had begun to read is in its own state."""
    begun, new = tmp_path / "begun", tmp_path / "new"
    begun.write_text(ECC)
    job = running(place, world, stdout_path=str(tmp_path / "none"))
    Node(place, "n1").say("logs", 0, job=int(job), restart=0, paths=[str(begun)])
    place.journal.wait(job, "signal", lambda e: e.body.get("cause"), timeout=20)
    offsets = place.daemon.folder / "state" / "offsets"
    wait_for(lambda: offsets.exists() and str(begun) in offsets.read_text(), "its place in the file")
    place.kill()
    for path in (begun, new):
        with path.open("a") as f:
            f.write("RuntimeError: CUDA error: an illegal memory access was encountered\n")
    place.daemon.start()
    place.await_listening(2)
    wait_for(lambda: len(place.causes(job)) == 2, lambda: place.journal.story(job))
    Node(place, "n1").say("logs", 0, job=int(job), restart=0, paths=[str(new)])
    wait_for(lambda: len(place.causes(job)) == 3, lambda: place.journal.story(job))
    assert place.causes(job).count("gpu-hardware") == 1


def test_a_stranger_who_has_the_port_is_told_of(place):
    """With what to do; and once he is gone, agents are heard."""
    place.kill()
    with socket.create_server(("127.0.0.1", place.port)):
        place.daemon.start()
        wait_for(lambda: "another program has the port" in place.daemon.log(), lambda: place.daemon.log()[-2000:])
        assert f"ss -ltnp 'sport = :{place.port}'" in place.daemon.log()
    place.await_listening(2)
    assert Node(place, "n1").alive() == {"ack": 0, "origin": 0}
