# SPDX-License-Identifier: Apache-2.0
"""Every verb explains itself, and the manual and the README know it."""

import re


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
