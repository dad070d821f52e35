# SPDX-License-Identifier: Apache-2.0
"""Logs that the controller has no file system for are read on the jobs' nodes: with a scheduler in memory and real
agents, spawner and readers. That reknitd does not see the folder of the logs is true: it runs in a mount namespace of
its own, with something else mounted there."""

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
        self.daemon = Blind(folder, world, self.logs.parent, mode="observe", log_level="debug", agents={
            "listen": f"127.0.0.1:{self.port}", "auth": "key", "key_file": str(self.key)}, **config)
        self.journal = Journal(folder / "state" / "journal.db")
        self.start("spawner", BIN / "reknit-spawner", "--socket", self.spawner, "--programs", BIN, "--user", "nobody",
                   "--slurm-user", "daemon")
        wait_for(self.spawner.exists, "the spawner's socket")

    def start(self, name, *argv):
        with (self.folder / f"{name}.log").open("a") as log:
            self.processes[name] = subprocess.Popen([str(a) for a in argv], stderr=log, stdout=log,
                                                    stdin=subprocess.DEVNULL)

    def agent(self, node, *options):
        self.start(node, BIN / "reknit-agent", "--to", f"127.0.0.1:{self.port}", "--node", node, "--socket",
                   self.folder / f"{node}.sock", "--spool", self.folder / f"{node}.spool", "--key", self.key, "--spawner",
                   self.spawner, "--sample", "500ms", "--heartbeat", "1s", "--verbose", *options)
        wait_for(lambda: "connected to reknitd" in self.log(node), lambda: self.log(node) + self.daemon.log()[-1000:])

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

    def job(self, *nodes, log="job.log", step=True, **members):
        job = self.world.submit(comment="reknit", uid=UID, gid=UID, n_nodes=len(nodes), required=list(nodes),
                                std_out=str(self.logs / log), stdout=str(self.logs / log),
                                stdout_path=str(self.logs / log), **members)
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
        wait_for(lambda: len(self.texts(job)) >= count, lambda: self.daemon.log()[-3000:] + self.journal.story(job))
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
    s = Site(open_path, world)
    try:
        yield s
    finally:
        s.close()


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
