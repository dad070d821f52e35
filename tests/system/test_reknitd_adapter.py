# SPDX-License-Identifier: Apache-2.0
"""reknitd with an adapter that does not do as docs/ADAPTER.md says."""

import os

import pytest
from api_daemon import Daemon, wait_for
from fake_adapter import World

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="its daemon is asked as several users")


def test_what_has_no_place_in_a_list_is_passed_over(tmp_path):
    with World(nodes=4) as world:
        for op in ("jobs", "nodes", "job", "config"):
            world.break_next(op, "odd", times=10_000)
        first = world.submit(n_nodes=2, comment="reknit", exclude=["n4"], runs=[(1, "failed", 1)])
        daemon = Daemon(tmp_path, world)
        try:
            daemon.until("/v1/decisions", lambda a: len(a["decisions"]) == 1)
            world.forget(first)  # "gone" of the next answer holds what is no number of a job
            second = world.submit(n_nodes=2, comment="reknit", runs=[(1, "failed", 1)])
            daemon.until("/v1/decisions", lambda a: [str(d["id"]) for d in a["decisions"]] == [str(second)])
            assert "is started again" not in daemon.log()
            wait_for(lambda: daemon.process.poll() is None, "reknitd is gone")
            daemon.stop()
        finally:
            daemon.process.kill()
            daemon.process.wait()
