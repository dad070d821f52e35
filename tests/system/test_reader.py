# SPDX-License-Identifier: Apache-2.0
"""reknit-reader: whatever may happen to a log, what is written into it is told, once."""

import os
import pathlib
import re
import shutil
import socket
import stat
import subprocess

import pytest

import running
from reading import JOB, READER, Reader, error, now_us, write

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
STRANGER = 54321  # a uid that no user has


@pytest.fixture
def reader():
    with Reader() as r:
        yield r


def test_append(reader, tmp_path):
    log = tmp_path / "slurm-4242.out"
    write(log, 1)
    reader.follow(tmp_path, "")
    reader.kind("file", file=0, path=str(log), trouble=None)
    write(log, 2)
    reader.expect(lambda t: reader.roots() == [1, 2])
    write(log, 3)
    reader.drain()
    assert reader.roots() == [1, 2, 3]
    signals = [s for s in reader.signals() if s.get("cause") == "gpu-hardware"]
    assert [s["line"] for s in signals] == [1, 2, 3]
    assert [s.get("offset", 0) for s in signals] == [0, len(error(1)), 2 * len(error(1))]


def test_a_last_line_without_an_end(reader, tmp_path):
    log = tmp_path / "slurm-4242.out"
    log.write_text(error(1) + error(2).rstrip("\n"))
    reader.follow(tmp_path, "")
    reader.expect(lambda t: reader.roots() == [1])
    reader.drain()
    assert reader.roots() == [1, 2]


def test_attempts_that_truncate(reader, tmp_path):
    log = tmp_path / "slurm-4242.out"
    reader.follow(tmp_path, "", mode="truncate")
    write(log, 1, 2, 3)
    reader.drain()
    write(log, *range(10, 20), mode="w")  # longer than what was there
    reader.follow(tmp_path, "", mode="truncate", attempt=2)
    reader.drain(attempt=2)
    assert reader.roots(attempt=1) == [1, 2, 3]
    assert reader.roots(attempt=2) == list(range(10, 20))


def test_attempt_followed_before_it_truncates(reader, tmp_path):
    log = tmp_path / "slurm-4242.out"
    reader.follow(tmp_path, "", mode="truncate")
    write(log, 1, 2, 3)
    reader.drain()
    reader.follow(tmp_path, "", mode="truncate", attempt=2)
    reader.kind("file", attempt=2)
    write(log, 4, mode="w")
    reader.expect(lambda t: reader.roots(attempt=2) == [4])
    write(log, 5)
    reader.drain(attempt=2)
    assert reader.roots(attempt=2) == [4, 5]


def test_attempts_that_append(reader, tmp_path):
    log = tmp_path / "all.out"
    reader.follow(tmp_path, "all.out", mode="append")
    write(log, 1, 2)
    reader.drain()
    started = now_us()
    write(log, 3)  # at once: some of it may be read before it is known that there is an attempt
    reader.expect(lambda t: reader.roots() == [1, 2, 3])
    reader.follow(tmp_path, "all.out", mode="append", attempt=2, started_us=started)
    write(log, 4)
    reader.drain(attempt=2)
    assert reader.roots(attempt=2) == [3, 4]


@pytest.mark.parametrize("drained", [True, False])
def test_attempt_that_truncates_before_it_is_known(reader, tmp_path, drained):
    log = tmp_path / "slurm-4242.out"
    reader.follow(tmp_path, "", mode="truncate")
    write(log, 1, 2, 3)
    reader.expect(lambda t: reader.roots() == [1, 2, 3])
    if drained:
        reader.drain()
    started = now_us()
    write(log, 4, 5, mode="w")
    reader.listen(seconds=0.3)
    reader.follow(tmp_path, "", mode="truncate", attempt=2, started_us=started)
    reader.drain(attempt=2)
    assert reader.roots(attempt=2) == [4, 5]


