# SPDX-License-Identifier: Apache-2.0
"""reknit-spawner: whom it obeys, what it starts, as whom, and that it leaves nothing behind."""

import array
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

import running
from reading import BIN, READER, SPAWNER, Talk, write

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
SLURM = BIN / "reknit-slurm"
STRANGER = 54321  # a uid that no user has
ADA = 20001
UID_MIN, GID_MIN = (
    next((int(line.split()[1]) for line in open("/etc/login.defs") if line.startswith(key)), 1000)
    for key in ("UID_MIN", "GID_MIN")
)


class Spawner:
    """A spawner, and one connection to it."""

    def __init__(self, folder, *args, wrap=()):
        self.path, self.programs = f"{folder}/spawner.sock", f"{folder}/programs"
        os.makedirs(self.programs, exist_ok=True)
        shutil.copy(READER, self.programs)
        self.process = subprocess.Popen(
            [*wrap, SPAWNER, "--socket", self.path, "--programs", self.programs, "--user", "nobody",
             "--slurm-user", "daemon", *args],
            stdin=subprocess.DEVNULL,
        )
        running.until(self.listens)
        self.sock = self.connect()
        self.last_id, self.exits = 0, {}

    def listens(self):
        assert self.process.poll() is None
        try:
            self.connect().close()
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def connect(self):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect(self.path)
        return sock

    def receive(self):
        """One answer and its descriptor."""
        assert select.select([self.sock], [], [], running.PATIENCE)[0]
        data, control, _, _ = self.sock.recvmsg(65536, socket.CMSG_SPACE(4))
        fd = None
        for _, _, content in control:
            fds = array.array("i")
            fds.frombytes(content)
            fd = fds[0]
        answer = json.loads(data) if data else None
        if answer and "exit" in answer:
            self.exits[answer["exit"]] = answer
        return answer, fd

    def ask(self, **request):
        self.last_id += 1
        self.sock.send(json.dumps({"id": self.last_id, **request}).encode())
        while True:
            answer, fd = self.receive()
            if answer.get("id") == self.last_id:
                return answer, fd

    def start(self, uid=STRANGER, **more):
        """The child's number and a conversation with it."""
        answer, fd = self.ask(op="start", what="reader", uid=uid, **more)
        assert answer["ok"], answer
        return answer["child"], Talk(socket.socket(fileno=fd))

    def await_exit(self, child):
        while child not in self.exits:
            self.receive()
        return self.exits[child]

    def pids(self):
        return running.children(self.process.pid)

    def close(self):
        self.sock.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(running.PATIENCE)


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield name


@pytest.fixture
def spawner(folder):
    s = Spawner(folder)
    yield s
    s.close()


@pytest.fixture
def people(folder):
    """A spawner on a host that knows a user ada, who is SlurmUser too."""
    private = shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0
    if not private:
        pytest.skip("no mount namespaces here")
    for name, lines in {"passwd": f"ada:x:{ADA}:20001::/:/bin/sh", "group": "ada:x:20001:\nlab:x:20002:ada"}.items():
        own = pathlib.Path(folder, name)
        own.write_text(pathlib.Path("/etc", name).read_text() + lines + "\n")
        own.chmod(0o644)
    s = Spawner(folder, "--slurm-user", "ada", wrap=[
        "unshare", "-m", "sh", "-c",
        f"mount --bind {folder}/passwd /etc/passwd && mount --bind {folder}/group /etc/group && exec \"$0\" \"$@\"",
    ])
    yield s
    s.close()


