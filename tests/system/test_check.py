# SPDX-License-Identifier: Apache-2.0
"""reknit-agent check: by itself, and as Slurm's Prolog, Epilog and HealthCheckProgram."""

import os
import pathlib
import subprocess
import time

import cluster as cluster_module
import pytest
from cluster import Cluster, await_true
from conftest import REKNIT
from test_probe import FAKES, Node

AGENT = REKNIT.parent / "reknit-agent"
RESET = "GPU 0000:4d:00: the driver asks for a reset (recovery_action 1)"
NEEDS_CLUSTER = pytest.mark.skipif(cluster_module.missing() is not None, reason=str(cluster_module.missing()))


@pytest.fixture
def node(tmp_path):
    n = Node(tmp_path)
    n.driver.write_text("")
    return n


def check(node, *options, env=None):
    return subprocess.run([str(AGENT), "check", "--root", str(node.root), "--nvml", str(FAKES / node.library), *map(str, options)],
                          capture_output=True, text=True, timeout=90,
                          env={**os.environ, "FAKE_NVML": str(node.driver), **(env or {})})


def outcome(done):
    return done.returncode, done.stdout


def test_a_node_that_is_well(node):
    assert outcome(check(node)) == (0, "")


@pytest.mark.parametrize("line, reason", [
    ("0.recovery 1", RESET),
    ("0.rows_failed 1", "GPU 0000:4d:00: a row of its memory could not be replaced (rows_failed 1)"),
    ("0.ecc.1 !15", "GPU 0000:4d:00: the driver has lost it (NVML: GPU is lost) (nvml_return 15)"),
])
def test_hard_facts_fail_it(node, line, reason):
    node.driver.write_text(line + "\n")
    assert outcome(check(node)) == (1, reason + "\n")


@pytest.mark.parametrize("line", ["0.rows_pending 1", "0.clock_reasons 64", "0.ecc.1 5", "0.process 99999999",
                                  "0.recovery 5", "0.temperature !999"])
def test_what_is_soft_or_old_does_not(node, line):
    node.driver.write_text(line + "\n")
    assert outcome(check(node)) == (0, "")


def test_what_cannot_be_looked_at_is_not_known(node):
    node.driver.write_text("init sleep\n")
    done = check(node, "--deadline", "300ms")
    assert outcome(done) == (3, "") and "gpu: not known: no answer within 300ms" in done.stderr
    for caller in ("--prolog", "--epilog", "--health-check"):
        done = check(node, "--deadline", "300ms", caller)
        assert outcome(done) == (0, "") and "gpu: not known" in done.stderr
    node.driver.write_text("init !18\n")
    assert check(node).returncode == 3


def test_what_the_second_look_sees_no_more_is_none(node):
    """The first look takes the trouble away, as a reset that was just under way would."""
    node.driver.write_text("0.recovery once\n")
    assert outcome(check(node)) == (0, "")
    assert pathlib.Path(f"{node.driver}.asked").exists()


