# SPDX-License-Identifier: Apache-2.0
"""reknit-agent and reknitd's end of it: what root says on a node arrives, once, in order, and
nothing else does."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import cluster as cluster_module
import pytest
from cluster import Cluster, await_true
from conftest import REKNIT, TOP
from greeting import greet_reknitd, greeting_of, seal
from running import Lines
from stepd import STEPD

BIN = REKNIT.parent
AGENT, SEAL = BIN / "reknit-agent", BIN / "reknit-seal"
LISTENER = (BIN.parent / "tests/system/agents_listener").resolve()

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the agent needs root")


@pytest.fixture
def place():
    """A folder whose name is short enough for sockets, and the programs that run in it."""
    folder = pathlib.Path(subprocess.run(["mktemp", "-d", "/tmp/reknit-agent-XXXXXX"], check=True,
                                         capture_output=True, text=True).stdout.strip())
    folder.chmod(0o755)
    p = Place(folder)
    yield p
    p.close()
    subprocess.run(["rm", "-rf", str(folder)], check=True)


class Program:
    def __init__(self, argv, env=None):
        self.process = subprocess.Popen([str(a) for a in argv], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)

    def close(self):
        """By the end of its input, where that means anything, or SIGTERM; its status."""
        self.process.stdin.close()
        if self.process.args[0] != str(LISTENER):
            self.process.terminate()
        status = self.process.wait(20)
        self.out.text(), self.err.text()
        return status


class Place:
    def __init__(self, folder):
        self.folder, self.programs, self.pids, self.munged = folder, [], set(), None
        self.key = folder / "key"
        self.key.write_bytes(os.urandom(64))
        self.key.chmod(0o600)
        self.socket = folder / "sock"
        self.seal = ["--key", self.key]

    def start(self, *argv, env=None):
        self.programs.append(Program(argv, env))
        return self.programs[-1]

    def munge(self):
        """A munged of this folder, and all that is sealed from now on is by it."""
        key = self.folder / "munge.key"
        if not key.exists():
            key.touch(0o600)
            key.write_bytes(os.urandom(128))
        path = self.folder / "munge"
        self.munged = self.start(
            "/usr/sbin/munged", "--foreground", "--force", f"--socket={path}", f"--key-file={key}",
            f"--pid-file={self.folder}/munge.pid", f"--seed-file={self.folder}/seed",
            f"--log-file={self.folder}/munge.log", "--origin=127.0.0.1", "--num-threads=1")
        await_true("munged", path.exists, poll=0.02)
        self.seal = ["--munge-socket", path]
        return self.munged

    def listener(self, origin="any", port=0, seal=None):
        p = self.start(LISTENER, f"127.0.0.1:{port}", origin, SEAL, *(seal or self.seal))
        p.port = json.loads(p.out.lines[p.out.expect("port")])["port"]
        return p

    def agent(self, port, node="n1", *options, under=()):
        """under: a command that starts it"""
        return self.start(*under, AGENT, "--to", f"127.0.0.1:{port}", "--node", node, "--socket", self.socket,
                          "--spool", self.folder / "spool", "--kmsg", "", "--verbose", *self.seal, *options)

    def send(self, text):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(text if isinstance(text, bytes) else text.encode(), str(self.socket))

    def exit(self, job, **members):
        self.send(json.dumps({
            "v": 1, "kind": "exit", "job": job, "restart": 0, "step": "0", "node": "ignored", "rank": 3,
            "local": 0, "tasks": 4, "pid": 77, "uid": 1000, "time": 1796035923123456, "status": 9, **members}))

    def ready(self):
        await_true("the agent's socket", self.socket.exists, poll=0.02)

    def close(self):
        for p in self.programs:
            if p.process.poll() is None:
                p.process.kill()
            p.process.wait()
            p.process.stdin.close()
        for pid in self.pids:
            if pathlib.Path(f"/proc/{pid}/comm").exists() and pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
                os.kill(pid, signal.SIGKILL)


def jobs(listener):
    """Of the exits that were heard."""
    told = (json.loads(line) for line in listener.out.lines)
    return [t["message"]["job"] for t in told if t.get("message", {}).get("kind") == "exit"]


def await_jobs(listener, count, timeout=30):
    await_true(lambda: f"{count} exits; heard {len(jobs(listener))}: {listener.out.lines[-3:]}",
               lambda: len(jobs(listener)) >= count, timeout, 0.02)
    return jobs(listener)


@pytest.fixture(params=["key", "munge"])
def sealed(request, place):
    if request.param == "munge":
        place.munge()
    return place


def test_an_exit_arrives_at_once(sealed):
    """With nothing that happens now and then: no heartbeat takes it along, and no look at processes."""
    listener = sealed.listener()
    agent = sealed.agent(listener.port, "n1", "--heartbeat", "1h", "--sample", "1h")
    listener.out.expect('"kind":"alive"')
    sealed.exit(42, note="what is not known is left out")
    line = json.loads(listener.out.lines[listener.out.expect('"job":42')])
    assert line["message"] == {
        "v": 1, "kind": "exit", "job": 42, "restart": 0, "step": "0", "node": "n1", "rank": 3, "local": 0,
        "tasks": 4, "pid": 77, "uid": 1000, "time": 1796035923123456, "status": 9}
    assert agent.close() == 0
    assert not sealed.socket.exists()
    listener.out.expect('"trouble":"its agent is not connected"')


def test_what_is_not_roots_or_no_datagram_counts_for_nothing(place):
    listener = place.listener()
    place.agent(listener.port, "n1", "--heartbeat", "200ms")
    place.ready()
    place.socket.chmod(0o666)  # as somebody might, by mistake
    text = '{"v":1,"kind":"exit","job":66}'
    subprocess.run(["/usr/bin/python3", "-c", "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)"
                    ".sendto(sys.argv[1].encode(), sys.argv[2])", text, str(place.socket)],
                   user=1, group=1, extra_groups=[], check=True)
    for nonsense in (b"", b"\0", b"{", b'{"v":1,"kind":"alive"}', b"x" * 600, b'{"v":1,"kind":"exit","job":67}'):
        place.send(nonsense)
    listener.out.expect('"refused":7')
    place.exit(68)
    assert await_jobs(listener, 1) == [68]


def test_all_that_happened_without_reknitd_comes_later_in_order(place):
    agent = place.agent(1)
    place.ready()
    for job in range(1, 101):
        place.exit(job)
    await_true("the spool", lambda: (place.folder / "spool").read_text().count("\n") == 101, poll=0.02)
    agent.process.kill()
    agent.process.wait()
    listener = place.listener()
    agent = place.agent(listener.port)
    assert await_jobs(listener, 100) == list(range(1, 101))
    for _ in range(3):  # the agent, or its spool's file, may tell again; it counts once
        agent.process.kill()
        agent.process.wait()
        agent = place.agent(listener.port)
        last = jobs(listener)[-1]
        await_true("the agent", lambda: "connected" in "".join(agent.err.lines), poll=0.02)
        place.exit(last + 1)
        await_jobs(listener, last + 1)
    assert jobs(listener) == list(range(1, 104))


def test_reknitd_is_away_for_a_while(place):
    listener = place.listener()
    place.agent(listener.port)
    listener.out.expect("alive")
    place.exit(1)
    await_jobs(listener, 1)
    listener.process.kill()
    listener.process.wait()
    place.exit(2), place.exit(3)
    again = place.listener(port=listener.port)
    assert await_jobs(again, 2)[-2:] == [2, 3]


def test_a_full_spool_gives_up_the_oldest_and_says_so(place):
    agent = place.agent(1, "n1", "--heartbeat", "200ms")
    place.ready()
    for job in range(1, 4096 + 101):
        while True:
            try:
                place.exit(job)
                break
            except BlockingIOError:
                time.sleep(0.001)
    agent.err.expect("more than 4096 messages wait")
    last = str(4096 + 100)
    await_true("the last", lambda: f'"job": {last}' in (t := (place.folder / "spool").read_text()) or f'"job":{last}' in t, 10, 0.05)
    assert (place.folder / "spool").stat().st_size < 5 * 1024 * 1024
    agent.process.kill()
    agent.process.wait()
    listener = place.listener()
    agent = place.agent(listener.port, "n1", "--heartbeat", "200ms")
    assert await_jobs(listener, 4096) == list(range(101, 4096 + 101))


def test_munge_stopped_and_back(place):
    munged = place.munge()
    listener = place.listener()
    agent = place.agent(listener.port)
    listener.out.expect("alive")
    munged.process.kill()
    munged.process.wait()
    (place.folder / "munge").unlink()
    for job in (1, 2, 3):
        place.exit(job)
    agent.err.expect("cannot be sealed", after=1)
    assert jobs(listener) == []
    place.munge()
    assert await_jobs(listener, 3, 60) == [1, 2, 3]


def logs(listener):
    """(job, restart, path) of the logs that were told of."""
    messages = (json.loads(line).get("message", {}) for line in list(listener.out.lines))
    return [(m["job"], m["restart"], p) for m in messages if m.get("kind") == "logs" for p in m["paths"]]


def test_what_is_told_once_is_told_again_when_sealing_failed(place):
    """A log, and that a rank is stopped: both are in no spool. No sample helps the log."""
    munged = place.munge()
    listener = place.listener()
    agent = place.agent(listener.port, NODE, "--sample", "1h")
    listener.out.expect("alive")
    out = place.folder / "train.log"
    os.kill(munged.process.pid, signal.SIGSTOP)
    step = Step(place, 52, out=out)
    agent.err.expect("cannot be sealed")
    assert logs(listener) == []
    os.kill(munged.process.pid, signal.SIGCONT)
    await_true("the log", lambda: (52, 0, str(out)) in logs(listener), 60, 0.02)
    step.end()


def test_a_rank_that_stopped_while_nobody_listened_is_told_of(place):
    listener = place.listener()
    agent = place.agent(listener.port, NODE, "--sample", "100ms")
    listener.out.expect("alive")
    step = Step(place, 53)
    listener.out.expect('"kind":"activity"')
    listener.process.kill()
    listener.process.wait()
    agent.err.expect("not connected")
    os.kill(step.task, signal.SIGSTOP)
    await_true("it to stop", lambda: stat(step.task)[0] == "T", poll=0.02)
    again = place.listener(port=listener.port)
    await_true("that it is stopped", lambda: any(
        json.loads(line).get("message", {}).get("signal", {}).get("who", {}).get("rank") == 5 for line in list(again.out.lines)),
        30, 0.02)
    step.end()


class Impostor:
    """Speaks to the listener by itself, with whatever seal."""

    def __init__(self, place, port, user=None):
        self.place, self.user = place, user
        self.file = socket.create_connection(("127.0.0.1", port)).makefile("rw")
        self.word = greet_reknitd(self.file)

    def seal(self, node="n1", number=1, **members):
        body = {"v": 1, "kind": "gone", "job": 13, "restart": 0, "uid": 1000, "node": node, "time": 1}
        text = json.dumps({"v": 2, "word": self.word, "node": node, "origin": 1, "id": number, "body": body, **members})
        ids = {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}
        return seal(SEAL.resolve(), self.place.seal, {"seal": text}, **ids)["sealed"]

    def say(self, sealed):
        self.file.write(json.dumps({"sealed": sealed}) + "\n")
        self.file.flush()
        return json.loads(self.file.readline())


def test_who_is_believed(place):
    place.munge()
    listener = place.listener()
    root = Impostor(place, listener.port)
    first = root.seal()
    assert root.say(first) == {"ack": 1, "origin": 1}
    assert "replayed" in root.say(first)["refused"].lower()
    for impostor, members, why in (
        (Impostor(place, listener.port, user=1), {}, "not sealed by root"),
        (Impostor(place, listener.port), {"word": root.word}, "another connection"),
        (Impostor(place, listener.port), {"v": 3}, "it speaks protocol 3 and reknitd 2"),
        (Impostor(place, listener.port), {"node": ""}, "of another node, or of none"),
        (Impostor(place, listener.port), {"node": "n\n1"}, "of another node, or of none"),
        (Impostor(place, listener.port), {"node": "stranger"}, "that the scheduler does not have"),
    ):
        assert why in impostor.say(impostor.seal(**members))["refused"]
    other = Impostor(place, listener.port)
    assert other.say(other.seal()) == {"ack": 1, "origin": 1}  # told before: counts as delivered, and is not told
    assert "of another node" in other.say(other.seal(node="n2", number=2))["refused"]
    changed = Impostor(place, listener.port)
    assert "refused" in changed.say(changed.seal()[:-20] + "AAAAAAAAAAAAAAAAAAA:")
    assert listener.close() == 0
    counts = json.loads(listener.out.lines[-1])
    assert (counts["messages"], counts["duplicates"], counts["refused"]) == (1, 1, 9)


def test_a_reknitd_of_another_protocol_is_told_nothing(place):
    with socket.create_server(("127.0.0.1", 0)) as server:
        agent = place.agent(server.getsockname()[1])
        there, _ = server.accept()
        with there:
            there.sendall(b'{"reknit":1,"word":"6f1c"}\n')  # as one that is older did
            agent.err.expect("it speaks protocol 1 and this side 2: one of them is too old")
            there.settimeout(10)
            assert there.recv(100) == b""


def test_an_agent_of_an_older_protocol_is_seen(place):
    """It leaves at the number in the greeting, and says so in its own log."""
    listener = place.listener()
    with socket.create_connection(("127.0.0.1", listener.port)) as s:
        assert json.loads(s.makefile().readline())["reknit"] == 2
    listener.out.expect("it left without a greeting: an agent that is too old does so")


class FalseReknitd:
    """Listens where reknitd should, and does what it can to be told something. It is a user of the host, so its
    seals are that user's."""

    def __init__(self, place, port):
        self.place, self.server, self.heard = place, socket.create_server(("127.0.0.1", port)), b""
        self.server.settimeout(20)

    def meet(self, answer):
        """The next connection: answer() gives the lines that follow the agent's greeting; then it acknowledges all
        there is, until the agent leaves."""
        there, _ = self.server.accept()
        with there:
            there.settimeout(20)
            there.sendall(b'{"reknit":2,"word":"f00dfeed"}\n')
            line = there.makefile("rb").readline()
            self.heard += line
            try:
                there.sendall(b"".join(json.dumps(a).encode() + b"\n" for a in answer(there, json.loads(line))))
                while data := there.recv(65536):
                    self.heard += data
            except ConnectionError:
                pass

    def close(self):
        self.server.close()


