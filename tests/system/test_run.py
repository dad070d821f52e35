# SPDX-License-Identifier: Apache-2.0
"""`reknit run` with real processes: output, exit status, signals, process trees, restarts."""

import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import uuid

import pytest

from running import FAST_POLICY, PATIENCE, Run, await_end, await_ends, kill_quietly, marked, until

HERE = pathlib.Path(__file__).parent
TRAINER = HERE / "trainer.py"


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(FAST_POLICY)
    return path


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def run(reknit, state, policy):
    """Starts `reknit run --name job ...`; nothing of it outlives the test."""
    runs = []
    mark = f"REKNIT_TEST_MARK={uuid.uuid4()}"

    def start(*args, name="job", options=(), **kwargs):
        env = dict([mark.split("=")], **kwargs.pop("env", {}))
        r = Run(reknit.path, "--name", name, "--policy", policy, *options, "--", *args,
                state=state, env=env, **kwargs)
        runs.append(r)
        return r

    start.mark = mark
    yield start
    for r in runs:
        r.kill()
    for pid in marked(mark):
        kill_quietly(pid)


@pytest.fixture
def verb(reknit, state):
    def call(*args, **kwargs):
        return reknit(*args, env={**os.environ, "REKNIT_STATE_DIR": str(state)}, **kwargs)

    return call


@pytest.fixture
def replays(verb, state):
    """The journal of a job replays to the same decisions."""

    def check(name="job"):
        result = verb("replay", state / name / "journal.db")
        assert result.returncode == 0, result.stdout + result.stderr
        assert "identical" in result.stdout

    return check


WRONG_PATTERN = """
signatures:
  - id: site.broken
    role: root
    cause: storage
    blame: none
    confidence: 80
    patterns: ['the array (is gone']
    source: 'this test'
    examples:
      match: ['the array (is gone']
"""


def sh(script):
    return "sh", "-c", script


@pytest.mark.parametrize("spare", range(0, 16))
def test_a_restart_that_cannot_be_launched_is_tried_again(run, spare, tmp_path, replays):
    """Wherever the open files run out: no crash of ours, and the job goes on when they are back."""
    r = run(*sh(f"echo ready; test -e {tmp_path}/ran && exit; touch {tmp_path}/ran; read line; exit 3"),
            stdin=subprocess.PIPE)
    r.out.expect("ready")
    soft, hard = resource.prlimit(r.pid, resource.RLIMIT_NOFILE)
    highest = max(int(f.name) for f in pathlib.Path(f"/proc/{r.pid}/fd").iterdir())
    resource.prlimit(r.pid, resource.RLIMIT_NOFILE, (highest - 6 + spare, hard))
    r.process.stdin.close()
    r.err.expect("could not be started|attempt 2 starts|cannot be started")
    resource.prlimit(r.pid, resource.RLIMIT_NOFILE, (soft, hard))
    assert r.wait() in (0, 75)
    assert "AddressSanitizer" not in r.err.text()
    replays()


def test_a_journal_that_was_thinned_out_says_so(run, verb, state, replays):
    """What is whole of it is judged again; before that nothing can be, and that is no difference."""
    r = run(*sh('for i in 1 2 3; do echo "step $i/9 | loss 1.0"; sleep 0.6; done; test -e again && exit; touch again; exit 3'),
            cwd=state.parent)
    assert r.wait() == 0
    replays()
    journal = state / "job" / "journal.db"
    with contextlib.closing(sqlite3.connect(journal)) as db, db:
        upto, = db.execute("SELECT seq FROM event WHERE kind = 'attempt-started' AND attempt = 2").fetchone()
        db.execute("UPDATE thinned SET upto = ?", (upto,))
        gone = db.execute("DELETE FROM event WHERE seq < ? AND kind IN ('signal', 'tick')", (upto,)).rowcount
        db.execute("UPDATE thinned SET deleted = ?", (gone,))
        judged, = db.execute("SELECT min(seq) FROM event WHERE seq > ? AND kind = 'verdict'", (upto,)).fetchone()
    assert gone > 0
    said = verb("replay", "job")
    assert said.returncode == 0 and "identical\n" in said.stdout, said.stdout + said.stderr
    assert f"of the events up to {upto}, {gone} are gone" in said.stdout
    told = json.loads(verb("replay", "--format", "json", "job").stdout)
    assert told["identical"] is True and told["thinned"] == {"upto": upto, "gone": gone}
    assert 0 < told["derived"] < upto
    with contextlib.closing(sqlite3.connect(journal)) as db, db:
        db.execute("DROP TRIGGER IF EXISTS event_no_update")
        body, = db.execute("SELECT body FROM event WHERE seq = ?", (judged,)).fetchone()
        db.execute("UPDATE event SET body = ? WHERE seq = ?", (json.dumps({**json.loads(body), "confidence": 1}), judged))
    said = verb("replay", "job")
    assert said.returncode == 1 and f"event {judged} differs" in said.stdout and f"{gone} are gone" in said.stdout


# Output and status


def test_output_passes_unchanged_and_apart(run, replays):
    r = run(*sh("printf 'out\\t1\\n\\033[1mbold\\033[0m no newline'; printf 'err' >&2"))
    assert r.wait() == 0
    assert r.out.text() == "out\t1\n\033[1mbold\033[0m no newline"
    assert "err" in r.err.lines  # and nothing of ours in that line
    assert "out\t1" not in r.err.text()
    replays()