def test_a_site_says_what_fails(node, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("fail: [probe.gpu_hangs, 'probe.gpu_remap_p*']\nignore: [probe.gpu_recovery_reset]\n")
    node.driver.write_text("0.recovery 1\n")
    assert outcome(check(node, "--policy", policy)) == (0, "")
    node.driver.write_text("0.rows_pending 1\n")
    assert outcome(check(node, "--policy", policy))[0] == 1
    node.driver.write_text("init sleep\n")
    assert outcome(check(node, "--policy", policy, "--deadline", "300ms")) == (1, "GPUs: the GPUs' driver does not answer\n")
    for text, why in (("fails: []\n", "fails"), ("fail: [" + "x" * 60 + "]\n", "fail"), ("fail: 3: 4\n", "")):
        policy.write_text(text)
        done = check(node, "--policy", policy)
        assert done.returncode == 2 and f"{policy}:" in done.stderr and why in done.stderr
    assert check(node, "--policy", tmp_path / "none").returncode == 2


@pytest.mark.parametrize("options", [["--prolog", "--epilog"], ["--deadline", "1h"], ["--deadline", "0s"], ["more"], ["--x"]])
def test_what_is_not_understood_is_refused(node, options):
    done = check(node, *options)
    assert done.returncode == 2 and done.stderr


class Scontrol:
    """In its place: says what it is to, and notes how it was called."""

    def __init__(self, folder):
        self.path, self.calls = folder / "scontrol", folder / "calls"

    def write(self, state, status=0, update="true"):
        self.calls.write_text("")
        self.path.write_text(f"""#!/bin/sh
printf '%s|' "$@" >>{self.calls}; echo >>{self.calls}
case $1 in
show) echo 'NodeName=n1 Arch=x86_64 State={state} ThreadsPerCore=1'; exit {status} ;;
*) {update} ;;
esac
""")
        self.path.chmod(0o755)

    def drained(self):
        return [line for line in self.calls.read_text().splitlines() if line.startswith("update")]


@pytest.fixture
def scontrol(tmp_path):
    return Scontrol(tmp_path)


@pytest.mark.parametrize("caller, status", [("--prolog", 1), ("--epilog", 1), ("--health-check", 0)])
def test_it_drains_with_its_reason(node, scontrol, caller, status):
    scontrol.write("IDLE")
    node.driver.write_text("0.recovery 1\n1.recovery 1\n")
    done = check(node, caller, "--node", "n1", "--scontrol", scontrol.path)
    assert outcome(done) == (status, f"{RESET} (and 1 more)\n")
    assert scontrol.drained() == [f"update|NodeName=n1|State=DRAIN|Reason=reknit: {RESET} (and 1 more)|"]


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "ALLOCATED+DRAIN", "DOWN*", "FAIL", "IDLE+MAINTENANCE+DRAIN"])
def test_what_others_drained_keeps_their_reason(node, scontrol, state):
    scontrol.write(state)
    node.driver.write_text("0.recovery 1\n")
    assert check(node, "--health-check", "--node", "n1", "--scontrol", scontrol.path).returncode == 0
    assert check(node, "--prolog", "--node", "n1", "--scontrol", scontrol.path).returncode == 1
    assert scontrol.drained() == []


@pytest.mark.parametrize("how", ["missing", "refuses", "hangs", "name"])
def test_a_node_that_cannot_be_drained_has_failed(node, scontrol, how):
    scontrol.write("IDLE", update={"refuses": "exit 1", "hangs": "exec sleep 1000"}.get(how, "true"))
    node.driver.write_text("0.recovery 1\n")
    began = time.monotonic()
    done = check(node, "--health-check", "--node", "n1;x" if how == "name" else "n1", "--scontrol",
                 pathlib.Path("/no/such") if how == "missing" else scontrol.path)
    assert outcome(done) == (1, RESET + "\n") and "could not be drained" in done.stderr
    assert time.monotonic() - began < 50  # Slurm kills it after 60 s


# Under a real Slurm.

