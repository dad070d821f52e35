# SPDX-License-Identifier: Apache-2.0
"""reknit-probe: what it sees of a node that the test makes up, and that what hangs hides nothing."""

import fcntl
import json
import os
import pathlib
import subprocess
import time

import fuse_stuck
import pytest
from conftest import REKNIT

BIN = REKNIT.parent
PROBE = BIN / "reknit-probe"
FAKES = (BIN.parent / "tests/system").resolve()


class Node:
    """A tree of /sys and /proc, and what NVIDIA's driver says."""

    def __init__(self, folder):
        self.root, self.driver, self.library = folder / "root", folder / "driver", "fake_nvml.so"
        self.write("/proc/meminfo", "MemTotal:  2097152 kB\nMemAvailable:  1048576 kB\nHardwareCorrupted:     4 kB\n")
        self.write("/proc/1/mountinfo", "22 1 8:1 / / rw,noatime shared:1 - ext4 /dev/sda1 rw\n")

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def port(self, name, number=1, state="4: ACTIVE", phys="5: LinkUp", **counters):
        folder = f"/sys/class/infiniband/{name}/ports/{number}"
        self.write(f"{folder}/state", state + "\n")
        self.write(f"{folder}/phys_state", phys + "\n")
        self.write(f"{folder}/rate", "400 Gb/sec (4X NDR)\n")
        for counter, n in counters.items():
            self.write(f"{folder}/counters/{counter}", f"{n}\n")

    def run(self, *options, **env):
        return subprocess.run([str(PROBE), "--root", str(self.root), "--nvml", str(FAKES / self.library),
                               *map(str, options)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "FAKE_NVML": str(self.driver), **env})

    def look(self, *options):
        """({area: {subject: items}}, {area: outcome})"""
        done = self.run(*options)
        assert (done.returncode, done.stderr) == (0, "")
        seen, ended = {}, {}
        for line in map(json.loads, done.stdout.splitlines()):
            if "outcome" in line:
                ended[line["subject"] or line["area"]] = line["outcome"]
            else:
                seen.setdefault(line["area"], {})[line["subject"]] = line["items"]
        return seen, ended

    def gpu(self, *lines):
        self.driver.write_text("".join(f"{line}\n" for line in lines))
        return self.look("--only", "gpu")[0]["gpu"]


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_a_node_without_anything_is_fine(tmp_path):
    done = subprocess.run([str(PROBE), "--root", str(tmp_path), "--nvml", str(tmp_path / "none.so")],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    outcomes = {line["area"]: line["outcome"] for line in map(json.loads, done.stdout.splitlines())
                if "outcome" in line}
    assert set(outcomes) == {"gpu", "nic", "disk", "mounts", "memory", "clock", "processes"}
    assert outcomes["gpu"] == outcomes["nic"] == outcomes["mounts"] == "absent"
    assert "hung" not in outcomes.values()


def test_a_gpu_says_everything_of_itself(node):
    gpus = node.gpu()
    assert list(gpus) == ["0000:4d:00", "0000:4e:00"]
    assert gpus["0000:4d:00"] == {
        "ecc_corrected": 0, "ecc_uncorrected": 0, "pages_pending": 0, "rows_corrected": 0, "rows_uncorrected": 0,
        "rows_pending": 0, "rows_failed": 0, "sm_mhz": 1980, "sm_mhz_max": 1980, "clock_reasons": 0,
        "power_mw": 650000, "power_limit_mw": 700000, "temperature_c": 61, "slowdown_c": 87, "shutdown_c": 92,
        "pcie_gen": 5, "pcie_gen_max": 5, "pcie_width": 16, "pcie_width_max": 16, "pcie_replays": 0,
        "busy_percent": 98, "memory_mib": 1024, "compute_processes": 0, "leftover_mib": 0, "nvlinks_up": 18,
        "nvlinks_down": 0, "nvlink_errors": 0, "recovery_action": 0, "nvml_return": 0}


@pytest.mark.parametrize("line, item, value", [
    ("1.ecc.1 3", "ecc_uncorrected", 3),
    ("1.ecc.0 9", "ecc_corrected", 9),
    ("1.pages_pending 1", "pages_pending", 1),
    ("1.rows_pending 1", "rows_pending", 1),
    ("1.rows_failed 1", "rows_failed", 1),
    ("1.clock_reasons 64", "clock_reasons", 64),
    ("1.pcie_width 8", "pcie_width", 8),
    ("1.pcie_replays 77", "pcie_replays", 77),
    ("1.links 17", "nvlinks_down", 1),
    ("1.link_errors 2", "nvlink_errors", 18 * 4 * 2),
    ("1.recovery 2", "recovery_action", 2),
    ("1.ecc.1 !15", "nvml_return", 15),
    ("1.temperature !999", "nvml_return", 999),
    ("1.rows_pending !16", "nvml_return", 16),
])
def test_each_fault_of_a_gpu_is_seen_and_its_neighbours_are_not_ill(node, line, item, value):
    well = node.gpu()
    gpus = node.gpu(line)
    assert gpus["0000:4e:00"][item] == value
    assert gpus["0000:4d:00"] == well["0000:4d:00"]


def test_a_lost_gpu_has_no_place_and_says_so(node):
    gpus = node.gpu("1.handle !15")
    assert gpus["index 1"] == {"nvml_return": 15}
    assert gpus["0000:4d:00"]["nvml_return"] == 0


def test_what_a_gpu_refuses_is_unknown(node):
    gpu = node.gpu("0.ecc.1 !3", "0.links !3", "0.power !3")["0000:4d:00"]
    assert gpu["nvml_return"] == 0 and gpu["ecc_corrected"] == 0
    assert "ecc_uncorrected" not in gpu and "power_mw" not in gpu


def test_memory_of_a_process_that_is_gone_is_left_over(node):
    node.write("/proc/4242/stat", "4242 (train) S 1")
    assert node.gpu("0.process 4242", "0.process_memory 700")["0000:4d:00"]["leftover_mib"] == 0
    assert node.gpu("0.process 4243", "0.process_memory 700")["0000:4d:00"]["leftover_mib"] == 700


def test_an_old_library_leaves_unknown_what_it_does_not_have(node):
    node.library = "fake_nvml_old.so"
    assert node.gpu() == {"0000:4d:00": {"nvml_return": 0}, "0000:4e:00": {"nvml_return": 0}}


@pytest.mark.parametrize("lines, outcome", [
    (["init !9"], "absent"), (["init !18"], "failed"), (["gpus 0"], "absent"), (["gpus !999"], "failed"),
    (["init die"], "failed"), (["1.ecc.0 die"], "failed"), (["init sleep"], "hung"), (["1.ecc.0 sleep"], "hung"),
    (["init print"], "done")])
def test_how_the_library_ends_is_told(node, lines, outcome):
    node.driver.write_text("".join(f"{line}\n" for line in lines))
    seen, ended = node.look("--only", "gpu", "--deadline", "500ms")
    assert ended == {"gpu": outcome}
    assert ("gpu" in seen) == ("1.ecc.0" in lines[0] or outcome == "done")


def test_a_library_that_is_none_has_failed(node, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    done = node.run("--only", "gpu", "--nvml", tmp_path / "text.so")
    assert json.loads(done.stdout)["outcome"] == "absent" and "text.so" in json.loads(done.stdout)["why"]


def test_what_hangs_hides_nothing_and_takes_no_longer_than_its_deadline(node):
    node.driver.write_text("init sleep\n")
    node.port("mlx5_0")
    began = time.monotonic()
    seen, ended = node.look("--deadline", "700ms")
    assert time.monotonic() - began < 20
    assert ended["gpu"] == "hung" and set(ended.values()) <= {"hung", "done", "absent"}
    assert list(ended.values()).count("hung") == 1
    assert {"nic", "disk", "memory", "clock", "processes"} <= set(seen)


def test_who_hangs_still_is_joined_by_nobody(node, tmp_path):
    """A child that cannot be killed holds its lock: here, the test does."""
    locks = tmp_path / "locks"
    locks.mkdir()
    assert node.look("--only", "gpu", "--locks", locks)[1] == {"gpu": "done"}
    lock, = locks.iterdir()
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert node.look("--only", "gpu", "--locks", locks, "--deadline", "300ms") == ({}, {"gpu": "hung"})
    assert node.look("--only", "gpu", "--locks", locks)[1] == {"gpu": "done"}


def test_two_looks_at_once_both_see(node, tmp_path):
    """The agent's and a health check's: neither takes the other for one that hangs."""
    locks = tmp_path / "locks"
    locks.mkdir()
    node.look("--only", "gpu", "--locks", locks)
    lock, = locks.iterdir()
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        second = subprocess.Popen([str(PROBE), "--root", str(node.root), "--nvml", str(FAKES / node.library), "--only",
                                   "gpu,processes", "--deadline", "60s", "--locks", str(locks)],
                                  stdout=subprocess.PIPE, text=True, env={**os.environ, "FAKE_NVML": str(node.driver)})
        said = second.stdout.readline() + second.stdout.readline()  # all of the other area: the GPUs' turn was before
        assert '"outcome":"done"' in said and "gpu" not in said
    rest = second.communicate(timeout=60)[0]
    assert '"area":"gpu","subject":"","outcome":"done"' in rest


def test_ports_are_seen_with_what_they_count(node):
    node.port("mlx5_0", link_downed=3, symbol_error=17, port_rcv_errors=5)
    node.port("mlx5_1", state="1: DOWN", phys="2: Polling")
    node.port("mlx5_2", state="1: DOWN", phys="3: Disabled")
    node.write("/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "8\n")
    ports = node.look("--only", "nic")[0]["nic"]
    assert ports == {
        "mlx5_0/1": {"up": 1, "rate_mbps": 400000, "downs": 3, "symbol_errors": 17, "receive_errors": 5,
                     "out_of_sequence": 8},
        "mlx5_1/1": {"up": 0, "rate_mbps": 400000},
        "mlx5_2/1": {"rate_mbps": 400000},  # an operator's doing
    }


def test_only_cards_are_ports(node):
    for name in ("eth0", "lo", "veth1"):
        node.write(f"/sys/class/net/{name}/carrier", "1\n")
        node.write(f"/sys/class/net/{name}/carrier_changes", "4\n")
        node.write(f"/sys/class/net/{name}/speed", "-1\n")
    node.write("/sys/class/net/eth0/device/vendor", "0x15b3\n")
    assert node.look("--only", "nic")[0]["nic"] == {"eth0": {"up": 1, "turns": 4}}


def test_a_file_system_that_went_read_only_is_told_from_one_that_was_mounted_so(node):
    node.write("/proc/1/mountinfo",
               "22 1 8:1 / / rw,noatime shared:1 - ext4 /dev/sda1 ro,errors=remount-ro\n"
               "23 22 8:2 / /usr ro - ext4 /dev/sda2 ro\n"
               "24 22 8:3 / /with\\040blank rw - xfs /dev/sda3 rw\n"
               "25 22 0:3 / /snap rw - squashfs /dev/loop0 ro\n"
               "26 22 0:4 / /run rw - tmpfs tmpfs rw\n"
               "nonsense\n")
    disks = node.look("--only", "disk")[0]["disk"]
    assert {name: d.get("forced_read_only") for name, d in disks.items()} == {"/": 1, "/with blank": 0}
    assert disks["/"]["free_permille"] >= 0


@pytest.mark.parametrize("state, live", [("live", 1), ("dead", 0), ("resetting", None)])
def test_the_state_of_nvme(node, state, live):
    node.write("/sys/class/nvme/nvme0/state", state + "\n")
    assert node.look("--only", "disk")[0]["disk"]["nvme0"].get("live") == live


def test_memory_and_its_controllers(node):
    node.write("/sys/devices/system/edac/mc/mc0/ue_count", "2\n")
    node.write("/sys/devices/system/edac/mc/mc0/ce_count", "31\n")
    assert node.look("--only", "memory")[0]["memory"] == {
        "": {"total_mib": 2048, "available_mib": 1024, "corrupted_kib": 4},
        "mc0": {"uncorrected": 2, "corrected": 31}}


def test_processes_by_what_their_names_cannot_hide(node):
    for pid, stat in {7: "7 (a) S 1", 8: "8 (b) D (x) Z 1", 9: "9 (c) D 1", 10: "10 (D) R 1"}.items():
        node.write(f"/proc/{pid}/stat", stat + " 1 1\n")
    # /proc/1, which has no stat, is nobody.
    assert node.look("--only", "processes")[0]["processes"] == {"": {"processes": 4, "zombies": 1, "blocked": 1}}


def test_only_mounts_of_other_hosts_are_asked(node, tmp_path):
    node.write("/proc/1/mountinfo", f"22 1 0:50 / {tmp_path} rw - nfs4 server:/x rw\n"
                                    "23 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                                    "24 1 0:51 / /no/such/place rw - lustre x@tcp:/y rw\n")
    seen, ended = node.look("--only", "mounts")
    assert list(seen["mounts"]) == [str(tmp_path)] and seen["mounts"][str(tmp_path)]["error"] == 0
    # What a service may not see is not ill.
    assert ended == {str(tmp_path): "done", "/no/such/place": "failed", "mounts": "done"}


@pytest.mark.skipif(fuse_stuck.missing() is not None, reason=str(fuse_stuck.missing()))
def test_a_mount_that_hangs_so_that_nothing_ends_it(node, tmp_path):
    stuck, well, locks = tmp_path / "stuck", tmp_path / "well", tmp_path / "locks"
    for folder in (stuck, well, locks):
        folder.mkdir()
    options = ["--mounts", f"{stuck},{well}", "--locks", locks]
    with fuse_stuck.StuckMount(stuck) as mount:
        began = time.monotonic()
        seen, ended = node.look("--only", "mounts", "--deadline", "1s", *options)
        assert time.monotonic() - began < 20
        assert mount.asked.is_set()
        assert ended == {str(stuck): "hung", str(well): "done", "mounts": "done"}
        assert list(seen["mounts"]) == [str(well)]
        # The child of the first look is there still: the second sends nobody.
        mount.asked.clear()
        assert node.look("--only", "mounts", "--deadline", "1s", *options)[1][str(stuck)] == "hung"
        assert not mount.asked.is_set()


def test_for_people(node):
    node.driver.write_text("1.recovery 2\n0.rows_failed 1\n")
    text = node.run("--human").stdout
    assert "gpu        0000:4d:00  NVIDIA Test GPU-00000000\n" in text
    assert ("Looks like a trouble:\n"
            "GPU 0000:4d:00: a row of its memory could not be replaced (rows_failed 1)\n"
            "           probe.gpu_remap_failed\n"
            "GPU 0000:4e:00: the driver asks for a reboot of the node (recovery_action 2)\n"
            "           probe.gpu_recovery_reboot\n") in text
    node.driver.write_text("")
    assert "trouble" in node.run("--human", "--only", "gpu").stdout.splitlines()[-1]


@pytest.mark.parametrize("options", [["--only", "moon"], ["--deadline", "5"], ["--deadline", "0s"], ["more"], ["--x"]])
def test_what_is_not_understood_is_refused(node, options):
    done = node.run(*options)
    assert done.returncode == 2 and done.stdout == "" and done.stderr


def test_the_page_and_the_help_know_the_same_options(top):
    text = subprocess.run([str(PROBE), "--help"], capture_output=True, text=True, check=True).stdout
    page = (top / "man/reknit-probe.8.scd").read_text().replace("\\", "")
    words = text.replace("[", " ").replace(",", " ").split()
    for option in {w for w in words if w.startswith("--")}:
        assert f"*{option}*" in page, option
