# SPDX-License-Identifier: Apache-2.0
"""reknit-agent looks at its node: what changes becomes a fact that reknitd gets, once, and where something on
the node hangs, the agent does not."""

import json

import pytest
from cluster import await_true
from test_agent import place, pytestmark  # noqa: F401
from test_probe import FAKES, Node

SOFT = {"probe.clock_unsynchronised"}  # of the machine that the tests run on


class Probed:
    """An agent on a node that the test makes up, which it looks at once a second."""

    def __init__(self, place, node, *options):
        self.place, self.node, self.options, self.listener = place, node, options, place.listener()
        self.agent = None
        self.start()
        self.listener.out.expect('"kind":"alive"')

    def start(self):
        self.agent = self.place.agent(self.listener.port, "n1", "--root", self.node.root, "--nvml",
                                      FAKES / self.node.library, "--probe-every", "1s", "--heartbeat", "200ms",
                                      *self.options)

    def _told(self, kind):
        told = (json.loads(line).get("message", {}) for line in self.listener.out.lines)
        return [m for m in told if m.get("kind") == kind]

    def facts(self):
        facts = [m["fact"] for m in self._told("fact")]
        return [f for f in facts if f["signal"]["signature"] not in SOFT]

    def signatures(self):
        return [("-" if f.get("cleared") else "") + f["signal"]["signature"] for f in self.facts()]

    def await_fact(self, signature):
        """The last one of that signature, "-" in front where it is to be over."""
        await_true(lambda: f"{signature}; told {self.facts()}", lambda: signature in self.signatures(), 60, 0.05)
        return self.facts()[len(self.signatures()) - 1 - self.signatures()[::-1].index(signature)]

    def beats(self):
        return len(self._told("alive"))


@pytest.fixture
def node(tmp_path, monkeypatch):
    n = Node(tmp_path)
    n.driver.write_text("")
    n.port("mlx5_0")
    n.port("mlx5_1", state="1: DOWN", phys="2: Polling")
    monkeypatch.setenv("FAKE_NVML", str(n.driver))
    return n


def test_a_fault_becomes_a_fact_and_its_end_too(place, node):  # noqa: F811
    p = Probed(place, node)
    node.driver.write_text("1.recovery 2\n")
    fact = p.await_fact("probe.gpu_recovery_reboot")
    assert (fact["isolation"], fact["node"], fact["count"]) == ("reboot", "n1", 1)
    signal = fact["signal"]
    assert (signal["provenance"], signal["layer"], signal.get("role", "root")) == ("nvml", "kernel", "root")
    assert (signal["who"]["node"], signal["who"]["device"]) == ("n1", "0000:4e:00")
    assert signal["text"].startswith("GPU 0000:4e:00: the driver asks for a reboot of the node (recovery_action 2")
    node.driver.write_text("")
    over = p.await_fact("-probe.gpu_recovery_reboot")
    assert (over["signal"]["role"], over["signal"]["clears"]) == ("noise", "probe.gpu_recovery_reboot")
    # A port that goes down, after all that was told once; the one that never was up is nothing.
    node.port("mlx5_0", state="1: DOWN", phys="2: Polling")
    fact = p.await_fact("probe.port_down")
    assert (fact.get("isolation", "none"), fact["signal"]["provenance"]) == ("none", "agent")
    assert p.signatures() == ["probe.gpu_recovery_reboot", "-probe.gpu_recovery_reboot", "probe.port_down"]
    assert p.agent.close() == 0


def test_a_driver_that_hangs_is_a_fact_and_stalls_nobody(place, node):  # noqa: F811
    p = Probed(place, node, "--probe-deadline", "500ms")
    node.driver.write_text("1.ecc.0 sleep\n")
    beats = p.beats()
    fact = p.await_fact("probe.gpu_hangs")
    assert (fact["isolation"], fact["signal"]["blame"]) == ("exclude", "node")
    await_true("heartbeats", lambda: p.beats() > beats + 2, 30, 0.05)
    # What else is wrong is seen meanwhile, and then that the driver answers again.
    node.port("mlx5_0", state="1: DOWN", phys="2: Polling")
    p.await_fact("probe.port_down")
    node.driver.write_text("")
    p.await_fact("-probe.gpu_hangs")
    assert p.signatures() == ["probe.gpu_hangs", "probe.port_down", "-probe.gpu_hangs"]


def test_facts_wait_for_reknitd(place, node):  # noqa: F811
    """They are in the spool, and outlive the agent."""
    p = Probed(place, node)
    port = p.listener.port
    p.listener.process.kill()
    p.listener.process.wait()
    node.driver.write_text("0.rows_failed 1\n")
    spool = place.folder / "spool"
    await_true("the spool", lambda: "probe.gpu_remap_failed" in spool.read_text(), 60, 0.05)
    p.agent.process.kill()
    p.agent.process.wait()
    node.driver.write_text("")
    p.listener = place.listener(port=port)
    p.start()
    assert p.await_fact("probe.gpu_remap_failed")["isolation"] == "drain"


def test_a_restart_tells_nothing_twice_and_what_is_over_meanwhile(place, node):  # noqa: F811
    p = Probed(place, node)
    node.driver.write_text("0.rows_failed 1\n1.recovery 1\n")
    p.await_fact("probe.gpu_remap_failed"), p.await_fact("probe.gpu_recovery_reset")
    looks = place.folder / "spool.looks"
    await_true("the file", lambda: "gpu_recovery_reset" in looks.read_text(), 30, 0.05)
    p.agent.process.kill()
    p.agent.process.wait()
    node.driver.write_text("0.rows_failed 1\n")
    p.start()
    p.await_fact("-probe.gpu_recovery_reset")
    assert sorted(p.signatures()) == ["-probe.gpu_recovery_reset", "probe.gpu_recovery_reset", "probe.gpu_remap_failed"]
    # Of another boot nothing counts.
    p.agent.process.kill()
    p.agent.process.wait()
    kept = json.loads(looks.read_text())
    looks.write_text(json.dumps({**kept, "boot": "another"}))
    p.start()
    await_true("what is still wrong", lambda: p.signatures().count("probe.gpu_remap_failed") == 2, 60, 0.05)


def test_one_that_is_not_to_look_does_not(place, node):  # noqa: F811
    node.driver.write_text("0.rows_failed 1\n")
    p = Probed(place, node, "--probe-every", "0s", "--heartbeat", "100ms")
    beats = p.beats()
    await_true("heartbeats", lambda: p.beats() > beats + 20, 60, 0.05)
    assert p.facts() == [] and not list(place.folder.glob("probe.*"))
