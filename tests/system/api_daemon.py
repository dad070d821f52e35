# SPDX-License-Identifier: Apache-2.0
"""A reknitd to ask, as several users."""

import contextlib
import http.client
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
REKNITD = TOP / "build/bin/reknitd"
ALICE, BOB = 61001, 61002


def wait_for(is_so, what, timeout=30):
    """What is_so() says once that is something; what: a text or a function, for when it is not."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        answer = is_so()
        if answer:
            return answer
        select.select([], [], [], 0.05)
    raise AssertionError(what() if callable(what) else what)


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout=20):
        super().__init__("reknitd", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))  # before there is a timeout: waits while too many wait
        self.sock.settimeout(self.timeout)


@contextlib.contextmanager
def as_user(uid):
    """The kernel tells the daemon who connects: so connect as somebody else."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


class Daemon:
    """reknitd with a scheduler that exists only in memory, in a folder; others than root can ask it
    only where that is an open one (open_path). config: what differs, key by key."""

    def __init__(self, folder, world, **config):
        if os.geteuid() != 0:
            pytest.skip("only root asks as several users")
        self.folder, self.world = folder, world
        self.socket = folder / "api.sock"
        self.config = folder / "reknitd.yaml"
        self.log_path = folder / "log"
        (folder / "state").mkdir()
        self.configure(**config)
        self.start()

    def configure(self, **config):
        config = {"mode": "propose", "opt_in": True, "state_dir": str(self.folder / "state"), "spawner": "",
                  "poll": "1s", "adapter": {"command": self.world.command}, "api": {}, **config}
        config["api"] = {"socket": str(self.socket), **config["api"]}
        self.config.write_text(json.dumps(config))  # JSON is YAML

    def start(self):
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(
                [str(REKNITD), "--config", str(self.config), "--drop-ins", str(self.folder / "none")], stderr=log)

    def log(self):
        return self.log_path.read_text()

    def reload(self):
        """Returns once it is done."""
        before = self.log()
        self.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "the configuration was read again" in self.log()[len(before):]
                 or "still holds" in self.log()[len(before):], lambda: self.log()[-2000:])
        return self.log()[len(before):]

    def ask(self, path, uid=0, method="GET", body=None, headers=None):
        """(status, answer)"""
        with as_user(uid):
            c = Connection(self.socket)
            c.connect()
        c.request(method, path, body, headers or {})
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        return r.status, json.loads(text) if text.startswith("{") else text

    def until(self, path, is_so, uid=0):
        """Asks until it is so: for what the daemon sees at its next look."""
        deadline = time.monotonic() + 30
        answer = None
        while time.monotonic() < deadline:
            try:
                status, answer = self.ask(path, uid)
            except (FileNotFoundError, ConnectionRefusedError):  # not yet; or of one that was killed
                status = 0
            if status == 200 and is_so(answer):
                return answer
            select.select([], [], [], 0.1)
        raise AssertionError(f"{path}: {answer}")

    def stop(self):
        self.process.terminate()
        assert self.process.wait(20) == 0


@contextlib.contextmanager
def daemon_of(folder, world, **config):
    """It must still run at the end, and end as it should."""
    daemon = Daemon(folder, world, **config)
    try:
        yield daemon
        daemon.stop()
    finally:
        daemon.process.kill()
        daemon.process.wait()