def test_binary_output_is_unchanged(reknit, state, tmp_path):
    data = bytes(range(256)) * 4000
    (tmp_path / "data").write_bytes(data)
    result = reknit("run", "--quiet", "--name", "job", "--", "cat", tmp_path / "data",
                    env={**os.environ, "REKNIT_STATE_DIR": str(state)}, text=False)
    assert result.stdout == data
    assert (state / "job/run-1/attempt-1.log").read_bytes() == data


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_stream_leaves_its_number_to_no_file(reknit, state, policy, tmp_path, closed):
    seen = tmp_path / "seen"
    job = 'keeper=$PPID; reknit=$(cut -d" " -f4 /proc/$keeper/stat); readlink /proc/$reknit/fd/$1 >$2'
    start = f'exec {closed}>&-; exec "$@"'
    subprocess.run(
        ["bash", "-c", start, "bash", reknit.path, "run", "--policy", policy, "--name", "job", "--"]
        + ["sh", "-c", job, "sh", str(closed), seen],
        env={**os.environ, "REKNIT_STATE_DIR": str(state)},
        check=True,
        timeout=60,
    )
    assert seen.read_text() == "/dev/null\n"


def test_order_is_kept_when_both_streams_go_to_one_place(reknit, state):
    script = "i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done"
    result = reknit("run", "--quiet", "--name", "job", "--", *sh(script), capture_output=False,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    env={**os.environ, "REKNIT_STATE_DIR": str(state)})
    assert result.stdout.split("\n")[:-1] == [f"{s} {i}" for i in range(300) for s in ("out", "err")]


def test_output_comes_at_once(run):
    r = run(*sh("echo first; read line; echo got $line"), stdin=subprocess.PIPE)
    r.out.expect("^first$")
    r.process.stdin.write("hello\n")
    r.process.stdin.flush()
    r.out.expect("^got hello$")
    assert r.wait() == 0


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_exit_status_of_a_requested_end_is_the_jobs(run, status):
    r = run(*sh(f"trap 'exit {status}' INT; echo ready; sleep 1000 & wait"))
    r.out.expect("ready")
    os.kill(r.pid, signal.SIGINT)
    assert r.wait() == status


@pytest.mark.parametrize("where", ["/no/such/command", "no-such-command", ""])
def test_a_command_that_is_not_there_leaves_no_job(run, verb, state, where):
    r = run(where)
    assert r.wait() == 127
    assert r.err.lines == [f"reknit: error: cannot run '{where}': No such file or directory"]
    assert not state.exists() and "no jobs yet" in verb("jobs").stdout


@pytest.mark.parametrize("what", ["a-file", "a-folder"])
def test_a_command_that_may_not_be_run_leaves_no_job(run, state, tmp_path, what):
    (tmp_path / "a-file").write_text("no program")
    (tmp_path / "a-folder").mkdir()
    for command, env in ((tmp_path / what, {}), (what, {"PATH": f"{tmp_path}:/bin"})):
        r = run(command, env=env)
        assert r.wait() == 126
        assert "Permission denied" in r.err.text() and len(r.err.lines) == 1
    assert not state.exists()


def test_a_command_of_the_path_is_found_as_execvp_does(run, tmp_path):
    """A file that may not be run does not hide one that may in a later folder."""
    (tmp_path / "true").write_text("no program")
    assert run("true", env={"PATH": f"{tmp_path}:/bin"}).wait() == 0


def test_a_launcher_that_gave_up_is_not_started_again(run, verb, replays):
    """NVRx says so by its exit status."""
    r = run("sh", "-c", "echo step 1 loss 2.0; exit 93")
    assert r.wait() == 75  # another try is pointless
    assert "attempt 2" not in r.err.text()
    told = verb("explain", "job").stdout
    assert "by the rule 'told-to-stop'" in " ".join(told.split()), told
    replays()