def test_old_text_of_another_job(reader, tmp_path):
    log = tmp_path / "all.out"
    write(log, 1, 2)
    os.utime(log, (now_us() / 1e6 - 100,) * 2)
    reader.follow(tmp_path, "all.out")
    reader.kind("file", file=0, trouble=None)
    write(log, 3)
    reader.drain()
    assert reader.roots() == [3]


def roots_of(reader, job):
    texts = [t["signal"].get("text", "") for t in reader.heard if t.get("kind") == "signal" and t["job"] == job]
    return [int(m[1]) for text in texts if (m := re.search(r"encountered \((\d+)\)", text))]


def needs_births(path):
    if subprocess.run(["stat", "-c", "%W", path], capture_output=True, text=True, check=True).stdout.strip() == "0":
        pytest.skip("this file system does not keep when files were born")


@pytest.mark.parametrize("name, mode, told", [
    ("all.out", "append", [3]),
    ("all.out", None, [3]),  # as files that a comment names
    ("all.out", "truncate", [1, 2, 3]),  # its text began with the attempt
    ("slurm-4242.out", "append", [1, 2, 3]),  # nobody else's
])
def test_an_older_log_that_was_written_since_the_start(reader, tmp_path, name, mode, told):
    log = tmp_path / name
    write(log, 1, 2)
    needs_births(log)
    started = now_us() + 10_000_000
    os.utime(log, (started / 1e6 + 1,) * 2)
    reader.follow(tmp_path, name, started_us=started, mode=mode or "none")
    reader.kind("file", file=0, trouble=None)
    if told == [3]:
        assert "cannot be told" in reader.kind("gap")["text"]
    write(log, 3)
    reader.drain()
    assert reader.roots() == told


def test_jobs_that_write_one_log_in_turn(reader, tmp_path):
    """Whatever the mode is said to be: '#SBATCH --open-mode=append' is not seen."""
    first, second, log = "7-1700000000", "8-1700000000", tmp_path / "train.log"
    reader.follow(tmp_path, "train.log", job=first, mode="truncate")
    write(log, 1, 2)
    reader.expect(lambda t: roots_of(reader, first) == [1, 2])
    reader.drain(job=first)
    started = now_us()
    write(log, 3)
    reader.follow(tmp_path, "train.log", job=second, mode="truncate", started_us=started)
    write(log, 4)
    reader.drain(job=second)
    assert roots_of(reader, second) == [3, 4]


def test_truncated_within_an_attempt(reader, tmp_path):
    log = tmp_path / "slurm-4242.out"
    reader.follow(tmp_path, "")
    write(log, 1, 2)
    reader.expect(lambda t: reader.roots() == [1, 2])
    write(log, 3, mode="w")
    reader.expect(lambda t: reader.roots() == [1, 2, 3])
    reader.kind("anew", file=0)
    assert reader.signals()[-1]["line"] == 1


def test_cut_while_its_writer_does_not_append(reader, tmp_path):
    log = tmp_path / "slurm-4242.out"
    reader.follow(tmp_path, "")
    with open(log, "w", buffering=1) as f:
        f.write("x" * 99 + "\n")
        for _ in range(2000):
            f.write("y" * 99 + "\n")
        f.write(error(1))
        reader.expect(lambda t: reader.roots() == [1])
        os.truncate(log, 0)
        f.write(error(2))  # where it was: before it is a hole
    reader.expect(lambda t: reader.roots() == [1, 2])


def test_rotation(reader, tmp_path):
    log, old = tmp_path / "slurm-4242.out", tmp_path / "slurm-4242.out.1"
    reader.follow(tmp_path, "")
    write(log, 1)
    reader.expect(lambda t: reader.roots() == [1])
    log.rename(old)
    write(old, 2)  # its writer has not noticed yet
    write(log, 3)
    reader.expect(lambda t: reader.roots() == [1, 2, 3])
    log.unlink()
    write(log, 4)
    reader.drain()
    assert reader.roots() == [1, 2, 3, 4]


