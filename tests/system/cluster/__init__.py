# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on this machine: one slurmctld, many slurmd, a munged of its own, all on loopback.

    with Cluster(nodes=4) as cluster:
        job = cluster.submit("srun -N4 hostname", nodes=4)
        cluster.await_state(job, "COMPLETED")

Each cluster has a folder, ports, a MUNGE socket and a key of its own, so that several run side by
side, and a supervisor process that ends all of it when the cluster is closed or this process dies.
Inside a job the "node" it runs on stands in SLURMD_NODENAME; host name, kernel and processes are
this machine's.
"""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from . import ports

HERE = pathlib.Path(__file__).resolve().parent
TRAINER = HERE.parent / "slurm_trainer.py"
PATIENCE = 60  # seconds; a noisy machine is slow
POLL = 0.1
FINAL = frozenset("BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED TIMEOUT".split())
PROGRAMS = "munged slurmctld slurmd sbatch scontrol sinfo squeue srun scancel".split()

# Short where Slurm's defaults would make a test wait, and otherwise as Slurm has it.
CONF = {
    "AuthType": "auth/munge",
    "CredType": "cred/munge",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU",
    "SlurmdParameters": "config_overrides",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "ReturnToService": "1",  # with 2, a node set DOWN comes back by itself
    "SwitchType": "switch/none",
    "MpiDefault": "none",
    "MailProg": "/bin/true",
    "SlurmctldTimeout": "10",
    "SlurmdTimeout": "30",
    "InactiveLimit": "0",
    "KillWait": "3",
    "MinJobAge": "3600",
    "SlurmctldDebug": "verbose",
    "SlurmdDebug": "verbose",
}


class CommandFailed(RuntimeError):
    """A Slurm command ended with an error; its text is what the command said."""


def missing():
    """Why no cluster can be started here; None when one can."""
    if os.geteuid() != 0:
        return "a Slurm cluster needs root"
    absent = [name for name in PROGRAMS if not shutil.which(name, path=_path())]
    return f"not installed: {' '.join(absent)}" if absent else None


def _path():
    return os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"


def await_true(what, condition, timeout=PATIENCE, poll=POLL):
    """The condition's first true value; TimeoutError says what it was waited for."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout} s: {what() if callable(what) else what}")
        time.sleep(poll)
    return value


