# SPDX-License-Identifier: Apache-2.0
"""reknit release-stale: frees what Reknit holds too long, and nothing else."""

import json
import os
import time

import cluster as cluster_module
import pytest
from fake_adapter import World


@pytest.fixture
def world():
    with World(nodes=2) as w:
        yield w


@pytest.fixture
def release(reknit, tmp_path, world):
    config = tmp_path / "reknitd.yaml"
    config.write_text(json.dumps({"adapter": {"command": [str(c) for c in world.command]}}))
    return lambda *options: reknit("release-stale", "--config", config, *options)


def note(seconds, **more):
    return json.dumps({"reknit": {"held_until": int(time.time()) + seconds}, **more})


def test_only_our_holds_that_are_past_are_freed(release, world):
    stale = world.submit(held=True, admin_comment=note(-60, other="stays"))
    theirs = world.submit(held=True, admin_comment="maintenance")
    nobody = world.submit(held=True)
    early = world.submit(held=True, admin_comment=note(600))
    strange = [world.submit(held=True, admin_comment=text) for text in
               ('{"reknit":{"held_until":"5"}}', '{"reknit":5}', '{"reknit":{"held_until":-5}}', "[", "{}" * 99)]
    free = world.submit(held=False, admin_comment=note(-60))
    dry = release("--dry-run")
    assert dry.returncode == 0 and dry.stdout.startswith(f"job {stale} would be released: held by Reknit until ")
    assert world.job(stale)["held"]
    told = [json.loads(line) for line in release("--dry-run", "--format", "json").stdout.splitlines()]
    assert [(t["job"], t["due"], t["released"]) for t in told] == [(stale, True, False), (early, False, False)]
    assert all(t["held_until_us"] % 1000000 == 0 for t in told)
    done = release()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and lines[0].startswith(f"job {stale} is released: ")
    assert lines[1].startswith(f"job {early} stays held: held by Reknit until ")
    assert not world.job(stale)["held"]
    assert json.loads(world.job(stale)["admin_comment"]) == {"other": "stays"}
    for job in (theirs, nobody, early, *strange):
        assert world.job(job)["held"], job
    assert world.job(free)["admin_comment"] != ""
    assert release().stdout.splitlines() == lines[1:]


def test_a_job_that_cannot_be_freed_does_not_keep_others_held(release, world):
    jobs = [world.submit(held=True, admin_comment=note(-60)) for _ in range(3)]
    world.break_next("update", "error", error="not-allowed", text="no\x1b[1m")
    done = release()
    assert done.returncode == 1
    assert f"job {jobs[0]}, held by Reknit until" in done.stderr and "\x1b" not in done.stderr
    assert [world.job(j)["held"] for j in jobs] == [True, False, False]


def test_a_scheduler_that_does_not_answer(release, world):
    world.break_next("jobs", "error", error="unreachable", text="down")
    done = release()
    assert done.returncode == 1 and "the jobs cannot be listed" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="asks as another user")
def test_who_sees_no_notes_is_told_so(reknit, open_path, world):
    world.config["operator"] = None  # as Slurm, of a user who is not its own
    world.config["user"] = "nobody"
    world.dir.chmod(0o755)
    world.socket.chmod(0o666)
    config = open_path / "reknitd.yaml"
    config.write_text(json.dumps({"adapter": {"command": [str(c) for c in world.command]}}))
    done = reknit("release-stale", "--config", config, user=65534)
    assert done.returncode == 1 and done.stdout == ""
    assert "nobody is neither root nor SlurmUser" in done.stderr


def test_a_configuration_that_is_not_there(reknit, tmp_path):
    done = reknit("release-stale", "--config", tmp_path / "misspelt.yaml")
    assert done.returncode == 1 and "misspelt.yaml: No such file or directory" in done.stderr


def test_an_adapter_that_does_not_start(reknit, tmp_path):
    config = tmp_path / "reknitd.yaml"
    config.write_text("adapter: {command: [/bin/false]}\n")
    done = reknit("release-stale", "--config", config)
    assert done.returncode == 1 and "the adapter does not work" in done.stderr


@pytest.mark.slurm
def test_on_a_real_slurm(reknit):
    if not (reknit.path.parent / "reknit-slurm").exists():
        pytest.skip("reknit-slurm was not built")
    with cluster_module.Cluster(nodes=1) as c:
        ours = c.submit("true", "--hold", nodes=1)
        theirs = c.submit("true", "--hold", nodes=1)
        c.run("scontrol", "update", f"JobId={ours}", f"AdminComment={note(-60)}")
        done = reknit("release-stale", env=c.env)
        assert done.returncode == 0 and f"job {ours} is released" in done.stdout, done.stdout + done.stderr
        c.await_state(ours, "COMPLETED")
        assert c.state(theirs) == "PENDING"