def test_deleted_while_it_is_written(reader, tmp_path):
    log = tmp_path / "slurm-4242.out"
    reader.follow(tmp_path, "")
    with open(log, "w", buffering=1) as f:
        f.write(error(1))
        reader.expect(lambda t: reader.roots() == [1])
        log.unlink()
        f.write(error(2))
        reader.expect(lambda t: reader.roots() == [1, 2])


def test_late_files_of_tasks_and_nodes(reader, tmp_path):
    reader.follow(tmp_path, "logs/%x/%N-%t.out", more=["rank%3t.log"])
    reader.expect(lambda t: t.get("ok"))
    (tmp_path / "logs/llm").mkdir(parents=True)
    write(tmp_path / "logs/llm/n1-0.out", 1)
    reader.expect(lambda t: reader.roots() == [1])
    write(tmp_path / "logs/llm/n2-1.out", 2)
    write(tmp_path / "logs/llm/n2-1.out.bak", 90)
    write(tmp_path / "rank007.log", 3)
    write(tmp_path / "rank7.log", 91)
    reader.drain()
    assert sorted(reader.roots()) == [1, 2, 3]
    files = {s.get("file", 0) for s in reader.signals() if s.get("cause")}
    assert len(files) == 3
    nodes = {s.get("who", {}).get("node") for s in reader.signals() if s.get("cause")}
    assert nodes == {"n1", "n2", None}


def test_files_of_another_job_do_not_fit(reader, tmp_path):
    old = tmp_path / "0.out"
    write(old, 1)
    os.utime(old, (now_us() / 1e6 - 100,) * 2)
    write(tmp_path / "1.out", 2)
    reader.follow(tmp_path, "%t.out")
    reader.drain()
    assert reader.roots() == [2]


def test_one_file_by_two_names_is_read_once(reader, tmp_path):
    log = tmp_path / "slurm-4242.out"
    write(log, 1)
    (tmp_path / "link.out").symlink_to(log)
    reader.follow(tmp_path, "", "link.out", more=["slurm-%j.out"])
    reader.drain()
    assert reader.roots() == [1]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_opened(reader, tmp_path, make):
    log = tmp_path / "slurm-4242.out"
    make(log)
    write(tmp_path / "other.out", 1)
    reader.follow(tmp_path, "", "other.out", "/dev/zero")
    reader.kind("file", path=str(log), trouble="it is no regular file")
    reader.kind("file", path="/dev/zero", trouble="it is no regular file")
    reader.drain()
    assert reader.roots() == [1]
    if stat.S_ISFIFO(log.stat().st_mode):
        with pytest.raises(OSError):  # nobody has it open
            os.close(os.open(log, os.O_WRONLY | os.O_NONBLOCK))
        log.unlink()
        write(log, 2)
        reader.expect(lambda t: reader.roots() == [1, 2])


def test_of_files_that_nobody_called_logs_only_text_is_read(reader, tmp_path):
    data, cut, named = tmp_path / "x.tar", tmp_path / "cut.log", tmp_path / "slurm-4242.out"
    for number, (path, head) in enumerate(((data, "ustar\0"), (cut, "\0" * 5000), (named, "ustar\0")), 1):
        path.write_text(head + "\n")
        write(path, number)
    files = [str(path) for path in (data, cut, named, tmp_path / "absent")]
    reader.follow(tmp_path, "", files=[*files, "no path", 7])
    reader.kind("file", path=str(data), trouble="it begins with data, not with text, and is not read on")
    reader.drain()
    assert sorted(reader.roots()) == [2, 3]
    write(data, 4), write(cut, 5)
    reader.drain()
    assert sorted(reader.roots()) == [2, 3, 5]