@pytest.mark.parametrize("sealed_by", ["munge", "key"])
def test_a_false_reknitd_is_told_nothing_and_nothing_is_dropped_for_it(place, sealed_by):
    if sealed_by == "munge":
        place.munge()
    listener = place.listener()
    port, passed_on = listener.port, []
    agent = place.agent(port, "n1", "--heartbeat", "200ms")
    listener.out.expect("alive")
    listener.close()
    false = FalseReknitd(place, port)
    for job in range(1, 21):
        place.exit(job)
    origins = set()
    await_true("the spool", lambda: len((place.folder / "spool").read_text().splitlines()) > 20, 10, 0.02)
    origins = {int(line.split()[0]) for line in (place.folder / "spool").read_text().splitlines()[1:]}
    acks = [{"ack": 100, "origin": o} for o in origins]

    def own_seal(there, hello, **members):
        """With MUNGE anybody's; of the key, another one."""
        text, ids = greeting_of(there, "f00dfeed", hello, **members), {"user": 1, "group": 1, "extra_groups": []}
        options = place.seal
        if sealed_by == "key":
            options, ids = ["--key", place.folder / "other.key"], {}
            options[1].touch(0o600)
            options[1].write_bytes(b"x" * 64)
        return [{"sealed": seal(SEAL.resolve(), options, {"seal": text}, **ids)["sealed"]}]

    def passed(there, hello):
        """The true reknitd, elsewhere, seals whatever word it is given: for where it is itself."""
        other = place.listener()
        passed_on.append(other)
        with socket.create_connection(("127.0.0.1", other.port)) as s:
            file = s.makefile("rw")
            word = json.loads(file.readline())["word"]
            file.write(json.dumps(hello) + "\n")
            file.flush()
            return [json.loads(file.readline()) | {"word": word}]

    for answer in (lambda there, hello: acks,
                   lambda there, hello: [{"sealed": "nonsense"}, *acks],
                   lambda there, hello: own_seal(there, hello) + acks,
                   lambda there, hello: passed(there, hello) + acks):
        false.meet(answer)
    agent.err.expect("whoever answers there is not reknitd")
    false.close()
    told = [json.loads(line) for line in false.heard.splitlines()]
    assert len(told) == 4 and all(t.keys() == {"reknit", "ask_with", "node"} for t in told)
    listener = place.listener(port=port)
    assert await_jobs(listener, 20, 60) == list(range(1, 21))


