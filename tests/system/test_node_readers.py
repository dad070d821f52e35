# SPDX-License-Identifier: Apache-2.0
"""Logs that the controller has no file system for are read on the jobs' nodes: with a scheduler in memory and real
agents, spawner and readers. That reknitd does not see the folder of the logs is true: it runs in a mount namespace of
its own, with something else mounted there."""

import contextlib
import json
import os
import signal
import subprocess

import pytest
from api_daemon import REKNITD, Daemon, wait_for
from conftest import REKNIT
from fake_adapter import World
from reknitd import Journal
from running import children, comm, kill_quietly
from stepd import STEPD
from test_reknitd_agents import ECC, free_port

BIN = REKNIT.parent
UID = 20017
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


def no_namespaces():
    if os.geteuid() != 0:
        return "agents and the spawner need root"
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False).returncode:
        return "no mount namespaces here"
    return None


pytestmark = pytest.mark.skipif(no_namespaces() is not None, reason=str(no_namespaces()))


class Blind(Daemon):
    """It sees nothing of the folder."""

    def __init__(self, folder, world, hidden, **config):
        self.hidden = hidden
        super().__init__(folder, world, **config)

    def start(self):
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(
                ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', self.hidden, REKNITD,
                 "--config", self.config, "--drop-ins", self.folder / "none"], stderr=log)


class Site:
    def __init__(self, folder, world, **config):
        self.folder, self.world, self.processes = folder, world, {}
        self.logs = folder / "hidden" / "logs"
        self.logs.mkdir(parents=True)
        os.chown(self.logs, UID, UID)
        self.port, self.key, self.spawner = free_port(), folder / "key", folder / "spawner.sock"
        self.key.touch(0o600)
        self.key.write_bytes(os.urandom(64))
        self.config = {"mode": "observe", "log_level": "debug", "agents": {
            "listen": f"127.0.0.1:{self.port}", "auth": "key", "key_file": str(self.key)}, **config}
        self.daemon = Blind(folder, world, self.logs.parent, **self.config)
        self.journal = Journal(folder / "state" / "journal.db")
        self.await_listening()
        self.start("spawner", BIN / "reknit-spawner", "--socket", self.spawner, "--programs", BIN, "--user", "nobody",
                   "--slurm-user", "daemon")
        wait_for(self.spawner.exists, "the spawner's socket")

    def kill_daemon_and_set(self, times=1, /, **config):
        """It comes again, otherwise configured; times: this was done before."""
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.daemon.configure(**{**self.config, **config})
        self.daemon.start()
        self.await_listening(times + 1)

    def await_listening(self, times=1):
        wait_for(lambda: self.daemon.log().count("agents are heard at") >= times, lambda: self.daemon.log()[-2000:])

    def start(self, name, *argv):
        with (self.folder / f"{name}.log").open("a") as log:
            self.processes[name] = subprocess.Popen([str(a) for a in argv], stderr=log, stdout=log,
                                                    stdin=subprocess.DEVNULL)

    def agent(self, node, *options):
        self.start(node, BIN / "reknit-agent", "--to", f"127.0.0.1:{self.port}", "--node", node, "--socket",
                   self.folder / f"{node}.sock", "--spool", self.folder / f"{node}.spool", "--kmsg", "", "--key", self.key,
                   "--spawner", self.spawner, "--sample", "500ms", "--heartbeat", "1s", "--verbose", *options)
        wait_for(lambda: "agent: connected to reknitd" in self.log(node), lambda: self.log(node) + self.daemon.log()[-1000:])

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def step(self, job, node, uid=UID, out="/dev/null"):
        """A task of the job on that node; what ends with the site."""
        step = subprocess.Popen(["/usr/bin/python3", "-c", STEPD, str(job), "0", node, str(uid), str(out)], text=True,
                                stdout=subprocess.PIPE)
        pids = [int(step.stdout.readline()) for _ in range(2)]
        self.processes[f"step {job} {node}"] = step
        self.pids = getattr(self, "pids", []) + pids
        task = next(p for p in pids if p in children(step.pid))
        message = {"v": 1, "kind": "start", "job": int(job), "restart": 0, "step": "0", "node": "", "rank": 0, "local": 0,
                   "tasks": 1, "pid": task, "uid": uid, "time": 1}
        subprocess.run(["/usr/bin/python3", "-c", "import socket, sys\n"
                        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[1].encode(), sys.argv[2])",
                        json.dumps(message), self.folder / f"{node}.sock"], check=True)
        return task

    def job(self, *nodes, path=None, step=True, **members):
        path = str(path or self.logs / "job.log")
        job = self.world.submit(comment="reknit", uid=UID, gid=UID, n_nodes=len(nodes), required=list(nodes),
                                stdout=path, stdout_path=path, **members)
        self.journal.wait(job, "attempt-started", timeout=20)
        assert sorted(self.world.job(job)["nodes"]) == sorted(nodes)
        for node in nodes if step else ():
            self.step(job, node)
        return job

    def write(self, text, log="job.log"):
        with (self.logs / log).open("a") as f:
            f.write(text)

    def readers(self):
        return [p for p in children(self.processes["spawner"].pid) if comm(p) == "reknit-reader"]

    def texts(self, job):
        """Of the failures that its logs tell of."""
        return [e.body["text"] for e in self.journal.events(job, "signal") if e.body.get("cause")]

    def await_texts(self, job, count):
        # An agent that was away for long tries again after up to 15 s; who does not answer it or reknitd has a minute.
        wait_for(lambda: len(self.texts(job)) >= count, lambda: self.daemon.log()[-3000:] + self.journal.story(job), 90)
        return self.texts(job)

    def reads_at(self, node):
        wait_for(lambda: f"the reader of uid {UID} on node {node}: running" in self.daemon.log(),
                 lambda: self.daemon.log()[-3000:] + self.log(node))

    def close(self):
        self.daemon.process.kill()
        self.daemon.process.wait()
        for name in list(self.processes):
            self.kill(name)
        for pid in getattr(self, "pids", []):
            if comm(pid) == "sleep":
                kill_quietly(pid, signal.SIGKILL)


