# SPDX-License-Identifier: Apache-2.0
"""Real agents read the kernel's log of their nodes, in a real Slurm: what they find there isolates a node, or does not."""

import json

import pytest
from cluster import Cluster, await_true
from conftest import REKNIT
from reknitd import PLUGIN, Reknitd, Site, USER

pytestmark = pytest.mark.slurm

GPU, OTHER = "0000:9b:00", "0000:1b:00"
MISSING = "nfs: server 10.1.1.5 not responding, still trying"


def xid(code, rest="", gpu=GPU):
    return f"NVRM: Xid (PCI:{gpu}): {code}, pid='<unknown>', name=<unknown>, {rest}"


def action(text):
    return xid(154, f"GPU recovery action changed from 0x0 (None) to 0x1 ({text})")


FAULT = xid(31, "Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f29_5b8c9000.")
# What the kernel of a node had said before its agent began, a minute apart, and the reason of the drain.
NODES = {
    "off the bus": ([xid(79, "GPU has fallen off the bus.")], f"GPU {GPU} has fallen off the bus (Xid 79)"),
    "double bit, remapped": ([xid(48, "channel 0x5"), xid(63, "Row Remapper: New row marked for remapping")],
                             f"GPU {GPU} has a memory error that cannot be corrected (Xid 48)"),
    "cleanup behind it": ([xid(48, "channel 0x5"), xid(45, "Ch 00000010")],
                          f"GPU {GPU} has a memory error that cannot be corrected (Xid 48)"),
    "contained": ([xid(94, "Contained error")], None),
    "a page fault": ([FAULT], None),
    "page faults of one GPU": ([FAULT] * 3, f"GPU {GPU} runs into page faults again and again (Xid 31)"),
    "exceptions of many": ([xid(13, "Graphics SM Warp Exception on (GPC 2, TPC 1, SM 0): Illegal Address", gpu)
                            for gpu in (GPU, OTHER, "0000:3b:00")], None),
    "cleanup alone": ([xid(45, "Ch 00000010")], None),
    "no answer": ([xid(119, "Timeout after 6s of waiting for RPC response from GPU1 GSP!")],
                  f"GPU {GPU} has a system processor that does not answer (Xid 119)"),
    "to be reset": ([action("GPU Reset Required")], "gpu.recovery_reset"),
    "to be drained": ([action("Drain and Reset")], "gpu.recovery_reset"),
    "to be drained of its peers": ([action("Drain P2P")], "gpu.recovery_reset"),
    "nothing to be done": ([xid(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")], None),
    "to be booted": ([action("Node Reboot Required")], "gpu.recovery_reboot"),
    "read-only": (["EXT4-fs (nvme0n1p2): Remounting filesystem read-only"], "storage.fs_readonly"),
    "an image": (["EXT4-fs (loop3): Remounting filesystem read-only"], None),
    "no storage": ([MISSING], None),
    "forged": ([f"python3[77]: segfault at 0 ip 0 sp 0 error 6 in {xid(79)}[55d000+2c9000]"], None),
}


@pytest.fixture(scope="module")
def site():
    with Site(nodes=len(NODES), cpus=8, plugstack=Cluster.plugin(PLUGIN)) as site:
        daemon = Reknitd(site, poll="1s", agents={"listen": site.agents_address, "munge_socket": str(site.munge_socket)},
                         nodes={"mode": "act", "max_drained": 100, "drains_per_hour": 0, "breaker_share": 100}).start()
        for node, (texts, _) in zip(site.nodes, NODES.values()):
            site.kernel_says(node, *texts, apart=60)
        site.kernel_says(site.nodes[0], xid(79), facility=1)
        site.start_agents(REKNIT.parent / "reknit-agent", "--probe-every", "0s")
        await_true("its agents", lambda: daemon.agents() == len(NODES))
        yield site, daemon
        assert daemon.stop() == 0
        assert "identical" in daemon.journal.replay()


def drained(site):
    """Node -> reason."""
    nodes = json.loads(site.run("sinfo", "--json"))["nodes"]
    return {n["name"]: n["reason"] for n in nodes if "DRAIN" in n["state_flags"]}


def test_what_the_kernel_says_isolates_a_node(site):
    site, daemon = site
    wanted = {node: reason for node, (_, reason) in zip(site.nodes, NODES.values()) if reason}

    def facts():
        return {(e.body["node"], e.body["signal"]["time_us"], e.body["signal"]["signature"])
                for e in daemon.journal.events(kind="node-fact")}

    count = sum(len(texts) for texts, _ in NODES.values()) - 1  # but for the forged one
    await_true(lambda: f"{count} facts: {sorted(facts())}", lambda: len(facts()) == count)
    await_true(lambda: f"{wanted}, not {drained(site)}\n{daemon.log(3000)}",
               lambda: {n: wanted.get(n, "none") in reason for n, reason in drained(site).items()}
               == dict.fromkeys(wanted, True), 150)  # of storage, whether others miss it too is waited for
    daemon.await_looks()
    assert drained(site).keys() == wanted.keys()


def test_whom_the_kernel_killed_for_memory_is_told_of_his_job(site):
    site, daemon = site
    job = site.submit("srun sleep 600", nodes=2, comment="reknit:observe", user=USER)
    site.await_state(job, ["RUNNING"])
    daemon.journal.wait(job, "attempt-started")
    node = site.run("scontrol", "show", "hostnames", site.job(job)["nodes"]).split()[0]
    site.kernel_says(node, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,mems_allowed=0,oom_memcg=/x,"
                     f"task_memcg=/system.slice/slurmstepd.scope/job_{job}/step_0/user/task_0,task=python3,pid=4194300,uid=1",
                     "Memory cgroup out of memory: Killed process 4194300 (python3) total-vm:99kB")
    fact = await_true("it is told", lambda: next((e.body for e in daemon.journal.events(kind="node-fact")
                                                  if e.body["signal"]["signature"] == "kernel.oom_kill"), None))
    assert (fact["node"], fact["job"], fact["isolation"]) == (node, job, "none")
    site.run("scancel", job)
    site.await_end(job)


def test_storage_that_many_miss_is_no_nodes_fault(site):
    site, daemon = site
    for node in site.nodes[:4]:
        site.kernel_says(node, MISSING)
    verdict = await_true("that it is shared", lambda: next(
        (e.body for e in daemon.journal.events(kind="node-verdict") if not e.body.get("node")), None))
    assert verdict["rule"] == "shared", verdict