def test_what_an_agent_seals_is_for_reknitd_alone(place):
    """Who reads along on a host can open neither side's credentials."""
    place.munge()
    for reader, user, ok in ((0, 1, False), (1, 0, False), (1, 1, True)):
        sealed = seal(SEAL.resolve(), place.seal, {"seal": "text", "for": reader})["sealed"]
        opened = seal(SEAL.resolve(), place.seal, {"open": sealed}, user=user, group=user, extra_groups=[])
        assert (opened.get("text") == "text") == ok, opened


def test_strangers_on_a_node_keep_its_agent_from_nothing(place):
    """More of them than may wait, who come again whenever they are dropped, and greet as an agent does."""
    listener = place.listener()
    script = (
        "import select, socket, sys\n"
        "def connect():\n"
        "    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "    s.sendall(b'{\"reknit\":2,\"ask_with\":\"x\",\"node\":\"n1\"}\\n')\n"
        "    poll.register(s, select.POLLIN)\n"
        "    held[s.fileno()] = s\n"
        "poll, held = select.poll(), {}\n"
        "for _ in range(40): connect()\n"
        "print('held', flush=True)\n"
        "while True:\n"
        "    for fd, _ in poll.poll():\n"
        "        try: data = held[fd].recv(65536)\n"
        "        except OSError: data = b''\n"
        "        if not data:\n"
        "            poll.unregister(fd)\n"
        "            held.pop(fd).close()\n"
        "            connect()\n")
    strangers = place.start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c",
                            script, listener.port)
    strangers.out.expect("held")
    agent = place.agent(listener.port, "n1", "--heartbeat", "200ms")
    place.ready()
    for job in range(1, 4):  # again and again, with what is new
        agent.err.expect("connected to reknitd")
        place.exit(job)
        assert await_jobs(listener, job) == list(range(1, job + 1))
        agent.close()
        agent = place.agent(listener.port, "n1", "--heartbeat", "200ms")
    strangers.process.kill()


def test_another_key_is_refused(place):
    listener = place.listener()
    place.key = place.folder / "other"
    place.key.write_bytes(os.urandom(64))
    place.key.chmod(0o600)
    place.seal = ["--key", place.key]
    agent = place.agent(listener.port)
    agent.err.expect("does not prove to be reknitd: its greeting cannot be opened: sealed with another key")
    listener.out.expect("it does not take us for reknitd")
    listener.out.expect('"from":"127.0.0.1"')


def test_the_address_must_be_the_nodes(place):
    listener = place.listener("own")
    good = Impostor(place, listener.port)
    assert good.say(good.seal(node="localhost")) == {"ack": 1, "origin": 1}
    for name, why in (("no-such-node.invalid", "cannot be looked up now"), ("192.0.2.7", "which is not its address")):
        bad = Impostor(place, listener.port)
        assert why in bad.say(bad.seal(node=name))["refused"]


def test_who_proves_nothing_gets_little(place):
    """Few connections from one address, of which the oldest go, and one message, until it was believed."""
    listener = place.listener()
    strangers = [socket.create_connection(("127.0.0.1", listener.port)).makefile() for _ in range(40)]
    assert all("word" in s.readline() for s in strangers)
    for s in strangers[:8]:
        assert "too many connections from there" in s.readline() and s.readline() == ""
    for s in strangers:
        s.close()
    hasty = Impostor(place, listener.port)
    one, two = hasty.seal(), hasty.seal(number=2)
    hasty.file.write(json.dumps({"sealed": one}) + "\n" + json.dumps({"sealed": two}) + "\n")
    hasty.file.flush()
    assert "second message before the first" in hasty.file.readline()
    patient = Impostor(place, listener.port)
    assert patient.say(patient.seal(number=1)) == {"ack": 1, "origin": 1}
    patient.file.write("".join(json.dumps({"sealed": patient.seal(number=n)}) + "\n" for n in (2, 3)))
    patient.file.flush()
    assert [json.loads(patient.file.readline())["ack"] for _ in (2, 3)] == [2, 3]


