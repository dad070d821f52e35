# SPDX-License-Identifier: Apache-2.0
"""Where jobs leave their traces."""

import os


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("REKNIT_", "XDG_"))}
    return {**env, **more}


def test_the_state_folder_may_be_relative(reknit, tmp_path):
    where = {"cwd": tmp_path, "env": environment(REKNIT_STATE_DIR="there/too")}
    assert reknit("run", "--name", "it", "--", "true", **where).returncode == 0
    assert (tmp_path / "there/too/it/journal.db").exists()
    assert "it " in reknit("jobs", **where).stdout


def test_without_a_word_it_is_below_home(reknit, tmp_path):
    where = {"cwd": "/", "env": environment(HOME=str(tmp_path))}
    assert reknit("run", "--name", "it", "--", "true", **where).returncode == 0
    assert (tmp_path / ".local/state/reknit/it/journal.db").exists()


def test_nowhere_is_an_error_that_says_what_to_set(reknit):
    env = environment()
    del env["HOME"]
    result = reknit("run", "--name", "it", "--", "true", env=env)
    assert result.returncode == 1
    assert "REKNIT_STATE_DIR" in result.stderr
