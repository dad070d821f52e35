# SPDX-License-Identifier: Apache-2.0
"""A real reknit-reader and its conversation, whoever started it."""

import json
import os
import pathlib
import re
import select
import socket
import subprocess
import time

import running

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("REKNIT", TOP / "build/bin/reknit")).absolute().parent
READER = (BIN / "reknit-reader").resolve()
SPAWNER = (BIN / "reknit-spawner").resolve()
JOB = "4242-1700000000"
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"


def now_us():
    return int(time.time() * 1e6)


class Talk:
    """JSON lines over a socket; what was heard is kept."""

    def __init__(self, sock):
        self.sock, self.buffer, self.heard, self.closed, self.last_id = sock, b"", [], False, 0

    def listen(self, seconds):
        """Until something comes, or for so long."""
        if self.closed or not select.select([self.sock], [], [], max(seconds, 0))[0]:
            return
        try:
            data = self.sock.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        self.closed = not data
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        self.heard += [json.loads(line) for line in lines]

    def expect(self, condition, after=0):
        """The first object from number `after` on for which the condition holds; waits for it."""
        end, at = time.monotonic() + running.PATIENCE, after
        while True:
            for number in range(at, len(self.heard)):
                if condition(self.heard[number]):
                    return self.heard[number]
            at = max(after, len(self.heard))
            assert not self.closed and time.monotonic() < end, self.heard[-20:]
            self.listen(end - time.monotonic())

    def kind(self, kind, after=0, **members):
        def fits(t):
            return t.get("kind") == kind and all(t.get(k) == v for k, v in members.items())

        return self.expect(fits, after)

    def send(self, **request):
        self.last_id += 1
        self.sock.sendall(json.dumps({"id": self.last_id, **request}).encode() + b"\n")
        return self.last_id

    def ask(self, **request):
        """The answer."""
        number = self.send(**request)
        return self.expect(lambda t: t.get("id") == number)

    # ---- the conversation with a reader ----

    def follow(self, folder, *patterns, attempt=1, job=JOB, **more):
        request = {
            "op": "follow", "job": job, "attempt": attempt, "dir": str(folder),
            "patterns": list(patterns), "started_us": now_us(),
            "names": {"job_id": 4242, "job_name": "llm", "user_name": "ada"},
        }
        answer = self.ask(**{**request, **more})
        assert answer["ok"], answer

    def drain(self, attempt=1, job=JOB):
        """What was told from now until all was read."""
        before = len(self.heard)
        assert self.ask(op="drain", job=job, attempt=attempt)["ok"]
        self.kind("drained", before, job=job, attempt=attempt)
        return self.heard[before:]

    def signals(self, attempt=1, after=0):
        return [
            t["signal"] for t in self.heard[after:]
            if t.get("kind") == "signal" and t["attempt"] == attempt
        ]

    def roots(self, attempt=1, after=0):
        """Numbers that the test put behind its error lines."""
        texts = [s.get("text", "") for s in self.signals(attempt, after)]
        return [int(m.group(1)) for t in texts if (m := re.search(r"encountered \((\d+)\)", t))]


class Reader(Talk):
    """A reader of our own, as whoever we are or as `user`."""

    def __init__(self, program=READER, user=None):
        ours, its = socket.socketpair()
        self.process = subprocess.Popen(
            [program], stdin=its, stdout=its, user=user, group=user,
            extra_groups=None if user is None else [], cwd="/", env={},
        )
        its.close()
        super().__init__(ours)

    def close(self):
        self.sock.close()
        try:
            self.process.wait(running.PATIENCE)
        finally:
            if self.process.returncode is None:
                self.process.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def error(number):
    return f"{ECC} ({number})\n"


def write(path, *numbers, mode="a"):
    with open(path, mode) as f:
        f.writelines(map(error, numbers))
