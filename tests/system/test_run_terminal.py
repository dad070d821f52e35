# SPDX-License-Identifier: Apache-2.0
"""`reknit run` on a terminal: the job has one too, and the user's is given back as it was."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import uuid

import pytest

from running import (FAST_POLICY, PATIENCE, await_end, comm, descendants, kill_quietly, marked, stat,
                     until)


class Screen:
    """A terminal whose other side we are."""

    def __init__(self, rows=30, columns=90):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.master, keys)

    def expect(self, pattern):
        """Reads until the pattern has appeared; what came up to its end is consumed and returned."""
        end = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self.seen, re.DOTALL)):
            assert time.monotonic() < end, f"no {pattern!r} in {self.seen[-2000:]!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 65536)
        before, self.seen = self.seen[: match.end()], self.seen[match.end() :]
        return before

    def settings(self):
        return termios.tcgetattr(self.slave)

    def close(self):
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def screen():
    s = Screen()
    yield s
    s.close()


@pytest.fixture
def start(reknit, tmp_path, screen):
    mark = f"REKNIT_TEST_MARK={uuid.uuid4()}"
    started = []
    policy = tmp_path / "policy.yaml"
    policy.write_text(FAST_POLICY.replace("max_without_step: 100", "max_without_step: 2"))

    def run(script, streams=(0, 1, 2), **kwargs):
        def take_terminal():
            os.setsid()
            fcntl.ioctl(screen.slave, termios.TIOCSCTTY, 0)

        env = {**os.environ, "REKNIT_STATE_DIR": str(tmp_path / "state"), "NO_COLOR": "1"}
        env.update([mark.split("=")])
        names = ("stdin", "stdout", "stderr")
        places = {names[fd]: screen.slave for fd in streams}
        places = {**dict.fromkeys(names, subprocess.DEVNULL), **places, **kwargs}
        process = subprocess.Popen(
            [str(reknit.path), "run", "--name", "job", "--policy", str(policy), "--", "bash", "-c", script],
            env=env, preexec_fn=take_terminal, **places,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
    for pid in marked(mark):
        kill_quietly(pid)


def await_state(pid, states):
    """No event tells of another's child's state."""
    until(lambda: stat(pid)[0] in states)


def log_of(tmp_path):
    return (tmp_path / "state/job/run-1/attempt-1.log").read_bytes()


def test_the_job_has_a_terminal_of_the_same_size(start, screen, tmp_path):
    process = start("test -t 0 && test -t 1 && test -t 2 && tty && stty size")
    screen.expect(rb"/dev/pts/\d+\r\n30 90\r\n")
    assert process.wait(PATIENCE) == 0
    screen.expect(rb"goodput")
    assert screen.settings() == screen.before
    assert b"\r" not in log_of(tmp_path)


def test_bytes_reach_the_screen_as_they_would_without_us(start, screen):
    process = start(r"printf 'one\ntwo\t\033[1mbold\033[0m\rbar 1\rbar 2\n'; printf 'err\n' >&2")
    screen.expect(rb"one\r\ntwo\t\x1b\[1mbold\x1b\[0m\rbar 1\rbar 2\r\nerr\r\n")
    assert process.wait(PATIENCE) == 0


def test_a_terminal_for_output_alone(start, screen):
    """Standard input is no terminal: the user's terminal stays as it is and turns LF into CR LF."""
    process = start("test ! -t 0 && test -t 1 && echo 'one'; sleep 0.2; exit 0", streams=(1, 2))
    screen.expect(rb"one\r\n")
    assert screen.settings() == screen.before
    assert process.wait(PATIENCE) == 0


def test_standard_output_in_a_pipe_stays_apart(start, screen):
    process = start("test ! -t 1 && test -t 2 && echo out && echo err >&2", streams=(0, 2),
                    stdout=subprocess.PIPE)
    screen.expect(rb"err\r\n")
    assert process.stdout.read() == b"out\n"
    assert process.wait(PATIENCE) == 0
    process.stdout.close()


def test_keys_reach_the_job_and_are_echoed_once(start, screen):
    process = start("read -p 'name? ' name; echo got:$name; cat; echo end")
    screen.expect(rb"name\? ")
    screen.type(b"abd\x7fc\r")
    shown = screen.expect(rb"got:abc\r\n")
    assert shown.count(b"abd") == 1
    screen.type(b"\x04")  # end of file
    screen.expect(rb"end\r\n")
    assert process.wait(PATIENCE) == 0
    assert screen.settings() == screen.before


def test_a_new_size_reaches_the_job(start, screen):
    process = start("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done")
    screen.expect(rb"ready")
    screen.resize(40, 120)
    os.kill(process.pid, signal.SIGWINCH)
    screen.expect(rb"40 120\r\n")
    assert process.wait(PATIENCE) == 0


def test_ctrl_c_ends_the_job_without_a_restart(start, screen):
    # No shell's trap: bash forgets a Ctrl-C that comes while a command of it ends by itself.
    process = start(f"""exec {sys.executable} -c 'import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: (print("bye", flush=True), sys.exit(9)))
print("ready", flush=True)
while True: time.sleep(0.05)'""")
    screen.expect(rb"ready")
    screen.type(b"\x03")
    screen.expect(rb"bye")
    assert process.wait(PATIENCE) == 9
    assert screen.settings() == screen.before


def test_the_screen_is_given_back_when_reknit_is_killed(start, screen):
    process = start("echo ready; sleep 1000")
    screen.expect(rb"ready")
    assert screen.settings() != screen.before  # raw
    below = descendants(process.pid)
    process.kill()
    for pid in below:
        await_end(pid)
    assert screen.settings() == screen.before


def test_ctrl_z_stops_the_job_too(start, screen):
    process = start("echo ready; while :; do sleep 0.05; done")
    screen.expect(rb"ready")
    job = next(p for p in descendants(process.pid) if comm(p) == "bash")
    screen.type(b"\x1a")
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    await_state(job, "T")
    assert screen.settings() == screen.before
    os.kill(process.pid, signal.SIGCONT)
    await_state(job, "RS")
    screen.type(b"\x03")
    assert process.wait(PATIENCE) == 130


def test_our_lines_do_not_break_into_the_jobs(start, screen):
    """A bar without an end, then a crash: our line begins on a new one."""
    process = start(r"printf '\r 10%%|#'; sleep 0.1; printf '\r 20%%|##'; "
                    r"[ $REKNIT_ATTEMPT = 2 ] || exit 3; echo")
    shown = screen.expect(rb"goodput[^\n]*\n")
    assert process.wait(PATIENCE) == 0
    assert b"20%|##\r\nreknit: attempt 1 crashed" in shown
    for line in shown.split(b"\n"):
        assert b"reknit:" not in line or line.startswith(b"reknit:"), line


def test_our_long_lines_go_on_below_themselves(start, screen):
    screen.resize(30, 60)
    process = start("echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate'; exit 3")
    shown = screen.expect(rb"tells why\r\n").decode()
    assert process.wait(PATIENCE) == 75
    ours = [line for line in shown.split("\r\n") if not line.startswith("torch")]
    assert max(map(len, ours)) <= 60
    below = ours[next(i for i, line in enumerate(ours) if "attempt 1 crashed" in line) + 1]
    assert below.startswith(" " * 8) and below[8] != " "
