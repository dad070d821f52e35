# SPDX-License-Identifier: Apache-2.0
"""The systemd units, as they are installed. systemd itself need not run here (in a container it is not
PID 1): systemd-analyze looks at them offline, and what they do when they run is not seen."""

import json
import pathlib
import re
import shutil
import subprocess

import pytest

ANALYZE = shutil.which("systemd-analyze")
NEEDS_ANALYZE = pytest.mark.skipif(not ANALYZE, reason="systemd-analyze is not installed")
# Most that systemd-analyze security may see exposed, in tenths (100 = everything).
KEPT = {"reknit-spawner.service": ["CAP_SETUID", "CAP_SETGID", "CAP_KILL"],
        "reknit-agent.service": ["CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_NET_BIND_SERVICE", "CAP_SYSLOG"]}
EXPOSED = {"reknit-release-stale.service": 30, "reknitd.service": 20, "reknit-agent.service": 40, "reknit-spawner.service": 30}


def run(*command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, **more)


@pytest.fixture(scope="module")
def installed(top, tmp_path_factory):
    """(root, prefix below it, folder of the units)"""
    root = tmp_path_factory.mktemp("root")
    done = run("meson", "install", "-C", top / "build", "--no-rebuild", "--destdir", root)
    assert done.returncode == 0, done.stdout + done.stderr
    units = next(root.rglob("systemd/system"))
    return root, units.parents[2], units


def names(units):
    found = sorted(p.name for p in units.iterdir())
    assert "reknitd.service" in found and "reknit-spawner.socket" in found
    return found


def values(path, key):
    return re.findall(rf"^{key}=(.*)$", path.read_text(), re.MULTILINE)


def programs(units):
    for name in names(units):
        for line in values(units / name, "Exec\\w+"):
            yield name, line.split()[0].lstrip("-+!@:")


def test_every_program_of_a_unit_is_installed(installed):
    root, prefix, units = installed
    seen = 0
    for name, program in programs(units):
        if program.startswith(f"/{prefix.relative_to(root)}"):
            assert (root / program[1:]).stat().st_mode & 0o100, (name, program)
            seen += 1
    assert seen >= 1


@NEEDS_ANALYZE
def test_units_are_understood(installed):
    """In their root, so that what this machine has is no help."""
    root, _, units = installed
    (root / "bin").mkdir()
    shutil.copy("/bin/kill", root / "bin")
    for target in ("sysinit", "basic", "shutdown", "timers", "time-sync", "time-set", "sockets", "multi-user", "network-online",
                   "nss-user-lookup", "remote-fs"):
        (units / f"{target}.target").write_text(f"[Unit]\nDescription={target}\n")
    for name in EXPOSED:
        done = run(ANALYZE, "verify", "--man=no", f"--root={root}", name)
        assert (done.returncode, done.stdout + done.stderr) == (0, ""), name


@NEEDS_ANALYZE
@pytest.mark.parametrize("name", sorted(EXPOSED))
def test_units_give_little_away(installed, name):
    _, _, units = installed
    policy = run(ANALYZE, "security", "--offline=true", f"--threshold={EXPOSED[name]}", "--json=short",
                 units / name)
    assert policy.returncode == 0, [(x["json_field"], x["exposure"]) for x in json.loads(policy.stdout)
                                    if x["exposure"] not in (None, "0.0")]


def test_capabilities_are_few(installed):
    _, _, units = installed
    for path in units.glob("*.service"):
        kept = " ".join(values(path, "CapabilityBoundingSet")).split()
        assert values(path, "CapabilityBoundingSet"), path
        assert kept == KEPT.get(path.name, []), path
        assert values(path, "NoNewPrivileges") == ["yes"], path
        assert values(path, "ProtectSystem") == ["strict"], path


def owned_by_users(prefix, units):
    """Folders that belong to somebody who is not root."""
    for path in units.glob("*.service"):
        if values(path, "User"):
            for kind, top in (("Runtime", "/run"), ("State", "/var/lib"), ("Cache", "/var/cache"), ("Logs", "/var/log")):
                for name in " ".join(values(path, f"{kind}Directory")).split():
                    yield f"{top}/{name}"
    for path in (prefix / "lib/tmpfiles.d").iterdir():
        for line in path.read_text().splitlines():
            if line[:1] in "dDv" and line.split()[3] != "root":
                yield line.split()[1]


def test_root_makes_no_socket_where_others_rule(installed):
    """PID 1 binds by name and changes the owner by name: whoever owns a folder above could become root."""
    _, prefix, units = installed
    owned = {pathlib.PurePath(p) for p in owned_by_users(prefix, units)}
    assert pathlib.PurePath("/run/reknit") in owned
    seen = 0
    for unit in units.glob("*.socket"):
        for path in values(unit, r"Listen\w+"):
            assert path.startswith("/run/") and not owned & set(pathlib.PurePath(path).parents), (unit.name, path)
            seen += 1
    assert seen == 1


def test_what_reknitd_expects_is_there(installed, top):
    """Paths that stand in the configuration's defaults and in the units."""
    _, prefix, units = installed
    default = (top / "conf/reknitd.yaml").read_text()
    assert values(units / "reknit-spawner.socket", "ListenSequentialPacket") == \
        re.findall(r"^spawner: (\S+)$", default, re.MULTILINE)
    service = units / "reknitd.service"
    assert f"/var/lib/{values(service, 'StateDirectory')[0]}" == \
        re.search(r"^state_dir: (\S+)$", default, re.MULTILINE)[1]
    assert re.search(r"^  socket: (\S+)/\w+.sock$", default, re.MULTILINE)[1] == \
        f"/run/{values(service, 'RuntimeDirectory')[0]}"
    user = values(service, "User")[0]
    assert re.search(rf"^u {user} ", (prefix / "lib/sysusers.d/reknit.conf").read_text(), re.MULTILINE)


@pytest.mark.skipif(not shutil.which("systemd-sysusers"), reason="systemd-sysusers is not installed")
def test_the_user_is_created(installed, tmp_path):
    """In a root of its own."""
    _, prefix, _ = installed
    (tmp_path / "etc").mkdir()
    done = run("systemd-sysusers", f"--root={tmp_path}", prefix / "lib/sysusers.d/reknit.conf")
    assert done.returncode == 0, done.stderr
    passwd = (tmp_path / "etc/passwd").read_text()
    assert re.search(r"^reknit:x:\d+:\d+:Reknit:/var/lib/reknit:/usr/sbin/nologin$", passwd, re.MULTILINE)


@pytest.mark.skipif(pathlib.Path("/run/systemd/system").exists(), reason="systemd is PID 1 here")
def test_said_that_units_are_not_run():
    pytest.skip("PID 1 is not systemd here: units were checked offline, none was started")