@pytest.fixture
def world():
    with World(nodes=3, prefix=f"node-{os.getpid()}-") as w:
        yield w


@pytest.fixture
def site(open_path, world):
    with contextlib.closing(Site(open_path, world)) as s:
        yield s


def test_a_log_that_reknitd_cannot_see_is_read_on_the_node(site, world):
    first, second, _ = world.nodes
    site.agent(first)
    site.agent(second)
    job = site.job(second, first)
    site.write(ECC)
    assert site.await_texts(job, 1) == [ECC.strip()]
    site.reads_at(world.job(job)["batch_host"])
    assert len(site.readers()) == 1
    site.write(OOM)
    assert len(site.await_texts(job, 2)) == 2
    world.end(job, "failed", 1)
    site.journal.wait(job, "logs-drained", timeout=20)
    site.journal.wait(job, "verdict", timeout=20)


def test_whoever_is_killed_nothing_is_told_twice_or_lost(site, world):
    """Reader, agent and reknitd in turn: the next one goes on where the last one was."""
    first, second, _ = world.nodes
    site.agent(first)
    site.agent(second)
    job = site.job(first, second)
    offsets = site.folder / "state" / "offsets"
    site.write(OOM)
    assert site.await_texts(job, 1) == [OOM.strip()]
    site.reads_at(first)
    reader, = site.readers()
    os.kill(reader, signal.SIGKILL)
    wait_for(lambda: site.readers() not in ([], [reader]), "another reader")
    site.write(ECC)
    assert len(site.await_texts(job, 2)) == 2
    site.kill(first)  # and its reader with it: the other node has the same file system
    site.reads_at(second)
    site.write("ImportError: libcudart.so.12: cannot open shared object file\n")
    assert len(site.await_texts(job, 3)) == 3
    wait_for(lambda: offsets.exists() and '"offset":%d' % (site.logs / "job.log").stat().st_size in offsets.read_text(),
             "its place in the file")
    site.daemon.process.kill()
    site.daemon.process.wait()
    wait_for(lambda: not site.readers(), "the end of the reader with its connection")
    site.write("torch.distributed.DistBackendError: NCCL error: unhandled system error\n")
    site.daemon.start()
    site.await_texts(job, 4)
    world.end(job, "failed", 1)
    site.journal.wait(job, "logs-drained", timeout=20)
    texts = site.texts(job)
    assert len(texts) == len(set(texts)) == 4, texts


def test_the_first_agent_that_comes_reads_what_waits_for_it(site, world):
    """As after a restart of reknitd, when it is seen sooner that this host has not got the logs."""
    node = next(iter(world.nodes))
    job = site.job(node, step=False)
    site.write(ECC)
    site.daemon.until(f"/v1/jobs/{job}", lambda j: "no node of the job has an agent" in j.get("logs", ""))
    site.agent(node)
    site.step(job, node)
    site.daemon.until(f"/v1/jobs/{job}", lambda j: j.get("logs") == f"read on node {node}")
    assert site.await_texts(job, 1) == [ECC.strip()]


