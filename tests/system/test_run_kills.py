# SPDX-License-Identifier: Apache-2.0
"""reknit, its keeper and the ranks of its job are killed at random moments, again and again.

Whatever is hit: no process is left behind, no rank ever runs twice, the job's port is free when the
next attempt wants it, the journal opens and replays to the same decisions, and the job gets to
its end. REKNIT_TEST_KILLS says how often (soak); REKNIT_TEST_SEED repeats a run of this test.
"""

import os
import pathlib
import random
import signal
import socket
import uuid

import pytest

from running import FAST_POLICY, Run, await_end, await_ends, comm, descendants, \
    kill_quietly, marked

TRAINER = pathlib.Path(__file__).parent / "trainer.py"


class Story:
    def __init__(self, reknit, folder, seed):
        self.reknit, self.folder, self.random = reknit, folder, random.Random(seed)
        self.mark = f"REKNIT_TEST_MARK={uuid.uuid4()}"
        self.job, self.state = folder / "job", folder / "state"
        self.policy = folder / "policy.yaml"
        self.policy.write_text(FAST_POLICY)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.run, self.seen = None, 0

    def start(self, steps):
        self.run = Run(
            self.reknit.path, "--name", "job", "--policy", self.policy, "--", TRAINER, "--dir",
            self.job, "--steps", steps, "--step-ms", 1, "--port", self.port, state=self.state,
            env=dict([self.mark.split("=")]), start_new_session=True,
        )
        self.seen = 0

    def await_steps(self, n):
        """n more steps; the next kill hits somewhere behind them."""
        for _ in range(n):
            self.seen = self.run.out.expect(r"^step \d+/", self.seen) + 1

    def ranks(self):
        """The processes of the job, without the keeper."""
        return [p for p in descendants(self.run.pid) if comm(p) not in ("job-keeper", "exe")]

    def kill_reknit(self):
        keeper = self.run.keeper()
        self.run.process.kill()
        self.run.process.wait()
        if keeper:  # else it was killed a moment ago: as in kill_both()
            await_end(keeper)
            await_ends(self.mark)
            self.check()
        self.start(1000000)

    def kill_both(self):
        """No one is left to clean up but the next run."""
        keeper = self.run.keeper()
        os.kill(self.run.pid, signal.SIGSTOP)
        if keeper:
            kill_quietly(keeper)
        self.run.process.kill()
        self.run.process.wait()
        self.start(1000000)

    def kill_keeper(self):
        keeper = self.run.keeper()
        if keeper:
            kill_quietly(keeper)
            await_end(keeper)

    def kill_rank(self):
        ranks = self.ranks()
        if ranks:
            victim = self.random.choice(ranks)
            kill_quietly(victim)

    def check(self):
        assert not (self.job / "violations").exists(), (self.job / "violations").read_text()
        journal = self.state / "job/journal.db"
        if not journal.exists():
            return  # killed before it could begin
        result = self.reknit("replay", journal)
        assert result.returncode == 0, result.stdout + result.stderr

    def tell(self, kills):
        """kills random kills, then the job's end."""
        self.start(1000000)
        acts = [self.kill_reknit] * 4 + [self.kill_rank] * 3 + [self.kill_both] + [self.kill_keeper] * 2
        for _ in range(kills):
            if self.random.random() < 0.8:
                self.await_steps(self.random.randrange(1, 12))
            self.random.choice(acts)()
        self.run.out.expect(r"^step \d+/", self.seen)
        self.run.process.send_signal(signal.SIGTERM)
        self.run.wait()
        await_ends(self.mark)
        self.check()
        reached = int((self.job / "checkpoint").read_text())
        self.start(reached + 20)
        assert self.run.wait() == 0
        await_ends(self.mark)
        self.check()

    def clean_up(self):
        if self.run:
            self.run.kill()
        for pid in marked(self.mark):
            kill_quietly(pid)


def test_a_stopped_keeper_goes_on_when_the_next_run_waits_for_it(reknit, tmp_path):
    mark = f"REKNIT_TEST_MARK={uuid.uuid4()}"
    common = {"state": tmp_path, "env": dict([mark.split("=")])}
    first = Run(reknit.path, "--name", "job", "--", "sh", "-c", "echo up; exec sleep 1000", **common)
    try:
        first.out.expect("^up")
        os.kill(first.keeper(), signal.SIGSTOP)
        first.kill()
        assert marked(mark)  # nobody watches it, and nobody ends it
        second = Run(reknit.path, "--name", "job", "--", "true", state=tmp_path)
        assert second.wait() == 0
        assert "was killed; waiting for its processes to end" in second.err.text()
        await_ends(mark)
    finally:
        for pid in marked(mark):
            kill_quietly(pid)


def tell(reknit, tmp_path, kills):
    seed = os.environ.get("REKNIT_TEST_SEED") or str(random.randrange(10**9))
    print(f"REKNIT_TEST_SEED={seed}")
    story = Story(reknit, tmp_path, seed)
    try:
        story.tell(kills)
    finally:
        story.clean_up()


def test_random_kills(reknit, tmp_path):
    tell(reknit, tmp_path, 30)


@pytest.mark.soak
def test_many_random_kills(reknit, tmp_path):
    tell(reknit, tmp_path, int(os.environ.get("REKNIT_TEST_KILLS", "300")))
