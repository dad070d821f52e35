# SPDX-License-Identifier: Apache-2.0
"""One reknitd works for a cluster on a host, whatever folders its state lies in."""

import json
import os
import signal
import subprocess

from api_daemon import Daemon, daemon_of, wait_for
from fake_adapter import World


def looked(daemon):
    """It has seen the scheduler's jobs."""
    return daemon.until("/v1/health", lambda h: h["adapter"].get("last_look_us"))


def folder_of(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    return folder


def end_of(daemon):
    try:
        status = daemon.process.wait(30)
    finally:
        daemon.process.kill()
        daemon.process.wait()
    return status


def one_reknitd(reknit, config, socket=None):
    """The row of doctor, None when it has none."""
    env = {**os.environ, **({"REKNIT_SOCKET": str(socket)} if socket else {})}
    done = subprocess.run([reknit.path, "doctor", "--config", config, "--format", "json"], env=env,
                          capture_output=True, text=True, timeout=60)
    return next((row for row in json.loads(done.stdout)["checks"] if row["check"] == "one reknitd"), None)


def test_a_second_one_ends_and_says_who_is_first(reknit, tmp_path):
    with World(nodes=2) as world, daemon_of(folder_of(tmp_path, "first"), world, mode="act") as first:
        looked(first)
        before = world.asked["jobs"]
        second = Daemon(folder_of(tmp_path, "second"), world, mode="act")
        assert end_of(second) == 1
        assert f"another reknitd, process {first.process.pid} of user 0, works for the cluster 'fake'" in second.log()
        wait_for(lambda: world.asked["jobs"] > before, "the first one looks on")
        row = one_reknitd(reknit, first.config)
        assert row["state"] == "ok", row
        row = one_reknitd(reknit, second.config)
        assert row["state"] == "fail" and f"process {first.process.pid} of user 0" in row["found"], row


def test_it_asks_nothing_of_a_scheduler_that_another_one_has(tmp_path):
    with World(nodes=2) as world, daemon_of(folder_of(tmp_path, "first"), world) as first:
        looked(first)
        first.process.send_signal(signal.SIGSTOP)  # asks nothing meanwhile, and still has it
        try:
            before = world.asked["jobs"] + world.asked["nodes"]
            second = Daemon(folder_of(tmp_path, "second"), world)
            assert end_of(second) == 1, second.log()
            assert world.asked["jobs"] + world.asked["nodes"] <= before + 1  # what was under way
        finally:
            first.process.send_signal(signal.SIGCONT)


def test_whoever_comes_after_the_first_one_ended_may(tmp_path):
    with World(nodes=2) as world:
        first = Daemon(folder_of(tmp_path, "first"), world)
        looked(first)
        first.process.kill()
        first.process.wait()
        with daemon_of(folder_of(tmp_path, "second"), world) as second:
            looked(second)


def test_clusters_of_the_same_name_are_two(reknit, tmp_path):
    """Each has a controller of its own."""
    with World(nodes=2) as one, World(nodes=2) as other, \
            daemon_of(folder_of(tmp_path, "first"), one) as first, \
            daemon_of(folder_of(tmp_path, "second"), other) as second:
        looked(first)
        looked(second)
        assert one_reknitd(reknit, first.config)["state"] == "ok"


def test_nothing_is_looked_at_before_it_is_known(tmp_path):
    """A scheduler that does not tell yet which one it is."""
    with World(nodes=2) as world:
        world.break_next("config", "error", times=1000, error="failed", text="not today")
        with daemon_of(folder_of(tmp_path, "only"), world) as daemon:
            wait_for(lambda: "the scheduler cannot be asked (" in daemon.log(), daemon.log)
            assert not world.asked["jobs"] and not world.asked["nodes"]
            world.mend()
            looked(daemon)
            assert "the scheduler can be asked again" in daemon.log()
