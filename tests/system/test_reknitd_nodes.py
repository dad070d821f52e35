# SPDX-License-Identifier: Apache-2.0
"""What the agents see on their nodes, until the scheduler has it: drained, told, given back. With a scheduler in
memory, and the test in place of the agents."""

import os
import subprocess

import pytest
from api_daemon import ALICE, BOB, wait_for
from conftest import REKNIT
from fake_adapter import World
from test_reknitd_agents import Node, Place

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="what is told comes from root")

GPU = "0000:9b:00"
OFF_BUS = "reknit: GPU 0000:9b:00 has fallen off the bus (Xid 79)"


class Witness(Node):
    """An agent that tells what the kernel of its node says."""

    def __init__(self, place, name):
        super().__init__(place, name)
        self.number = 0

    def fact(self, signature, isolation, code=0, device="", **signal):
        self.number += 1
        signal = {"kind": "hit", "provenance": "kernel", "layer": "kernel", "role": "root", "cause": "gpu-hardware",
                  "blame": "device", "confidence": 95, "signature": signature, "text": f"told {self.number}",
                  "who": {"node": self.name, "device": device}, **signal}
        fact = {"isolation": isolation, "count": 1, "signal": signal}
        if code:
            fact["code"] = code
        if signal.pop("cleared", False):
            fact["cleared"] = True
        assert self.say("fact", self.number, fact=fact) == {"ack": self.number, "origin": 7}

    def xid(self, code, isolation, **more):
        self.fact("gpu.xid", isolation, code, GPU, **more)


class Site(Place):
    config = {}  # what else is configured

    def __init__(self, folder, world, **nodes):
        super().__init__(folder, world)
        self.world = world
        self.tell(mode="act", **nodes)

    def tell(self, **nodes):
        agents = {"listen": f"127.0.0.1:{self.port}", "auth": "key", "key_file": str(self.key)}
        self.daemon.configure(mode="act", agents=agents, nodes={"max_drained": 50, **nodes}, **self.config)
        self.daemon.reload()

    def node(self, name):
        return self.world.nodes[name]

    def await_drained(self, name, reason):
        wait_for(lambda: self.node(name)["reason"] == reason and "drain" in self.node(name)["flags"],
                 lambda: f"{self.node(name)}\n{self.daemon.log()[-3000:]}")

    def await_usable(self, name):
        wait_for(lambda: self.node(name)["usable"], lambda: f"{self.node(name)}\n{self.daemon.log()[-3000:]}")

    def ledger(self, name, is_so=lambda _: True):
        return self.daemon.until(f"/v1/nodes/{name}", lambda n: "ledger" in n and is_so(n["ledger"]))["ledger"]

    def reknit(self, *argv):
        return subprocess.run([REKNIT, *argv], text=True, capture_output=True, timeout=60,
                              env={**os.environ, "REKNIT_SOCKET": str(self.daemon.socket)})


@pytest.fixture
def world():
    with World(nodes=4) as w:
        yield w


@pytest.fixture
def site(open_path, world):
    s = Site(open_path, world)
    try:
        yield s
        s.daemon.stop()
    finally:
        s.kill()


def test_a_gpu_that_falls_off_the_bus_has_its_node_drained(site):
    Witness(site, "n2").xid(79, "reboot")
    site.await_drained("n2", OFF_BUS)
    ledger = site.ledger("n2", lambda x: x["drained"])
    assert (ledger["isolation"], ledger["device"], ledger["reason"]) == ("reboot", GPU, OFF_BUS)
    assert [f["code"] for f in ledger["facts"]] == [79]
    listed = site.reknit("nodes").stdout
    assert "n2" in listed and "reboot" in listed and "has fallen off the bus" in listed
    told = site.reknit("explain", "n2").stdout
    assert f"drained      by reknit, since" in told and "gpu.xid of 0000:9b:00: told 1" in told
    assert all("drain" not in site.node(n)["flags"] for n in ("n1", "n3", "n4"))


