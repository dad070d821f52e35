# SPDX-License-Identifier: Apache-2.0
"""`reknit run` on a machine with GPUs, as far as a folder of the driver makes one: what a job is told."""

import json
import os
import subprocess

import pytest

from running import FAST_POLICY

# In a mount namespace of its own, where the driver shows four GPUs.
MACHINE = """
mount -t tmpfs none /proc/driver || exit 99
n=0
for bus in 0a 1b 4d 5e; do
    mkdir -p /proc/driver/nvidia/gpus/0000:$bus:00.0
    printf 'Model: \\t NVIDIA H100\\nGPU UUID: \\t GPU-%s\\nDevice Minor: \\t 9000%d\\n' $bus $n \\
        >/proc/driver/nvidia/gpus/0000:$bus:00.0/information
    n=$((n + 1))
done
exec "$@"
"""

# One of them is bad, and the job fails as long as it has it.
JOB = """
echo "attempt $REKNIT_ATTEMPT has ${CUDA_VISIBLE_DEVICES-all} ${NVIDIA_VISIBLE_DEVICES-}"
case "${CUDA_VISIBLE_DEVICES-all}" in
*GPU-4d* | all | *2*)
    echo "NVRM: Xid (PCI:0000:4d:00): 79, pid=1234, GPU has fallen off the bus."
    exit 1 ;;
esac
"""


@pytest.fixture
def on_gpus(reknit, tmp_path):
    """Runs the job there; returns what it and reknit said."""
    if subprocess.run(["unshare", "-rm", "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no mount namespaces here")

    def run(policy, **env):
        (tmp_path / "policy.yaml").write_text(
            FAST_POLICY.replace("max_restarts: 1000", "max_restarts: 1") + policy)
        environment = {k: v for k, v in os.environ.items() if "VISIBLE_DEVICES" not in k}
        result = subprocess.run(
            ["unshare", "-rm", "sh", "-c", MACHINE, "sh", reknit.path, "run", "--name", "job",
             "--policy", str(tmp_path / "policy.yaml"), "--format", "json", "--", "sh", "-c", JOB],
            env={**environment, "REKNIT_STATE_DIR": str(tmp_path / "state"), **env},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        if result.returncode == 99:
            pytest.skip("nothing can be mounted here")
        return result, json.loads(result.stderr.splitlines()[-1])

    return run


@pytest.mark.parametrize("chosen, rest", [(None, "GPU-0a,GPU-1b,GPU-5e"), ("3,2,0", "GPU-5e,GPU-0a")])
def test_a_bad_gpu_is_kept_out(on_gpus, chosen, rest):
    env = {"CUDA_VISIBLE_DEVICES": chosen} if chosen else {}
    result, run = on_gpus("exclude_devices: true\n", **env)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"attempt 2 has {rest} "
    decision = run["attempts"][0]["decision"]
    assert decision["action"] == "restart-excluding"
    assert decision["without"] == ["0000:4d:00"]
    assert "without GPU 0000:4d:00" in decision["why"]
    assert "without GPU 0000:4d:00" in result.stderr


def test_a_container_is_told_too(on_gpus):
    result, _ = on_gpus("exclude_devices: true\n", NVIDIA_VISIBLE_DEVICES="all")
    assert "attempt 2 has GPU-0a,GPU-1b,GPU-5e GPU-0a,GPU-1b,GPU-5e" in result.stdout


def test_it_stays_in_as_long_as_nobody_allows_it(on_gpus):
    result, run = on_gpus("")
    assert result.returncode == 75
    assert "attempt 2 has all" in result.stdout
    assert "GPU 0000:4d:00 stays in (exclude_devices is false)" in run["attempts"][0]["decision"]["why"]
    assert run["attempts"][1]["decision"]["rule"] == "max-restarts"
