# SPDX-License-Identifier: Apache-2.0
"""The tools that guard the project fail when they should, and install-deps harms nobody."""

import os
import re
import select
import shutil
import subprocess

import pytest


def run(*argv, **kwargs):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, **kwargs)


# tools/install-deps, on a machine made of stand-ins


class Machine:
    """A PATH with the few programs that install-deps calls; `installed` names what is there."""

    def __init__(self, folder, top, uid, installed=()):
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log = folder / "log"
        self.log.touch()
        self.policy = folder / "policy-rc.d"
        self.tool = top / "tools/install-deps"
        for name in ("sed", "awk", "grep", "dirname", "env", "sh", "true", "cat", "chmod", "rm"):
            (self.bin / name).symlink_to(shutil.which(name))
        self.program("id", f'[ "$1" = -u ] && echo {uid} || echo somebody')
        self.program("apt-get", f'echo "apt-get $*" >>{self.log}')
        lines = "".join(f"echo 'installed {name}'\n" for name in installed)
        self.program("dpkg-query", lines or "exit 1")

    def program(self, name, body):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def install(self, *purposes):
        return run(self.tool, *purposes, env={"PATH": str(self.bin), "POLICY_RC_D": str(self.policy)})

    def calls(self):
        return self.log.read_text()


def names(top, *purposes):
    return run(top / "tools/install-deps", "--list", *purposes).stdout.split()


def test_every_purpose_has_packages(top):
    for purpose in ("build", "test", "demo", "bench", "coverage", "cluster", "deb"):
        assert names(top, purpose), purpose
    assert run(top / "tools/install-deps", "--list", "nothing").returncode == 2


def test_nothing_missing_is_quiet_and_needs_no_root(top, tmp_path):
    machine = Machine(tmp_path, top, 1000, names(top, "build"))
    result = machine.install("build")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert machine.calls() == ""


def test_root_updates_first_and_installs_only_what_is_missing(top, tmp_path):
    machine = Machine(tmp_path, top, 0, [n for n in names(top, "build") if n != "scdoc"])
    assert machine.install("build").returncode == 0
    update, install = machine.calls().splitlines()
    assert update.endswith(" update")
    assert install.endswith("install --no-install-recommends scdoc")


def test_no_service_is_started(top, tmp_path):
    machine = Machine(tmp_path, top, 0)
    machine.program("apt-get", f'"$POLICY_RC_D" munge start; echo $? >>{machine.log}')
    assert machine.install("cluster").returncode == 0
    assert machine.calls().split() == ["101", "101"]
    assert not machine.policy.exists()
    machine.policy.write_text("this machine's own")
    machine.install("cluster")
    assert machine.policy.read_text() == "this machine's own"


def test_sudo_is_used_by_others(top, tmp_path):
    machine = Machine(tmp_path, top, 1000)
    machine.program("sudo", f'echo "sudo $*" >>{machine.log}; [ "$1" = -n ] && shift; exec "$@"')
    assert machine.install("bench").returncode == 0
    assert "sudo -n env" in machine.calls()  # stdin is no terminal: it must not ask
    assert re.search("^apt-get .*install", machine.calls(), re.MULTILINE)


def test_neither_root_nor_sudo_says_what_to_do(top, tmp_path):
    machine = Machine(tmp_path, top, 1000)
    result = machine.install("bench")
    assert result.returncode == 1
    assert "apt-get install ripgrep" in result.stderr
    assert machine.calls() == ""


def test_a_sudo_that_refuses_says_what_to_do(top, tmp_path):
    machine = Machine(tmp_path, top, 1000)
    machine.program("sudo", "exit 1")
    result = machine.install("bench")
    assert result.returncode == 1
    assert "apt-get install ripgrep" in result.stderr


def test_a_failing_installation_is_a_failure(top, tmp_path):
    machine = Machine(tmp_path, top, 0)
    machine.program("apt-get", 'case "$*" in *install*) exit 100 ;; esac')
    result = machine.install("bench")
    assert result.returncode == 1
    assert "could not install: ripgrep" in result.stderr


# tools/check-layers and tools/check-style, on sources made for them


@pytest.fixture
def tree(top, tmp_path):
    """A copy of the tools with an empty source tree beside it."""
    shutil.copytree(top / "tools", tmp_path / "tools")
    shutil.copy(top / ".clang-format", tmp_path)

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    write.folder = tmp_path
    return write


def check(tree, tool):
    return run(f"tools/{tool}", cwd=tree.folder)


