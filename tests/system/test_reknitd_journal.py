# SPDX-License-Identifier: Apache-2.0
"""A journal that is damaged: reknitd says which file, and what a person can do; nothing is guessed."""

import contextlib
import json
import shutil
import sqlite3
import subprocess

import pytest

from api_daemon import Daemon
from fake_adapter import World

PAGE = 4096


@pytest.fixture
def world():
    with World(nodes=4) as w:
        yield w


@pytest.fixture
def killed(tmp_path, world):
    """A reknitd that was killed when it had seen a job; its journal is left as it was."""
    world.submit(nodes=["n1"])
    daemon = Daemon(tmp_path, world)
    try:
        daemon.until("/v1/jobs", lambda v: v["jobs"])
        daemon.until("/v1/health", lambda h: h["journal"]["seq"] > 4)
    finally:
        daemon.process.kill()
        daemon.process.wait()
    yield daemon
    daemon.process.kill()
    daemon.process.wait()


def journal_of(daemon):
    return daemon.folder / "state/journal.db"


def put_in_place(daemon):
    """What is in the write-ahead log goes into the file."""
    with contextlib.closing(sqlite3.connect(str(journal_of(daemon)))) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def refusal(daemon):
    """What it says when it does not start."""
    before = len(daemon.log())
    daemon.start()
    assert daemon.process.wait(20) == 1
    return daemon.log()[before:]


def damage(path, where, what):
    with path.open("r+b") as f:
        f.seek(where)
        f.write(what)


def test_a_damaged_entry(killed):
    put_in_place(killed)
    text = journal_of(killed).read_bytes()
    where = text.rindex(b'{"')  # of the first event that was written to that page, or another
    damage(journal_of(killed), where, b"\x00\xff")
    said = refusal(killed)
    assert f"{journal_of(killed)}: event " in said, said
    assert "A damaged journal" in said and "journal.db-*" in said


@pytest.mark.parametrize("where, what", [(0, b"X"), (100, b"\xff"), (PAGE, bytes(PAGE))], ids=["magic", "schema", "page"])
def test_a_damaged_page(killed, where, what):
    put_in_place(killed)
    damage(journal_of(killed), where, what)
    said = refusal(killed)
    assert f"{journal_of(killed)}: " in said and "move it and what is beside it" in said, said


def test_it_goes_on_with_a_new_one(killed):
    put_in_place(killed)
    damage(journal_of(killed), PAGE, bytes(PAGE))
    refusal(killed)
    aside = killed.folder / "aside"
    aside.mkdir()
    for path in journal_of(killed).parent.glob("journal.db*"):
        shutil.move(path, aside)
    killed.start()
    killed.until("/v1/health", lambda h: h["ok"] and h["journal"]["lost"] == 0)
    killed.stop()


def test_the_newest_entries_are_lost(killed, reknit):
    """SQLite takes the first damaged frame of a write-ahead log for its end, and says nothing."""
    wal = journal_of(killed).with_name("journal.db-wal")
    assert wal.stat().st_size > 32 + 24 + PAGE
    damage(wal, wal.stat().st_size - PAGE // 2, b"\x55" * 64)
    killed.start()
    health = killed.until("/v1/health", lambda h: h["ok"])
    assert health["journal"]["lost"] > 0, health
    assert f'{health["journal"]["lost"]} entries of the journal are lost' in killed.log()
    status, metrics = killed.ask("/metrics")
    assert status == 200 and f'reknit_journal_lost_events {health["journal"]["lost"]}\n' in metrics
    done = subprocess.run([reknit.path, "doctor", "--config", killed.config, "--format", "json"],
                          capture_output=True, text=True, timeout=60)
    row = next(r for r in json.loads(done.stdout)["checks"] if r["check"] == "its journal")
    assert row["state"] == "warn" and "entries were lost" in row["found"], row
    killed.stop()


def test_what_a_file_is_that_is_no_journal(killed):
    journal_of(killed).write_bytes(b"")
    journal_of(killed).with_name("journal.db-wal").unlink()
    killed.start()  # an empty file is a new journal; that there was another before is known
    health = killed.until("/v1/health", lambda h: h["ok"])
    assert health["journal"]["lost"] > 0, health
    killed.stop()
