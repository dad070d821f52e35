# SPDX-License-Identifier: Apache-2.0
"""The Debian package: what is in it, and that it installs, runs, and goes away, in a root of its own."""

import os
import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-shlibdeps"), reason="dpkg-dev is not installed")


def run(*command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, **more)


@pytest.fixture(scope="module")
def deb(top, tmp_path_factory):
    output = tmp_path_factory.mktemp("deb")
    done = run(top / "tools/deb", top / "build", output)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [done.stdout] == [f"made {p}\n" for p in output.iterdir()]
    return next(output.iterdir())


@pytest.fixture(scope="module")
def unpacked(deb, tmp_path_factory):
    root = tmp_path_factory.mktemp("unpacked")
    assert run("dpkg-deb", "-R", deb, root).returncode == 0
    return root


def field(deb, name):
    return run("dpkg-deb", "-f", deb, name).stdout.strip()


def binaries(root):
    return [p for p in sorted((root / "usr").rglob("*")) if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]


def test_it_is_called_as_it_should(deb, top):
    version = re.search(r"^  version: '(.*)',$", (top / "meson.build").read_text(), re.MULTILINE)[1]
    arch = run("dpkg", "--print-architecture").stdout.strip()
    assert deb.name == f"reknit_{version}_{arch}.deb"
    assert (field(deb, "Package"), field(deb, "Version"), field(deb, "Architecture")) == ("reknit", version, arch)


def test_it_depends_on_what_its_programs_link(deb, unpacked):
    depends = field(deb, "Depends")
    assert re.search(r"\blibc6 \(>= ", depends) and "libsqlite3-0" in depends and "libvectorscan5" in depends
    linked = run("readelf", "-d", *binaries(unpacked)).stdout
    assert ("libslurm" in linked) == ("libslurm" in depends)


def test_everything_belongs_to_root_and_is_in_its_place(deb):
    for line in run("dpkg-deb", "-c", deb).stdout.splitlines():
        mode, owner, _, _, _, path = line.split(None, 5)
        assert owner == "root/root", line
        assert mode[0] == "l" or mode[5] != "w" and mode[8] != "w", line
        assert re.match(r"\./$|\./(etc|usr)/", path), line
        assert "/local/" not in path, line


def test_nothing_in_it_knows_where_it_was_built(deb, unpacked, top):
    """The prefix of the build, and its folder."""
    units = list((unpacked / "usr/lib").rglob("*.service"))
    assert units
    for path in units + binaries(unpacked):
        assert b"/usr/local/" not in path.read_bytes(), path
        assert str(top).encode() not in path.read_bytes(), path


def test_programs_are_stripped_and_hardened(unpacked):
    found = binaries(unpacked)
    assert "reknit" in [p.name for p in found]
    for path in found:
        assert ".symtab" not in run("readelf", "-S", path).stdout, path
        assert "BIND_NOW" in run("readelf", "-d", path).stdout, path


def test_sums_cover_every_file(unpacked):
    sums = (unpacked / "DEBIAN/md5sums").read_text().splitlines()
    files = {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if p.is_file()}
    assert {line.split("  ", 1)[1] for line in sums} == {f for f in files if not f.startswith("DEBIAN/")}
    assert run("md5sum", "-c", "--quiet", "DEBIAN/md5sums", cwd=unpacked).returncode == 0


def test_documents_are_where_they_are_looked_for(unpacked):
    doc = unpacked / "usr/share/doc/reknit"
    assert {"copyright", "reknitd.yaml", "policy.yaml"} <= {p.name for p in doc.iterdir()}
    texts = list(doc.rglob("*.md"))
    assert {"README.md", "docs/CLUSTER.md", "docs/AGENT.md"} <= {str(p.relative_to(doc)) for p in texts}
    for path in texts:
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", path.read_text()):
            assert (path.parent / link).exists(), (path, link)
    pages = list((unpacked / "usr/share/man").rglob("*.?"))
    assert pages == [] and len(list((unpacked / "usr/share/man").rglob("*.gz"))) > 8
    assert (unpacked / "DEBIAN/conffiles").read_text() == "/etc/reknit/reknitd.yaml\n"


