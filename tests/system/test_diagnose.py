# SPDX-License-Identifier: Apache-2.0
"""reknit diagnose: verdicts on labelled logs, and the command line."""

import gzip
import json
import os
import pathlib
import pty
import subprocess
import sys

import pytest

REQUIRED = {"class": 0.95, "cause": 0.85, "domain": 0.93, "advice": 0.93, "evidence": 0.85,
            "culprit": 0.85, "blame": 0.02, "healthy": 1.0}
ECC = "[rank3]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
XID = ("[Wed May 11 09:40:22 2022] NVRM: Xid (PCI:0000:61:00): 79, pid=20714, GPU has fallen off the"
       " bus.\n")


def steps(first, last):
    return "".join(f"iter {i}: loss 2.{i:04d}, time 250.00ms, mfu 41.20%\n"
                   for i in range(first, last + 1))


def score(top, reknit, logs, labels):
    run = subprocess.run(
        [sys.executable, top / "tests/diagnose_score.py", "--bin", reknit.path, "--logs", logs,
         "--labels", labels, "--show", *(f"--min={k}={v}" for k, v in REQUIRED.items())],
        capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


def verdict(run):
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.long
def test_labelled_logs(top, reknit):
    folder = top / "tests/fixtures/diagnose"
    score(top, reknit, folder / "logs", folder / "labels.tsv")


@pytest.mark.parametrize("seed", [1, 7, 23])
@pytest.mark.long
def test_generated_logs(top, reknit, tmp_path, seed):
    subprocess.run([sys.executable, top / "tests/fixtures/diagnose/generate.py", "--seed",
                    str(seed), tmp_path], check=True, timeout=120)
    score(top, reknit, tmp_path, tmp_path / "labels.tsv")


def read_mentions(top):
    want, cases = None, []
    for line in (top / "tests/fixtures/diagnose/mentions.txt").read_text().splitlines():
        if line.startswith("=== "):
            want = line[4:]
        elif want:
            cases.append((want, line))
    return cases


@pytest.mark.long
def test_a_failure_that_is_only_mentioned_is_none(top, reknit, tmp_path):
    cases = [(want, before, line) for want, line in read_mentions(top)
             for before in ("", steps(1, 40))]
    assert len(cases) > 200
    for i, (_, before, line) in enumerate(cases):
        (tmp_path / f"{i:04}").write_text(f"{before}{line}\n")
    run = reknit("diagnose", "--each", "--format", "json", *sorted(tmp_path.iterdir()))
    assert run.returncode == 0, run.stderr
    got = [json.loads(line)["class"] for line in run.stdout.splitlines()]
    assert [(c, line) for c, (_, _, line) in zip(got, cases)] == [(w, line) for w, _, line in cases]


@pytest.mark.long
def test_the_words_of_an_exception_that_was_raised_count(reknit, tmp_path):
    log = tmp_path / "job.out"
    log.write_text(steps(1, 40) + 'Traceback (most recent call last):\n'
                   '  File "train.py", line 7, in <module>\n'
                   'ValueError: no checkpoint to load, using the default is not allowed\n')
    assert verdict(reknit("diagnose", "--format", "json", log))["class"] == "crash"


@pytest.mark.parametrize("end", ["checkpoint contains ", "waiting for Metadata", "loaded manifest",
                                 "samples received", "we Expected", "Segmenta",
                                 "Preemption check enabled: Preempti"])
@pytest.mark.long
def test_a_line_that_is_still_being_written_is_no_failure(reknit, tmp_path, end):
    log = tmp_path / "job.out"
    log.write_text(steps(1, 40) + end)
    assert verdict(reknit("diagnose", "--format", "json", log))["class"] == "healthy"


def test_json_has_the_promised_fields(reknit, tmp_path):
    log = tmp_path / "job.out"
    log.write_text(steps(1, 40) + ECC)
    v = verdict(reknit("diagnose", "--format", "json", log))
    assert v["schema"] == 1
    assert v["files"] == [str(log)]
    assert (v["class"], v["cause"], v["domain"]) == ("crash", "gpu-hardware", "infrastructure")
    assert 0.9 <= v["confidence"] <= 1
    assert v["advice"] in ("restart", "restart-excluding")
    assert v["culprits"] == {"nodes": [], "ranks": [3], "devices": []}
    assert v["evidence"][0]["file"] == str(log)
    assert v["evidence"][0]["line"] == 41
    assert "uncorrectable ECC" in v["evidence"][0]["text"]
    assert v["progress"]["first_step"] == 1
    assert v["progress"]["last_step"] == 40
    assert v["progress"]["median_step_s"] == pytest.approx(0.25)
    assert v["attempts"] == []
    assert len(v["fingerprint"]) == 16


def test_an_empty_file_is_nothing_to_judge(reknit, tmp_path):
    log = tmp_path / "empty"
    log.write_text("")
    run = reknit("diagnose", log)
    assert run.returncode == 0
    assert "\nNOTHING TO JUDGE  class: healthy" in run.stdout


def test_a_line_that_is_all_there_is_is_not_called_healthy(reknit, tmp_path):
    """What people paste: alone it proves nothing, and the rest is asked for."""
    log = tmp_path / "log"
    log.write_text("CUDA error: unspecified launch failure\n")
    page = reknit("diagnose", log).stdout
    assert "\nUNCERTAIN " in page and "give the whole log" in page and "unspecified launch failure" in page
    log.write_text(steps(1, 50) + log.read_text() + steps(51, 200))
    assert "\nHEALTHY " in reknit("diagnose", log).stdout


def test_standard_input_and_packed_files(reknit, tmp_path):
    packed = tmp_path / "job.gz"
    packed.write_bytes(gzip.compress((steps(1, 40) + ECC).encode()))
    assert verdict(reknit("diagnose", "--format", "json", packed))["cause"] == "gpu-hardware"
    v = verdict(reknit("diagnose", "--format", "json", "-", input=steps(1, 40) + ECC))
    assert v["cause"] == "gpu-hardware"
    assert v["files"] == ["-"]


def test_bad_files_are_named_and_the_others_judged(reknit, tmp_path):
    good = tmp_path / "good"
    good.write_text(ECC)
    run = reknit("diagnose", "--each", "--format", "json", tmp_path / "absent", good, tmp_path)
    assert run.returncode == 1
    assert str(tmp_path / "absent") in run.stderr
    assert "No such file" in run.stderr
    assert len(run.stdout.splitlines()) == 1
    assert json.loads(run.stdout)["cause"] == "gpu-hardware"
    run = reknit("diagnose", tmp_path / "absent")
    assert run.returncode == 1
    assert run.stdout == ""


def test_a_cut_archive_among_several_files_counts_up_to_the_cut(reknit, tmp_path):
    cut, other = tmp_path / "job.gz", tmp_path / "job.err"
    filler = "".join(f"worker {i} says {i * 7919 % 10007}\n" for i in range(40000))
    packed = gzip.compress((steps(1, 40) + ECC + filler).encode())
    cut.write_bytes(packed[:len(packed) // 2])
    other.write_text("hello\n")
    for files in ([cut], [cut, other], [other, cut]):
        run = reknit("diagnose", "--format", "json", *files)
        assert run.returncode == 1
        assert run.stderr.count(str(cut)) == 1
        assert json.loads(run.stdout)["cause"] == "gpu-hardware"


@pytest.mark.parametrize("damage", [
    lambda packed: packed[:len(packed) // 2],
    lambda packed: packed[:len(packed) // 2] + bytes(16) + packed[len(packed) // 2 + 16:]])
def test_what_was_not_read_to_its_end_is_not_called_healthy_without_a_mark(reknit, tmp_path, damage):
    cut, whole = tmp_path / "job.gz", tmp_path / "job.out"
    noise = "".join(f"the worker says w{i * 7919 % 10007}x{i}\n" for i in range(40000))
    whole.write_text(steps(1, 40))
    for first, n_files in ((steps(1, 40), 1), ("", 1), (steps(1, 40), 2)):
        cut.write_bytes(damage(gzip.compress((first + noise + ECC).encode())))
        files = [cut, whole][:n_files]
        run = reknit("diagnose", "--format", "json", *files)
        v = json.loads(run.stdout)
        assert (run.returncode, v["class"], v["incomplete"], v["confidence"]) == (1, "healthy", True, 0.2)
        assert "not all of the input could be read" in v["summary"]
        page = reknit("diagnose", *files).stdout
        assert ("\nINCOMPLETE " if first else "\nNOT UNDERSTOOD ") in page
    v = json.loads(reknit("diagnose", "--format", "json", whole, tmp_path / "absent").stdout)
    assert (v["incomplete"], v["confidence"]) == (True, 0.2)
    assert not verdict(reknit("diagnose", "--format", "json", whole))["incomplete"]


def test_a_path_that_is_not_utf8_is_shown_as_well_as_can_be(reknit, tmp_path):
    log = os.fsencode(tmp_path) + b"/job\xff.out"
    with open(log, "w") as f:
        f.write(steps(1, 40) + ECC)
    run = subprocess.run([reknit.path, "diagnose", "--format", "json", log], capture_output=True,
                         text=True, timeout=60)
    v = verdict(run)
    assert v["files"] == [f"{tmp_path}/job\ufffd.out"]
    assert v["evidence"][0]["file"] == v["files"][0]


@pytest.mark.parametrize("arguments", [[], ["--format", "xml", "x"], ["--node", "x", "y"],
                                       ["--frobnicate"]])
def test_wrong_command_lines(reknit, arguments):
    run = reknit("diagnose", *arguments)
    assert run.returncode == 2
    assert "reknit diagnose --help" in run.stderr


@pytest.mark.parametrize("order", ["node", "before", "behind"])
@pytest.mark.long
def test_a_kernel_clock_from_boot_is_not_compared_with_dates(reknit, tmp_path, order):
    log, dmesg = tmp_path / "job.out", tmp_path / "dmesg"
    log.write_text("".join(f"2026-05-11 09:{i // 60:02}:{i % 60:02} {line}\n" for i, line in
                           enumerate(steps(1, 400).splitlines())) +
                   "2026-05-11 09:17:00 [rank0]: torch.distributed.DistBackendError: NCCL error: "
                   "remote process exited or there was a network error\n")
    xid = "NVRM: Xid (PCI:0000:61:00): 79, pid=20714, GPU has fallen off the bus.\n"
    files = {"node": ["--node", f"n17={dmesg}", log], "before": [dmesg, log],
             "behind": [log, dmesg]}[order]

    dmesg.write_text("[12345.678901] " + xid)
    v = verdict(reknit("diagnose", "--format", "json", *files))
    assert (v["class"], v["cause"]) == ("crash", "gpu-hardware")
    assert v["confidence"] < 0.8
    assert "can't be compared" in v["summary"]
    assert v["culprits"]["devices"] == ["0000:61:00"]
    assert v["culprits"]["nodes"] == (["n17"] if order == "node" else [])

    # A kernel that told the date is placed by it: a day before, then at the end.
    for boot, cause in ((1778490000 - 12345 - 86400, "unknown"), (1778490000 - 12345, "gpu-hardware")):
        dmesg.write_text(f"[   10.000000] audit: type=1400 audit({boot + 10}.000:2): x\n"
                         "[12345.678901] " + xid)
        v = verdict(reknit("diagnose", "--format", "json", *files))
        assert v["cause"] == cause
        assert "compared" not in v["summary"]


def test_node_option_names_the_node_of_a_kernel_log(reknit, tmp_path):
    log, dmesg = tmp_path / "job.out", tmp_path / "dmesg"
    log.write_text(steps(1, 40))
    dmesg.write_text(XID)
    v = verdict(reknit("diagnose", "--format", "json", "--node", f"n17={dmesg}", log))
    assert v["cause"] == "gpu-hardware"
    assert v["culprits"]["nodes"] == ["n17"]
    assert v["culprits"]["devices"] == ["0000:61:00"]
    assert v["advice"] == "restart-excluding"


@pytest.mark.parametrize("name", ["{0}", "rank{0}.log", "out/log.{0}", "out.n{1}.{0}", "worker-{0}.out.gz",
                                  "x_1/attempt_0/{0}/stderr.log"])
def test_the_name_of_a_file_tells_the_rank(reknit, tmp_path, name):
    for i in range(4):
        path = tmp_path / name.format(i, i // 2)
        path.parent.mkdir(parents=True, exist_ok=True)
        end = ("Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
               "ValueError: bad sample in shard 17\n" if i == 2 else "")
        text = (steps(1, 40) + end).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    paths = sorted(p for p in tmp_path.rglob("*") if p.is_file())
    v = verdict(reknit("diagnose", "--format", "json", *paths))
    assert v["cause"] == "user-code"
    assert v["culprits"]["ranks"] == ([] if name == "{0}" else [2])


def test_what_a_line_says_of_its_rank_outweighs_the_name(reknit, tmp_path):
    log = tmp_path / "rank5.log"
    log.write_text(steps(1, 40) + ECC)
    assert verdict(reknit("diagnose", "--format", "json", log))["culprits"]["ranks"] == [3]


@pytest.mark.long
def test_the_head_names_the_files_that_were_judged(reknit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # short names: a page is 80 columns wide
    out, err, dmesg, gone = map(pathlib.Path, ("job.out", "job.err", "dmesg", "gone"))
    out.write_text(steps(1, 40))
    err.write_text("hello\n")
    dmesg.write_text("quiet\n")
    run = reknit("diagnose", "--node", f"n3={dmesg}", gone, out, out, err)
    assert run.returncode == 1
    assert " ".join(run.stdout.split("\nINCOMPLETE")[0].split()) == (
        f"{out}, {err}, {dmesg} (kernel of n3)")
    run = reknit("diagnose", "--format", "json", "--node", f"n3={dmesg}", gone, out, out, err)
    assert json.loads(run.stdout)["files"] == [str(dmesg), str(out), str(err)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.long
def test_what_is_no_text_is_refused_and_not_shown(reknit, tmp_path, packed):
    log, program = tmp_path / "job.out", tmp_path / "program"
    log.write_text(steps(1, 40) + ECC)
    image = open(sys.executable, "rb").read()
    program.write_bytes(gzip.compress(image) if packed else image)
    run = reknit("diagnose", "--format", "json", program)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr == f"reknit diagnose: {program}: is no text: a log was expected\n"
    run = reknit("diagnose", "--format", "json", program, log)
    assert run.returncode == 1
    assert json.loads(run.stdout)["files"] == [str(log)]
    assert json.loads(run.stdout)["cause"] == "gpu-hardware"


@pytest.mark.parametrize("dirt", [b"\0" * 300000, "\u042f\u4e2d\u00e9 ".encode("utf-8") * 900,
                                  "\u4e2d\u6587 ".encode("gbk") * 900, b"\x1b[31m\b\b\f\r" * 900,
                                  b"\x01\x02\x03"],
                         ids=["holes", "utf-8", "gbk", "codes", "few"])
def test_dirt_is_no_reason_to_refuse_a_log(reknit, tmp_path, dirt):
    log = tmp_path / "job.out"
    log.write_bytes(dirt + b"\n" + (steps(1, 40) + ECC).encode())
    assert verdict(reknit("diagnose", "--format", "json", log))["cause"] == "gpu-hardware"


def test_utf_16_is_named(reknit, tmp_path):
    log = tmp_path / "job.out"
    log.write_bytes((steps(1, 40) + ECC).encode("utf-16"))
    run = reknit("diagnose", log)
    assert run.returncode == 1
    assert "UTF-16" in run.stderr and "iconv" in run.stderr


@pytest.mark.parametrize("text", ids=["source", "manual", "dates"], argvalues=["int main(void)\n{\n    return 0;\n}\n", "NAME\n  ls - list\n",
                                  "2026-05-11 09:00:00 status installed man-db:amd64\n" * 9])
@pytest.mark.long
def test_text_that_is_not_understood_is_said_to_be(reknit, tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    log = pathlib.Path("job.out")
    log.write_text(text)
    v = verdict(reknit("diagnose", "--format", "json", log))
    assert (v["class"], v["cause"], v["understood"]) == ("healthy", "none", False)
    assert v["confidence"] <= 0.2
    assert v["summary"].startswith("Nothing was understood")
    out = reknit("diagnose", log).stdout
    assert out.splitlines()[1].startswith("NOT UNDERSTOOD  class: healthy")
    log.write_text(text + steps(1, 40))
    assert verdict(reknit("diagnose", "--format", "json", log))["understood"]


BUS = ("RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that "
       "dataloader's workers are out of shared memory.\n")


@pytest.mark.parametrize("line,says,commands", [
    (BUS, "in /dev/shm", ["docker run --shm-size=64g", "df -h /dev/shm"]),
    ("RuntimeError: unable to open shared memory object </torch_3_7> in read-write mode: Too many "
     "open files (24)\n", "is an open file", ["ulimit -n 65536"]),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM "
     "Killed.\n", "the job's own limit", ["sacct -j 7 --format", "sbatch --mem=0 JOBSCRIPT"]),
    ("[Wed May 11 09:40:22 2022] Memory cgroup out of memory: Killed process 777 (python3)\n",
     "the job's own limit", ["sacct -j 7"]),
    ("[Wed May 11 09:40:22 2022] Out of memory: Killed process 777 (python3) total-vm:9kB\n",
     "the node itself ran out", ["dmesg -T", "sbatch --exclusive --mem=0 JOBSCRIPT"]),
    ("exitcode  : -9 (pid: 4711)\nRuntimeError: DataLoader worker (pid 3311) is killed by signal: "
     "Killed.\n", "something sent SIGKILL", ["dmesg -T"]),
    ("srun: error: Node failure on n003\n", "the node at fault", ["sbatch --exclude=n003 JOBSCRIPT",
                                                                  "sinfo -R; scontrol show node n003"]),
    ("OSError: [Errno 28] No space left on device: '/scratch/x'\n", "make room", ["df -h FOLDER"]),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.\n", "lower batch size",
     ["export PYTORCH_CUDA_ALLOC_CONF"]),
    ("Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nValueError: bad\n",
     "mend the program", ["sed -n '13,48p' slurm-7.out"]),
], ids=range(10))
def test_advice_says_what_to_do_next(reknit, tmp_path, monkeypatch, line, says, commands):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slurm-7.out").write_text(steps(1, 40) + line)
    out = reknit("diagnose", "slurm-7.out").stdout
    assert says in " ".join(out.split("\ndo ")[1].split())
    for command in commands:
        assert f"\n            {command}" in out
    assert not [row for row in out.splitlines() if len(row) > 80]


def test_files_of_one_job_are_judged_together(reknit, tmp_path):
    out, err = tmp_path / "job.out", tmp_path / "job.err"
    out.write_text(steps(1, 40))
    err.write_text(ECC)
    v = verdict(reknit("diagnose", "--format", "json", out, err))
    assert v["files"] == [str(out), str(err)]
    assert v["cause"] == "gpu-hardware"
    assert v["evidence"][0]["file"] == str(err)
    run = reknit("diagnose", "--each", "--format", "json", out, err)
    assert [json.loads(line)["class"] for line in run.stdout.splitlines()] == ["healthy", "crash"]


def launch():
    return ("W0918 15:40:51.226790 4772 torch/distributed/run.py:757] \n"
            "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to"
            " avoid your system being overloaded, please further tune the variable for optimal"
            " performance in your application as needed. \n")


def test_the_last_attempt_is_judged_and_the_others_listed(reknit, tmp_path):
    log = tmp_path / "job.out"
    log.write_text(launch() + steps(1, 40) + ECC + launch() + steps(21, 60) +
                   "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.\n" +
                   launch() + steps(41, 90))
    v = verdict(reknit("diagnose", "--format", "json", log))
    assert v["class"] == "healthy"
    assert [a["cause"] for a in v["attempts"]] == ["gpu-hardware", "gpu-oom"]
    assert v["attempts"][0]["progress"]["last_step"] == 40
    assert v["progress"]["first_step"] == 41
    assert "gpu-oom" in reknit("diagnose", log).stdout


def test_text_has_no_colour_in_a_pipe_and_no_control_codes(reknit, tmp_path):
    log = tmp_path / "job.out"
    log.write_bytes(b"\x1b[31m" + ECC.encode().rstrip() + b" \x07\x1b]0;owned\x07\xff\n")
    out = reknit("diagnose", log).stdout
    assert "CRASH" in out
    assert not [c for c in out if ord(c) < 32 and c != "\n"]


def run_on_terminal(command, env):
    leader, follower = pty.openpty()
    child = subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL, env=env)
    os.close(follower)
    out = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            part = b""
        if not part:
            break
        out += part
    os.close(leader)
    assert child.wait(timeout=60) == 0
    return out


def test_colour_on_a_terminal_unless_no_color(reknit, tmp_path):
    log = tmp_path / "job.out"
    log.write_text(ECC)
    env = {**os.environ, "TERM": "xterm"}
    env.pop("NO_COLOR", None)
    command = [str(reknit.path), "diagnose", str(log)]
    assert b"\x1b[1;31mCRASH" in run_on_terminal(command, env)
    assert b"\x1b[" not in run_on_terminal(command, {**env, "NO_COLOR": "1"})


def test_names_in_commands_are_plain(reknit, tmp_path):
    dmesg = tmp_path / "dmesg"
    dmesg.write_text(XID)
    out = reknit("diagnose", "--node", f"n1;reboot={dmesg}").stdout
    assert "node n1;reboot" in out
    assert "exclude=n1;reboot" not in out


def test_long_lines_and_binary_rubbish_do_not_hurt(reknit, tmp_path):
    log = tmp_path / "job.out"
    with open(log, "wb") as f:
        f.write(steps(1, 40).encode())
        f.write(b"x" * (8 << 20) + b"\n")
        f.write(os.urandom(1 << 16))
        f.write(b"\n" + ECC.encode())
    assert verdict(reknit("diagnose", "--format", "json", log))["cause"] == "gpu-hardware"


@pytest.mark.parametrize("text, last", [
    ("hello\nworld\nour own scheduler said no\n", "our own scheduler said no"),
    ("plain hello", "plain hello"), ("1\n2\n3\n4\n5\n\n", "5")])
def test_what_is_not_understood_is_not_called_empty(reknit, tmp_path, text, last):
    log = tmp_path / "log"
    log.write_text(text)
    shown = " ".join(reknit("diagnose", log).stdout.split())
    assert "NOT UNDERSTOOD" in shown and "HEALTHY" not in shown and "empty" not in shown
    assert f"{text.count(chr(10)) or 1} line" in shown and f'"{last}"' in shown
    assert "reknit catalog explain" in shown
    assert verdict(reknit("diagnose", "--format", "json", log))["confidence"] <= 0.3


def test_random_bytes_are_shown_printable(reknit, tmp_path):
    log = tmp_path / "log"
    log.write_bytes((steps(1, 4000) + ECC.strip()).encode() +
                    bytes((i * 73 + i // 256) % 256 for i in range(4096)))
    run = reknit("diagnose", log)
    assert run.returncode == 0 and "ECC" in run.stdout
    assert not any(ord(c) < 32 and c != "\n" for c in run.stdout)


def test_a_log_that_stops_short_says_so(reknit, tmp_path):
    log = tmp_path / "log"
    log.write_text("".join(f"step {i}/5000 | loss 2.{i:04d} | 250 ms\n" for i in range(1, 51)))
    shown = " ".join(reknit("diagnose", log).stdout.split())
    assert "stops at step 50 of 5000 without saying why" in shown
    assert "still running, or was killed from outside" in shown
    log.write_text("".join(f"step {i}/50 | loss 2.{i:04d} | 250 ms\n" for i in range(1, 51)))
    assert "stops at" not in reknit("diagnose", log).stdout


def test_an_error_of_the_program_blames_no_hardware(reknit, tmp_path):
    log = tmp_path / "log"
    log.write_text(steps(1, 40) + "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to "
                   "allocate 2.50 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.02 GiB "
                   "is free.\n")
    shown = reknit("diagnose", log).stdout
    assert "cause: gpu-oom" in shown and "on rank 0" in shown
    assert "nobody" not in shown and "\nwho" not in shown
    log.write_text(steps(1, 40) + ECC)
    assert "\nwho       rank 3" in reknit("diagnose", log).stdout


ILLEGAL = "RuntimeError: CUDA error: an illegal memory access was encountered\n"


def culprits_of(reknit, tmp_path, text):
    log = tmp_path / "job.out"
    log.write_text(text)
    return verdict(reknit("diagnose", "--format", "json", log))["culprits"]


def labelled(task, text):
    return "".join(f"{task}: {line}\n" for line in text.splitlines())


@pytest.mark.long
def test_a_task_label_is_a_rank_only_where_several_tasks_print(reknit, tmp_path):
    own = labelled(0, steps(1, 40) + ILLEGAL)
    others = labelled(1, "hello") + labelled(2, "hello")
    assert culprits_of(reknit, tmp_path, own)["ranks"] == []
    assert culprits_of(reknit, tmp_path, others + own)["ranks"] == [0]
    # One launcher a node: the labels count nodes.
    inside = labelled(1, "[rank8]: hello") + others + own
    assert culprits_of(reknit, tmp_path, inside)["ranks"] == []
    # A numbered list somewhere in the output is no label.
    listed = "1: first\n2: second\n" + steps(1, 40) + labelled(3, ILLEGAL)
    assert culprits_of(reknit, tmp_path, listed)["ranks"] == []


def waits(ranks):
    return "".join(f"[rank{r}]:[E ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught collective"
                   " operation timeout: WorkNCCL(SeqNum=8841, OpType=ALLREDUCE, NumelIn=1048576,"
                   " NumelOut=1048576, Timeout(ms)=600000) ran for 600021 milliseconds before timing"
                   " out.\n" for r in ranks)


def test_who_is_silent_is_not_known_where_the_log_was_cut(reknit, tmp_path):
    whole = steps(1, 40) + waits(range(7)) + "[rank7]: hello\n"
    assert culprits_of(reknit, tmp_path, whole)["ranks"] == [7]
    for cut in ("[rank7]:", "[rank7]:[E ProcessGroupNCC", waits([7])[:-30]):
        assert culprits_of(reknit, tmp_path, steps(1, 40) + waits(range(7)) + cut)["ranks"] == []


def test_a_name_that_the_log_ends_in_may_be_cut(reknit, tmp_path):
    line = "srun: error: Node failure on gpu-n17"
    assert culprits_of(reknit, tmp_path, steps(1, 40) + line + "\n")["nodes"] == ["gpu-n17"]
    log = tmp_path / "job.out"
    for end in (line, line[:-1]):
        log.write_text(steps(1, 40) + end)
        v = verdict(reknit("diagnose", "--format", "json", log))
        assert v["cause"] == "node-failure" and v["advice"] == "restart"
        assert v["culprits"]["nodes"] == []
    assert "--exclude" not in reknit("diagnose", log).stdout


@pytest.mark.parametrize("tail", [
    "srun: error: gpu-n3: task 27: Exited with exit code 1\n",
    "  rank      : 1 (local_rank: 1)\n  exitcode  : -6 (pid: 4125)\n  error_file: <N/A>\n"])
def test_the_tail_of_a_report_does_not_tell_who_was_first(reknit, tmp_path, tail):
    assert culprits_of(reknit, tmp_path, tail)["ranks"] == []
    assert culprits_of(reknit, tmp_path, steps(1, 40) + tail)["ranks"] != []


NODE_FAIL = "srun: error: Node failure on gpu-n17\n"


def test_what_cannot_be_read_twice_is_read_once(reknit, tmp_path):
    other, fifo = tmp_path / "job.err", tmp_path / "fifo"
    other.write_text("hello\n")
    os.mkfifo(fifo)
    for path in (fifo, "/dev/stdin", "-"):
        text = steps(1, 40) + NODE_FAIL
        kwargs = {"input": text}
        if path == fifo:
            writer = subprocess.Popen([sys.executable, "-c", "import sys; open(sys.argv[1], 'w')"
                                       ".write(sys.argv[2])", str(fifo), text])
            kwargs = {}
        v = verdict(reknit("diagnose", "--format", "json", path, other, **kwargs))
        assert v["culprits"]["nodes"] == ["gpu-n17"], path
        assert v["progress"]["last_step"] == 40
    assert writer.wait(timeout=60) == 0


def test_a_fifo_among_catalogue_files_is_refused_at_once(reknit, tmp_path):
    os.mkfifo(tmp_path / "x.yaml")
    run = reknit("catalog", "--catalog", tmp_path, "check")
    assert run.returncode == 1
    assert "x.yaml: is no regular file" in run.stderr


@pytest.mark.parametrize("begin, name, command", [
    (b"\xfd7zXZ\0\0\4", "xz", "xz -dc"), (b"BZh91AY&SY", "bzip2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"), (b"PK\3\4", "zip", "unzip -p")])
def test_a_packing_that_is_not_read_is_an_error_that_says_what_to_do(reknit, tmp_path, begin, name,
                                                                    command):
    log = tmp_path / "job.packed"
    log.write_bytes(begin + b"\x17" * 100)
    run = reknit("diagnose", log)
    assert run.returncode == 1 and run.stdout == ""
    assert f"packed with {name}," in run.stderr
    assert f"{command} FILE | reknit diagnose -" in run.stderr


def test_words_that_begin_like_a_packing_are_text(reknit, tmp_path):
    log = tmp_path / "log"
    log.write_text("BZh is no archive\n" + NODE_FAIL)
    assert verdict(reknit("diagnose", "--format", "json", log))["cause"] == "node-failure"


def test_padding_behind_an_archive_and_frames_to_skip(reknit, tmp_path):
    packed = tmp_path / "job.gz"
    whole = gzip.compress((steps(1, 40) + NODE_FAIL).encode())
    for data in (whole + b"\0" * 70000, gzip.compress(b"") + b"\0" * 3 + whole):
        packed.write_bytes(data)
        assert verdict(reknit("diagnose", "--format", "json", packed))["cause"] == "node-failure"
    packed.write_bytes(whole + b"rubbish")
    run = reknit("diagnose", "--format", "json", packed)
    assert run.returncode == 1 and json.loads(run.stdout)["cause"] == "node-failure"
    text = NODE_FAIL.encode()  # a zstd frame of one raw block (RFC 8878), behind one to be skipped
    frame = b"\x28\xb5\x2f\xfd\x20" + bytes([len(text)]) + (1 | len(text) << 3).to_bytes(3, "little")
    packed.write_bytes(b"\x50\x2a\x4d\x18\4\0\0\0abcd" + frame + text)
    assert verdict(reknit("diagnose", "--format", "json", packed))["cause"] == "node-failure"


def test_memory_for_unpacking_is_bounded(reknit, tmp_path):
    packed, text = tmp_path / "job.zst", NODE_FAIL.encode()
    block = (1 | len(text) << 3).to_bytes(3, "little") + text
    for log, fits in ((23, True), (25, True), (26, False), (27, False), (31, False)):
        packed.write_bytes(b"\x28\xb5\x2f\xfd\0" + bytes([log - 10 << 3]) + block)
        run = reknit("diagnose", packed)
        if fits:
            assert run.returncode == 0 and "cause: node-failure" in run.stdout
        else:
            assert run.returncode == 1 and not run.stdout
            assert "zstd -dc --long=31 FILE | reknit diagnose -" in run.stderr


def test_names_from_the_command_line_are_shown_printable(reknit, tmp_path):
    hostile = "x\x1b]0;owned\x07\u202egol\n.txt"
    log, absent = tmp_path / hostile, tmp_path / ("absent" + hostile)
    log.write_text(XID)
    folder = tmp_path / ("cat" + hostile)
    folder.mkdir()
    (folder / (hostile + ".yaml")).write_text("signatures: [{id: a, role: oh}]\n")
    node = "n\x1b[31m1\u202e"
    runs = [reknit("diagnose", log), reknit("diagnose", "--node", f"{node}={log}"),
            reknit("diagnose", "--node", f"{node}={log}", log), reknit("diagnose", log, absent),
            reknit("diagnose", absent), reknit("diagnose", "--format", hostile, log),
            reknit("diagnose", "--node", hostile, log), reknit("diagnose", "--" + hostile),
            reknit("catalog", "--catalog", folder, "check"), reknit(hostile),
            reknit("config", "check", absent)]
    for run in runs:
        shown = run.stdout + run.stderr
        assert shown
        assert not [c for c in shown if (ord(c) < 32 and c != "\n") or c in "\x7f\u202e"], run.args
    assert "node n" in runs[1].stdout


def test_a_file_that_is_given_twice_counts_once(reknit, tmp_path):
    log, link = tmp_path / "job.out", tmp_path / "job.link"
    log.write_text(steps(1, 40) + ECC)
    link.symlink_to(log)
    once = verdict(reknit("diagnose", "--format", "json", log))
    run = reknit("diagnose", "--format", "json", log, link, log)
    twice = verdict(run)
    assert run.stderr.count("is given twice, and read once") == 2
    for key in ("confidence", "progress", "culprits"):
        assert twice[key] == once[key]
    assert [e["count"] for e in twice["evidence"]] == [e["count"] for e in once["evidence"]]
    v = verdict(reknit("diagnose", "--format", "json", "--node", f"n17={log}", log))
    assert v["culprits"]["nodes"] == ["n17"]


def test_a_rotated_log_is_one_series_in_any_order(reknit, tmp_path):
    old, new = tmp_path / "train.log.1", tmp_path / "train.log"
    old.write_text(steps(1, 60) + ECC)
    new.write_text(steps(61, 66) + "".join(f"iter {i}: loss 9.{i:04d}, time 250.00ms, mfu 41.20%\n"
                                           for i in range(67, 100)))
    for files in ([old, new], [new, old]):
        v = verdict(reknit("diagnose", "--format", "json", *files))
        assert v["cause"] == "numerical"
        assert (v["progress"]["first_step"], v["progress"]["last_step"]) == (1, 99)
        assert v["evidence"][0]["file"] == str(new)
    # Beside each other, the files of two ranks do not go on from one another.
    other = tmp_path / "rank1.log"
    other.write_text(steps(1, 60))
    v = verdict(reknit("diagnose", "--format", "json", other, old))
    assert v["cause"] == "gpu-hardware"


def test_steps_without_a_clock_do_not_make_a_silence(reknit, tmp_path):
    log = tmp_path / "job.out"
    begin = "2025-03-01T10:00:00Z INFO launcher: starting 8 workers on gpu-a1\n"
    end = ("slurmstepd: error: *** JOB 93 ON gpu-a1 CANCELLED AT 2025-03-01T12:30:17 DUE TO"
           " PREEMPTION ***\n")
    log.write_text(begin + launch() + steps(1, 40) + end)
    v = verdict(reknit("diagnose", "--format", "json", log))
    assert (v["class"], v["cause"]) == ("interrupted", "preemption")
    clocked = "".join(f"2025-03-01T10:0{i // 6}:{i % 6}0Z iter {i}: loss 2.{i}, time 250.00ms\n"
                      for i in range(1, 50))
    log.write_text(begin + launch() + clocked + end)
    assert verdict(reknit("diagnose", "--format", "json", log))["class"] == "hang"


def test_the_attempts_before_are_listed_for_several_files_too(reknit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out, err = pathlib.Path("job.out"), pathlib.Path("job.err")
    out.write_text(launch() + steps(1, 40) + ECC + launch() + steps(21, 60))
    err.write_text("hello\n")
    for files in ([out, err], [err, out]):
        v = verdict(reknit("diagnose", "--format", "json", *files))
        assert v["class"] == "healthy"
        assert [(a["cause"], a["file"]) for a in v["attempts"]] == [("gpu-hardware", str(out))]
        assert f"{out} lines 1-" in " ".join(reknit("diagnose", *files).stdout.split())


def test_attempts_that_are_too_many_are_counted(reknit, tmp_path):
    log = tmp_path / "job.out"
    log.write_text("".join(launch() + steps(1, 12) + ECC for _ in range(70)))
    v = verdict(reknit("diagnose", "--format", "json", log))
    assert (len(v["attempts"]), v["attempts_dropped"]) == (64, 5)
    assert "5 earlier attempts are not listed" in reknit("diagnose", log).stdout


# srun tells of tasks. Where each is a launcher, as of torchrun, none of them is the rank of that number.
LAUNCHERS = """\
[rank0]: joined
step 1/100 loss 3.2
step 2/100 loss 3.1
step 3/100 loss 3.0
{error}
[rank3]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:29500
[rank6]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:29500
srun: error: n{first}: task {first}: Exited with exit code 1
srun: error: n{second}: task {second}: Terminated
"""


@pytest.mark.parametrize(("error", "first", "ranks"), [
    ("[rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered", 0, [1]),
    ("[rank5]: RuntimeError: CUDA error: uncorrectable ECC error encountered", 1, [5]),
    ("Segmentation fault", 1, []),
])
def test_a_launchers_task_is_no_rank(reknit, tmp_path, error, first, ranks):
    log = tmp_path / "job.out"
    log.write_text(LAUNCHERS.format(error=error, first=first, second=1 - first))
    v = verdict(reknit("diagnose", "--format", "json", log))
    assert (v["class"], v["culprits"]["nodes"], v["culprits"]["ranks"]) == ("crash", [], ranks)
