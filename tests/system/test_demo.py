# SPDX-License-Identifier: Apache-2.0
"""`make demo` as it is: a real PyTorch job, a crash, a hang, and the way to the end."""

import re
import subprocess

import pytest


@pytest.fixture(scope="module")
def screen(top):
    """What the demo prints. It fails by itself when the job does not finish."""
    result = subprocess.run([str(top / "demo/run")], stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    assert result.returncode == 0, result.stdout
    return result.stdout


def said(screen):
    return [line for line in screen.splitlines() if line.startswith("reknit: ")]


def test_the_memory_error_is_told_with_its_rank(screen):
    line, = [l for l in said(screen) if "attempt 1 crashed" in l]
    assert "gpu-oom" in line and "rank 2" in line and "restarting" in line


def test_the_launcher_blames_another_rank_and_is_not_believed(screen):
    """torchrun lists the lowest of the ranks that died together as root cause."""
    assert "Root Cause (first observed failure)" in screen
    assert not [l for l in said(screen) if re.search(r"rank [013]\b", l) and "attempt 1" in l]


def test_the_hang_names_the_stopped_rank(screen):
    line, = [l for l in said(screen) if "attempt 2 hung" in l]
    assert "rank 1" in line and "stopped" in line and "restarting" in line


def test_each_attempt_goes_on_from_the_checkpoint(screen):
    resumed = [int(n) for n in re.findall(r"resuming from checkpoint .* at step (\d+)", screen)]
    assert resumed == [20, 40]
    assert "step 80/80" in screen and "training finished" in screen


def test_the_end_is_a_table_of_three_attempts(screen):
    table = [l for l in said(screen) if re.match(r"reknit: [123] ", l)]
    assert len(table) == 3
    assert "done" in table[2]
    assert re.search(r"goodput \d+ %", screen)


def test_explain_tells_the_story_again(screen):
    story = screen.split("$ reknit explain demo\n", 1)[1]
    for word in ("gpu-oom", "hang", "rank 1", "cuda.oom"):
        assert word in story, word
