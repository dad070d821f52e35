# SPDX-License-Identifier: Apache-2.0
"""Who listens where reknitd should is not believed: a root agent starts a reader of a user's files only for who has
reknitd's seal, for this connection and this node. The test is reknitd, the true one and false ones."""

import json
import os
import select
import signal
import socket

import pytest
from conftest import REKNIT
from greeting import greeting_of, seal
from reading import Talk
from running import children, comm, kill_quietly
from stepd import STEPD
from test_agent import SEAL, place  # noqa: F401

UID = 20018

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the agent needs root")


class Reknitd:
    """Hears one agent, and asks it."""

    def __init__(self, place, node, *options):
        self.place, self.node = place, node
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(20)
        self.agent = place.agent(self.server.getsockname()[1], node, "--spawner", place.folder / "spawner.sock",
                                 "--sample", "200ms", *options)
        self.connect()

    def connect(self):
        self.file, _ = self.greet()
        self.word = self.hello["ask_with"]
        self.say({"ack": 0, "origin": 0})
        self.agent.err.expect("connected to reknitd")

    def greet(self):
        """The next connection, and the first message of it."""
        connection = self.server.accept()[0]
        connection.settimeout(20)
        file = connection.makefile("rwb", buffering=0)
        file.write(b'{"reknit":2,"word":"w1"}\n')
        self.hello = json.loads(file.readline())
        greeting = self.seal(seal=greeting_of(connection, "w1", self.hello))
        file.write(json.dumps({"sealed": greeting["sealed"]}).encode() + b"\n")
        sealed = json.loads(file.readline())["sealed"]
        return file, json.loads(self.seal(open=sealed)["text"])

    def say(self, message):
        self.file.write(json.dumps(message).encode() + b"\n")

    def seal(self, options=None, user=None, **request):
        return seal(SEAL.resolve(), options or self.place.seal, request, user=user)

    def question(self, number=17, options=None, user=None, **members):
        text = {"v": 2, "ask_with": self.word, "node": self.node, "question": number, "reader": {"uid": UID}, **members}
        return {"sealed": self.seal(options, user, seal=json.dumps(text))["sealed"]}

    def ask(self, *args, **kwargs):
        self.say(self.question(*args, **kwargs))

    def is_answered(self, seconds=0):
        return bool(select.select([self.server], [], [], seconds)[0])


@pytest.fixture
def site(place, request):  # noqa: F811
    """A function that starts an agent, beside a spawner and a task of UID's on the node."""
    node, pids = f"node-{os.getpid()}-asked", []

    def start(*options):
        sock = place.folder / "spawner.sock"
        place.start(REKNIT.parent / "reknit-spawner", "--socket", sock, "--programs", REKNIT.parent, "--user", "nobody",
                    "--slurm-user", "daemon")
        place.spawner = place.programs[-1].process
        daemon = Reknitd(place, node, *options)
        step = place.start("/usr/bin/python3", "-c", STEPD, 4711, 0, node, UID, "/dev/null")
        while len(step.out.lines) < 2:
            select.select([], [], [], 0.02)
        pids.extend(int(line) for line in step.out.lines)
        task = next(p for p in pids if p in children(step.process.pid))
        place.send(json.dumps({"v": 1, "kind": "start", "job": 4711, "restart": 0, "step": "0", "node": "", "rank": 0,
                               "local": 0, "tasks": 1, "pid": task, "uid": UID, "time": 1}))
        while json.loads(daemon.seal(open=json.loads(daemon.file.readline())["sealed"])["text"])["body"]["kind"] != "start":
            pass
        return daemon

    yield start
    for pid in pids:
        if comm(pid) == "sleep":
            kill_quietly(pid, signal.SIGKILL)


def readers(place):  # noqa: F811
    return [p for p in children(place.spawner.pid) if comm(p) == "reknit-reader"]


def test_reknitd_is_given_a_reader(place, site):  # noqa: F811
    daemon = site()
    daemon.ask(17)
    file, envelope = daemon.greet()
    assert envelope["body"]["kind"] == "reader" and envelope["body"]["question"] == 17
    assert not readers(place)  # not before reknitd has believed it
    file.write(b'{"reader":17}\n')
    talk = Talk(socket.socket(fileno=os.dup(file.fileno())))
    assert talk.kind("hello")["uid"] == UID
    assert len(readers(place)) == 1
    (place.folder / "log").write_text("")
    talk.follow(str(place.folder), "log")
    (place.folder / "log").write_text("RuntimeError: CUDA error: uncorrectable ECC error encountered\n")
    talk.kind("signal")
    talk.sock.shutdown(socket.SHUT_RDWR)
    while readers(place):  # it ends with its connection
        select.select([], [], [], 0.05)


def test_a_false_reknitd_is_given_nothing(place, site):  # noqa: F811
    daemon = site()
    other = place.folder / "other.key"
    other.touch(0o600)
    other.write_bytes(os.urandom(64))
    recorded = daemon.question(1)
    daemon.file.close()  # another connection: what was asked on the last one counts no more
    daemon.connect()
    daemon.say(recorded)
    daemon.ask(2, options=["--key", other])
    daemon.ask(3, node="another")
    daemon.ask(4, ask_with="")
    daemon.ask(5, v=3)
    daemon.say({"question": 6, "reader": {"uid": UID}})
    daemon.say({"sealed": "x" * 3000})
    daemon.ask(7, reader={"uid": -1})
    daemon.ask(8, reader={"uid": 2**32 - 1})
    daemon.ask(9, reader={"uid": str(UID)})
    daemon.ask(-1)
    daemon.ask(10)  # the true one, which comes after all of them
    envelope = daemon.greet()[1]
    assert envelope["body"]["question"] == 10
    assert not daemon.is_answered(0.5) and not readers(place)


def test_reknitd_s_user_and_root_may_ask_and_nobody_else(place, site):  # noqa: F811
    place.munge()
    daemon = site("--asker", "nobody")
    daemon.ask(1, user="daemon")
    daemon.agent.err.expect("was sealed by uid 1, who may not")
    for number, user in ((2, "nobody"), (3, "root")):
        daemon.ask(number, user=user)
        assert daemon.greet()[1]["body"]["question"] == number


def test_readers_of_a_node_are_bounded(place, site):  # noqa: F811
    """By the spawner for each user, and by the agent for all."""
    daemon = site()
    files = []
    for number in range(1, 6):
        daemon.ask(number)
        files.append(daemon.greet()[0])
        files[-1].write(b'{"reader":%d}\n' % number)
    told = [json.loads(f.readline()) for f in files]
    assert [t["kind"] for t in told] == ["hello"] * 4 + ["failed"]
    assert "has 4 readers already" in told[4]["text"]
    assert files[4].readline() == b""
