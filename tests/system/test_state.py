# SPDX-License-Identifier: Apache-2.0
"""Where jobs leave their traces."""

import contextlib
import fcntl
import os
import pathlib
import re
import sqlite3
import subprocess

import pytest

from running import Run, until


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("REKNIT_", "XDG_"))}
    return {**env, **more}


def test_the_state_folder_may_be_relative(reknit, tmp_path):
    where = {"cwd": tmp_path, "env": environment(REKNIT_STATE_DIR="there/too")}
    assert reknit("run", "--name", "it", "--", "true", **where).returncode == 0
    assert (tmp_path / "there/too/it/journal.db").exists()
    assert "it " in reknit("jobs", **where).stdout


def test_without_a_word_it_is_below_home(reknit, tmp_path):
    where = {"cwd": "/", "env": environment(HOME=str(tmp_path))}
    assert reknit("run", "--name", "it", "--", "true", **where).returncode == 0
    assert (tmp_path / ".local/state/reknit/it/journal.db").exists()


def test_nowhere_is_an_error_that_says_what_to_set(reknit):
    env = environment()
    del env["HOME"]
    result = reknit("run", "--name", "it", "--", "true", env=env)
    assert result.returncode == 1
    assert "REKNIT_STATE_DIR" in result.stderr


# The lock: whoever holds it has taken it a moment before it says who it is