def status(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def test_a_reader_has_nothing_of_root(spawner):
    _, talk = spawner.start(gid=STRANGER)
    assert talk.kind("hello")["uid"] == STRANGER
    (pid,) = spawner.pids()
    s = status(pid)
    assert s["Uid"].split() == s["Gid"].split() == [str(STRANGER)] * 4
    assert s["Groups"].split() == [] and s["NoNewPrivs"] == "1" and s["Umask"] == "0077"
    assert {int(s[c], 16) for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert pathlib.Path(f"/proc/{pid}/environ").read_bytes() == b""
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    files = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    sockets = {fd for fd, name in files.items() if name.startswith("socket:")}
    assert files["0"] == files["1"] and sockets <= {"0", "1", "2"} | {
        fd for fd, name in files.items() if name == files["0"]
    }
    assert os.stat(f"/proc/{pid}/fd").st_uid == 0  # not dumpable: its user cannot look into it
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    for what in ("core file size", "file size", "processes"):
        assert re.search(rf"^Max {what} +0 +0 ", limits, re.MULTILINE), limits
    assert files["2"] == "/dev/null"


def test_a_reader_starts_no_process(spawner):
    reader = pathlib.Path(f"{spawner.programs}/reknit-reader")
    reader.unlink()
    reader.write_text("#!/usr/bin/python3\nimport json, os\ntry:\n    os.fork()\n    said = 'it did'\n"
                      "except OSError as e:\n    said = e.strerror\nprint(json.dumps({'kind': 'tried', 'said': said}), flush=True)\n")
    reader.chmod(0o755)
    _, talk = spawner.start()
    assert talk.kind("tried")["said"] == "Resource temporarily unavailable"


def test_the_adapter_is_not_looked_into(folder):
    """By other processes of its user."""
    if not SLURM.exists():
        pytest.skip("without libslurm there is no reknit-slurm")
    conf = pathlib.Path(folder, "slurm.conf")
    conf.write_text("ClusterName=none\nSlurmctldHost=localhost\nAuthType=auth/none\n")
    conf.chmod(0o644)
    spawner = Spawner(folder, "--slurm-conf", str(conf))
    shutil.copy(SLURM, f"{spawner.programs}/reknit-slurm")
    try:
        _, fd = spawner.ask(op="start", what="adapter")
        talk = Talk(socket.socket(fileno=fd))
        talk.expect(lambda t: "hello" in t)
        (pid,) = spawner.pids()
        assert os.stat(f"/proc/{pid}/fd").st_uid == 0
    finally:
        spawner.close()


def test_a_known_user_has_its_groups(people):
    shutil.copy(READER, people.programs)
    answer, fd = people.ask(op="start", what="reader", uid=ADA, gid=0)  # what is asked is not believed
    talk = Talk(socket.socket(fileno=fd))
    assert answer["ok"] and talk.kind("hello")["uid"] == ADA
    (pid,) = people.pids()
    s = status(pid)
    assert s["Gid"].split() == ["20001"] * 4
    assert set(map(int, s["Groups"].split())) == {20001, 20002}


@pytest.mark.parametrize("gid", [0, 42, GID_MIN - 1, 61184, 65519])
def test_no_group_of_the_system(spawner, gid):
    _, talk = spawner.start(gid=gid)
    talk.kind("hello")
    (pid,) = spawner.pids()
    assert status(pid)["Gid"].split() == ["65534"] * 4


@pytest.mark.parametrize("uid", [0, 1, UID_MIN - 1, 61184, 65519, -1, 2**32 - 1, 2**32, 1.5, "root", None])
def test_no_reader_as_a_user_of_the_system(spawner, uid):
    answer, fd = spawner.ask(op="start", what="reader", uid=uid)
    assert not answer["ok"] and answer["text"] and fd is None
    assert spawner.pids() == []


def test_nobody_but_reknitd_is_obeyed(spawner):
    os.chmod(spawner.path, 0o666)  # even then
    ask = (
        "import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        f"s.connect({spawner.path!r})\n"
        'try:\n    s.send(b\'{"id":1,"op":"start","what":"reader","uid":54321}\')\n'
        '    print(len(s.recv(100)))\n'
        "except ConnectionError:\n    print(0)\n"
    )

    def asked_by(uid):
        return subprocess.run(
            ["/usr/bin/python3", "-c", ask], user=uid, group=uid, extra_groups=[], text=True,
            capture_output=True, check=True, timeout=running.PATIENCE, cwd="/",
        ).stdout

    assert asked_by(STRANGER) == "0\n"
    assert asked_by(65534) != "0\n"


def test_it_reads_as_its_user(spawner, folder):
    secret, log = f"{folder}/secret", f"{folder}/job.out"
    write(secret, 1)
    os.chmod(secret, 0o600)
    os.symlink(secret, log)
    _, talk = spawner.start()
    talk.follow(folder, "job.out")
    talk.kind("file", path=log, trouble="Permission denied")
    talk.drain()
    assert talk.roots() == []


def test_kill_and_exit(spawner):
    first, talk = spawner.start()
    second, other = spawner.start(uid=STRANGER + 1)
    talk.kind("hello"), other.kind("hello")
    assert spawner.ask(op="kill", child=first)[0]["ok"]
    assert spawner.await_exit(first)["signal"] == signal.SIGKILL
    assert not spawner.ask(op="kill", child=first)[0]["ok"]
    assert not spawner.ask(op="kill", child=12345)[0]["ok"]
    other.sock.close()
    assert spawner.await_exit(second) == {"exit": second, "status": 0, "signal": 0}


def test_a_child_belongs_to_its_connection(spawner):
    child, talk = spawner.start()
    talk.kind("hello")
    mine, spawner.sock = spawner.sock, spawner.connect()
    assert not spawner.ask(op="kill", child=child)[0]["ok"]
    (pid,) = spawner.pids()
    mine.close()
    running.await_end(pid)
    child, talk = spawner.start()  # and it goes on
    talk.kind("hello")


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL])
def test_no_child_outlives_it(spawner, sig):
    _, talk = spawner.start()
    talk.kind("hello")
    (pid,) = spawner.pids()
    spawner.process.send_signal(sig)
    spawner.process.wait(running.PATIENCE)
    running.await_end(pid)


