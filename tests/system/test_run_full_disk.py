# SPDX-License-Identifier: Apache-2.0
"""The state folder is full: the job must not notice, and reknit must say that it stopped acting."""

import os
import re
import subprocess
import uuid

import pytest

from running import FAST_POLICY, Run, kill_quietly, marked


@pytest.fixture
def disk(tmp_path):
    """A file system of 512 KiB; only root can make one."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(path)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs root and the right to mount")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture
def start(reknit, tmp_path):
    mark = f"REKNIT_TEST_MARK={uuid.uuid4()}"
    policy = tmp_path / "policy.yaml"
    policy.write_text(FAST_POLICY)
    runs = []

    def run(script, state, **kwargs):
        runs.append(Run(reknit.path, "--name", "job", "--policy", policy, "--", "sh", "-c", script,
                        state=state, env=dict([mark.split("=")]), stdin=subprocess.PIPE, **kwargs))
        return runs[-1]

    yield run
    for r in runs:
        r.kill()
        r.process.stdin.close()
    for pid in marked(mark):
        kill_quietly(pid)


def fill(disk):
    with open(disk / "filler", "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass


STEPS = """
i=0
while [ $i -lt 40 ]; do i=$((i+1)); echo "step $i/40 | loss 1.0"; sleep 0.1; done
"""


def test_the_job_goes_on_and_its_end_is_told(start, disk):
    r = start(f"echo ready; read line; {STEPS} exit 3", disk / "state")
    r.out.expect("ready")
    fill(disk)
    r.process.stdin.write("go\n")
    r.process.stdin.flush()
    r.err.expect("the journal cannot be written .*full")
    r.err.expect("the log .* cannot be written")
    assert r.wait() == 3  # not restarted
    assert r.err.find("it is not restarted") is not None
    assert r.err.find(r"[0-9]+ bytes of the output are missing in .*attempt-1\.log") is not None
    assert r.out.find("step 40/40") is not None


def test_it_acts_again_when_there_is_room(start, disk):
    r = start(f"[ $REKNIT_ATTEMPT = 1 ] || exit 0; echo ready; read line; {STEPS} read line; exit 3",
              disk / "state")
    r.out.expect("ready")
    fill(disk)
    r.process.stdin.write("go\n")
    r.process.stdin.flush()
    r.err.expect("the journal cannot be written")
    r.out.expect("step 40/40")
    (disk / "filler").unlink()
    r.err.expect("can be written again")
    r.process.stdin.write("fail\n")
    r.process.stdin.flush()
    assert r.wait() == 0  # restarted


def test_the_replay_agrees_after_a_full_disk(start, disk, reknit):
    test_it_acts_again_when_there_is_room(start, disk)
    result = reknit("replay", disk / "state/job/journal.db")
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_full_disk_at_the_start_is_an_error(start, disk):
    fill(disk)
    r = start("echo never", disk / "state")
    assert r.wait() == 1
    assert "No space left" in r.err.text() or "full" in r.err.text()
    assert r.out.text() == ""


@pytest.mark.parametrize("pages", [0, 4, 8, 9, 10, 12, 16, 24])
def test_with_little_room_it_runs_to_its_end_or_not_at_all(start, disk, pages):
    """Wherever the room runs out: a job that was started is not ended for it."""
    assert start("exit 0", disk / "state").wait() == 0
    fill(disk)
    os.truncate(disk / "filler", os.path.getsize(disk / "filler") - pages * 4096)
    r = start("sleep 0.3; echo ended", disk / "state")
    status = r.wait()
    if status == 0:
        assert r.out.text() == "ended"
        return
    assert status == 1 and r.out.text() == ""
    assert "was not started; make room" in r.err.text() and "REKNIT_STATE_DIR" in r.err.text()


def test_a_folder_that_is_read_only(start, disk, reknit):
    assert start("exit 0", disk / "state").wait() == 0
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    r = start("echo never", disk / "state")
    assert r.wait() == 1 and r.out.text() == ""
    assert "Read-only" in r.err.text() and "a folder that you can write to" in r.err.text()


def test_a_limit_on_file_sizes_does_not_end_reknit(start, tmp_path):
    """The same without root: SIGXFSZ is what a program gets then."""
    import resource

    r = start(f"ulimit -S -f unlimited; {STEPS} exit 3", tmp_path / "state",
              preexec_fn=lambda: resource.setrlimit(
                  resource.RLIMIT_FSIZE, (56000, resource.RLIM_INFINITY)))
    assert r.wait() == 3
    assert r.err.find("cannot be written") is not None
    assert r.out.find("step 40/40") is not None


@pytest.fixture
def kept(reknit, tmp_path):
    """Runs a script whose standard output goes to a file; its status and what reknit said."""

    def call(script, out):
        with open(out, "wb", buffering=0) as f:
            r = subprocess.run(
                [str(reknit.path), "run", "--name", "job", "--", "sh", "-c", script], stdout=f,
                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=60,
                env={**os.environ, "REKNIT_STATE_DIR": str(tmp_path / "state")})
        return r.returncode, r.stderr

    return call


def test_output_that_a_file_does_not_take_is_said_and_counted(kept):
    status, said = kept("echo hi; sleep 0.2; echo there", "/dev/full")
    assert status == 0
    assert len(re.findall(r"cannot be written to standard output \(No space left", said)) == 1
    assert re.search(r"\b9 bytes of the output could not be passed on; see .*attempt-1\.log", said)


def test_output_goes_on_once_there_is_room(kept, disk):
    """Every byte is in the file or counted, and what comes later is in the file again."""
    fill(disk)
    with open(disk / "filler", "r+b") as f:
        f.truncate(os.path.getsize(disk / "filler") - 100 * 4096)
    status, said = kept(f"seq 1 100000; sleep 0.2; rm {disk}/filler; echo last", disk / "out")
    missing = int(re.search(r"\b([0-9]+) bytes of the output could not be passed on", said)[1])
    assert status == 0
    assert os.path.getsize(disk / "out") + missing == 588895 + len("last\n")
    assert (disk / "out").read_text().endswith("last\n")


FULL_THEN_FAIL = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo \"step $i loss 1\"; sleep 0.03; done; " \
    "echo 'RuntimeError: boom'; exit 3"


def test_no_decision_is_told_that_is_not_in_the_journal(start, disk, reknit):
    r = start(f"echo ready; read line; {FULL_THEN_FAIL}", disk / "state")
    r.out.expect("ready")
    fill(disk)
    r.process.stdin.write("go\n")
    r.process.stdin.flush()
    assert r.wait() == 3
    said = r.err.text()
    assert "restarting" not in said
    assert said.count("attempt 1 crashed") == 1
    state = disk / "state"
    (disk / "filler").unlink()
    told = reknit("explain", "job", env={**os.environ, "REKNIT_STATE_DIR": str(state)}).stdout
    assert "stopped, exit status 3" in told
    assert reknit("replay", state / "job/journal.db").returncode == 0


@pytest.mark.parametrize("room", [True, False])
def test_a_run_that_ended_on_a_full_disk_is_not_told_as_killed(start, disk, reknit, room):
    """With the room that was kept its end is recorded; without, that it did end is known."""
    state = disk / "state"
    r = start("echo ready; read line; echo 'step 10 loss 1'; exit 0", state)
    r.out.expect("ready")
    if not room:
        (state / "job/room").unlink()
    fill(disk)
    r.process.stdin.write("go\n")
    r.process.stdin.flush()
    assert r.wait() == 0
    assert ("could not be recorded" in r.err.text()) == (not room)
    assert ("not recorded" in r.err.text()) == (not room)
    (disk / "filler").unlink()
    jobs = reknit("jobs", env={**os.environ, "REKNIT_STATE_DIR": str(state)}).stdout
    assert re.search("job +" + ("done" if room else "unrecorded") + " ", jobs)
    again = start("exit 0", state)
    assert again.wait() == 0
    assert "killed" not in again.err.text()
    assert ("its end could not be recorded" in again.err.text()) == (not room)


def test_a_limit_on_file_sizes_that_leaves_no_room_for_a_journal(start, tmp_path):
    import resource

    r = start("echo never", tmp_path / "state",
              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
    assert r.wait() == 1 and r.out.text() == ""
    assert "File too large" in r.err.text() and "ulimit -f" in r.err.text()


def test_the_job_gets_the_usual_disposition_for_large_files(start, tmp_path):
    r = start("trap - XFSZ; grep SigIgn /proc/self/status", tmp_path / "state")
    assert r.wait() == 0
    assert int(r.out.text().split()[1], 16) & 1 << 24 == 0