@pytest.fixture
def locked(tmp_path):
    """The job's lock, held by this process, with nothing in it; and a run that wants it."""
    home = tmp_path / "state/it"
    home.mkdir(parents=True)
    with open(home / "lock", "w+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock, tmp_path


def second(reknit, tmp_path):
    r = Run(reknit.path, "--name", "it", "--", "touch", tmp_path / "ran", state=tmp_path / "state")
    until(lambda: opened(r.pid, tmp_path / "state/it/lock"))
    return r


def opened(pid, path):
    try:
        return any(os.readlink(f) == str(path) for f in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def holder(pid, run="0123456789abcdef"):
    start = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    return f"{pid} {start} {run} \n"


def test_a_holder_that_has_not_yet_written_itself_is_no_dead_one(reknit, locked):
    lock, tmp_path = locked
    r = second(reknit, tmp_path)
    lock.write(holder(os.getpid()))
    lock.flush()
    assert r.wait() == 1
    assert f"running already, under reknit process {os.getpid()}" in r.err.text()
    assert not (tmp_path / "ran").exists()


def test_a_dead_holder_whose_lock_another_took_is_not_waited_for(reknit, locked):
    lock, tmp_path = locked
    dead = subprocess.Popen(["sleep", "1000"])
    lock.write(holder(dead.pid))
    lock.flush()
    dead.kill()
    dead.wait()
    r = second(reknit, tmp_path)
    r.err.expect("waiting for its processes to end")
    os.pwrite(lock.fileno(), holder(os.getpid()).encode(), 0)
    assert r.wait() == 1
    assert f"running already, under reknit process {os.getpid()}" in r.err.text()
    assert not (tmp_path / "ran").exists()


def test_a_dead_holder_is_waited_for_until_its_processes_are_gone(reknit, locked):
    lock, tmp_path = locked
    r = second(reknit, tmp_path)
    r.err.expect("waiting for its processes to end")  # nameless for too long
    fcntl.flock(lock, fcntl.LOCK_UN)
    assert r.wait() == 0
    assert (tmp_path / "ran").exists()


# A journal that cannot be used


def in_the_way(path, how):
    path.parent.mkdir(parents=True)
    if how == "folder":
        path.mkdir()
    elif how == "fifo":
        os.mkfifo(path)
    elif how == "device":
        path.symlink_to("/dev/null")
    elif how == "letter":
        path.write_text("This is a letter and no journal. " * 1000)
    else:
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("create table other (a)")


@pytest.mark.parametrize("how", ["folder", "fifo", "device", "letter", "database"])
def test_what_is_no_journal_can_be_moved_aside_as_advised(reknit, tmp_path, how):
    """The job is not started, and the advice can be pasted, whatever the path looks like."""
    state = tmp_path / "it's; here"
    where = {"cwd": tmp_path, "env": environment(REKNIT_STATE_DIR=str(state))}
    in_the_way(state / "it/journal.db", how)
    result = reknit("run", "--name", "it", "--", "touch", "ran", **where)
    assert result.returncode == 1 and not (tmp_path / "ran").exists()
    assert "was not started" in result.stderr
    advice = re.search(r"^reknit: error:   (\(cd .*\))$", result.stderr, re.MULTILINE)[1]
    subprocess.run(["sh", "-c", advice], check=True)
    assert reknit("run", "--name", "it", "--", "touch", "ran", **where).returncode == 0
    assert (tmp_path / "ran").exists() and (state / "it/unreadable/journal.db").exists()


def test_what_is_no_journal_hides_no_other_job(reknit, tmp_path):
    where = {"cwd": tmp_path, "env": environment(REKNIT_STATE_DIR=str(tmp_path / "state")),
             "timeout": 60}
    assert reknit("run", "--name", "it", "--", "true", **where).returncode == 0
    for how in ("fifo", "device", "folder"):
        in_the_way(tmp_path / "state" / how / "journal.db", how)
        result = reknit("replay", how, **where)
        assert result.returncode == 1 and result.stdout == ""
    result = reknit("jobs", **where)
    assert result.returncode == 1 and "\nit " in result.stdout
    assert [how for how in ("fifo", "device", "folder") if f"{how}: " not in result.stderr] == []


def test_replay_takes_a_job_its_folder_or_its_journal(reknit, tmp_path):
    where = {"cwd": tmp_path, "env": environment(REKNIT_STATE_DIR=str(tmp_path / "state"))}
    for name in ("it", "that"):
        assert reknit("run", "--name", name, "--", "true", **where).returncode == 0
    home = tmp_path / "state/it"
    (tmp_path / "it").mkdir()  # a folder of that name that is none of a job
    results = [reknit("replay", what, **where) for what in ("it", home, home / "journal.db")]
    assert {r.returncode for r in results} == {0}
    assert len({r.stdout for r in results}) == 1 and "identical" in results[0].stdout
    lines = reknit("replay", "it", "that", **where).stdout.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["it", "that"]
    latest = reknit("replay", **where)
    assert latest.returncode == 0 and latest.stdout.startswith("that: ")


def test_replay_of_nothing_says_what_makes_something(reknit, tmp_path):
    result = reknit("replay", env=environment(REKNIT_STATE_DIR=str(tmp_path)))
    assert result.returncode == 1 and "no jobs yet" in result.stderr


def test_replay_speaks_of_journals_not_of_its_database(reknit, tmp_path):
    other = tmp_path / "other"
    other.write_text("This is a letter and no journal, and it is long enough to be one. " * 40)
    where = {"cwd": tmp_path, "env": environment(REKNIT_STATE_DIR=str(tmp_path / "state"))}
    for what, words in ((other, "this is not a journal"), ("nothing", "neither a journal nor a job"),
                        (tmp_path, "neither a journal nor a job")):
        result = reknit("replay", what, **where)
        assert result.returncode == 1 and result.stdout == ""
        assert words in result.stderr and str(what) in result.stderr
        assert "database" not in result.stderr and "I/O" not in result.stderr


def test_long_evidence_goes_on_below_itself(reknit, tmp_path):
    where = {"cwd": tmp_path, "env": environment(REKNIT_STATE_DIR=str(tmp_path / "state"))}
    script = ("echo 'Traceback (most recent call last):' >&2;"
              "echo '  File \"t.py\", line 1, in <module>' >&2;"
              f"echo \"ModuleNotFoundError: No module named 'x' {'and more words ' * 12}\" >&2; exit 1")
    reknit("run", "--name", "it", "--", "sh", "-c", script, **where)
    lines = reknit("explain", "it", **where).stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(" " * 14 + "ModuleNotFound"))
    assert lines[first + 1].startswith(" " * 14) and lines[first + 1][14] != " "
    assert max(map(len, lines[first:first + 2])) <= 100
