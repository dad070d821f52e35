# SPDX-License-Identifier: Apache-2.0
"""What `make cluster` leaves running for people, by the commands that it shows them."""

import contextlib
import json
import pathlib
import pwd
import re
import signal
import subprocess
import sys

import pytest
from cluster import await_true
from conftest import REKNIT
from running import Lines

pytestmark = pytest.mark.slurm
HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def shown():
    """command -> the first line of that text that has it"""
    process = subprocess.Popen([sys.executable, "-m", "cluster", "4", REKNIT.parent], cwd=HERE, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = Lines(process.stdout)
    try:
        lines.expect("reknitd.out  ")
        yield lambda word: next(line for line in lines.lines if word in line)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, lines.text()
    finally:
        process.kill()
        process.wait()


def bash(shown, command, check=True):
    """In a shell that was set up as the text says."""
    script = "\n".join([shown("export SLURM_CONF"), shown("export REKNIT_SOCKET"), shown("  cd "), command])
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def readers(folder):
    """The uids of the readers whose program lies there."""
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (path / "exe").readlink() == folder / "bin" / "reknit-reader":
                found.add(int(re.search(r"^Uid:\s+(\d+)", (path / "status").read_text(), re.MULTILINE).group(1)))
    return found


def test_a_users_log_is_read_as_that_user(shown):
    folder = pathlib.Path(re.search(r"REKNIT_SOCKET=(\S+)/reknitd.sock", shown("export REKNIT_SOCKET")).group(1))
    job = re.search(r"Submitted batch job (\d+)", bash(shown, shown("sbatch "))).group(1)

    def now():
        said = bash(shown, f"reknit explain --format json {job}", check=False)
        return json.loads(said)["now"] if said else {}

    job_now = await_true(lambda: f"its steps: {now()}", lambda: (n := now()).get("last_step", -1) > 0 and n)
    assert job_now["user"] == "nobody" and job_now["logs"].startswith("read on") and "unread_logs" not in job_now, job_now
    assert readers(folder) == {pwd.getpwnam("nobody").pw_uid}


def test_the_doctor_finds_a_spawner(shown):
    said = bash(shown, re.sub(r"reknit doctor", "reknit doctor --format json", shown("reknit doctor")), check=False)
    rows = {row["check"]: row for row in json.loads(said)["checks"]}
    assert rows["spawner"]["state"] == "ok" and rows["one reknitd"]["state"] == "ok", rows