class Supervisor:
    """Our end of supervisor.py."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-SE", str(HERE / "supervisor.py"), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )
        self.lock = threading.Lock()

    def ask(self, op, **request):
        with self.lock:
            self.process.stdin.write(json.dumps({"op": op, **request}).encode() + b"\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the supervisor of the cluster is gone")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    def close(self):
        self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return status


class Cluster:
    """One cluster; see the module. `conf` overrides or (with None) removes lines of slurm.conf;
    `plugstack` is the text of plugstack.conf, "{dir}" in it the cluster's folder; with `keep` that
    stays after the end. `requeue_delay`: after so many seconds a requeued job starts by itself,
    two minutes if Slurm has its way."""

    def __init__(self, nodes=16, tmp=None, conf=None, plugstack="", partitions=None, cpus=4, keep=False,
                 requeue_delay=None):
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.parent, self.overrides, self.plugstack = tmp, conf or {}, plugstack
        self.partitions = partitions or {"main": {"Default": "YES"}}
        self.cpus, self.keep, self.requeue_delay = cpus, keep, requeue_delay
        self.supervisor = None
        self.kernel_logs = {}  # node -> the FIFO, number and time of the last record

    # The life of the whole.

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        reason = missing()
        if reason:
            raise RuntimeError(reason)
        # Short, for a Unix socket's path has 107 characters; open to the users of the jobs.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="reknit-cluster-", dir=self.parent or "/tmp"))
        try:
            self.claim, self.port = ports.claim(2 + len(self.nodes))
            self._write_files()
            self.supervisor = Supervisor()
            self.start_munge()
            self.start_slurmctld(wait=False)
            for node in self.nodes:
                self.start_slurmd(node, wait=False)
            self.await_nodes()
        except BaseException:
            self.close()
            raise

    def close(self):
        """Ends every process of the cluster, the jobs' too. Raises when a daemon had crashed that
        was not started again."""
        crashes = self.crashes() if self.supervisor else []
        if self.supervisor and self.supervisor.close() != 0:
            raise RuntimeError("processes of the cluster are still there")
        self.supervisor = None
        for log, *_ in self.kernel_logs.values():
            log.close()
        self.kernel_logs.clear()
        if getattr(self, "claim", None):
            self.claim.close()
        if not self.keep:
            shutil.rmtree(self.dir, ignore_errors=True)
        for crash in crashes:
            text = f"{crash['name']} crashed of signal {crash['signal']}"
            if not crash["revived"]:
                raise RuntimeError(text)
            print(f"{text}, and was started again")

    def _write_files(self):
        self.dir.chmod(0o755)
        for name in ("log", "spool", "state", "munge", "agents"):
            (self.dir / name).mkdir(mode=0o755)
        self.work = self.dir / "work"
        self.work.mkdir()
        self.work.chmod(0o1777)
        self.munge_socket = self.dir / "munge" / "socket"
        key = self.dir / "munge" / "key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))
        self.conf = self.dir / "slurm.conf"
        self.conf.write_text(self._conf())
        (self.dir / "plugstack.conf").write_text(self.plugstack.replace("{dir}", str(self.dir)))
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_"))},
            "PATH": _path(), "SLURM_CONF": str(self.conf),
        }

    def _conf(self):
        values = {
            "ClusterName": "test",
            "SlurmctldHost": f"{socket.gethostname().split('.')[0]}(127.0.0.1)",
            "SlurmctldPort": self.port,
            "AuthInfo": f"socket={self.munge_socket}" + (
                f",cred_expire={self.requeue_delay - 1}" if self.requeue_delay else ""),
            "StateSaveLocation": self.dir / "state",
            "SlurmdSpoolDir": self.dir / "spool" / "%n",
            "SlurmctldPidFile": self.dir / "slurmctld.pid",
            "SlurmdPidFile": self.dir / "slurmd-%n.pid",
            "SlurmctldLogFile": self.dir / "log" / "slurmctld.log",
            "SlurmdLogFile": self.dir / "log" / "slurmd-%n.log",
            "PlugStackConfig": self.dir / "plugstack.conf",
            **CONF, **self.overrides,
        }
        lines = [f"{key}={value}" for key, value in values.items() if value is not None]
        for number, node in enumerate(self.nodes, 1):
            lines.append(f"NodeName={node} NodeAddr=127.0.0.1 Port={self.port + number} CPUs={self.cpus} State=UNKNOWN")
        for name, options in self.partitions.items():
            options = {"Nodes": "ALL", "MaxTime": "INFINITE", "State": "UP", **options}
            lines.append(f"PartitionName={name} " + " ".join(f"{k}={v}" for k, v in options.items()))
        return "\n".join(lines) + "\n"

    # The daemons. Each is stopped and started by name; `pause` and `resume` leave it where it is.

    def start_daemon(self, name, argv, env=None, revive=False):
        """Any other program may live here too; it ends with the cluster."""
        return self.supervisor.ask("start", name=name, argv=[str(a) for a in argv], revive=revive,
                                   log=str(self.dir / "log" / f"{name}.out"), env={**self.env, **(env or {})})

    def stop_daemon(self, name, timeout=5):
        return self.supervisor.ask("stop", name=name, timeout=timeout)

    def signal_daemon(self, name, number):
        self.supervisor.ask("signal", name=name, number=int(number))

    def daemons(self):
        """name -> pid of those that run."""
        return self.supervisor.ask("alive")

    def crashes(self):
        """Of daemons that died of a signal that nobody sends: name, signal, revived."""
        return self.supervisor.ask("crashes")

    def start_munge(self):
        base = self.dir / "munge"
        self.start_daemon("munged", [
            "munged", "--foreground", f"--socket={self.munge_socket}", f"--key-file={base}/key",
            f"--pid-file={base}/pid", f"--seed-file={base}/seed", f"--log-file={self.dir}/log/munged.log",
            "--origin=127.0.0.1", "--force",
        ])
        await_true(lambda: f"munged: {self.log('munged')}", self._munge_answers, 10, 0.02)

    def _munge_answers(self):
        with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
            s.connect(str(self.munge_socket))
            return True
        return False

    def stop_munge(self):
        self.stop_daemon("munged")

    def start_slurmctld(self, wait=True):
        self.start_daemon("slurmctld", ["slurmctld", "-D", "-f", self.conf])
        if wait:
            self.await_slurmctld()

    def stop_slurmctld(self):
        self.stop_daemon("slurmctld")

    def await_slurmctld(self):
        await_true(lambda: f"slurmctld: {self.log('slurmctld')}", self._slurmctld_answers)

    def _slurmctld_answers(self):
        if "slurmctld" not in self.daemons():
            raise RuntimeError(f"slurmctld ended: {self.log('slurmctld')}")
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
        with contextlib.suppress(CommandFailed):
            return "UP" in self.run("scontrol", "ping")
        return False

    def start_slurmd(self, node, wait=True):
        self.start_daemon(f"slurmd-{node}", ["slurmd", "-D", "-N", node, "-f", self.conf], revive=True)
        if wait:
            self.await_nodes([node])

    def stop_slurmd(self, node):
        """The node's steps and ranks live on."""
        self.stop_daemon(f"slurmd-{node}")

    def partition_node(self, node):
        """Loses the node to slurmctld (which notices after SlurmdTimeout), while its steps and
        ranks live on and nobody can end them from outside."""
        self.signal_daemon(f"slurmd-{node}", signal.SIGSTOP)

    def heal_node(self, node):
        self.signal_daemon(f"slurmd-{node}", signal.SIGCONT)

    # Reknit's part on the nodes.

    @staticmethod
    def plugin(path):
        """The line of plugstack.conf for the agents of start_agents()."""
        return f"optional {path} socket={{dir}}/agents/%n\n"

    @property
    def agents_address(self):
        """Where reknitd should listen for them."""
        return f"127.0.0.1:{self.port + len(self.nodes) + 1}"

    def start_agents(self, program, *options):
        for node in self.nodes:
            base = self.dir / "agents" / node
            self.kernel_log(node)
            self.start_daemon(f"agent-{node}", [
                program, "--to", self.agents_address, "--node", node, "--socket", base, "--kmsg", f"{base}.kmsg",
                "--spool", f"{base}.spool", "--munge-socket", self.munge_socket, "--verbose", *options])

    def kernel_log(self, node):
        if node not in self.kernel_logs:
            path = self.dir / "agents" / f"{node}.kmsg"
            os.mkfifo(path)
            # Open for as long as the cluster lives: what nobody has read yet stays.
            self.kernel_logs[node] = [os.fdopen(os.open(path, os.O_RDWR), "wb", buffering=0), 0, 60.0]
        return self.kernel_logs[node]

    def kernel_says(self, node, *texts, apart=0.001, facility=0):
        """What stands in the kernel's log of that node, which its agent reads, also what was there before the agent.
        `apart`: seconds between two of them, and from what it said before, by the kernel's own clock."""
        log = self.kernel_log(node)
        for text in texts:
            log[1:] = log[1] + 1, log[2] + apart
            log[0].write(f"{facility << 3 | 3},{log[1]},{int(log[2] * 1e6)},-;{text}\n".encode())

    def log(self, name, characters=2000):
        """The end of what a daemon wrote."""
        texts = []
        for suffix in ("out", "log"):
            with contextlib.suppress(FileNotFoundError):
                texts.append((self.dir / "log" / f"{name}.{suffix}").read_text(errors="replace")[-characters:])
        return "\n".join(texts)

    # Commands.

    def run(self, *argv, user=None, timeout=PATIENCE, **kwargs):
        """Runs a command as a client of this cluster; its output."""
        if user is not None:
            kwargs.update(user=user, group=user_group(user), extra_groups=[])
        kwargs = {"stdin": subprocess.DEVNULL, "env": self.env, "cwd": self.work, **kwargs}
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, errors="replace",
                              timeout=timeout, **kwargs)
        if done.returncode != 0:
            raise CommandFailed(f"{argv[0]}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def submit(self, script, *options, user=None, **named):
        """Submits a batch script (its text; a first line #! is added when missing) and returns the
        job's id. Named options are sbatch's: nodes=4, ntasks_per_node=1, exclusive=True, requeue=False (--no-requeue)."""
        if not script.startswith("#!"):
            script = "#!/bin/bash\n" + script
        argv = ["sbatch", "--parsable", *options]
        for name, value in {"output": self.work / "slurm-%j.out", "open_mode": "append", **named}.items():
            name = "--" + name.replace("_", "-")
            if value is True:
                argv.append(name)
            elif value is False:
                argv.append("--no-" + name[2:])
            elif value is not None:
                argv.append(f"{name}={value}")
        return int(self.run(*argv, user=user, input=script, stdin=None).split(";")[0])

    def output(self, job):
        """What a job submitted without an output of its own has written."""
        with contextlib.suppress(FileNotFoundError):
            return (self.work / f"slurm-{job}.out").read_text(errors="replace")
        return ""

    def jobs(self):
        """Every job slurmctld remembers, as it tells it: id -> members of `squeue --json`."""
        return {job["job_id"]: job for job in json.loads(self.run("squeue", "--json"))["jobs"]}

    def job(self, job):
        return self.jobs()[int(job)]

    def state(self, job):
        return self.job(job)["job_state"]

    def restarts(self, job):
        return self.job(job)["restart_cnt"]

    def await_state(self, job, states, timeout=PATIENCE, where=None):
        """The job once it is in one of the states (one name or several), and, with `where`, once
        that holds for it too."""
        states = {states} if isinstance(states, str) else set(states)
        seen = {}

        def there():
            seen.update(self.job(job))
            return seen["job_state"] in states and (where is None or where(seen))

        await_true(lambda: f"job {job} in {sorted(states)}; it is {seen.get('job_state')} "
                   f"({seen.get('state_reason')})", there, timeout)
        return seen

    def await_end(self, job, timeout=PATIENCE):
        return self.await_state(job, FINAL, timeout)

    def update_job(self, job, **members):
        self.run("scontrol", "update", f"JobId={job}", *(f"{k}={v}" for k, v in members.items()))

    def requeue(self, job, at_once=True):
        """As a person does it; `at_once` takes away the two minutes that Slurm would wait, after
        the second without which the start may fail."""
        count = self.restarts(job)
        self.run("scontrol", "requeue", job)
        self.await_state(job, "PENDING", where=lambda j: j["restart_cnt"] > count)
        if at_once:
            time.sleep(2)  # Slurm's timestamps have a resolution of one second
            self.update_job(job, StartTime="now")

    # Nodes.

    def node_states(self):
        """node -> its state as a set of words: {'idle'}, {'down', 'DRAIN'}..."""
        nodes = json.loads(self.run("sinfo", "--json"))["nodes"]
        return {node["name"]: {node["state"], *node["state_flags"]} for node in nodes}

    def await_nodes(self, nodes=None, states=("idle", "mixed", "allocated"), without=("NOT_RESPONDING",),
                    timeout=PATIENCE):
        """Waits until each node is in one of the states."""
        nodes, seen = list(nodes or self.nodes), {}
        self.await_slurmctld()

        def there():
            with contextlib.suppress(CommandFailed):
                seen.update(self.node_states())
            return all(seen.get(n, set()) & set(states) and not seen[n] & set(without) for n in nodes)

        await_true(lambda: f"nodes {nodes} {states}: {seen}", there, timeout)

    def set_node(self, node, state, reason="test"):
        self.run("scontrol", "update", f"NodeName={node}", f"State={state}", f"Reason={reason}")

    # The processes of jobs.

    def pids(self, job=None):
        """The tasks' processes, whatever Slurm believes: a list of Task, of one job or all."""
        tasks = (Task.read(pid) for pid in self.supervisor.ask("pids"))
        return [t for t in tasks if t and (job is None or t.job == int(job))]

    def ranks(self, job):
        """rank -> Task of the first process of each rank of a job's step (not of its batch script)."""
        found = {}
        for task in self.pids(job):
            if task.first and task.step != "batch":
                found[task.rank] = task
        return found

    def await_ranks(self, job, count, timeout=PATIENCE):
        return await_true(f"{count} ranks of job {job}",
                          lambda: len(found := self.ranks(job)) >= count and found, timeout)

    def kill_task(self, job, rank, number=signal.SIGKILL):
        """Sends a signal to the first process of a rank; which Task it was."""
        task = self.ranks(job)[rank]
        os.kill(task.pid, number)
        return task


class Task:
    """A process that Slurm's environment says belongs to a job."""

    @classmethod
    def read(cls, pid):
        """None for a process that is gone, dead, or no job's."""
        try:
            raw = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return None
        state, parent = stat.rsplit(")", 1)[1].split()[:2]
        pairs = (entry.partition(b"=") for entry in raw.split(b"\0"))
        env = {key.decode(errors="replace"): value.decode(errors="replace") for key, _, value in pairs}
        if state == "Z" or not {"SLURM_JOB_ID", "SLURM_PROCID", "SLURMD_NODENAME"} <= set(env):
            return None
        return cls(pid, int(parent), env)

    def __init__(self, pid, parent, env):
        self.pid, self.parent, self.env = pid, parent, env
        self.job, self.rank, self.node = int(env["SLURM_JOB_ID"]), int(env["SLURM_PROCID"]), env["SLURMD_NODENAME"]
        self.step = env.get("SLURM_STEP_ID", "batch")
        self.restarts = int(env.get("SLURM_RESTART_COUNT", "0"))

    @property
    def first(self):
        """Whether slurmstepd started it itself."""
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{self.parent}/comm").read_text().startswith("slurmstepd")
        return False

    def __repr__(self):
        return f"<{self.pid}: job {self.job}.{self.step} rank {self.rank} on {self.node}>"


def user_group(user):
    import pwd

    entry = pwd.getpwuid(user) if isinstance(user, int) else pwd.getpwnam(user)
    return entry.pw_gid