@pytest.fixture
def slurm(tmp_path):
    """start(**conf): a cluster whose scripts call the check of a node that the test makes up, one for each node."""
    folder = pathlib.Path(subprocess.run(["mktemp", "-d", "/tmp/reknit-check-XXXXXX"], check=True, capture_output=True,
                                         text=True).stdout.strip())
    folder.chmod(0o755)
    nodes, started = {}, []
    for name in ("n1", "n2"):
        (folder / name).mkdir()
        nodes[name] = Node(folder / name)
        nodes[name].driver.write_text("")

    def start(*callers, requeue_delay=None, **conf):
        scripts = {}
        for caller in callers:
            script = folder / caller
            script.write_text(f"""#!/bin/sh
# slurmd starts a HealthCheckProgram with hardly any environment.
[ -f {folder}/env ] || exit 0
. {folder}/env
export FAKE_NVML={folder}/$SLURMD_NODENAME/driver
exec {AGENT} check --{caller} --root {folder}/$SLURMD_NODENAME/root --nvml {FAKES}/fake_nvml.so \\
    --locks {folder}/$SLURMD_NODENAME --deadline 1s >>{folder}/log 2>&1
""")
            script.chmod(0o755)
            scripts[{"prolog": "Prolog", "epilog": "Epilog", "health-check": "HealthCheckProgram"}[caller]] = script
        c = Cluster(nodes=2, conf={**scripts, **conf}, requeue_delay=requeue_delay)
        c.folder = folder
        started.append(c)
        c.start()
        (folder / "env.new").write_text(f"export SLURM_CONF={c.conf} PATH={c.env['PATH']}\n")
        (folder / "env.new").rename(folder / "env")
        return c

    start.nodes = nodes
    yield start
    for c in started:
        c.close()
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def reason(c, node):
    shown = c.run("scontrol", "show", "node", node, "--oneliner")
    state = shown.split(" State=")[1].split()[0]
    return state, shown.split(" Reason=")[1].split(" [")[0] if " Reason=" in shown else ""


def await_drained(c, node, want):
    def there():
        state, why = reason(c, node)
        return "DRAIN" in state and why == want
    await_true(lambda: f"{node}: {reason(c, node)}, {(c.folder / 'log').read_text() if (c.folder / 'log').exists() else ''}",
               there, 60, 0.1)


@NEEDS_CLUSTER
def test_a_sick_node_fails_the_prolog_and_the_job_runs_elsewhere(slurm):
    slurm.nodes["n1"].driver.write_text("0.recovery 1\n")
    c = slurm("prolog", requeue_delay=6, SchedulerParameters="nohold_on_prolog_fail")
    job = c.submit("echo on $SLURMD_NODENAME", nodes=1)
    await_drained(c, "n1", f"reknit: {RESET}")
    c.await_end(job, 180)
    assert c.state(job) == "COMPLETED" and c.output(job).endswith("on n2\n")
    assert "DRAIN" not in reason(c, "n2")[0]


@NEEDS_CLUSTER
def test_a_node_that_got_sick_fails_the_epilog(slurm):
    c = slurm("epilog")
    job = c.submit("true", "--nodes=1", "--nodelist=n1")
    c.await_end(job)
    slurm.nodes["n1"].driver.write_text("0.rows_failed 1\n")
    job = c.submit("true", "--nodes=1", "--nodelist=n1")
    c.await_end(job)
    await_drained(c, "n1", "reknit: GPU 0000:4d:00: a row of its memory could not be replaced (rows_failed 1)")
    assert c.state(job) == "COMPLETED"


@NEEDS_CLUSTER
def test_the_health_check_drains_and_leaves_others_reasons(slurm):
    slurm.nodes["n2"].driver.write_text("init sleep\n")  # not known: not sick
    c = slurm("health-check", HealthCheckInterval=1, HealthCheckNodeState="ANY")
    c.set_node("n2", "DRAIN", "somebody else's")
    slurm.nodes["n1"].driver.write_text("0.recovery 2\n")
    await_drained(c, "n1", "reknit: GPU 0000:4d:00: the driver asks for a reboot of the node (recovery_action 2)")
    slurm.nodes["n2"].driver.write_text("0.recovery 2\n")
    log = c.folder / "log"
    before = log.read_text().count("reboot")
    await_true("more checks", lambda: log.read_text().count("reboot") > before + 3, 60, 0.1)
    assert reason(c, "n2")[1] == "somebody else's"


def test_the_page_and_the_help_know_the_same_options(top):
    text = subprocess.run([str(AGENT), "check", "--help"], capture_output=True, text=True, check=True).stdout
    page = (top / "man/reknit-agent.8.scd").read_text().replace("\\", "")
    for option in {w for w in text.replace("[", " ").replace(",", " ").split() if w.startswith("--")}:
        assert f"*{option}*" in page, option
