# SPDX-License-Identifier: Apache-2.0
"""spank_reknit.so on a real Slurm: what it says of tasks, and that it never costs a job anything."""

import json
import os
import pathlib
import signal
import socket
import struct
import time

import pytest
from cluster import Cluster, await_true
from conftest import REKNIT

PLUGIN = pathlib.Path(os.environ.get("SPANK_REKNIT", REKNIT.parent / "spank_reknit.so")).resolve()

pytestmark = pytest.mark.slurm


class Listener:
    """An agent's socket, for every node one."""

    def __init__(self, path):
        self.path, self.seen = path, []
        path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(str(path))
        self.socket.setblocking(False)

    def take(self):
        while True:
            try:
                data, control, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(12))
            except BlockingIOError:
                return self.seen
            (_, _, credentials), = control
            assert struct.unpack("3i", credentials)[1] == 0
            self.seen.append(json.loads(data))

    def tell(self, what, **members):
        return [d for d in self.take() if d["kind"] == what and members.items() <= d.items()]

    def close(self):
        self.socket.close()
        self.path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def cluster():
    folder = pathlib.Path("/tmp/reknit-spank-%d" % os.getpid())  # short: it becomes a socket's path
    folder.mkdir()
    try:
        with Cluster(nodes=3, plugstack=f"optional {PLUGIN} socket={folder}/%n\n") as c:
            c.sockets = folder
            yield c
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


@pytest.fixture
def listeners(cluster):
    made = {node: Listener(cluster.sockets / node) for node in cluster.nodes}
    yield made
    for listener in made.values():
        listener.close()


def test_a_killed_rank_is_named(cluster, listeners):
    job = cluster.submit("srun -K sleep 1000", nodes=3, ntasks=6, ntasks_per_node=2,
                         user="daemon", export="ALL,SLURMD_NODENAME=elsewhere")
    cluster.await_ranks(job, 6)
    before = time.time()
    task = cluster.kill_task(job, 3, signal.SIGKILL)
    death = await_true("the death of rank 3", lambda: listeners[task.node].tell("exit", rank=3, step="0"))[0]
    assert before - 1 < death.pop("time") / 1e6 < time.time() + 1
    assert death == {
        "v": 1, "kind": "exit", "job": job, "restart": 0, "step": "0", "node": task.node, "rank": 3,
        "local": int(task.env["SLURM_LOCALID"]), "tasks": 6, "pid": task.pid, "uid": 1, "status": 9,
    }
    start, = listeners[task.node].tell("start", rank=3, step="0")
    assert (start["pid"], "status" in start) == (task.pid, False)
    cluster.await_end(job)
    ends = await_true("all six", lambda: len(e := [d for l in listeners.values() for d in l.tell("exit", step="0")]) == 6 and e)
    assert {d["status"] for d in ends if d["rank"] != 3} == {signal.SIGTERM}


def test_an_exit_status_and_the_attempt(cluster, listeners):
    job = cluster.submit("exit $((4 + ${SLURM_RESTART_COUNT:-0}))", nodes=1)
    node = cluster.await_end(job)["nodes"]
    end, = await_true("the end", lambda: listeners[node].tell("exit", job=job))
    assert (end["step"], end["status"], end["restart"]) == ("batch", 4 << 8, 0)
    cluster.requeue(job)
    again = await_true("the second end", lambda: [d for l in listeners.values() for d in l.tell("exit", job=job, restart=1)])
    assert [d["status"] for d in again] == [5 << 8]


def duration(cluster):
    start = time.monotonic()
    cluster.run("srun", "-N3", "-n12", "--overcommit", "true", timeout=40)
    return time.monotonic() - start


def test_a_job_takes_as_long_whoever_listens(cluster):
    """Nobody; one who never reads, with room and without; a file that is no socket."""
    alone = min(duration(cluster) for _ in range(3))
    deaf = [Listener(cluster.sockets / node) for node in cluster.nodes]
    with_room = min(duration(cluster) for _ in range(3))
    for listener in deaf:
        fill(listener.path)
    full = min(duration(cluster) for _ in range(3))
    for listener in deaf:
        listener.close()
        listener.path.write_text("no socket")
    nonsense = min(duration(cluster) for _ in range(3))
    for node in cluster.nodes:
        (cluster.sockets / node).unlink()
    # Whoever waited for one who does not read would wait for longer than any noise of the machine.
    assert max(with_room, full, nonsense) < alone + 5, (alone, with_room, full, nonsense)


def fill(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.setblocking(False)
        with pytest.raises(BlockingIOError):
            for _ in range(100000):
                s.sendto(b"x", str(path))