def test_its_programs_run(unpacked):
    for path in binaries(unpacked):
        if path.name == "reknit-reader" or path.suffix == ".so":
            continue  # speaks only to who started it; is no program
        for option in ("--version", "--help"):
            done = run(path, option)
            assert done.returncode == 0, (path, done.stderr)
            assert path.name in done.stdout
    done = run(unpacked / "usr/bin/reknit", "config", "check", unpacked / "etc/reknit/reknitd.yaml")
    assert done.returncode == 0 and "sound" in done.stdout


def test_twice_the_same(deb, top, tmp_path):
    assert run(top / "tools/deb", top / "build", tmp_path).returncode == 0
    assert (tmp_path / deb.name).read_bytes() == deb.read_bytes()


class Root:
    """A root with dpkg's books and no programs but those that the scripts call: they write down that
    they were called, instead of doing anything."""

    def __init__(self, path):
        self.path = path
        for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "usr/bin", "etc",
                       "dev"):
            (path / folder).mkdir(parents=True)
        (path / "var/lib/dpkg/status").touch()
        for name in ("bin", "sbin", "lib", "lib64"):
            (path / "usr" / name).mkdir(exist_ok=True)
            (path / name).symlink_to(f"usr/{name}")
        self.copy("/bin/sh")
        self.copy("/bin/rm")
        for name in ("systemd-sysusers", "systemd-tmpfiles", "systemctl"):
            program = path / "usr/bin" / name
            program.write_text(f'#!/bin/sh\necho {name} "$@" >>/calls\n')
            program.chmod(0o755)

    def copy(self, program):
        shutil.copy(program, self.path / program[1:])
        for library in re.findall(r"(/\S+)", run("ldd", program).stdout):
            to = self.path / os.path.realpath(library)[1:]
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, self.path / library[1:] if (self.path / library[1:]).parent.is_dir() else to)

    def dpkg(self, *arguments):
        done = run("dpkg", f"--root={self.path}", "--force-depends", "--force-not-root",
                   "--force-script-chrootless" if os.geteuid() else "--log=/dev/null", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        calls = self.path / "calls"
        text = calls.read_text() if calls.exists() else ""
        calls.unlink(missing_ok=True)
        return text.splitlines()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a root of its own is entered")
def test_it_installs_updates_and_goes_away_without_systemd(deb, tmp_path):
    root = Root(tmp_path / "root")
    assert root.dpkg("-i", deb) == ["systemd-sysusers reknit.conf", "systemd-tmpfiles --create reknit.conf"]
    config = root.path / "etc/reknit/reknitd.yaml"
    config.write_text("mode: act\n")
    root.dpkg("-i", deb)
    assert config.read_text() == "mode: act\n"
    assert root.dpkg("-r", "reknit") == []
    assert config.exists() and not (root.path / "usr/bin/reknit").exists()
    (root.path / "var/lib/reknit").mkdir()
    root.dpkg("-P", "reknit")
    assert not config.exists() and not (root.path / "var/lib/reknit").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a root of its own is entered")
def test_where_systemd_runs_nothing_is_started_and_what_ran_goes_on(deb, tmp_path):
    root = Root(tmp_path / "root")
    (root.path / "run/systemd/system").mkdir(parents=True)
    first = root.dpkg("-i", deb)
    assert "systemctl daemon-reload" in first
    assert not [c for c in first if "start" in c]
    assert "systemctl try-restart reknit-spawner.service reknitd.service reknit-agent.service" in root.dpkg("-i", deb)
    removed = root.dpkg("-r", "reknit")
    assert removed[0] == ("systemctl stop reknit-release-stale.timer reknitd.service reknit-spawner.socket "
                                             "reknit-spawner.service reknit-agent.service")
    disabled = next(c for c in removed if "disable" in c)
    for unit in ("reknit-release-stale.timer", "reknitd.service", "reknit-spawner.socket", "reknit-agent.service"):
        assert unit in disabled, disabled