def test_a_command_whose_interpreter_is_missing(run, verb, replays, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    for _ in range(2):  # what a run before was is nothing to the next
        r = run(script)
        assert r.wait() == 127
        assert f"cannot run '{script}': No such file or directory" in r.err.text()
        assert "attempt 2" not in r.err.text()
        told = verb("explain", "job").stdout
        assert "exit status 127" in told and "hopeless" in told
        assert "signal 0" not in told and "cancelled" not in told
        replays()


def test_the_folder_of_the_logs_is_made(run, tmp_path):
    r = run("echo", "hello", options=("--log-dir", tmp_path / "new/logs"))
    assert r.wait() == 0
    assert (tmp_path / "new/logs/job.run-1.attempt-1.log").read_text() == "hello\n"


def test_no_folder_for_the_logs_is_known_before_anything_is_journaled(run, state, tmp_path):
    (tmp_path / "file").touch()
    r = run("true", options=("--log-dir", tmp_path / "file/logs"))
    assert r.wait() == 1
    assert "Not a directory" in r.err.text() and "kept in" not in r.err.text()
    assert not (state / "job/journal.db").exists()


def test_a_folder_of_the_logs_that_goes_away_ends_no_job(run, verb, tmp_path, replays):
    logs = tmp_path / "logs"
    script = f"[ $REKNIT_ATTEMPT = 2 ] && echo second && exit 0; rm -r {logs}; touch {logs}; exit 3"
    r = run(*sh(script), options=["--log-dir", logs])
    assert r.wait() == 0 and r.out.find("second") is not None
    assert r.err.find("attempt-2.log cannot be written \\(Not a directory\\)") is not None
    assert r.err.find("7 bytes of the output are missing in .*attempt-2.log") is not None
    replays()


def test_a_first_attempt_that_cannot_start_is_not_told_as_killed(run, verb, replays, tmp_path):
    logs = tmp_path / "logs"
    (logs / "job.run-1.attempt-1.log").mkdir(parents=True)
    r = run("true", options=("--log-dir", logs))
    assert r.wait() == 1
    assert "Is a directory" in r.err.text()
    jobs = verb("jobs").stdout
    assert "killed" not in jobs and "signal 0" not in verb("explain", "job").stdout
    replays()
    r = run("true", options=("--log-dir", logs))
    assert r.wait() == 0
    assert "was killed" not in r.err.text()


def test_a_reader_that_goes_away_does_not_end_the_job(reknit, state, replays):
    script = "echo first; read line; echo second; echo third"
    r = subprocess.Popen(
        [reknit.path, "run", "--name", "job", "--", *sh(script)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "REKNIT_STATE_DIR": str(state)})
    assert r.stdout.readline() == "first\n"
    r.stdout.close()
    r.stdin.close()  # only now the job goes on
    assert r.stderr.read().count("nobody reads the job's output any more") == 1
    assert r.wait(PATIENCE) == 0
    r.stderr.close()
    assert (state / "job/run-1/attempt-1.log").read_text() == "first\nsecond\nthird\n"
    replays()


def test_a_wrong_pattern_is_known_before_the_job_starts(run, state, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "own.yaml").write_text(WRONG_PATTERN)
    r = run("touch", tmp_path / "ran", options=("--catalog", own))
    assert r.wait() == 1
    assert "site.broken" in r.err.text() and "blame" not in r.err.text()
    assert not (tmp_path / "ran").exists() and not (state / "job/journal.db").exists()


def test_usage_errors(verb):
    for args in ([], ["--name", "../x", "--", "true"], ["--format", "xml", "--", "true"],
                 ["--frobnicate"], ["--log-limit", "12", "true"]):
        result = verb("run", *args)
        assert result.returncode == 2, args
        assert "Try 'reknit run --help'" in result.stderr


def test_environment_of_the_job(run):
    r = run(*sh('echo "$REKNIT_ATTEMPT $REKNIT_RESTART_COUNT $REKNIT_RUN"; '
                '[ "$REKNIT_RESTART_COUNT" = 1 ]'))
    assert r.wait() == 0
    first, second = (line.split() for line in r.out.text().split("\n"))
    assert first[:2] == ["1", "0"] and second[:2] == ["2", "1"]
    assert first[2] == second[2] and re.fullmatch("[0-9a-f]{16}", first[2])


def test_descriptors_and_signals_are_handed_down_untouched(run):
    """The job sees what it would see without us: its descriptors, its signal mask."""
    show = "ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status"
    plain = subprocess.run(sh(show), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    r = run(*sh(show))
    assert r.wait() == 0
    assert r.out.text().split("\n") == plain.stdout.rstrip("\n").split("\n")


def test_an_inherited_descriptor_reaches_the_job(run):
    ours, theirs = os.pipe()
    r = run("bash", "-c", f"echo through >&{theirs}", pass_fds=[theirs])
    os.close(theirs)
    assert r.wait() == 0
    assert os.read(ours, 100) == b"through\n"
    os.close(ours)


def test_the_summary_as_json(run):
    r = run(*sh("echo 'step 1/2 | loss 1'; [ $REKNIT_ATTEMPT = 2 ] || exit 4"),
            options=["--format", "json"])
    assert r.wait() == 0
    summary = json.loads(r.err.lines[-1])
    assert summary["exit_status"] == 0 and summary["state"] == "done"
    assert [a["exit_code"] for a in summary["attempts"]] == [4, 0]
    assert not r.err.find("goodput \\d+ %")


@pytest.mark.parametrize("how", ["no command", "no folder for logs", "no journal"])
def test_a_job_that_does_not_start_has_a_result_too(run, state, tmp_path, how):
    options, command, status = ["--format", "json"], "true", 1
    if how == "no command":
        command, status = "/no/such/command", 127
    elif how == "no folder for logs":
        (tmp_path / "file").touch()
        options += ["--log-dir", tmp_path / "file/logs"]
    else:
        (state / "job/journal.db").mkdir(parents=True)
    r = run(command, options=options)
    assert r.wait() == status
    result = json.loads(r.err.lines[-1])
    assert result["exit_status"] == status and result["job"] == "job" and result["error"]
    assert result["goodput"] is None and result["error"] in r.err.text()


def test_the_command_is_told_as_a_shell_would_take_it(run, verb):
    command = ["printf", "%s.", "it's", "a b", "", "--lr=1e-4", "$HOME"]
    r = run(*command)
    assert r.wait() == 0
    told = json.loads(verb("explain", "--format", "json", "job").stdout)["command"]
    assert told == """printf %s. 'it'\\''s' 'a b' '' --lr=1e-4 '$HOME'"""


def test_confidence_is_a_share_everywhere(run, verb, policy):
    policy.write_text(FAST_POLICY.replace("max_restarts: 1000", "max_restarts: 0"))
    r = run(*sh("exit 1"), options=["--format", "json"])
    assert r.wait() == 75
    texts = [r.err.lines[-1], *(verb(v, "--format", "json").stdout for v in ("jobs", "explain"))]
    assert [json.loads(t)["attempts"][0]["verdict"]["confidence"] for t in texts] == [0.3] * 3


def test_without_steps_there_is_no_goodput(run, verb):
    assert run("true").wait() == 0
    assert json.loads(verb("explain", "--format", "json", "job").stdout)["goodput"] is None


# A reader that pauses


@pytest.mark.long
def test_a_reader_that_pauses_does_not_hide_why_the_job_died(reknit, state, policy, replays):
    """The job dies with its last lines in the pipe; the next attempt's come behind them."""
    script = ("i=0; while [ $i -lt 3000 ]; do echo \"attempt $REKNIT_ATTEMPT line $i "
              "$(printf %60s)\"; i=$((i+1)); done; [ $REKNIT_ATTEMPT = 2 ] && exit 0; "
              "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.'; exit 1")
    r = subprocess.Popen(
        [reknit.path, "run", "--name", "job", "--policy", policy, "--", *sh(script)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "REKNIT_STATE_DIR": str(state)})
    told = next(line for line in r.stderr if "attempt 1 crashed" in line)
    assert "gpu-oom" in told  # and nothing was read from its output yet
    lines = r.stdout.read().splitlines()
    r.stderr.read()
    assert r.wait(PATIENCE) == 0
    r.stdout.close(), r.stderr.close()
    assert [line.split()[1] for line in lines if " line " in line] == ["1"] * 3000 + ["2"] * 3000
    assert len(lines) == 6001
    replays()


# Restarts


@pytest.mark.long
def test_a_crash_is_restarted_from_the_checkpoint(run, verb, replays, tmp_path):
    r = run(TRAINER, "--dir", tmp_path / "job", "--steps", 30, "--fail-at", 17, "--step-ms", 1)
    assert r.wait() == 0
    assert "resuming from checkpoint" in r.out.text()
    assert r.err.find("attempt 1 crashed") is not None
    assert r.err.find(r"goodput \d+ %") is not None
    assert not (tmp_path / "job/violations").exists()
    replays()
    job = json.loads(verb("jobs", "--format", "json").stdout)
    assert (job["state"], len(job["attempts"]), job["attempts"][1]["last_step"]) == ("done", 2, 30)
    assert 0 < job["goodput"] < 1
    told = verb("explain", "job").stdout
    assert "attempt 2" in told and "something broke" in told


def test_a_job_that_advances_is_restarted_as_often_as_it_takes(run, replays, tmp_path):
    r = run(TRAINER, "--dir", tmp_path / "job", "--steps", 60, "--fail-every", 10, "--step-ms", 1)
    assert r.wait() == 0
    assert len((tmp_path / "job/attempts").read_text().split()) == 7
    replays()


def test_an_import_error_is_stopped_after_one_retry_at_most(run, verb, replays):
    r = run(*sh("echo 'Traceback (most recent call last):' >&2;"
                "echo '  File \"train.py\", line 1, in <module>' >&2;"
                "echo \"ModuleNotFoundError: No module named 'torchh'\" >&2; exit 1"),
            options=["--policy", "/dev/null"])
    assert r.wait() == 75
    job = json.loads(verb("jobs", "--format", "json").stdout)
    assert job["state"] == "stopped" and len(job["attempts"]) <= 2
    assert job["attempts"][0]["verdict"]["cause"] in ("user-config", "user-code")
    replays()


def test_a_hang_is_found_and_ended(run, verb, replays, tmp_path):
    """Rank 1 is stopped; the others wait for it in silence."""
    r = run(TRAINER, "--dir", tmp_path / "job", "--steps", 30, "--stop-at", 15, "--step-ms", 20)
    assert r.wait() == 0
    assert r.err.find("attempt 1 hangs") is not None
    assert not (tmp_path / "job/violations").exists()
    job = json.loads(verb("jobs", "--format", "json").stdout)
    assert job["attempts"][0]["verdict"]["class"] == "hang"
    assert job["attempts"][1]["last_step"] == 30
    assert list((pathlib.Path(job["attempts"][0]["log"]).parent).glob("*.inspect-*"))
    replays()


def test_nothing_of_the_last_attempt_is_alive_when_the_next_starts(run, tmp_path):
    """A daemon that left session and parent, ranks that ignore TERM, a port that is taken."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    r = run(TRAINER, "--dir", tmp_path / "job", "--steps", 20, "--fail-at", 7, "--step-ms", 1,
            "--port", port, "--ignore-term")
    assert r.wait() == 0
    assert not (tmp_path / "job/violations").exists()
    assert len((tmp_path / "job/daemons").read_text().split()) == 2
    assert marked(run.mark) == []


# What the runs before left


def grow(journal, mib):
    """Steps, as a run of days writes them; its end is missing, as after a kill."""
    with contextlib.closing(sqlite3.connect(journal)) as db:
        last = list(db.execute("SELECT seq, time_us, body FROM event WHERE kind = 'signal' ORDER BY seq"))[-1]
        seq, body = db.execute("SELECT max(seq) FROM event").fetchone()[0], json.loads(last[2])
        rows = []
        for i in range(mib * 5000):
            body["step"]["step"] = i + 1
            rows.append((seq + i + 1, last[1] + i, json.dumps(body)))
        db.executemany("INSERT INTO event VALUES (?, 0, ?, 'signal', 'job', 1, ?)", rows)
        db.commit()
    return len(rows)


def test_a_journal_that_has_grown_large_is_put_aside(run, verb, replays, state):
    """Beginning reads the journal: that must not take longer with every run."""
    r = run(*sh("echo 'step 1/9 | loss 1'; read line"), stdin=subprocess.PIPE)
    r.out.expect("step 1")
    until(lambda: '"last_step": 1' in json.dumps(json.loads(verb("jobs", "--format", "json").stdout)))
    r.kill()
    steps = grow(state / "job/journal.db", 20)
    r = run("true")
    assert r.wait() == 0
    assert "was killed" in r.err.text() and f"in attempt 1, after step {steps}" in r.err.text()
    assert (state / "job/journal.db").stat().st_size < 1 << 20
    assert (state / "job/run-1/journal.db").stat().st_size > 16 << 20
    assert not (state / "job/run-1/journal.db-wal").exists()
    with contextlib.closing(sqlite3.connect(state / "job/journal.db")) as db:
        learned = json.loads(db.execute("SELECT body FROM event WHERE kind = 'learned'").fetchone()[0])
    assert learned["n"] >= 5 and learned["first_step"] > 0
    replays()


def test_a_killed_run_is_told_until_it_was_killed(run, verb, state):
    r = run(*sh("echo 'step 1/9 | loss 1'; read line"), stdin=subprocess.PIPE)
    r.out.expect("step 1")
    assert "running" in verb("explain", "job").stdout
    keeper = r.keeper()
    r.kill()
    await_end(keeper)
    when = r"until reknit was killed about \d{4}-\d\d-\d\dT[\d:.]+Z\n"
    for number in ("1", "1"):  # also when the next run has found out, and told the journal
        told = verb("explain", "--run", number, "job").stdout
        assert re.search(when, told) and "running" not in told and "exit status" not in told
        assert run("true").wait() == 0


@pytest.mark.parametrize("where", ["start", "end"])
def test_what_a_damaged_journal_lost_is_told(run, verb, state, where):
    """Nothing of it passes as never having been: neither before nor after the next run."""
    r = run(*sh("echo 'step 1/9 | loss 1'; read line"), stdin=subprocess.PIPE)
    r.out.expect("step 1")
    keeper = r.keeper()
    r.kill()
    await_end(keeper)
    wal = state / "job/journal.db-wal"
    with wal.open("r+b") as f:
        f.seek(*((2000, 0) if where == "start" else (-100, 2)))
        f.write(b"XXXX")

    def check():
        jobs, explain = verb("jobs"), verb("explain", "job")
        assert jobs.returncode == 1 and re.search(r"job: \d+ entr.* lost", jobs.stderr)
        assert "lost" in " ".join((explain.stdout + explain.stderr).split())
        replay = verb("replay", "job")
        assert replay.returncode == 1 and "lost" in replay.stderr

    check()
    r = run("true")
    r.err.expect("of the journal")
    assert r.wait() == 0
    check()
    assert json.loads(verb("explain", "--format", "json", "job").stdout)["lost_events"] > 0


@pytest.fixture
def one_attempt(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text("max_restarts: 0\n")
    return path


@pytest.mark.long
def test_every_run_that_is_kept_can_be_explained(run, verb, state, one_attempt):
    for number in range(1, 5):
        assert run(*sh(f"exit {number if number < 3 else 0}"),
                   options=["--quiet", "--policy", one_attempt]).wait() in (0, 75)
        if number == 2:  # as a journal that has grown large
            (state / "job/journal.db").rename(state / "job/run-2/journal.db")
    for number in range(1, 5):
        result = verb("explain", "--run", number, "--format", "json", "job")
        told = json.loads(result.stdout)
        assert told["run"] == number and f"/run-{number}/" in told["attempts"][0]["log"]
        assert told["attempts"][0]["exit_code"] == (number if number < 3 else 0)
    result = verb("explain", "--run", 9, "job")
    assert result.returncode == 1 and "no run 9" in result.stderr
    assert "explain --run 3 job" in verb("explain", "job").stdout


@pytest.mark.long
def test_jobs_come_newest_first_and_fit(run, verb, one_attempt):
    names = ["c" * 24, "a", "b"]
    for name in names:
        assert run(*sh("echo torch.OutOfMemoryError: CUDA out of memory. Tried; exit 1"), name=name,
                   options=["--policy", one_attempt, "--quiet"]).wait() == 75
    lines = verb("jobs").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["job", *reversed(names)]
    assert max(map(len, lines)) <= 80 and all("gpu-oom" in line for line in lines[1:])
    told = [json.loads(line)["job"] for line in verb("jobs", "--format", "json").stdout.splitlines()]
    assert told == names[::-1]


def cgroups(run_id):
    return [m for m in pathlib.Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in m
            for m in pathlib.Path(m.split()[1]).rglob(f"reknit-{run_id}")]


def test_no_cgroup_is_left_by_a_run_that_was_killed(run, state):
    r = run(*sh("echo $REKNIT_RUN; sleep 1000"))
    r.out.expect(".")
    run_id = r.out.lines[0]
    if not cgroups(run_id):
        pytest.skip("no cgroup can be made here")
    keeper = r.keeper()
    r.kill()
    await_end(keeper)
    assert cgroups(run_id) == []
    r = run(*sh("echo $REKNIT_RUN; sleep 1000"))
    r.out.expect(".")
    run_id, keeper = r.out.lines[0], r.keeper()
    os.kill(r.pid, signal.SIGSTOP)
    kill_quietly(keeper)
    r.kill()
    assert cgroups(run_id) != []
    assert run("true").wait() == 0
    assert cgroups(run_id) == []


# Ending it


def test_a_signal_reaches_the_job_and_it_is_not_restarted(run, verb):
    r = run(*sh("trap 'echo saving; exit 3' TERM; echo ready; sleep 1000 & wait"))
    r.out.expect("ready")
    os.kill(r.pid, signal.SIGTERM)
    assert r.wait() == 3
    assert "saving" in r.out.text()
    job = json.loads(verb("jobs", "--format", "json").stdout)
    assert len(job["attempts"]) == 1


def test_a_job_that_dies_of_the_signal(run):
    r = run("sleep", "1000", options=["--quiet"])
    until(lambda: len(marked(run.mark)) == 3)  # reknit, keeper, sleep
    os.kill(r.pid, signal.SIGINT)
    assert r.wait() == 130


def test_what_a_signal_does_not_end_is_killed_after_the_grace(run, verb):
    """The first process goes on, and so does a daemon outside of its group."""
    r = run(*sh("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1; done' & "
                "while :; do sleep 1; done"))
    r.out.expect("ready")
    os.kill(r.pid, signal.SIGTERM)
    r.err.expect("which has 1.0s to end")
    assert r.wait() == 137
    assert marked(run.mark) == []
    assert "killed by reknit after the grace" in r.err.text()
    assert not re.search(r"reknit: 1 .* SIGKILL ", r.err.text())
    told = verb("explain", "job").stdout
    assert re.search(r"killed by SIGKILL, sent by reknit\s+after the grace", told)
    assert "asked to end it: somebody or the scheduler (SIGTERM)" in told


@pytest.mark.parametrize("word, done", [("", False), ("training finished", True)])
def test_a_job_that_ends_well_on_request_has_lost_nothing(run, verb, replays, word, done):
    r = run(*sh(f"trap 'echo {word}; exit 0' TERM; for i in 1 2 3 4 5 6 7 8; do echo iter $i: loss 2.$i, time 9.1ms; "
                "sleep 0.05; done; echo ready; sleep 1000 & wait"))
    r.out.expect("ready")
    os.kill(r.pid, signal.SIGTERM)
    assert r.wait() == 0
    job = json.loads(verb("jobs", "--format", "json").stdout)
    assert job["state"] == ("done" if done else "stopped")
    assert job["goodput"] > 0
    assert ("on request" in r.err.text()) != done
    replays()


def test_a_traceback_of_ctrl_c_takes_nothing_from_what_reknit_knows(run, verb):
    r = run(*sh("trap 'echo Traceback \\(most recent call last\\):; echo KeyboardInterrupt; exit 130' INT; "
                "echo ready; sleep 1000 & wait"))
    r.out.expect("ready")
    os.kill(r.pid, signal.SIGINT)
    assert r.wait() == 130
    verdict = json.loads(verb("explain", "--format", "json", "job").stdout)["attempts"][0]["verdict"]
    assert (verdict["cause"], verdict["confidence"]) == ("cancelled", 0.95)
    assert "the user (Ctrl-C) ended it" in r.err.text()


def test_a_crash_after_the_last_step_keeps_nothing_and_says_when_it_was(run, policy, verb):
    policy.write_text(FAST_POLICY.replace("max_restarts: 1000", "max_restarts: 0"))
    r = run(*sh("echo step 1/2 loss 2; sleep 0.3; echo step 2/2 loss 1; echo training finished; "
                "echo CUDA out of memory; exit 1"))
    assert r.wait() == 75
    assert "after its work was done (step 2 of 2)" in r.err.text()
    assert "goodput 0 %" in r.err.text()
    attempt = json.loads(verb("explain", "--format", "json", "job").stdout)["attempts"][0]
    assert attempt["useful_s"] == 0


@pytest.mark.parametrize("end, told, cell", [("exit 3", "exit status 3", "3"),
                                             ("kill -SEGV $$", "killed by SIGSEGV", "SIGSEGV")])
def test_how_an_attempt_ended_is_said(run, policy, end, told, cell):
    policy.write_text(FAST_POLICY.replace("max_restarts: 1000", "max_restarts: 0"))
    r = run(*sh(end))
    assert r.wait() == 75
    assert re.search(f"attempt 1 crashed .*{re.escape(told)}: ", r.err.text())
    assert re.search(rf"reknit: 1 .* {cell} .* stop ", r.err.text())


@pytest.mark.parametrize("line", ["step $i/60", "epoch 1 step $i/60", "[$i/60]", "iter $i"])
def test_the_first_steps_of_a_small_loop_count(run, policy, verb, line):
    policy.write_text(FAST_POLICY.replace("max_restarts: 1000", "max_restarts: 0"))
    r = run(*sh(f"for i in 1 2 3; do echo {line}; done; exit 1"))
    assert r.wait() == 75
    assert "after step 3" in r.err.text() and re.search("reknit: 1 +1-3 ", r.err.text())


def test_a_second_signal_ends_everything_at_once(run, policy):
    policy.write_text(FAST_POLICY.replace("kill_grace: 1s", "kill_grace: 1h"))
    r = run(*sh("trap '' INT; (trap '' INT TERM; sleep 1000) & echo ready; wait"))
    r.out.expect("ready")
    os.kill(r.pid, signal.SIGINT)
    r.err.expect("once more ends everything")
    os.kill(r.pid, signal.SIGINT)
    assert r.wait() == 137
    assert marked(run.mark) == []


def pauses(reknit, state, policy, script, options=()):
    """Its output goes into a pipe that nobody reads until the job is long dead."""
    return subprocess.Popen(
        [reknit.path, "run", "--name", "job", "--policy", policy, *options, "--", *sh(script)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "REKNIT_STATE_DIR": str(state)})


@pytest.mark.parametrize("signals", [1, 2])
def test_a_reader_that_pauses_does_not_keep_reknit_alive(reknit, state, policy, signals):
    r = pauses(reknit, state, policy, "head -c 300000 /dev/zero | tr '\\0' x; exec 2>&-; exit 0")
    environment = {**os.environ, "REKNIT_STATE_DIR": str(state)}
    until(lambda: "done" in reknit("jobs", env=environment).stdout)
    assert r.poll() is None
    for _ in range(signals):
        r.send_signal(signal.SIGTERM)
    said = r.stderr.read()
    assert r.wait(PATIENCE) == 0
    taken = len(r.stdout.read())
    assert f"the last {300000 - taken} bytes" in said and taken < 300000
    r.stdout.close(), r.stderr.close()


def signals_of(pid, which):
    """A set of signals from proc(5) status: pending (ShdPnd), blocked (SigBlk), caught (SigCgt)."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    mask = int(re.search(rf"^{which}:\s*([0-9a-f]+)$", text, re.MULTILINE)[1], 16)
    return {n for n in range(1, 65) if mask >> (n - 1) & 1}


def test_two_signals_while_reknit_starts_the_job_are_two(run, policy, tmp_path):
    """It looks at no signals while it compiles its patterns; the job runs already. Two of a kind that
    wait in the kernel meanwhile would be one: so they must not be blocked. What the test itself was
    started with ignored, as a shell does for what it starts in the background, stays ignored."""
    policy.write_text(FAST_POLICY.replace("kill_grace: 1s", "kill_grace: 1h"))
    armed = tmp_path / "armed"  # the job cannot tell it through reknit, which does not listen yet
    r = run(*sh(f"trap '' INT TERM; : > {armed}; while :; do sleep 0.01; done"))
    until(armed.exists)
    ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
    ends -= signals_of(r.pid, "SigIgn") - {signal.SIGTERM}
    assert ends <= signals_of(r.pid, "SigCgt") and not ends & signals_of(r.pid, "SigBlk")
    for _ in range(2):
        os.kill(r.pid, signal.SIGTERM)
        until(lambda: signal.SIGTERM not in signals_of(r.pid, "ShdPnd"))
    assert r.wait() == 137
    assert marked(run.mark) == []


def test_a_signal_while_nothing_runs(run, policy):
    policy.write_text(FAST_POLICY.replace("backoff: 0s, backoff_max: 0s",
                                          "backoff: 100s, backoff_max: 100s"))
    r = run(*sh("exit 4"))
    r.err.expect("restarting in")
    os.kill(r.pid, signal.SIGTERM)
    assert r.wait() == 4


def test_hangup_is_ignored_under_nohup(run):
    r = run(*sh("echo ready; read line; echo $line"), stdin=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    r.out.expect("ready")
    os.kill(r.pid, signal.SIGHUP)
    r.process.stdin.write("still here\n")
    r.process.stdin.close()
    assert r.wait() == 0
    assert "still here" in r.out.text()


def test_usr1_goes_to_the_command(run):
    r = run(*sh("trap 'echo usr1; exit 0' USR1; echo ready; sleep 1000 & wait"))
    r.out.expect("ready")
    os.kill(r.pid, signal.SIGUSR1)
    assert r.wait() == 0
    assert "usr1" in r.out.text()


def test_helpers_may_finish_after_a_good_end(run, tmp_path):
    """An uploader that outlives the command gets the grace to finish, and is not left behind."""
    r = run(*sh(f"(sleep 0.2; echo up > {tmp_path}/uploaded) & (sleep 1000) & echo done"))
    assert r.wait() == 0
    assert (tmp_path / "uploaded").exists()
    assert marked(run.mark) == []


# When reknit or its keeper is killed


def start_trainer(run, tmp_path, **kwargs):
    r = run(TRAINER, "--dir", tmp_path / "job", "--steps", 1000000, "--step-ms", 2, **kwargs)
    r.out.expect(r"^step \d+/")
    return r


def test_the_job_dies_with_reknit(run, verb, replays, tmp_path):
    r = start_trainer(run, tmp_path)
    keeper = r.keeper()
    r.process.kill()
    await_end(keeper)
    await_ends(run.mark)
    replays()
    assert json.loads(verb("jobs", "--format", "json").stdout)["state"] == "killed"
    again = start_trainer(run, tmp_path)
    assert again.err.find("last run of this job was killed") is not None
    assert not (tmp_path / "job/violations").exists()


def test_killing_by_name_does_not_hit_the_keeper(run, tmp_path):
    """What `pkill -9 reknit` and `killall -9 reknit` look at."""
    r = start_trainer(run, tmp_path)
    keeper = pathlib.Path(f"/proc/{r.keeper()}")
    assert "reknit" not in (keeper / "comm").read_text()
    assert b"reknit" not in (keeper / "cmdline").read_bytes()


def test_the_keeper_is_killed(run, replays, tmp_path):
    r = start_trainer(run, tmp_path)
    r.out.expect("saved checkpoint at step 5")
    kill_quietly(r.keeper())
    r.err.expect("keeper process was killed")
    r.out.expect("resuming from checkpoint")
    assert not (tmp_path / "job/violations").exists()
    os.kill(r.pid, signal.SIGINT)
    r.wait()
    assert marked(run.mark) == []
    replays()


def test_the_loss_of_the_keeper_is_no_want_of_memory(run, verb, replays):
    r = run(*sh("[ $REKNIT_ATTEMPT = 1 ] || exit 0; echo 'step 1 loss 1'; kill -9 $PPID; sleep 1000"))
    assert r.wait() == 0
    assert re.search(
        r"keeper process was killed.*, and the job with it; .*\(unknown, ", r.err.text()), r.err.text()
    assert "host-oom" not in r.err.text() + verb("explain", "job").stdout
    replays()


def test_reknit_and_keeper_are_killed_together(run, replays, tmp_path):
    """Then nobody is left to kill the job: the next run does, before it starts anything."""
    r = start_trainer(run, tmp_path)
    keeper = r.keeper()
    os.kill(r.pid, signal.SIGSTOP)
    kill_quietly(keeper)
    r.process.kill()
    r.process.wait()
    again = start_trainer(run, tmp_path)
    again.err.expect("last run of this job was killed")
    assert not (tmp_path / "job/violations").exists()
    os.kill(again.pid, signal.SIGTERM)
    again.wait()
    assert marked(run.mark) == []
    replays()


# A process that writes over its environment, as setproctitle() does, and one below it in a session of
# its own.
FORGETFUL = """
import ctypes, os, time
env = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
i = 0
while env[i]:
    ctypes.memset(env[i], 0, len(ctypes.string_at(env[i])))
    i += 1
if not os.fork():
    os.setsid()
print("forgot", os.getpid(), flush=True)
time.sleep(1000)
"""


def test_what_forgot_where_it_belongs_is_found_too(run, state):
    script = f"/usr/bin/python3 -SEc '{FORGETFUL}' & wait"
    r = run(*sh(script))
    r.out.expect("forgot", r.out.expect("forgot") + 1)
    left = [int(line.split()[1]) for line in r.out.lines if "forgot" in line]
    assert len(left) == 2 and not set(left) & set(marked(run.mark))
    keeper = r.keeper()
    os.kill(r.pid, signal.SIGSTOP)
    kill_quietly(keeper)
    r.kill()
    lock = state / "job/lock"
    fields = lock.read_text().split()
    fields[3] = "-"  # as where no cgroup can be made
    lock.write_text(" ".join(fields) + "\n")
    try:
        again = run("true")
        assert again.wait() == 0
        assert "processes it had left behind were killed now" in again.err.text()
        for pid in left:
            await_end(pid)
    finally:
        for pid in left:
            kill_quietly(pid)


@pytest.mark.parametrize("what", ["lock", "folder"])
def test_without_its_lock_it_starts_nothing_more(run, state, what):
    """Another run of that name may have begun meanwhile, and would not know of this one."""
    r = run(*sh("echo ready; read line; exit 3"), stdin=subprocess.PIPE)
    r.out.expect("ready")
    if what == "lock":
        (state / "job/lock").unlink()
    else:
        (state / "job").rename(state / "gone")
    r.process.stdin.close()
    assert r.wait() == 3
    assert "none is started here" in r.err.text() and "attempt 2 starts" not in r.err.text()


def test_one_name_runs_only_once(run, tmp_path):
    first = start_trainer(run, tmp_path)
    second = run("true")
    assert second.wait() == 1
    assert f"under reknit process {first.pid}" in second.err.text()
    assert "--name" in second.err.text()
    assert run("true", name="other").wait() == 0


def test_the_default_name_tells_commands_apart(reknit, state, tmp_path):
    env = {**os.environ, "REKNIT_STATE_DIR": str(state)}
    for args in (["echo", "a"], ["echo", "b"], ["sh", "-c", ":", "x/train.py"]):
        assert reknit("run", "--quiet", "--", *args, env=env, cwd=tmp_path).returncode == 0
    names = sorted(p.name for p in state.iterdir())
    assert len(names) == 3
    assert [n.rsplit("-", 1)[0] for n in names] == ["echo", "echo", "train.py"]


# What an attempt is told of those before it

DIVERGES = """
step=1; while [ $step -le 6 ]; do echo "step $step loss 2.0"; step=$((step + 1)); done
[ -z "$REKNIT_FAILED_AFTER_STEP" ] || { echo "leaves out what follows $REKNIT_FAILED_AFTER_STEP"; exit 0; }
echo "RuntimeError: Loss is NaN, stopping training" >&2
exit 1
"""


def test_the_same_failure_at_the_same_step_is_told_to_the_job(run, verb, replays):
    r = run(*sh(DIVERGES), env={"REKNIT_FAILED_AFTER_STEP": ""})
    assert r.wait() == 0, r.err.text()
    assert "leaves out what follows 6" in r.out.lines
    attempts = json.loads(verb("explain", "job", "--format", "json").stdout)["attempts"]
    assert [a["decision"]["rule"] for a in attempts] == ["advanced", "same-step", "completed"]
    assert [a["decision"]["after_step"] for a in attempts] == [None, 6, None]
    replays()