def test_files_that_are_added_later_and_those_of_marks(tmp_path):
    """Wherever they come from, they are read once, and as the pattern has it that stands for them."""
    named, told = tmp_path / "n7-0.out", tmp_path / "told"
    write(named, 1), write(told, 2)
    with Reader() as first:
        first.follow(tmp_path, "%N-%t.out")
        first.follow(tmp_path, "%N-%t.out", files=[str(told), str(named)])
        first.expect(lambda t: sorted(first.roots()) == [1, 2])
        first.drain()
        marks = {m["path"]: m for t in first.heard if t.get("kind") == "marks" for m in t["marks"]}
    write(named, 3), write(told, 4)
    with Reader() as second:
        second.follow(tmp_path, "%N-%t.out", marks=list(marks.values()))
        second.drain()
        assert sorted(second.roots()) == [3, 4]
        assert [s["who"]["node"] for s in second.signals() if s.get("who", {}).get("node")] == ["n7"]


@AS_ROOT
def test_only_what_its_user_may_open(open_path):
    program = shutil.copy(READER, open_path)
    secret, log, folder = open_path / "secret", open_path / "job.out", open_path / "private"
    write(secret, 1)
    secret.chmod(0o600)
    log.symlink_to(secret)
    folder.mkdir(0o700)
    write(folder / "0.out", 2)
    write(open_path / "mine.out", 3)
    with Reader(program, user=STRANGER) as reader:
        assert reader.kind("hello")["uid"] == STRANGER
        reader.follow(open_path, "job.out", "private/%t.out", "private/0.out", "mine.out")
        reader.kind("file", path=str(log), trouble="Permission denied")
        reader.kind("file", path=f"{folder}/0.out", trouble="Permission denied")
        reader.drain()
        assert reader.roots() == [3]


@AS_ROOT
def test_what_a_stranger_put_there_is_no_log(open_path):
    """In /tmp of this host may lie what the job's own /tmp on its node has under that name."""
    program = shutil.copy(READER, open_path)
    shared, theirs, project = open_path / "tmp", open_path / "tmp" / "job", open_path / "project"
    for folder, mode in ((shared, 0o1777), (theirs, 0o755), (project, 0o755)):
        folder.mkdir()
        folder.chmod(mode)
    os.chown(theirs, STRANGER + 1, STRANGER + 1)
    for number, (path, owner) in enumerate({shared / "planted.out": STRANGER + 1, theirs / "planted.out": STRANGER + 1,
                                            shared / "own.out": STRANGER, theirs / "own.out": STRANGER,
                                            project / "of a colleague.out": STRANGER + 1}.items(), 1):
        write(path, number)
        os.chown(path, owner, owner)
    (theirs / "link.out").symlink_to(shared / "own.out")
    whose, link = (f"it lies where others can put a file, and is {what}" for what in ("not the user's own", "a symbolic link"))
    with Reader(program, user=STRANGER) as reader:
        reader.follow(shared, "planted.out", "%x.out", "own.out", "job/planted.out", "job/own.out", "job/link.out",
                      f"{project}/of a colleague.out")
        for path, why in ((shared / "planted.out", whose), (theirs / "planted.out", whose), (theirs / "link.out", link)):
            reader.kind("file", path=str(path), trouble=why)
        reader.drain()
        assert sorted(reader.roots()) == [3, 4, 5]
        (shared / "own.out").rename(shared / "old.out")  # as a rotation does
        write(shared / "own.out", 9)
        os.chown(shared / "own.out", STRANGER + 1, STRANGER + 1)
        reader.drain()
        assert 9 not in reader.roots()