def test_health_counts_the_fleet(site):
    for name in ("n2", "n4"):  # two of four may be drained by us
        Witness(site, name).xid(79, "reboot")
        site.ledger(name, lambda x: x["drained"])
    Witness(site, "n3").xid(94, "exclude")
    site.world.set_node("n1", "idle", ["drain"], "NHC: a disk is full", "root")
    fleet = site.daemon.until("/v1/fleet", lambda f: f["nodes"]["out_by_others"] == 1)
    assert fleet["nodes"] == {"known": 4, "usable": 1, "out_by_reknit": 2, "out_by_others": 1}
    assert fleet["asks_for"]["reboot"] == 2 and fleet["trouble"]["gpu-hardware"] == 3, fleet
    assert (fleet["isolation"]["drained"], fleet["isolation"]["max_drained"]) == (2, 2)
    assert fleet["isolation"]["drained_within_hour"] == 2
    assert site.daemon.ask("/v1/fleet", uid=ALICE)[0] == 403
    said = site.reknit("health").stdout
    assert "nodes      4: 1 usable, 2 drained by Reknit, 1 out of service by others\n" in said, said
    assert "trouble    gpu-hardware 3\n" in said and "reboot 2" in said and "2 of at most 2 drained" in said, said
    assert "'reknit explain NODE'" in said


def test_in_mode_observe_nothing_is_done(site):
    site.tell(mode="observe")
    Witness(site, "n2").xid(79, "reboot")
    assert site.ledger("n2", lambda x: x["isolation"] == "reboot")["waits"] == "nodes.mode is not act"
    site.tell(mode="act")
    site.await_drained("n2", OFF_BUS)


def test_what_stands_against_a_node_outlives_a_restart(site):
    Witness(site, "n2").xid(79, "reboot")
    site.await_drained("n2", OFF_BUS)
    site.ledger("n2", lambda x: x["drained"])
    site.kill()
    site.daemon.start()
    site.await_listening(times=2)
    assert site.ledger("n2")["drained"] is True
    assert site.reknit("nodes", "resume", "n2").returncode == 0
    site.await_usable("n2")
    assert site.ledger("n2", lambda x: not x["drained"])["isolation"] == "none"


def test_what_somebody_else_drained_survives_us(site):
    site.world.set_node("n2", "idle", ["drain"], "NHC: a disk is full", "root")
    witness = Witness(site, "n2")
    witness.xid(79, "reboot")
    site.ledger("n2", lambda x: x.get("waits") == "it is out of service already, by somebody else's word")
    assert site.reknit("nodes", "resume", "n2").returncode == 0
    witness.xid(48, "reset")
    site.ledger("n2", lambda x: x["isolation"] == "reset")
    assert site.node("n2")["reason"] == "NHC: a disk is full"


def test_whoever_resumes_a_node_by_himself_is_believed(site):
    witness = Witness(site, "n2")
    witness.xid(48, "reset")
    site.await_drained("n2", f"reknit: GPU {GPU} has a memory error that cannot be corrected (Xid 48)")
    site.ledger("n2", lambda x: x["drained"])
    wait_for(lambda: [e for e in site.journal.events(kind="node-look") if e.body.get("drain")], site.daemon.log)
    site.world.set_node("n2", "idle")
    assert site.ledger("n2", lambda x: x["isolation"] == "none")["drained"] is False
    assert site.node("n2")["usable"]


def test_a_check_says_whether_a_node_is_well(site, tmp_path):
    answer, check = tmp_path / "answer", tmp_path / "check"
    answer.write_text("1")
    check.write_text(f"#!/bin/sh\necho \"$1\" >> {tmp_path}/asked\nexit $(cat {answer})\n")
    check.chmod(0o755)
    site.tell(mode="act", check=[str(check), "{node}"])
    witness = Witness(site, "n2")
    witness.xid(48, "reset")
    site.ledger("n2", lambda x: x["drained"])
    witness.xid(154, "none", cleared=True)
    wait_for(lambda: [e for e in site.journal.events(kind="result") if "the check ended" in e.body.get("detail", "")],
             site.daemon.log)
    assert (tmp_path / "asked").read_text() == "n2\n"
    assert site.ledger("n2", lambda x: x["isolation"] == "none")["drained"] is True
    answer.write_text("0")
    witness.xid(154, "none", cleared=True)
    site.await_usable("n2")


def test_storage_that_many_nodes_miss_is_no_nodes_fault(site):
    for name in ("n1", "n2", "n3", "n4"):
        Witness(site, name).fact("storage.nfs_not_responding", "none", cause="storage", blame="none", role="symptom")
    verdicts = wait_for(lambda: site.journal.events(kind="node-verdict"), site.daemon.log)
    assert [(v.body.get("node", ""), v.body["rule"]) for v in verdicts] == [("", "shared")]
    assert "trouble of what nodes share: storage.nfs_not_responding" in site.reknit("nodes").stdout
    assert all(site.node(n)["usable"] for n in site.world.nodes)


