# SPDX-License-Identifier: Apache-2.0
"""reknit config: which kind of file it is, whether it is sound, what it makes."""

import os
import re

import pytest


def test_the_examples_are_sound_and_the_default(reknit, top):
    for name in ("policy.yaml", "reknitd.yaml"):
        result = reknit("config", "check", top / "conf" / name)
        assert (result.returncode, result.stdout.splitlines()[0]) == (0, f"{top}/conf/{name}: sound"), result.stderr
    shown = reknit("config", "show", top / "conf/reknitd.yaml").stdout
    assert "\nmode: observe\n" in shown and "  - name: 'standard'\n" in shown


@pytest.mark.parametrize("name, text, kind", [
    ("a.yaml", "mode: act\n", "daemon"),
    ("a.yaml", "modus: act\nrules: []\n", "daemon"),
    ("a.yaml", "max_restart: 3\nhang: {}\n", "policy"),
    ("reknitd.yaml", "", "daemon"),
    ("reknitd.yaml", "max_restarts: 3\n", "policy"),
    ("a.yaml", "", "policy"),
    ("a.yaml", "[\n", "policy"),
])
def test_the_kind_of_a_file_shows_in_its_keys(reknit, tmp_path, name, text, kind):
    path = tmp_path / name
    path.write_text(text)
    result = reknit("config", "show", path)
    said = result.stdout + result.stderr
    assert ("watch_all" in said) == (kind == "daemon"), said


def test_what_is_shown_makes_the_same_again(reknit, tmp_path):
    path = tmp_path / "reknitd.yaml"
    path.write_text("mode: act\nrules:\n  - {partition: 'g*', opt_in: true, policy: p}\n"
                    "policies:\n  - {name: p, policy: {max_restarts: 7}}\nfence: [/bin/true, '{node}']\n")
    first = reknit("config", "show", path).stdout
    assert "max_restarts: 7" in first
    path.write_text(first)
    assert reknit("config", "show", path).stdout == first


def test_what_would_be_waited_for_is_no_configuration(reknit, tmp_path):
    fifo = tmp_path / "reknitd.yaml"
    os.mkfifo(fifo)
    for command in (("config", "check", fifo), ("config", "show", fifo), ("run", "--policy", fifo, "--", "true"),
                    ("doctor", "--config", fifo)):
        result = reknit(*command, timeout=20)
        assert result.returncode > 0 and f"{fifo}: is no regular file" in result.stdout + result.stderr, command


def test_drop_ins_go_with_their_file(reknit, tmp_path):
    path = tmp_path / "reknitd.yaml"
    path.write_text("policy: big\n")
    result = reknit("config", "check", path)
    assert result.returncode == 1 and "'big'" in result.stderr
    (tmp_path / "reknitd.d").mkdir()
    drop_in = tmp_path / "reknitd.d/10-big.yaml"
    drop_in.write_text("policies:\n- name: big\n  policy: {max_restarts: 30}\n")
    result = reknit("config", "check", path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == f"{path} and {tmp_path}/reknitd.d: sound"
    drop_in.write_text("\nmode: on\n")
    result = reknit("config", "check", path)
    assert result.returncode == 1
    assert f"{drop_in}:2: mode: 'on' is none of off, observe, propose, act" in result.stderr


def test_a_doubt_is_told_and_is_no_fault(reknit, tmp_path):
    path = tmp_path / "reknitd.yaml"
    path.write_text("rules:\n- partition: gpu\n")
    result = reknit("config", "check", path)
    assert result.returncode == 0
    assert re.search(r"^  but .*reknitd.yaml:2: the rule changes nothing", result.stdout, re.MULTILINE)


def test_every_key_of_the_configuration_is_explained(reknit, top):
    shown = reknit("config", "show", top / "conf/reknitd.yaml").stdout.split("policies:")[0]
    keys = set(re.findall(r"^ *([a-z_]+):", shown, re.MULTILINE))
    assert {"mode", "fence", "storm_jobs", "tls_key", "rules"} <= keys and len(keys) > 40
    page = (top / "man/reknitd.yaml.5.scd").read_text(encoding="utf-8").replace("\\", "")
    for key in keys | {"partition", "account", "qos", "user", "users", "file", "name"}:
        assert re.search(rf"\*{key}:?\*", page), key


def test_what_a_sound_file_comes_to_is_said(reknit, tmp_path):
    path = tmp_path / "reknitd.yaml"
    path.write_text("rules:\n  - {partition: gpu, mode: act}\n  - {user: 'a*', qos: high, opt_in: true}\n")
    said = reknit("config", "check", path).stdout.splitlines()
    assert said[1] == "  mode observe, for jobs whose comment asks for it; others are observed"
    assert said[2].startswith("  partition gpu: mode act  (") and said[2].endswith("reknitd.yaml:2)")
    assert said[3].startswith("  QOS high, user a*: without a word of their users  (")


def test_a_misspelt_key_is_of_the_kind_that_the_name_says(reknit, tmp_path):
    path = tmp_path / "reknitd.yaml"
    path.write_text("modus: act\n")
    assert "did you mean 'mode'?" in reknit("config", "check", path).stderr


@pytest.mark.parametrize("entry, complaint", [
    ("isolation: drain", "'alert' is missing"),
    ("alert: X, isolation: repeated", "an alert asks for none, exclude, drain, reset or reboot"),
    ("alert: X, cause: none", "say what is wrong with the node"),
    ("alert: X, isolation: shoot", "isolation"),
])
def test_what_an_alert_asks_for_is_checked(reknit, tmp_path, entry, complaint):
    path = tmp_path / "reknitd.yaml"
    path.write_text(f"mode: act\nalerts:\n  - {{{entry}}}\n")
    result = reknit("config", "check", path)
    assert result.returncode == 1 and f"{path}:3: alerts[1]" in result.stderr and complaint in result.stderr, result.stderr