@AS_ROOT
@pytest.mark.parametrize("user", [STRANGER, None], ids=["as its owner", "without a spawner"])
@pytest.mark.parametrize("owner, mode", [(0, 0o2775), (0, 0o1777), (STRANGER, 0o770), (STRANGER + 1, 0o755)])
def test_in_a_folder_that_others_may_write_only_what_is_the_owners_is_read(open_path, user, owner, mode):
    """A member of the project's group may create what will be a colleague's log, or replace it."""
    program = shutil.copy(READER, open_path)
    shared = open_path / "shared"
    shared.mkdir()
    os.chown(shared, owner, STRANGER)
    shared.chmod(mode)
    for number, (name, whose) in enumerate({"planted": STRANGER + 1, "own": STRANGER, "root's": 0}.items(), 1):
        write(shared / name, number)
        os.chown(shared / name, whose, STRANGER)
    write(open_path / "elsewhere", 4)
    os.chown(open_path / "elsewhere", STRANGER, STRANGER)
    (shared / "link").symlink_to(open_path / "elsewhere")
    with Reader(program, user=user) as reader:
        reader.follow(shared, "planted", "own", "root's", "link", uid=STRANGER)
        for name, what in (("planted", "not the user's own"), ("root's", "not the user's own"), ("link", "a symbolic link")):
            reader.kind("file", path=str(shared / name), trouble=f"it lies where others can put a file, and is {what}")
        reader.drain()
        assert reader.roots() == [2]


def marks_behind(reader, root):
    """The first that come when that error was told: those before it may be of the text above."""
    reader.expect(lambda t: root in reader.roots())
    told = next(i for i in range(len(reader.heard)) if root in reader.roots(after=i) and
                root not in reader.roots(after=i + 1))
    return reader.kind("marks", told)["marks"]


def test_another_process_goes_on_at_the_marks(tmp_path):
    log = tmp_path / "slurm-4242.out"
    log.write_text("Traceback (most recent call last):\n  File \"train.py\", line 7, in <module>\n")
    with Reader() as first:
        first.follow(tmp_path, "")
        write(log, 1)
        marks = marks_behind(first, 1)
        first.process.kill()
    write(log, 2)
    with Reader() as second:
        second.follow(tmp_path, "", marks=marks)
        second.drain()
        assert second.roots() == [2]
        assert second.signals()[-1]["line"] == 4
        assert not [t for t in second.heard if t.get("kind") in ("gap", "anew")]


def test_marks_of_as_many_files_as_there_may_be(tmp_path):
    """Six megabytes of them, in one line."""
    log = tmp_path / "log"
    with Reader() as first:
        write(log, 1)
        first.follow(tmp_path, "log")
        [mark] = marks_behind(first, 1)
    write(log, 2)
    with Reader() as second:
        others = [{**mark, "path": f"/{i}/" + "x" * 3000} for i in range(2000)]
        second.follow(tmp_path, "log", marks=[mark, *others])
        second.drain()
        assert second.roots() == [2]


def test_marks_of_a_text_that_is_gone(tmp_path):
    log = tmp_path / "slurm-4242.out"
    with Reader() as first:
        write(log, 1)
        first.follow(tmp_path, "")
        marks = marks_behind(first, 1)
    write(log, *range(2, 9), mode="w")
    with Reader() as second:
        second.follow(tmp_path, "", marks=marks)
        second.drain()
        assert second.roots() == list(range(2, 9))
        assert "anew" in second.kind("gap")["text"]


def test_much_at_once(reader, tmp_path):
    """An error between 100 MiB of steps and of bytes without a line end; in little memory."""
    log = tmp_path / "slurm-4242.out"
    steps = "".join(f"step {i} loss {i % 7}.5 grad_norm 1.0\n" for i in range(20000)).encode()
    with open(log, "wb") as f:
        for _ in range(70):
            f.write(steps)
        f.write(error(1).encode())
        for _ in range(16):
            f.write(os.urandom(1 << 20).replace(b"\n", b"."))
        for _ in range(16):
            f.write(bytes(1 << 20))
        f.write(b"\n" + error(2).encode())
    reader.follow(tmp_path, "")
    reader.drain()
    assert reader.roots() == [1, 2]
    steps = [s for s in reader.signals() if s.get("kind") == "step"]
    assert 1 <= len(steps) < 1000
    with open(f"/proc/{reader.process.pid}/status") as f:
        peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    assert peak < 96 * 1024 or "ASAN_OPTIONS" in os.environ


