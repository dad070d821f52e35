# SPDX-License-Identifier: Apache-2.0
"""Every verb explains itself, and the manual and the README know it."""

import re
import subprocess

import pytest


def verbs_of(reknit):
    return re.findall(r"^  ([\w-]+) ", reknit("--help").stdout, re.MULTILINE)


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


def test_help_fits_a_usual_terminal(reknit):
    texts = [reknit("--help").stdout, *(reknit(verb, "--help").stdout for verb in verbs_of(reknit))]
    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("given, meant", [("exlpain", "explain"), ("job", "jobs"), ("diagnos", "diagnose"),
                                          ("catalogue", "catalog"), ("frobnicate", None), ("ran", "run"),
                                          ("xyz", None), ("", None)])
def test_a_slip_of_the_pen_is_understood(reknit, given, meant):
    said = reknit(given).stderr
    assert (f"did you mean '{meant}'?" in said) if meant else "did you mean" not in said


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


VALUED = {"run": "--name", "diagnose": "--node", "jobs": "--format", "explain": "--format",
          "replay": "--format", "catalog": "--catalog", "incidents": "--count", "events": "--kind",
          "approve": "--decision", "reject": "--decision", "mode": "--format", "freeze": "--reason", "thaw": "--reason", "doctor": "--config",
          "flight-recorder": "--format", "release-stale": "--config", "review": "--since", "config": "--format", "nodes": "--format", "health": "--format"}


def test_a_wrong_option_is_named_in_one_form(reknit):
    for verb in verbs_of(reknit):
        for given, named in (("--foo", "--foo"), ("--foo=1", "--foo"), ("-z", "-z")):
            result = reknit(verb, given)
            assert result.returncode == 2, verb
            assert result.stderr == (f"reknit {verb}: unknown option '{named}'\n"
                                     f"Try 'reknit {verb} --help'.\n")
        result = reknit(verb, "--help=1")
        assert f"reknit {verb}: --help takes no value\n" in result.stderr


def test_a_missing_or_bad_value_is_named(reknit):
    assert set(VALUED) == set(verbs_of(reknit))
    for verb, option in VALUED.items():
        result = reknit(verb, option)
        assert result.returncode == 2, verb
        assert result.stderr.startswith(f"reknit {verb}: {option} needs a value\n"), verb
        result = reknit(verb, "--format", "yaml")
        assert result.returncode == 2, verb
        assert f"reknit {verb}: --format is text or json, not 'yaml'\n" in result.stderr, verb


def test_help_may_stand_behind_other_options_and_the_subject(reknit):
    for args in (["catalog", "check"], ["catalog", "explain"], ["catalog", "--catalog", "x"],
                 ["config", "check"], ["config", "show"], ["explain", "job"],
                 ["run", "--name", "x"], ["diagnose", "--node", "n=f", "log"]):
        result = reknit(*args, "--help")
        assert result.returncode == 0, args
        assert result.stdout == reknit(args[0], "--help").stdout, args


def test_a_command_keeps_its_own_help(reknit, tmp_path):
    result = reknit("run", "echo", "--help", "-h", "--foo",
                    env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert result.returncode == 0, result.stderr
    assert result.stdout == "--help -h --foo\n"


def test_options_of_a_sub_verb_stand_before_or_behind_it(reknit, top):
    line = "CUDA error: out of memory"
    want = reknit("catalog", "--format", "json", "explain", line)
    assert want.returncode == 0 and want.stdout.startswith("{")
    for args in (["explain", "--format", "json", line], ["explain", line, "--format", "json"]):
        assert reknit("catalog", *args).stdout == want.stdout, args
    assert "-- a line" in reknit("catalog", "explain", "--", "-- a line").stdout
    result = reknit("catalog", "check", "--catalog", "/no/such/folder")
    assert result.returncode == 1 and "/no/such/folder" in result.stderr


def test_output_that_cannot_be_written_is_an_error(reknit, tmp_path):
    log = tmp_path / "job.out"
    log.write_text("step 1: loss 2.0\n")
    for args in (["--help"], ["diagnose", log], ["diagnose", "--format", "json", log],
                 ["catalog", "check"]):
        with open("/dev/full", "w") as full:
            result = reknit(*args, capture_output=False, stdout=full, stderr=subprocess.PIPE)
        assert result.returncode == 1, args
        assert "could not be written" in result.stderr, args