def test_what_is_opened_has_a_bound(place):
    """Eight KiB, twice what any message of ours has: anybody on any host can have MUNGE seal a lot."""
    def ask(**request):
        done = subprocess.run([SEAL, *map(str, place.seal)], text=True, capture_output=True, check=True,
                              input=json.dumps(request) + "\n")
        return json.loads(done.stdout)

    place.munge()
    for text in ("x" * 8192, "x" * 8193):
        opened = ask(open=ask(seal=text)["sealed"])
        if len(text) > 8192:
            assert opened == {"error": "what was sealed is too long", "bad": True}
        else:
            assert (opened["text"], opened["uid"]) == (text, 0)


def test_a_key_that_others_can_read_is_none(place):
    place.key.chmod(0o644)
    done = subprocess.run([SEAL, "--key", place.key], capture_output=True, text=True, input="")
    assert (done.returncode, "chmod 600" in done.stderr) == (1, True)


def stat(pid):
    """From the third of its fields on: state, parent..."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def wakings(pid):
    """How often it has gone to sleep so far."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("voluntary_ctxt_switches")))


def test_an_idle_agent_sleeps(place):
    """From one heartbeat to the next it is woken for these two, and for their answers. What it costs, bench/site tells."""
    listener = place.listener()
    agent = place.agent(listener.port, NODE, "--heartbeat", "3s")
    second = listener.out.expect("alive", after=listener.out.expect("alive") + 1)
    before = wakings(agent.process.pid)
    listener.out.expect("alive", after=second + 1)
    woken = wakings(agent.process.pid) - before
    assert woken <= 20


NODE = f"node-{os.getpid()}"  # jobs of other tests on this machine are not of it


class Step:
    """What slurmstepd is to the agent: a process of root's of that name, and a task of a job below it."""

    def __init__(self, place, job, restart=0, uid=0, out="/dev/null", command=()):
        self.place, self.job, self.restart = place, job, restart
        self.stepd = place.start("/usr/bin/python3", "-c", STEPD, job, restart, NODE, uid, out, *command).process
        await_true("a task and its child", lambda: len(place.programs[-1].out.lines) == 2, poll=0.02)
        pids = {int(line) for line in place.programs[-1].out.lines}
        self.task = next(p for p in pids if int(stat(p)[1]) == self.stepd.pid)
        self.orphan = (pids - {self.task}).pop()
        place.pids |= pids
        await_true("both programs", lambda: all(
            pathlib.Path(f"/proc/{p}/comm").read_text() == "sleep\n" for p in pids), poll=0.02)
        place.send(json.dumps({"v": 1, "kind": "start", "job": job, "restart": restart, "step": "0", "node": "", "rank": 0,
                               "local": 0, "tasks": 1, "pid": self.task, "uid": uid, "time": 1}))

    def end(self, *, task=True, orphan=True):
        self.stepd.kill()
        self.stepd.wait()
        if task:
            os.kill(self.task, signal.SIGKILL)
        if orphan:
            os.kill(self.orphan, signal.SIGKILL)


def gone(listener):
    """(job, restart) of those that were told to be gone."""
    told = (json.loads(line).get("message", {}) for line in list(listener.out.lines))
    return [(m["job"], m["restart"]) for m in told if m.get("kind") == "gone"]


def await_gone(listener, job):
    await_true(f"{job} is gone", lambda: (job, 0) in gone(listener), poll=0.02)