def test_few_for_each_user(spawner):
    talks = [spawner.start() for _ in range(4)]
    answer, fd = spawner.ask(op="start", what="reader", uid=STRANGER)
    assert not answer["ok"] and "already" in answer["text"] and fd is None
    spawner.ask(op="kill", child=talks[0][0])
    spawner.await_exit(talks[0][0])
    spawner.start()


def test_a_crowd_that_ends_at_once(spawner):
    """It tells more than a socket takes (278), while nobody listens."""
    shutil.copy("/bin/cat", f"{spawner.programs}/reknit-reader")  # it ends when its input does
    crowd = {}
    for n in range(300):
        answer, fd = spawner.ask(op="start", what="reader", uid=STRANGER + n // 4)
        crowd[answer["child"]] = fd
    for fd in crowd.values():
        os.close(fd)
    running.until(lambda: spawner.pids() == [])
    for child in crowd:
        assert spawner.await_exit(child)["status"] == 0
    assert spawner.ask(op="start", what="reader", uid=STRANGER)[0]["ok"]


def test_adapters_and_readers_are_counted_apart(people):
    """Where SlurmUser has jobs of its own."""
    for name in ("reknit-reader", "reknit-slurm"):
        shutil.copy("/bin/cat", f"{people.programs}/{name}")
    for _ in range(4):
        assert people.ask(op="start", what="reader", uid=ADA)[0]["ok"]
    assert "4 readers" in people.ask(op="start", what="reader", uid=ADA)[0]["text"]
    for _ in range(4):
        assert people.ask(op="start", what="adapter")[0]["ok"]
    assert "4 adapters" in people.ask(op="start", what="adapter")[0]["text"]


def test_nonsense(spawner):
    for data in (b"x", b"{}", b"[" * 4000, b'{"id":1}', b'{"id":1,"op":"start"}',
                 b'{"id":1,"op":"start","what":"/bin/sh"}', b'{"id":-1,"op":"kill","child":1}',
                 b'{"id":1,"id":1,"op":"kill","child":1}', b" " * 4097, os.urandom(1000)):
        spawner.sock.send(data)
        assert spawner.receive()[0]["ok"] is False
    spawner.start()


def test_the_adapter_runs_as_slurm_user(folder):
    os.makedirs(f"{folder}/programs")
    adapter = pathlib.Path(f"{folder}/programs/reknit-slurm")
    adapter.write_text("#!/bin/sh\nexec /usr/bin/python3 -c 'import json, os\n"
                       "print(json.dumps({\"kind\": \"who\", \"ids\": os.getresuid(), "
                       "\"env\": dict(os.environ)}), flush=True)'\n")
    adapter.chmod(0o755)
    spawner = Spawner(folder, "--slurm-conf", "/some/slurm.conf")
    try:
        answer, fd = spawner.ask(op="start", what="adapter", uid=0, argv=["/bin/sh"])
        who = Talk(socket.socket(fileno=fd)).kind("who")
        assert who["ids"] == [1, 1, 1]
        assert who["env"]["SLURM_CONF"] == "/some/slurm.conf"
        assert not {"HOME", "PATH", "USER"} & set(who["env"]) - {"PATH"}
        assert spawner.await_exit(answer["child"])["status"] == 0
        os.unlink(adapter)
        answer, fd = spawner.ask(op="start", what="adapter")
        failed = Talk(socket.socket(fileno=fd)).kind("failed")
        assert "No such file" in failed["text"]
        assert spawner.await_exit(answer["child"])["status"] == 127
    finally:
        spawner.close()


@pytest.mark.parametrize(
    "args, says",
    [
        ([], "no socket"),
        (["--socket", "/proc/none/x"], "No such file"),
        (["--user", "who?", "--socket", "/tmp/x"], "no user 'who?'"),
        (["--programs", "here", "--socket", "/tmp/x"], "must begin with /"),
    ],
)
def test_what_is_wrong_is_said(args, says):
    result = subprocess.run(
        [SPAWNER, "--user", "nobody", "--slurm-user", "daemon", *args], capture_output=True,
        text=True, timeout=running.PATIENCE, check=False,
    )
    assert result.returncode == 1 and says in result.stderr


def test_it_needs_root(folder):
    program = shutil.copy(SPAWNER, folder)
    result = subprocess.run(
        [program, "--user", "nobody", "--slurm-user", "daemon", "--socket", f"{folder}/s"],
        capture_output=True, text=True, user=STRANGER, timeout=running.PATIENCE, check=False,
    )
    assert result.returncode == 1 and "needs root" in result.stderr