def test_a_file_that_is_a_hole(reader, tmp_path):
    log = tmp_path / "slurm-4242.out"
    with open(log, "wb") as f:
        f.write(error(1).encode())
        f.seek(1 << 42)
        f.write(b"\n" + error(2).encode())
        f.truncate(1 << 43)
    reader.follow(tmp_path, "")
    reader.drain()  # to read zeros of that many bytes takes hours
    assert reader.roots() == [1, 2]


def test_it_answers_while_there_is_much_to_read(reader, tmp_path):
    for i in range(8):
        (tmp_path / f"{i}.out").write_text(f"step {i} loss 2.5\n" * 60000)
    reader.follow(tmp_path, "%t.out")
    reader.send(op="drain", job=JOB, attempt=1)
    assert reader.ask(op="ping")["ok"]
    reader.kind("drained")


def test_many_jobs(reader, tmp_path):
    for i in range(200):
        (tmp_path / str(i)).mkdir()
        reader.follow(tmp_path / str(i), "out", job=f"{i}-1")
    for i in range(200):
        write(tmp_path / str(i) / "out", i)
    reader.expect(lambda t: sorted(reader.roots()) == list(range(200)))
    assert {t["job"] for t in reader.heard if t.get("kind") == "signal"} == {
        f"{i}-1" for i in range(200)
    }


def test_files_are_added_without_the_rest(reader, tmp_path):
    """What was refused of the attempt is not refused, and told, with each file again."""
    write(tmp_path / "told", 1)
    reader.follow(tmp_path, "%", "slurm-%j.out")
    assert reader.ask(op="files", job=JOB, attempt=1, files=[str(tmp_path / "told")])["ok"]
    reader.drain()
    assert reader.roots() == [1]
    assert not reader.ask(op="files", job=JOB, attempt=2, files=[])["ok"]
    assert not reader.ask(op="files", job="none", attempt=1, files=[])["ok"]


def test_unfollow(reader, tmp_path):
    log = tmp_path / "slurm-4242.out"
    write(log, 1)
    reader.follow(tmp_path, "")
    reader.drain()
    assert reader.ask(op="unfollow", job=JOB)["ok"]
    assert not reader.ask(op="drain", job=JOB, attempt=1)["ok"]


def test_nonsense_is_answered_and_does_no_harm(reader, tmp_path):
    for line in (b"", b"nonsense", b"[]", b'{"op":7}', b'{"op":"follow"}', b'{"op":"wish"}',
                 b'{"op":"follow","job":"x","attempt":0}', b'{"op":"drain","job":"none"}',
                 b'{"op":"follow","job":"x","attempt":1,"patterns":[7,""],"marks":[1,{}],"names":2}',
                 b'{"a":"' + b"a" * (5 << 20) + b'"}'):
        before = len([t for t in reader.heard if "ok" in t])
        reader.sock.sendall(line + b"\n")
        reader.expect(lambda t: len([t for t in reader.heard if "ok" in t]) > before)
    write(tmp_path / "slurm-4242.out", 1)
    reader.follow(tmp_path, "")
    reader.drain()
    assert reader.roots() == [1]


def test_it_ends_with_who_asked(reader):
    reader.kind("hello")
    reader.sock.shutdown(socket.SHUT_WR)
    assert reader.process.wait(running.PATIENCE) == 0


def test_quiet_files_cost_next_to_nothing(reader, tmp_path):
    """Of all threads: in a while a fifth of what it cost to begin with them, at most."""
    def cpu():
        return sum(int((task / "schedstat").read_text().split()[0])
                   for task in pathlib.Path(f"/proc/{reader.process.pid}/task").iterdir())

    for i in range(100):
        write(tmp_path / f"{i}.out", i)
    reader.follow(tmp_path, "%t.out")
    reader.drain()
    reader.follow(tmp_path, "%t.out", attempt=2)
    reader.drain(attempt=2)
    before = cpu()
    reader.listen(seconds=3)
    assert cpu() - before < before / 5