def test_a_reader_that_hangs_on_a_node_is_replaced(site, world):
    site.kill_daemon_and_set(readers={"stall": "2s"})
    node = next(iter(world.nodes))
    site.agent(node)
    job = site.job(node)
    site.write(ECC)
    site.await_texts(job, 1)
    reader, = site.readers()
    os.kill(reader, signal.SIGSTOP)
    wait_for(lambda: site.readers() not in ([], [reader]), lambda: site.daemon.log()[-2000:])
    site.write(OOM)
    assert len(site.await_texts(job, 2)) == 2
    assert "hung" in site.daemon.log()


def test_who_has_no_job_on_a_node_is_not_read_there(site, world):
    node, other, _ = world.nodes
    site.agent(node)
    job = site.job(node, step=False)
    site.write(ECC)
    wait_for(lambda: "the user has no job there, nor had one lately" in site.daemon.log(), lambda: site.daemon.log())
    assert not site.readers() and not site.texts(job)
    site.step(job, node)
    assert site.await_texts(job, 1)


def test_what_its_owner_may_not_read_is_not_read_there(site, world):
    node = next(iter(world.nodes))
    secret = site.folder / "secret"
    secret.touch(0o600)
    site.agent(node)
    (site.logs / "job.log").symlink_to(secret)
    job = site.job(node)
    secret.write_text(ECC)
    wait_for(lambda: "job.log: Permission denied" in site.daemon.log(), lambda: site.daemon.log()[-2000:])
    assert not site.texts(job)


def test_no_reader_for_users_of_the_system(site, world):
    """Root's own job, and that of a user below UID_MIN: the spawner's rules hold on nodes too."""
    node = next(iter(world.nodes))
    site.agent(node)
    job = world.submit(comment="reknit", uid=2, gid=2, required=[node], stdout_path=str(site.logs / "job.log"))
    site.journal.wait(job, "attempt-started", timeout=20)
    site.step(job, node, uid=2)
    wait_for(lambda: "no reader runs as a user of the system" in site.daemon.log().split(f"on node {node}", 1)[-1],
             lambda: site.daemon.log()[-2000:])
    assert not site.readers()


def test_files_that_only_a_node_has_are_read_there(site, world):
    """The job's own log is seen by reknitd; what its tasks write on their nodes is not, and both count."""
    first, second, _ = world.nodes
    site.agent(first)
    site.agent(second)
    seen = site.folder / "seen.log"
    job = site.job(first, second, step=False, path=seen)
    seen.write_text(OOM)
    site.step(job, first, out=site.logs / "rank-0.log")
    site.step(job, second, out=site.logs / "rank-1.log")
    wait_for(lambda: len(site.readers()) == 2, lambda: site.daemon.log()[-2000:] + site.log(first) + site.log(second))  # one on each node
    site.write("RuntimeError: CUDA error: an illegal memory access was encountered\n", "rank-0.log")
    site.write(ECC, "rank-1.log")
    texts = site.await_texts(job, 3)
    assert len(texts) == 3 and ECC.strip() in texts
    files = {e.body["text"]: e.body.get("file", 0) for e in site.journal.events(job, "signal") if e.body.get("cause")}
    assert len(set(files.values())) == 3
    world.end(job, "failed", 1)
    site.journal.wait(job, "logs-drained", timeout=20)
    assert len(site.texts(job)) == 3


def test_where_logs_are_read_is_the_operator_s_to_say(site, world):
    """And said to who asks."""
    node, other, _ = world.nodes
    site.kill_daemon_and_set(readers={"read_at": "controller"})
    site.agent(node)
    job = site.job(node)
    health = "/v1/health"
    site.daemon.until(f"/v1/jobs/{job}", lambda j: "readers.read_at says that no node reads" in j.get("logs", ""))
    assert site.daemon.until(health, lambda h: h["readers"]["unread"] == 1)["readers"]["unread_job"].startswith(job)
    assert not site.readers()
    site.kill_daemon_and_set(2, readers={"read_at": "nodes"})  # also what this host could read
    seen = site.folder / "seen.log"
    site.write(ECC)
    second = site.job(other, path=seen, step=False)
    site.daemon.until(f"/v1/jobs/{second}", lambda j: f"not read on node {other}" in j.get("logs", ""))
    site.agent(other)
    site.step(second, other)
    for number, name in ((job, node), (second, other)):
        site.daemon.until(f"/v1/jobs/{number}", lambda j, name=name: j.get("logs") == f"read on node {name}")
    seen.write_text(OOM)
    assert site.await_texts(job, 1) == [ECC.strip()] and site.await_texts(second, 1) == [OOM.strip()]
    assert site.daemon.until(health, lambda h: h["readers"]["unread"] == 0)["readers"]["on_nodes"] == 2