@pytest.mark.parametrize("layer, header, allowed", [
    ("base", "core/core.h", False),
    ("core", "base/str.h", True),
    ("core", "extract/line.h", False),
    ("extract", "core/core.h", True),
    ("extract", "journal/journal.h", False),
    ("journal", "extract/line.h", False),
    ("pump", "journal/journal.h", True),
    ("source", "pump/pump.h", False),
    ("cli", "pump/pump.h", True),
    ("cli", "daemon/daemon.h", False),
    ("spawner", "core/core.h", False),
    ("cli", "local.h", False),
    ("novelty", "base/str.h", False),
    ("core/state", "core/attribute/attribute.h", True),
    ("core/attribute", "core/state/state.h", False),
    ("core/state", "core/state/ledger.h", True),
    ("core/model", "core/policy/decide.h", False),
    ("core/plan", "core/core.h", False),
    ("core", "core/plan/plan.h", True),
    ("core/novelty", "core/model/event.h", False),
])
def test_layers(tree, layer, header, allowed):
    tree(f"src/{layer}/x.c", f'/* text */\n#include "{header}"\n')
    result = check(tree, "check-layers")
    assert (result.returncode == 0) == allowed, result.stdout
    assert allowed or f"src/{layer}/x.c" in result.stdout


GOOD = '/* SPDX-License-Identifier: Apache-2.0 */\nint f(int x)\n{\n    return x;\n}\n'


@pytest.mark.parametrize("text, complaint", [
    (GOOD, None),
    (GOOD.replace("return x;", "return x; /* not system() */"), None),
    (GOOD.replace("return x", 'return g("strcpy(a, b)")'), None),
    (GOOD.replace("return x", "return s.system(x)"), None),
    (GOOD.replace("return x", "return system(x)"), "system() is banned"),
    (GOOD.replace("return x", "return atoi(x)"), "atoi() is banned"),
    (GOOD.replace("    return", "  return"), "not clang-formatted"),
    (GOOD.split("\n", 1)[1], "SPDX"),
    (GOOD + "int a;\n" * 1200, "the limit is 1200"),
    (GOOD.replace("    return x;\n", "    x++;\n" * 151), "the limit is 150"),
])
def test_style(tree, text, complaint):
    tree("src/base/x.c", text)
    result = check(tree, "check-style")
    assert (result.returncode == 0) == (complaint is None), result.stdout
    assert complaint is None or complaint in result.stdout


@pytest.mark.parametrize("folder, allowed", [("src/base", True), ("tests/unit", False)])
def test_style_of_waiting(tree, folder, allowed):
    tree("src/base/y.c", GOOD)
    tree(f"{folder}/x.c", GOOD.replace("return x", "return poll(NULL, 0, x)"))
    result = check(tree, "check-style")
    assert (result.returncode == 0) == allowed, result.stdout
    assert allowed or "a test waits for an event" in result.stdout


# tools/check-purity, on libraries made for it

BASE = """
long clock_gettime(int, void *);
int snprintf(char *, unsigned long, const char *, ...);
long wall(void) { return clock_gettime(0, 0); }
int format(char *buf) { return snprintf(buf, 4, "x"); }
"""


@pytest.mark.parametrize("core, complaint", [
    ("int format(char *); int f(char *b) { return format(b); }", None),
    ("static const int table[] = {1, 2}; int f(int i) { return table[i]; }", None),
    ("long wall(void); long f(void) { return wall(); }", "clock_gettime"),
    ("long wall(void); long (*const t[])(void) = {wall}; long f(int i) { return t[i](); }",
     "clock_gettime"),
    ("int rand(void); int f(void) { return rand(); }", "rand"),
    ("double pow(double, double); double f(double x) { return pow(x, x); }", "pow"),
    ("int f(void) { static int calls; return calls++; }", "calls"),
    ("int shared = 1; int f(void) { return shared; }", "shared"),
])
def test_purity(tree, core, complaint):
    for layer, text in (("core", core), ("base", BASE)):
        tree(f"build/src/{layer}/{layer}.c", text)
        folder = tree.folder / "build/src" / layer
        run("gcc", "-O1", "-fno-builtin", "-ffunction-sections", "-c", f"{layer}.c", cwd=folder,
            check=True)
        run("ar", "rcs", f"lib{layer}.a", f"{layer}.o", cwd=folder, check=True)
    result = check(tree, "check-purity")
    assert (result.returncode == 0) == (complaint is None), result.stdout + result.stderr
    assert complaint is None or complaint in result.stdout


# tools/run-tests


