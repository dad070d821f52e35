# SPDX-License-Identifier: Apache-2.0
"""A `reknit run` in the background, its lines as they come, and every process that belongs to it."""

import os
import pathlib
import re
import select
import signal
import subprocess
import threading
import time

PATIENCE = 60  # seconds; a noisy machine is slow

FAST_POLICY = """
name: fast
max_restarts: 1000
max_restarts_per_day: 256
max_without_progress: 100
max_without_step: 100
verdict_wait: 1s
kill_grace: 1s
hang: {timeout_min: 2s, timeout_max: 5s, first_step: 30s, checkpoint: 2s}
causes:
""" + "".join(
    f"  {cause}: {{retries: 100, backoff: 0s, backoff_max: 0s}}\n"
    for cause in (
        "unknown gpu-hardware network node-hardware node-failure storage gpu-oom host-oom framework "
        "user-code user-config numerical external-service"
    ).split()
)


class Lines:
    """What a pipe says, line by line, and a way to wait for a line."""

    def __init__(self, pipe):
        self.pipe, self.lines, self.ended = pipe, [], False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.pipe:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def find(self, pattern, after=0):
        for number, line in enumerate(self.lines[after:], after):
            if re.search(pattern, line):
                return number
        return None

    def expect(self, pattern, after=0):
        """Number of the first line from `after` on that matches; waits for it."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.find(pattern, after) is not None or self.ended, PATIENCE
            )
            number = self.find(pattern, after)
            assert number is not None, f"no line {pattern!r} in:\n" + "\n".join(self.lines[-40:])
            return number

    def text(self):
        self.thread.join(PATIENCE)
        return "\n".join(self.lines)


class Run:
    """A running `reknit run`."""

    def __init__(self, reknit, *args, state, env=None, **kwargs):
        environment = {**os.environ, "REKNIT_STATE_DIR": str(state), **(env or {})}
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [str(reknit), "run", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", env=environment, **kwargs,
        )
        self.pid = self.process.pid
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)

    def keeper(self):
        """The pid of its keeper, None when there is none that lives."""
        for pid in children(self.pid):
            if comm(pid) == "job-keeper" and (stat(pid) or "Z")[0] != "Z":
                return pid
        return None

    def wait(self):
        status = self.process.wait(PATIENCE)
        self.out.text(), self.err.text()
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)


def stat(pid):
    """(state, ppid) of a process, None when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rsplit(")", 1)[1].split()
    return fields[0], int(fields[1])


def comm(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def pids():
    return [int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()]


def children(pid):
    return [p for p in pids() if (stat(p) or ("", 0))[1] == pid]


def descendants(pid):
    parents = {p: s[1] for p in pids() if (s := stat(p)) and s[0] != "Z"}
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        below = [p for p, of in parents.items() if of == parent]
        found += below
        todo += below
    return found


def marked(mark):
    """Processes that have the text in the environment they were started with."""
    found = []
    for pid in pids():
        try:
            environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        state = stat(pid)
        if mark.encode() in environ.split(b"\0") and state and state[0] != "Z":
            found.append(pid)
    return found


def account(pid):
    """What there is to know about a process that should not be there."""
    told = [f"{name}: {read_proc(pid, name)}" for name in ("stat", "cgroup", "wchan", "cmdline")]
    environ = [e for e in read_proc(pid, "environ").split("\0") if e.startswith("REKNIT_")]
    return "\n".join([*told, f"environ: {environ}"])


def read_proc(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError as e:
        return str(e)


def await_end(pid):
    """Waits until the process has ended, whoever's child it is."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([fd], [], [], PATIENCE)
        assert ready, f"process {pid} ({comm(pid)}) does not end\n{account(pid)}"
    finally:
        os.close(fd)


def until(condition):
    """Asks again and again, where no event tells; fails when it takes too long."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def await_ends(mark):
    """Waits until no process with the mark is left; they are dying already, or it fails."""
    end = time.monotonic() + PATIENCE
    while left := marked(mark):
        assert time.monotonic() < end, f"orphans: {[(p, comm(p)) for p in left]}"
        for pid in left:
            await_end(pid)


def kill_quietly(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass
