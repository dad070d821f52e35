#!/usr/bin/python3 -SE
# SPDX-License-Identifier: Apache-2.0
"""usage: supervisor.py PARENT-PID

Starts the daemons of one test cluster and makes sure that nothing of it outlives the test: it is
the subreaper of everything below it, so that a daemon that leaves its parents (slurmstepd does)
comes back to it, and it ends all that when its stdin is closed or PARENT-PID dies, however that
happens. Requests are JSON lines on stdin, each answered by one on stdout.

A daemon that crashes is noted. Debian's slurmd 22.05 does so once in a thousand jobs (it writes to
memory that it has freed; malloc aborts when the thread ends): it is started again, as systemd does
it on a site, and its steps live on.
"""

import ctypes
import json
import os
import pathlib
import resource
import select
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
END_PATIENCE = 20  # seconds; a process in an uninterruptible wait is given up after that
CRASHES = {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGSYS}
REVIVALS_MAX = 3  # of one daemon; one that crashes again and again has another reason


def prctl(option, value):
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def parents():
    """pid -> ppid of every process that is not a zombie."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = path.read_text(errors="replace").split(" ", 1)
        except (OSError, ValueError):
            continue
        state, ppid = rest.rsplit(")", 1)[1].split()[:2]
        if state != "Z":
            found[int(pid)] = int(ppid)
    return found


def in_child():
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would lie where the tests were started


def descendants(of):
    tree, found, todo = parents(), [], [of]
    while todo:
        parent = todo.pop()
        below = [pid for pid, ppid in tree.items() if ppid == parent]
        found += below
        todo += below
    return found


class Daemon:
    def __init__(self, argv, log, env, revive):
        self.argv, self.log, self.env, self.revive = argv, log, env, revive
        self.revivals = 0
        self.start()

    def start(self):
        self.seen = False  # its end
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env={**os.environ, **self.env}, start_new_session=True, preexec_fn=in_child)

    def has_crashed(self):
        """Told once."""
        status = self.process.poll()
        told, self.seen = self.seen, status is not None
        return not told and self.seen and -status in CRASHES

    def may_be_revived(self):
        self.revivals += 1
        return self.revive and self.revivals <= REVIVALS_MAX


class Supervisor:
    def __init__(self):
        self.daemons = {}  # by name
        self.crash_notes = []

    def start(self, name, argv, log, env, revive=False):
        old = self.daemons.get(name)
        if old and old.process.poll() is None:
            raise ValueError(f"{name} runs already")
        self.daemons[name] = Daemon(argv, log, env, revive)
        return self.daemons[name].process.pid

    def signal(self, name, number):
        self.daemons[name].process.send_signal(number)

    def stop(self, name, timeout):
        """Asks it to end, and makes it end; its exit status."""
        process = self.daemons[name].process
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def look_after(self):
        for name, daemon in self.daemons.items():
            if not daemon.has_crashed():
                continue
            status = daemon.process.returncode
            revived = daemon.may_be_revived()
            self.crash_notes.append({"name": name, "signal": -status, "revived": revived})
            if revived:
                daemon.start()

    def crashes(self):
        self.look_after()
        return self.crash_notes

    def alive(self):
        return {name: d.process.pid for name, d in self.daemons.items() if d.process.poll() is None}

    def pids(self):
        return descendants(os.getpid())

    def answer(self, line):
        try:
            request = json.loads(line)
            value = getattr(self, request.pop("op"))(**request)
            return {"value": value}
        except Exception as e:  # the one who asked shall see it, whatever it is
            return {"error": f"{type(e).__name__}: {e}"}

    def reap_orphans(self):
        """Zombies that are not ours by Popen; those are left to it."""
        own = {d.process.pid for d in self.daemons.values()}
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if info is None:
                return
            if info.si_pid in own:
                for daemon in self.daemons.values():
                    daemon.process.poll()
                own.discard(info.si_pid)
            else:
                os.waitpid(info.si_pid, 0)

    def end_all(self):
        deadline = time.monotonic() + END_PATIENCE
        while (pids := descendants(os.getpid())) and time.monotonic() < deadline:
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.reap_orphans()
            time.sleep(0.01)
        return not pids


def serve(supervisor, parent):
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    buffer = b""
    while True:
        ready, _, _ = select.select([0, woken, parent], [], [])
        if parent in ready:
            return
        if woken in ready:
            os.read(woken, 4096)
            supervisor.reap_orphans()
            supervisor.look_after()
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                return
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                os.write(1, json.dumps(supervisor.answer(line)).encode() + b"\n")


def stop(*_):
    raise SystemExit(0)


def main():
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    supervisor = Supervisor()
    try:
        serve(supervisor, os.pidfd_open(int(sys.argv[1])))
    except (ProcessLookupError, BrokenPipeError):
        pass
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        ended = supervisor.end_all()
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main())