@pytest.fixture
def runner(top):
    """The class Runner of tools/run-tests, as a program would import it."""
    import importlib.machinery
    import importlib.util

    loader = importlib.machinery.SourceFileLoader("run_tests", str(top / "tools/run-tests"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
    loader.exec_module(module)
    return module


def test_junit_counts_each_case(runner, tmp_path, capsys):
    path = tmp_path / "j.xml"
    path.write_text('<testsuites><testsuite name="s"><testcase classname="c" name="good"/>'
                    '<testcase classname="c" name="bad"><failure>because</failure></testcase>'
                    '<testcase classname="c" name="out"><skipped message="no"/></testcase>'
                    '</testsuite></testsuites>')
    tally = runner.Tally()
    assert tally.add_junit(path) == 2
    assert (tally.passed, tally.failed) == (1, 1)
    assert "because" in capsys.readouterr().out
    assert tally.add_junit(tmp_path / "none.xml") is None


def step(top, *code):
    """One step of a Runner, in a process of its own: (status of the step, output)."""
    program = (
        "import ctypes, importlib.machinery, importlib.util, types\n"
        f"loader = importlib.machinery.SourceFileLoader('r', {str(top / 'tools/run-tests')!r})\n"
        "r = importlib.util.module_from_spec(importlib.util.spec_from_loader('r', loader))\n"
        "loader.exec_module(r)\n"
        "ctypes.CDLL(None).prctl(r.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)\n"
        "runner = r.Runner(types.SimpleNamespace(jobs=1))\n"
        f"ok = runner.step('it', {list(code)!r}, 2)\n"
        "print('verdict', ok, runner.tally.passed, runner.tally.failed)\n"
    )
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return run("/usr/bin/python3", "-c", program, env=env).stdout


def test_a_step_passes_or_fails_by_its_status(top):
    assert "verdict True 1 0" in step(top, "true")
    assert "verdict False 0 1" in step(top, "false")


def test_a_step_that_never_ends_is_ended(top):
    output = step(top, "sh", "-c", "sleep 1000 & setsid sleep 1001 & wait")
    assert "verdict False" in output and "stopped after 2 s" in output


def test_a_process_left_behind_is_a_failure(top):
    output = step(top, "sh", "-c", "setsid sleep 1002 >/dev/null 2>&1 &")
    assert "verdict False 1 1" in output and "sleep 1002" in output
    assert run("pgrep", "-f", "^sleep 1002").returncode == 1


def test_a_run_that_is_ended_takes_its_stages_along(top, tmp_path):
    """In a copy whose build never ends, and says so when it has begun."""
    shutil.copytree(top / "tools", tmp_path / "tools")
    (tmp_path / "tools/build").write_text("#!/bin/sh\necho up >begun\nexec sleep 1003\n")
    os.mkfifo(tmp_path / "begun")
    begun = os.open(tmp_path / "begun", os.O_RDWR)
    process = subprocess.Popen([str(tmp_path / "tools/run-tests"), "checks"])
    try:
        assert select.select([begun], [], [], 60)[0]
        process.terminate()
        assert process.wait(timeout=60) == 128 + 15
        assert run("pgrep", "-f", "^sleep 1003").returncode == 1
    finally:
        process.kill()
        os.close(begun)


# tools/install, with a project of one file


@pytest.fixture
def built(tmp_path):
    """A configured build folder whose prefix is /usr/local."""
    (tmp_path / "page.txt").write_text("page\n")
    (tmp_path / "meson.build").write_text(
        "project('one')\ninstall_data('page.txt', install_dir: get_option('datadir'))\n")
    folder = tmp_path / "build"
    done = run("meson", "setup", "-Dprefix=/usr/local", folder, tmp_path)
    assert done.returncode == 0, done.stdout
    (folder / "reknit-options").write_text("-Dwerror=true -Dprefix=/usr/local\n")
    return folder


@pytest.mark.parametrize("prefix", [None, "/opt/other"])
def test_install_honours_the_prefix(top, built, tmp_path, prefix):
    to = prefix or "/usr/local"
    done = run(top / "tools/install", built, *([prefix] if prefix else []),
               env={**os.environ, "DESTDIR": str(tmp_path / "dest")})
    assert done.returncode == 0, done.stdout + done.stderr
    assert [p for p in (tmp_path / "dest").rglob("*") if p.is_file()] == \
        [tmp_path / f"dest{to}/share/page.txt"]
    assert done.stdout == f"installed into {tmp_path}/dest{to}\n"
    assert (built / "reknit-options").read_text() == f"-Dwerror=true -Dprefix={to}\n"


OWN_ENTRY = """signatures:
  - id: cuda.ecc
    role: root
    cause: gpu-hardware
    patterns: ['uncorrectable ECC error']
    examples: {match: ['uncorrectable ECC error']}
"""


@pytest.mark.parametrize("entry,what", [
    ("role: root, cause: external-service", "is a root of another cause on"),
    ("role: noise, hides: ['*']", "hides"),
])
def test_a_pattern_that_is_too_general_is_one_fault(reknit, tmp_path, entry, what):
    (tmp_path / "ours.yaml").write_text(
        f"signatures:\n  - {{id: site.general, {entry}, patterns: ['[Ee]rror'],\n"
        "     examples: {match: ['feature store error']}}\n")
    run = reknit("catalog", "--catalog", tmp_path, "check")
    lines = run.stderr.splitlines()
    assert run.returncode == 1
    assert len(lines) == 6
    assert re.match(f"{tmp_path}/ours.yaml:2: site.general: {what} [0-9]+ examples of other entries: "
                    "narrow its patterns", lines[0])
    assert all(re.match(r"  [a-z_.]+ \(catalog/[a-z-]+.yaml:[0-9]+\): '.*'$", line)
               for line in lines[1:4])
    assert len(set(lines[1:4])) == 3
    assert re.match("  and [0-9]+ more$", lines[4])
    assert lines[5].startswith("1 fault in ")


def test_catalog_says_which_entries_are_replaced_and_where_ids_stand_twice(reknit, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(OWN_ENTRY)
    for folders in (["--catalog", tmp_path], ["--catalog", tmp_path, "--catalog", f"{tmp_path}/."]):
        run = reknit("catalog", *folders, "check")
        assert run.returncode == 0, run.stderr
        assert run.stdout.count("replaces") == 1
        assert f"{own}:2: cuda.ecc: replaces the one of catalog/cuda.yaml:" in run.stdout
    assert "replaces" not in reknit("catalog", "check").stdout
    run = reknit("catalog", "--catalog", tmp_path, "explain", "uncorrectable ECC error")
    assert f"{own}:2, replaces catalog/cuda.yaml:" in run.stdout
    own.write_text(OWN_ENTRY + "".join(OWN_ENTRY.splitlines(True)[1:]))
    run = reknit("catalog", "--catalog", tmp_path, "check")
    assert f"{own}:7: cuda.ecc: the id is used already, at {own}:2" in run.stderr
    own.write_text("xids:\n" + "  - {code: 79, role: root, cause: gpu-hardware}\n" * 2)
    run = reknit("catalog", "--catalog", tmp_path, "check")
    assert f"{own}:3: xid 79: the code is used already" in run.stderr


OURS = """signatures:
  - id: {id}
    role: root
    cause: {cause}
    patterns: ['feature store .* refused our lease']
    examples: {{match: ['FATAL: feature store fs-2 refused our lease{more}']}}
"""


@pytest.mark.parametrize("entry_id, neighbour", [
    ("cuda.oom", "cuda.oom_text"), ("cuda.ecc", "cuda.accelerator_error"),
    ("python.value", "python.exception")])
def test_what_a_replaced_entry_leaves_to_others_is_no_fault(reknit, tmp_path, entry_id, neighbour):
    (tmp_path / "ours.yaml").write_text(OURS.format(id=entry_id, cause="external-service", more=""))
    run = reknit("catalog", "--catalog", tmp_path, "check")
    assert run.returncode == 0, run.stderr
    at = f"{tmp_path}/ours.yaml:2: {entry_id}: "
    assert f"{at}replaces the one of catalog/" in run.stdout
    lines = run.stderr.splitlines()
    assert not [line for line in lines if line.startswith("catalog/")]
    assert re.match(rf"{at}changes who speaks on [0-9]+ examples? of other entries \(no fault, ", lines[0])
    assert any(re.match(rf"  {neighbour} \(catalog/", line) for line in lines)


def test_a_fault_beside_the_built_in_entries_is_told_of_the_own_one(reknit, tmp_path):
    own = tmp_path / "ours.yaml"
    own.write_text(OURS.format(id="cuda.oom", cause="external-service", more=": CUDA error: uncorrectable ECC error"))
    run = reknit("catalog", "--catalog", tmp_path, "check")
    assert run.returncode == 1
    assert f"{own}:2: cuda.oom: replaces the one of catalog/cuda.yaml:" in run.stdout
    assert f"{own}:2: cuda.oom: shares its example 'FATAL" in run.stderr
    assert not re.search("^catalog/", run.stderr, re.MULTILINE)
    own.write_text(OURS.format(id="cuda.oom", cause="user-code\n    yields_to: [cuda.oom_text]", more=""))
    assert reknit("catalog", "--catalog", tmp_path, "check").stderr.count("leads back to itself") == 1


def test_confidence_in_json_is_a_share(reknit):
    run = reknit("catalog", "explain", "--format", "json", "uncorrectable ECC error encountered")
    assert '"confidence":0.95' in run.stdout


@pytest.mark.parametrize("median, says", [("1.80", "speaks"), ("2.40", "silent, the line compares")])
def test_explain_agrees_with_diagnose_about_a_comparison(reknit, median, says):
    line = f"timing: slowest rank 12: 2.41s, median {median}s over 32 ranks"
    assert f"straggler.table: {says}" in reknit("catalog", "explain", line).stdout
    verdict = reknit("diagnose", "--format", "json", "-", input=f"{line}\n" * 3).stdout
    assert ("straggler.table" in verdict) == (says == "speaks")
