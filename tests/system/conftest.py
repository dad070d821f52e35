# SPDX-License-Identifier: Apache-2.0
"""What the system tests share. They run the real programs; REKNIT names another build's."""

import os
import pathlib
import subprocess
import tempfile

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
REKNIT = pathlib.Path(os.environ.get("REKNIT", TOP / "build/bin/reknit")).absolute()


@pytest.fixture(scope="session")
def top():
    """The folder of the sources."""
    return TOP


@pytest.fixture
def open_path():
    """A folder that other users may pass into. pytest's own lie below private ones, more of them
    when tests run side by side, and every run makes the common one private again."""
    with tempfile.TemporaryDirectory(prefix="reknit-") as name:
        path = pathlib.Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(scope="session")
def reknit():
    """Runs reknit with arguments; keywords go to subprocess.run. Output is text."""

    def run(*args, **kwargs):
        kwargs = {"capture_output": True, "text": True, "timeout": 60, **kwargs}
        if "input" not in kwargs:
            kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([str(REKNIT), *map(str, args)], **kwargs)

    run.path = REKNIT
    return run