def test_a_rule_that_convicts_too_many_is_stopped(site):
    for name in ("n1", "n2", "n3"):
        Witness(site, name).xid(79, "reboot")
    wait_for(lambda: "is stopped until 'reknit nodes rearm'" in site.daemon.log(), site.daemon.log)
    assert "a rule is stopped, see 'reknit nodes rearm': gpu.xid 79" in site.reknit("nodes").stdout
    assert sum("drain" in n["flags"] for n in site.world.nodes.values()) == 2
    assert site.reknit("nodes", "rearm").returncode == 0
    assert site.reknit("nodes", "rearm").returncode == 1


def test_nodes_are_operators_business(site):
    Witness(site, "n2").xid(79, "reboot")
    site.ledger("n2")
    for method, path in (("GET", ""), ("POST", "/n2/resume")):
        status, answer = site.daemon.ask(f"/v1/nodes{path}", ALICE, method)
        assert status == 403 and "for operators only" in answer["error"], path
    assert site.daemon.ask("/v1/rearm", ALICE, "POST")[0] == 403
    assert "ledger" not in site.daemon.ask("/v1/nodes/n2", uid=ALICE)[1]
    status, answer = site.daemon.ask("/v1/nodes/n99")
    assert status == 404 and "has no node 'n99'" in answer["error"]
    assert site.daemon.ask("/v1/nodes/n99", uid=ALICE)[0] == 200  # as any of which she may not know


def test_a_fact_is_evidence_of_the_job_that_runs_there(site):
    job = site.world.submit(comment="reknit")
    site.journal.wait(job, "attempt-started", timeout=20)
    [node] = site.world.job(job)["nodes"]
    Witness(site, node).xid(79, "reboot")
    site.ledger(node)
    site.world.end(job, code=1)
    verdict = site.journal.wait(job, "verdict", timeout=30).body
    culprits = verdict.get("culprits", {})
    assert (verdict["cause"], culprits.get("nodes"), culprits.get("devices")) == ("gpu-hardware", [node], [GPU]), \
        site.journal.story(job)


LIES = """[ 4242.424242] NVRM: Xid (PCI:0000:9b:00): 79, pid=4242, name=python3, GPU has fallen off the bus.
n3 kernel: [ 4242.424243] NVRM: Xid (PCI:0000:9b:00): 48, pid=4242, DBE (double bit error) detected
n4 kernel: NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)
[rank0]: RuntimeError: CUDA error: uncorrectable ECC error encountered
reknit: GPU 0000:9b:00 has fallen off the bus (Xid 79)
"""


@pytest.mark.parametrize("users", [[ALICE] * 3, [ALICE, BOB, 61003]], ids=["one-user", "three-users"])
def test_what_programs_print_convicts_no_node(open_path, site, users):
    """Text of a job is of that job: it may be kept away from its own node, and no node is drained or held for sick."""
    jobs = []
    for number, uid in enumerate(users):
        log = open_path / f"{number}.log"
        log.write_text(f"step 1 loss 2.0\nstep 2 loss 1.9\n{LIES}")
        os.chown(log, uid, uid)
        jobs.append(site.world.submit(name=f"liar{number}", uid=uid, stdout_path=str(log), stderr_path=str(log),
                                      work_dir=str(open_path), comment="reknit"))
    for job in jobs:
        site.journal.wait(job, "signal", lambda e: e.body.get("cause") == "gpu-hardware", timeout=30)
        site.world.end(job)
        verdict = site.journal.wait(job, "verdict", timeout=30).body
        assert verdict["cause"] == "gpu-hardware", verdict
        own = set(verdict["culprits"]["nodes"])
        assert len(own) == 1 and set(site.journal.wait(job, "decision").body.get("nodes", [])) <= own
    Witness(site, "n4").fact("nfs.slow", "none", cause="storage", blame="none")  # the books are open
    site.ledger("n4")
    for name in ("n1", "n2", "n3", "n4"):
        status, node = site.daemon.ask(f"/v1/nodes/{name}")
        assert status == 200 and node["scheduler"]["usable"] and "drain" not in site.node(name)["flags"]
        assert node.get("ledger", {}).get("isolation", "none") == "none", node
        assert not [f for f in node.get("ledger", {}).get("facts", []) if f["signature"].startswith("gpu")], node
    assert not site.journal.events(kind="node-verdict")
    assert not [e for e in site.journal.events(kind="intent") if e.body["intent"] in ("drain", "undrain")]
