# SPDX-License-Identifier: Apache-2.0
"""reknitd in a test cluster: what it is configured with, what its journal says, and jobs for it."""

import collections
import concurrent.futures
import contextlib
import json
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import cluster as cluster_module
import pytest
from cluster import Cluster, await_true
from conftest import REKNIT

PLUGIN = (REKNIT.parent / "spank_reknit.so").resolve()
PROGRAMS = ("reknit", "reknitd", "reknit-slurm", "reknit-reader", "reknit-spawner", "reknit-seal", "reknit-agent", "reknit-post")
USER = "nobody"  # a real user on every Debian, whom the spawner starts readers for
# Slurm's own priority of a job that has waited is higher than that of one just queued again.
QUEUE_BY_AGE = {"PriorityType": "priority/multifactor", "PriorityWeightAge": "100000", "PriorityCalcPeriod": "1"}
QUIET = {"look", "signal", "tick", "mode", "policy", "brakes", "logs-drained"}

# The brakes are a test of their own; here jobs fail at once because a test says so.
CONFIG = {
    "mode": "act", "max_excluded": 100,
    "brakes": {"storm_jobs": 0, "actions_per_hour": 0, "actions_per_partition_hour": 0, "actions_per_user_hour": 0,
               "exclusions_per_node_hour": 0},
}


class Scenarios:
    """Functions that run beside each other, each of them a test; the first begin first."""

    def __init__(self, at_once):
        self.at_once, self.functions, self.results, self.took = at_once, {}, {}, {}

    def __call__(self, function):
        self.functions[function.__name__] = function
        return function

    def soak(self, function):
        function.soak = True
        return self(function)

    def __iter__(self):
        """For parametrize(), which comes back for them when all are known."""
        return iter([pytest.param(name, marks=[pytest.mark.soak] if getattr(f, "soak", False) else [])
                     for name, f in self.functions.items()])

    def run(self, name, *args):
        begun = time.monotonic()
        self.functions[name](*args)
        self.took[name] = time.monotonic() - begun

    @contextlib.contextmanager
    def running(self, request, *args):
        """Those that the session wants; all when it wants none by name."""
        wanted = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
        names = [name for name in self.functions if name in wanted] or list(self.functions)
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            for name in names:
                self.results[name] = pool.submit(self.run, name, *args)
            try:
                yield self
            finally:
                pool.shutdown(cancel_futures=True)

    def result(self, name):
        self.results[name].result()
        print(f"{self.took[name]:.0f} s")

    def wait(self, names=None):
        concurrent.futures.wait(self.results[name] for name in names or self.results if name in self.results)


Event = collections.namedtuple("Event", "seq parent time kind job attempt body")


