# SPDX-License-Identifier: Apache-2.0
"""What the system tests share. They run the real programs; REKNIT names another build's."""

import functools
import os
import pathlib
import subprocess
import tempfile

import cluster
import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
REKNIT = pathlib.Path(os.environ.get("REKNIT", TOP / "build/bin/reknit")).absolute()


@pytest.hookimpl(tryfirst=True)  # the workers put the group into the names of tests
def pytest_collection_modifyitems(items):
    """Tests marked `slurm` are skipped where none can be started. With workers (-n 2 --dist
    loadgroup) a file stays with one of them, and all that start a Slurm do: two would be slow."""
    for item in items:
        slurm = item.get_closest_marker("slurm")
        if slurm and (reason := no_slurm()):
            item.add_marker(pytest.mark.skip(reason=reason))
        item.add_marker(pytest.mark.xdist_group("slurm" if slurm else item.module.__name__))
    items.sort(key=lambda item: item.get_closest_marker("slurm") is None)  # the longest group begins


@functools.cache
def no_slurm():
    absent = [name for name in ("reknit-slurm", "spank_reknit.so") if not (REKNIT.parent / name).exists()]
    return cluster.missing() or (f"not built, for libslurm-dev is missing: {' '.join(absent)}" if absent else None)


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