def outlives(place, listener, job, other, uid=0):
    """That the other is gone is told, and so of one that begins and ends after that, and the job is not."""
    await_gone(listener, other)
    third = Step(place, other + 1, uid=uid)
    started(listener, other + 1)
    third.end()
    await_gone(listener, other + 1)
    assert (job, 0) not in gone(listener)


def started(listener, job, restart=0):
    await_true(f"the start of {job}", lambda: any(
        m.get("kind") == "start" and (m["job"], m["restart"]) == (job, restart)
        for m in (json.loads(line).get("message", {}) for line in list(listener.out.lines))), poll=0.02)


def test_gone_is_told_of_what_ended_while_the_agent_was_away(place):
    listener = place.listener()
    agent = place.agent(listener.port, NODE, "--sample", "100ms")
    place.ready()
    steps = [Step(place, 41), Step(place, 42, 3)]
    started(listener, 42, 3)
    agent.process.kill()
    agent.process.wait()
    for step in steps:
        step.end()
    place.agent(listener.port, NODE, "--sample", "100ms")
    await_true("both are gone", lambda: set(gone(listener)) == {(41, 0), (42, 3)}, poll=0.02)


def test_the_next_attempt_keeps_no_earlier_one_alive(place):
    listener = place.listener()
    place.agent(listener.port, NODE, "--sample", "100ms")
    place.ready()
    first, second = Step(place, 42), Step(place, 42, 1)
    started(listener, 42, 1)
    first.end()
    await_true("the first is gone", lambda: gone(listener) == [(42, 0)], poll=0.02)
    second.end()
    await_true("the second is gone", lambda: gone(listener) == [(42, 0), (42, 1)], poll=0.02)


def test_a_step_of_another_user_is_another_attempt(place):
    """It calls itself by the same job's number, and the agent finds it by its environment alone."""
    listener = place.listener()
    agent = place.agent(listener.port, NODE, "--sample", "100ms")
    place.ready()
    first, other = Step(place, 42, uid=65534), Step(place, 42, uid=65533)
    started(listener, 42)
    agent.process.kill()
    agent.process.wait()
    (place.folder / "spool.attempts").unlink()
    place.agent(listener.port, NODE, "--sample", "100ms")

    def told(kind):
        messages = (json.loads(line).get("message", {}) for line in list(listener.out.lines))
        return [m["uid"] for m in messages if m.get("kind") == kind]

    await_true("what both do", lambda: {65533, 65534} <= set(told("activity")), poll=0.02)
    first.end()
    await_true("the first is gone", lambda: told("gone") == [65534], poll=0.02)
    other.end()
    await_true("the other is gone", lambda: told("gone") == [65534, 65533], poll=0.02)


def test_a_killed_process_with_a_thread_that_is_stuck_is_not_gone(place):
    """As after SIGKILL, when one thread is stuck in a driver: the first one is dead."""
    headless = ("import ctypes, threading, time; libc = ctypes.CDLL(None); libc.prctl(15, b'sleep', 0, 0, 0); "
                "threading.Thread(target=time.sleep, args=(1000,)).start(); libc.syscall(60, 0)")  # of that thread alone
    listener = place.listener()
    place.agent(listener.port, NODE, "--sample", "100ms")
    place.ready()
    step, other = Step(place, 49, command=("/usr/bin/python3", "-c", headless)), Step(place, 50, uid=65534)
    started(listener, 50)
    await_true("it to be headless", lambda: stat(step.task)[0] == "Z", poll=0.02)
    step.end(task=False)
    other.end()
    outlives(place, listener, 49, 50, uid=65534)
    os.kill(step.task, signal.SIGKILL)
    await_gone(listener, 49)


def test_what_was_seen_below_a_step_counts_until_it_ends(place):
    """Also without its parents and without an environment, as one that the kernel does not let go."""
    listener = place.listener()
    place.agent(listener.port, NODE, "--sample", "100ms")
    place.ready()
    hiding, other = Step(place, 43), Step(place, 44)
    started(listener, 44)
    hiding.end(orphan=False)
    other.end()
    outlives(place, listener, 43, 44)
    os.kill(hiding.orphan, signal.SIGKILL)
    await_gone(listener, 43)


def test_its_unit_leaves_it_what_it_needs(place):
    """Whose a process is, its rank and its I/O are in files of the job's user."""
    unit = (TOP / "conf/systemd/reknit-agent.service.in").read_text()
    kept = next(line.split("=")[1].split() for line in unit.splitlines() if line.startswith("CapabilityBoundingSet="))
    listener = place.listener()
    place.agent(listener.port, NODE, "--sample", "100ms", under=[
        "/usr/bin/setpriv", "--inh-caps=-all", "--bounding-set=-all," + ",".join(
            "+" + c.removeprefix("CAP_").lower() for c in kept)])
    place.ready()
    step = Step(place, 46, uid=65534)

    def told(is_so):
        return any(is_so(json.loads(line).get("message", {}).get("signal", {})) for line in list(listener.out.lines))

    await_true("its I/O", lambda: told(
        lambda s: s.get("activity", {}).get("processes") == 2 and s["activity"].get("io", 0) >= 0), poll=0.02)
    os.kill(step.task, signal.SIGSTOP)
    await_true("its rank", lambda: told(lambda s: s.get("who", {}).get("rank") == 5), poll=0.02)
    step.end()
    await_true("it is gone", lambda: gone(listener) == [(46, 0)], poll=0.02)