class Journal:
    """reknitd's journal, read while it is written."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def events(self, job=None, kind=None, after=0):
        """job: its number, or the whole key."""
        if not self.path.exists():
            return []
        where, values = ["seq > ?"], [after]
        if job is not None:
            where.append("job = ?" if "-" in str(job) else "job GLOB ? || '-*'")
            values.append(str(job))
        if kind is not None:
            where.append("kind = ?")
            values.append(kind)
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=20)) as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'event'").fetchone():
                return []  # it is only being made
            rows = db.execute("SELECT seq, parent, time_us, kind, job, attempt, body FROM event WHERE "
                              + " AND ".join(where) + " ORDER BY seq", values).fetchall()
        return [Event(*row[:2], row[2] / 1e6, *row[3:6], json.loads(row[6])) for row in rows]

    def story(self, job):
        """For people: what a failed test shows."""
        return "\n".join(f"{e.seq} {e.time:.2f} {e.kind} {e.attempt} {json.dumps(e.body)[:600]}"
                         for e in self.events(job) if e.kind not in QUIET or self.is_telling(e))

    @staticmethod
    def is_telling(e):
        """What the scheduler says of an end."""
        return (e.kind == "look" and e.body.get("state") not in ("pending", "running")
                or e.kind == "signal" and e.body.get("provenance") == "scheduler")

    def wait(self, job, kind, where=lambda e: True, timeout=cluster_module.PATIENCE, after=0):
        """The first such event."""
        return await_true(
            lambda: f"{kind} of job {job}:\n{self.story(job)}",
            lambda: next((e for e in self.events(job, kind, after) if where(e)), None), timeout)

    def intents(self, job, *kinds):
        return [e for e in self.events(job, "intent") if not kinds or e.body["intent"] in kinds]

    def replay(self):
        """What `reknit replay` says of it: raises when it would decide otherwise today."""
        done = subprocess.run([REKNIT, "replay", self.path], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


class Reknitd:
    """One reknitd of a cluster; with `spawner`, readers run as the owners of jobs. `under`: a command that starts
    both."""

    def __init__(self, cluster, name="reknitd", spawner=False, under=(), **config):
        self.cluster, self.name, self.under = cluster, name, under
        self.dir = cluster.dir / name
        self.dir.mkdir()
        self.programs = self.dir / "bin"  # readable for everybody, wherever the build is
        self.programs.mkdir()
        for program in PROGRAMS:
            shutil.copy2(REKNIT.parent / program, self.programs)
        self.journal = Journal(self.dir / "state" / "journal.db")
        self.spawner = self.dir / "spawner.sock" if spawner else ""
        self.config = self.dir / "reknitd.yaml"
        self.configure(**{**CONFIG, **config})

    def configure(self, **config):
        self.config.write_text(json.dumps({  # JSON is YAML
            "state_dir": str(self.dir / "state"), "spawner": str(self.spawner),
            "api": {"socket": str(self.dir / "api.sock")}, **config}))

    def start(self, env=None):
        if self.spawner and f"{self.name}-spawner" not in self.cluster.daemons():
            self.cluster.start_daemon(f"{self.name}-spawner", [
                *self.under, self.programs / "reknit-spawner", "--socket", self.spawner, "--user", "root",
                "--slurm-user", "root", "--slurm-conf", self.cluster.conf])
            await_true("the spawner's socket", self.spawner.exists, poll=0.02)
        self.cluster.start_daemon(self.name, [*self.under, self.programs / "reknitd", "--config", self.config,
                                              "--drop-ins", self.dir / "none"], env)
        await_true(lambda: f"its start: {self.log(2000)}", self.journal.path.exists, 20, 0.02)
        return self

    def stop(self):
        """As systemd does it; its exit status."""
        return self.cluster.stop_daemon(self.name, timeout=20)

    def kill(self):
        pid = self.pid()
        if pid:
            self.cluster.signal_daemon(self.name, signal.SIGKILL)
            await_true("its end", lambda: self.pid() != pid, poll=0.005)

    def pid(self):
        return self.cluster.daemons().get(self.name)

    def log(self, characters=100000):
        return self.cluster.log(self.name, characters)

    def await_log(self, text, after=0):
        return await_true(lambda: f"'{text}' in its log:\n{self.log(3000)}", lambda: text in self.log()[after:])

    def ask(self, path):
        """What GET answers, and its status."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(str(self.dir / "api.sock"))
            s.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            with s.makefile("rb") as answer:
                head, _, body = answer.read().partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)

    def await_looks(self, count=3):
        """Until reknitd has asked the scheduler so often from now on: what it would have done about
        anything that had happened is done."""
        for _ in range(count):
            before = self.last_look()
            await_true("another look", lambda old=before: self.last_look() != old)

    def last_look(self):
        return self.ask("/v1/health")[1]["adapter"].get("last_look_us")

    def agents(self):
        """How many nodes' agents it hears; 0 while it has only been started."""
        try:
            return self.ask("/v1/health")[1]["agents"]["connected"]
        except (FileNotFoundError, ConnectionRefusedError):
            return 0

    def doctor(self, env=None):
        """check -> row"""
        done = subprocess.run([self.programs / "reknit", "doctor", "--config", self.config,
                               "--format", "json"], env=env or self.cluster.env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
        return {row["check"]: row for row in json.loads(done.stdout)["checks"]}

    def adapter(self):
        """The pid of its reknit-slurm."""
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                name, rest = path.read_text(errors="replace").split("(", 1)[1].rsplit(")", 1)
                if name == "reknit-slurm" and int(rest.split()[1]) == self.pid():
                    return int(path.parent.name)
        return None


class Site(Cluster):
    """A cluster for many jobs at once: threads may ask about jobs, and share the answers."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.lock, self.jobs_at, self.jobs_seen = threading.Lock(), 0, {}

    def start(self):
        super().start()
        self.trainer = self.dir / "trainer" / cluster_module.TRAINER.name
        self.trainer.parent.mkdir()
        for path in (cluster_module.TRAINER, cluster_module.TRAINER.with_name("trainer.py")):
            shutil.copy2(path, self.trainer.parent)

    def jobs(self):
        with self.lock:
            if time.monotonic() - self.jobs_at > 0.3:
                self.jobs_seen = super().jobs()
                self.jobs_at = time.monotonic()
            return self.jobs_seen

    def job(self, job):
        """One that was submitted since the last answer is asked for at once."""
        with self.lock:
            if int(job) not in self.jobs_seen:
                self.jobs_at = 0
        return self.jobs()[int(job)]

    def train(self, name, faults=(), nodes=2, options="--steps 60 --step-ms 40", before="", user=USER,
              comment="reknit", **submit):
        """Submits a job of the light trainer."""
        folder = self.folder(name, faults)
        script = f"{before}\nsrun --kill-on-bad-exit=1 {self.trainer} --dir {folder} {options}"
        named = {"nodes": nodes, "ntasks": nodes, "job_name": name, "comment": comment, **submit}
        return Training(self, self.submit(script, user=user, **named), folder, submit.get("output"))

    def folder(self, name, faults=()):
        folder = self.work / name
        folder.mkdir()
        folder.chmod(0o777)
        (folder / "faults.json").write_text(json.dumps(list(faults)))
        return folder

    def show(self, job):
        return self.run("scontrol", "show", "job", job)


class Training:
    """A job of the trainer."""

    def __init__(self, site, job, folder, log=None):
        self.site, self.id, self.folder = site, job, folder
        self.log = log or site.work / f"slurm-{job}.out"

    def attempts(self):
        """What its ranks noted as they began."""
        path = self.folder / "attempts"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def nodes(self, attempt):
        """rank -> node"""
        return {a["rank"]: a["node"] for a in self.attempts() if a["attempt"] == attempt}

    def await_step(self, step, timeout=cluster_module.PATIENCE):
        await_true(lambda: f"step {step} of job {self.id}: {self.site.output(self.id)[-500:]}",
                   lambda: f"step {step}/" in self.site.output(self.id), timeout)

    def violations(self):
        """Two copies, by what the ranks wrote themselves: a lock was taken, one began twice, or one
        of an attempt began when one of the attempt before lived."""
        path, began = self.folder / "violations", collections.Counter()
        found = path.read_text().splitlines() if path.exists() else []
        first, last = {}, {}
        for a in self.attempts():
            began[a["attempt"], a["rank"]] += 1
            first[a["attempt"]] = min(a["at"], first.get(a["attempt"], a["at"]))
        for life in (self.folder / "lives").glob("*"):
            attempt = int(life.name.split("-")[0])
            last[attempt] = max(float(life.read_text() or 0), last.get(attempt, 0))
        found += [f"rank {rank} of attempt {n} began {times} times"
                  for (n, rank), times in began.items() if times > 1]
        found += [f"attempt {n} began {last[before] - at:.3f} s before the end of attempt {before}"
                  for n, at in first.items() for before in last if before < n and last[before] >= at]
        return "\n".join(found)

    def resumed(self, attempt):
        """Whether all its ranks went on from the last checkpoint that was there."""
        saved = [int(step) for step in re.findall(r"saving checkpoint at step (\d+)",
                                                  self.log.read_text(errors="replace"))]
        begun = {a["from"] for a in self.attempts() if a["attempt"] == attempt}
        return len(begun) == 1 and begun <= set(saved)

    def record(self):
        return self.site.job(self.id)
