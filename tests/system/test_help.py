# SPDX-License-Identifier: Apache-2.0
"""Every verb explains itself, and the manual and the README know it."""

import re
import subprocess


def verbs_of(reknit):
    return re.findall(r"^  (\w+) ", reknit("--help").stdout, re.MULTILINE)


def test_a_call_without_a_verb_says_how(reknit):
    result = reknit()
    assert result.returncode == 2
    assert "usage: reknit VERB" in result.stdout + result.stderr


def test_an_unknown_verb_is_an_error(reknit):
    result = reknit("frobnicate")
    assert result.returncode == 2
    assert "frobnicate" in result.stderr


def test_every_verb_has_help(reknit):
    for verb in verbs_of(reknit):
        result = reknit(verb, "--help")
        assert result.returncode == 0, verb
        assert result.stderr == "", verb
        assert result.stdout.startswith(f"usage: reknit {verb}"), verb


def test_every_verb_refuses_an_unknown_option(reknit):
    for verb in verbs_of(reknit):
        result = reknit(verb, "--no-such-option")
        assert result.returncode == 2, verb
        assert f"reknit {verb} --help" in result.stderr, verb


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def page(top, name):
    """The manual page's source, without the escapes of scdoc."""
    return (top / f"man/{name}.scd").read_text().replace("\\", "")


def test_every_verb_has_a_manual_page_with_the_same_options(reknit, top):
    for verb in verbs_of(reknit):
        in_help = options_in(reknit(verb, "--help").stdout) - {"--help"}
        in_page = set(re.findall(r"\*(--[a-z][a-z-]+)\*", page(top, f"reknit-{verb}.1")))
        in_page -= {"--help"}
        assert in_help == in_page, verb


def test_the_overviews_name_every_verb(reknit, top):
    readme = (top / "README.md").read_text()
    overview = page(top, "reknit.1")
    for verb in verbs_of(reknit):
        assert f"reknit {verb}" in readme, verb
        assert f"*{verb}*" in overview, verb
        assert f"*reknit-{verb}*(1)" in overview, verb


def test_the_manual_is_built_and_installed(top, tmp_path):
    subprocess.run(["meson", "install", "-C", str(top / "build"), "--no-rebuild", "--destdir",
                    str(tmp_path)], check=True, capture_output=True, timeout=60)
    installed = {p.name for p in tmp_path.rglob("*") if p.is_file()}
    assert "reknit" in installed
    assert {p.stem for p in (top / "man").glob("*.scd")} <= installed


def test_the_installed_program_needs_nothing_beside_it(reknit, tmp_path):
    copy = tmp_path / "reknit"
    copy.write_bytes(reknit.path.read_bytes())
    copy.chmod(0o755)
    result = subprocess.run([str(copy), "catalog", "check"], capture_output=True, text=True,
                            timeout=60, cwd="/", env={"HOME": str(tmp_path)})
    assert result.returncode == 0, result.stderr
