# SPDX-License-Identifier: Apache-2.0
"""Real agents look at their nodes, in a real Slurm: what NVIDIA's driver, sysfs and the kernel's files say isolates a
node, or does not."""

import json

import pytest
from cluster import Cluster, await_true
from conftest import REKNIT
from reknitd import PLUGIN, Reknitd, Site
from test_probe import FAKES, Node

pytestmark = pytest.mark.slurm

# Lines of the driver, and a part of the reason of the drain.
FAULTS = {
    "well": ("", None),
    "lost": ("0.ecc.1 !15", "probe.gpu_lost"),
    "wants a reset": ("0.recovery 1", "probe.gpu_recovery_reset"),
    "wants a reboot": ("0.recovery 2", "probe.gpu_recovery_reboot"),
    "cannot remap": ("0.rows_failed 1", "probe.gpu_remap_failed"),
    "will remap": ("0.rows_pending 1", None),
    "leftover": ("0.process 99999999", None),
    "hangs": ("0.ecc.1 sleep", None),
    "read-only": ("", "probe.disk_read_only"),
    "a dead port": ("", None),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Site(nodes=len(FAULTS), cpus=8, plugstack=Cluster.plugin(PLUGIN)) as site:
        daemon = Reknitd(site, poll="1s", agents={"listen": site.agents_address, "munge_socket": str(site.munge_socket)},
                         nodes={"mode": "act", "max_drained": 100, "drains_per_hour": 0, "breaker_share": 100}).start()
        site.trees = {}
        for name in site.nodes:
            site.trees[name] = tree = Node(tmp_path_factory.mktemp(name))
            tree.driver.write_text("")
            tree.port("mlx5_0")
            base = site.dir / "agents" / name
            site.start_daemon(f"agent-{name}", [
                REKNIT.parent / "reknit-agent", "--to", site.agents_address, "--node", name, "--socket", base, "--kmsg", "",
                "--spool", f"{base}.spool", "--munge-socket", site.munge_socket, "--probe-every", "1s", "--probe-deadline",
                "1s", "--root", tree.root, "--nvml", FAKES / tree.library],
                env={"FAKE_NVML": str(tree.driver)})
        await_true("its agents", lambda: daemon.agents() == len(FAULTS))
        looks = [site.dir / "agents" / f"{name}.spool.looks" for name in site.nodes]
        await_true("a first look of each", lambda: all(p.exists() and "mlx5_0/1" in p.read_text() for p in looks))
        yield site, daemon
        assert daemon.stop() == 0
        assert "identical" in daemon.journal.replay()


def drained(site):
    """Node -> reason."""
    nodes = json.loads(site.run("sinfo", "--json"))["nodes"]
    return {n["name"]: n["reason"] for n in nodes if "DRAIN" in n["state_flags"]}


def test_what_a_look_shows_isolates_a_node(site):
    site, daemon = site
    names = dict(zip(FAULTS, site.nodes))
    for fault, (line, _) in FAULTS.items():
        site.trees[names[fault]].driver.write_text(line + "\n")
    site.trees[names["read-only"]].write("/proc/1/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 ro\n")
    site.trees[names["a dead port"]].port("mlx5_0", state="1: DOWN", phys="2: Polling")
    wanted = {names[fault]: reason for fault, (_, reason) in FAULTS.items() if reason}
    soft = {("probe.gpu_remap_pending", names["will remap"]), ("probe.gpu_leftover", names["leftover"]),
            ("probe.gpu_hangs", names["hangs"]), ("probe.port_down", names["a dead port"])}

    def facts():
        return {(e.body["signal"]["signature"], e.body["node"]) for e in daemon.journal.events(kind="node-fact")}

    await_true(lambda: f"{soft - facts()}", lambda: soft <= facts(), 90)
    await_true(lambda: f"{wanted}, not {drained(site)}\n{daemon.log(3000)}",
               lambda: {n: wanted.get(n, "none") in reason and reason.startswith("reknit: ")
                        for n, reason in drained(site).items()} == dict.fromkeys(wanted, True), 90)
    daemon.await_looks()
    assert drained(site).keys() == wanted.keys()
    # That it is over is told as well, and told once.
    site.trees[names["wants a reset"]].driver.write_text("")
    await_true("that it is over", lambda: [e.body for e in daemon.journal.events(kind="node-fact")
                                           if e.body.get("cleared") and e.body["node"] == names["wants a reset"]])