def test_logs_are_told_again_to_who_comes_anew(place):
    """Also by an agent that has no such folder, as its unit takes /tmp and /home from it."""
    out = place.folder / "covered" / 'the "log" of 100 %t.txt'
    out.parent.mkdir()
    listener = place.listener()
    place.agent(listener.port, NODE, "--sample", "1h", under=[
        "/usr/bin/unshare", "--mount", "--", "/bin/sh", "-c", 'mount -t tmpfs none "$1" && shift && exec "$@"', "sh",
        out.parent])
    place.ready()
    step, silent = Step(place, 47, 2, out=out), Step(place, 48)

    await_true("the log", lambda: logs(listener), poll=0.02)
    listener.process.kill()
    listener.process.wait()
    again = place.listener(port=listener.port)
    await_true("the log again", lambda: logs(again), 20, 0.02)
    assert set(logs(listener)) == set(logs(again)) == {(47, 2, str(out))}
    step.end(), silent.end()


@pytest.mark.slurm
def test_on_a_real_cluster(place):
    """Plugin → agents of two nodes → reknitd's end: starts, deaths, activity, and that all are gone."""
    plugin = (BIN / "spank_reknit.so").resolve()
    with Cluster(nodes=2, plugstack=Cluster.plugin(plugin)) as c:
        place.seal = ["--munge-socket", c.munge_socket]
        listener = place.listener(port=c.agents_address.split(":")[1])
        c.start_agents(AGENT.resolve(), "--sample", "300ms")
        for node in c.nodes:
            listener.out.expect(f'"node":"{node}","trouble":null')
        job = c.submit("srun -K -N2 -n2 bash -c 'while :; do :; done'", nodes=2)
        task = c.await_ranks(job, 2)[1]

        def told(kind, **members):
            for line in list(listener.out.lines):
                m = json.loads(line).get("message", {})
                if m.get("kind") == kind and members.items() <= m.items():
                    return m

        await_true("activity", lambda: told("activity", job=job, node=task.node))
        os.kill(task.pid, signal.SIGSTOP)
        stopped = await_true("the stop", lambda: next(
            (m for line in list(listener.out.lines) if (m := json.loads(line).get("message", {}).get("signal", {}))
             .get("activity", {}).get("stopped") and m.get("who", {}).get("rank") == 1), None))
        assert stopped["who"]["node"] == task.node and stopped["provenance"] == "agent"
        os.kill(task.pid, signal.SIGKILL)
        assert await_true("the death", lambda: told("exit", rank=1, step="0"))["status"] == 9
        c.await_end(job)
        for node in c.nodes:
            await_true(f"gone from {node}", lambda: told("gone", job=job, node=node))


@pytest.mark.slurm
def test_reknitd_knows_of_a_death_before_slurm_tells():
    """Killed -9 → the witness's word is in the journal, and *interrupted*, under a poll of ten minutes."""
    from reknitd import Reknitd

    with Cluster(nodes=3, plugstack=Cluster.plugin((BIN / "spank_reknit.so").resolve())) as c:
        reknitd = Reknitd(c, mode="observe", poll="10m", api={"socket": str(c.dir / "api")}, agents={
            "listen": c.agents_address, "munge_socket": str(c.munge_socket)})
        (reknitd.programs / "reknit-seal").write_bytes(SEAL.read_bytes())
        (reknitd.programs / "reknit-seal").chmod(0o755)
        reknitd.start()
        c.start_agents(AGENT.resolve(), "--sample", "500ms")
        for node in c.nodes:
            reknitd.await_log(f"node {node}: its agent is connected")
        folder = c.work / "death"
        job = c.submit(f"srun -K {cluster_module.TRAINER} --dir {folder} --steps 100000 --step-ms 50",
                       nodes=3, ntasks=3, comment="reknit")
        # Seen at once, although the next poll is far: the first task's start poked reknitd.
        started = reknitd.journal.wait(job, "attempt-started", timeout=20)
        reknitd.journal.wait(job, "signal", lambda e: e.body["kind"] == "activity", timeout=20)
        task = c.kill_task(job, 1)
        death = reknitd.journal.wait(job, "signal", lambda e: (e.body["kind"], e.body["provenance"]) == ("exit", "spank"),
                                     timeout=20)
        assert death.attempt == started.attempt == 1
        assert death.body["who"] == {"node": task.node, "tasks": "1"}
        assert death.body["exit"]["signal"] == 9
        interrupted = reknitd.journal.wait(job, "interrupted", timeout=20)
        assert death.seq < interrupted.seq, interrupted


# The kernel's log.

XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=77, name=python, GPU has fallen off the bus."


class Kernel:
    """Writes what the kernel would into a FIFO that stands for its device."""

    def __init__(self, place):
        self.path, self.seq = place.folder / "kmsg", 0
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDWR)

    def say(self, text, at=0.0, prio=3):
        self.seq += 1
        os.write(self.fd, f"{prio},{self.seq},{int(at * 1e6)},-;{text}\n".encode())


@pytest.fixture
def kernel(place):
    k = Kernel(place)
    yield k
    os.close(k.fd)


def facts(listener):
    told = (json.loads(line).get("message", {}) for line in list(listener.out.lines))
    return [m["fact"] for m in told if m.get("kind") == "fact"]


def beats(listener):
    told = (json.loads(line).get("message", {}) for line in list(listener.out.lines))
    return [m for m in told if m.get("kind") == "alive"]


def test_the_kernel_s_log_is_told_once_whoever_is_away(place, kernel):
    """While reknitd is away, over an end of the agent by kill -9, and a start of it."""
    kernel.say(XID, at=1)
    agent = place.agent(1, "n1", "--kmsg", kernel.path)
    place.ready()
    await_true("it is in the spool", lambda: "gpu.xid.79" in (place.folder / "spool").read_text(), poll=0.02)
    await_true("it is noted", (place.folder / "spool.kmsg").exists, poll=0.02)
    agent.process.kill()
    agent.process.wait()
    listener = place.listener()
    place.agent(listener.port, "n1", "--kmsg", kernel.path, "--heartbeat", "200ms")
    kernel.seq = 0
    kernel.say(XID, at=1)
    kernel.say("NVRM: Xid (PCI:0000:1b:00): 48, pid=7, name=a, channel 0x5", at=2)
    await_true("both", lambda: len(facts(listener)) == 2, poll=0.02)
    await_true("all is read", lambda: beats(listener) and beats(listener)[-1]["kernel_records"] == 1, poll=0.02)
    assert [(f["code"], f["isolation"], f["signal"]["who"]["device"]) for f in facts(listener)] == [
        (79, "reboot", "0000:9b:00"), (48, "reset", "0000:1b:00")]


def test_what_a_user_has_the_kernel_say_is_no_fact(place, kernel):
    listener = place.listener()
    place.agent(listener.port, "n1", "--kmsg", kernel.path, "--heartbeat", "200ms")
    kernel.say(XID, prio=12)
    kernel.say(f"python3[77]: segfault at 0 ip 0000 sp 0000 error 6 in {XID}[55d000+2c9000]")
    kernel.say(f"python3[77]: segfault at 0 ip 0000 sp 0000 error 6 in \\x0a{XID}")
    await_true("all is read", lambda: beats(listener) and beats(listener)[-1]["kernel_records"] == 2, poll=0.02)
    assert facts(listener) == []


def test_a_burst_of_records_loses_no_xid(place, kernel):
    """100,000 records, faster than the agent reads: what the kernel still held is told, what it did not is counted."""
    listener = place.listener()
    place.agent(listener.port, "n1", "--kmsg", kernel.path, "--heartbeat", "200ms")
    place.ready()
    gpus = [f"0000:{n:02x}:00" for n in range(16, 24)]
    for number in range(100_000):
        if number % 1000 == 0 and number:
            kernel.seq += 5
        if number % 10_000 == 4711:
            kernel.say(f"NVRM: Xid (PCI:{gpus[number // 10_000 % 8]}): 79, pid=7, name=a, GPU has fallen off the bus.",
                       at=number / 1e4)
        kernel.say(f"LustreError: 11-0: scr-OST{number % 500:04x}-osc: operation ost_read to node 10.8.0.{number % 250}@o2ib "
                   "failed: rc = -107", at=number / 1e4)
    await_true("all is read", lambda: beats(listener) and beats(listener)[-1]["kernel_records"] == 100_010, poll=0.1)
    await_true("every GPU", lambda: {f["signal"]["who"]["device"] for f in facts(listener) if f.get("code") == 79} == set(gpus),
               poll=0.1)
    assert (beats(listener)[-1]["kernel_gaps"], beats(listener)[-1]["kernel_lost"]) == (99, 495)


def test_the_real_log_of_this_kernel(place):
    """What root writes there is no fact: only the kernel's words are."""
    try:
        log = os.open("/dev/kmsg", os.O_WRONLY)
    except OSError as e:
        pytest.skip(f"/dev/kmsg: {e}")
    listener = place.listener()
    agent = place.agent(listener.port, "n1", "--kmsg", "/dev/kmsg", "--heartbeat", "200ms")
    os.write(log, b"<3>" + XID.encode())
    os.close(log)
    await_true("it is read", lambda: beats(listener) and beats(listener)[-1]["kernel_records"] > 0, poll=0.02)
    assert not [f for f in facts(listener) if f.get("code") == 79]
    assert not beats(listener)[-1]["kernel_trouble"], agent.err.text()
