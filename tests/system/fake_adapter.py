#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A scheduler that exists only in memory, and its adapter (docs/ADAPTER.md).

A test makes a World, says what is in it, and gives reknitd the command of an adapter for it:

    with World(nodes=4) as world:
        job = world.submit(n_nodes=2, comment="reknit", runs=[(3, "failed", 1), (60, "completed", 0)])
        world.break_next("requeue", "die-after")
        ... adapter: world.command ...

The world outlives its adapters, as a scheduler does: one that was killed is started again and finds
what was there. `runs` are the attempts of a job in turn: seconds, how it ends, exit code; after the last one
it runs until the test ends it. One of `partition` "a,b" runs in the first of them that has room. Time is time.time(), or whatever clock= returns.

Without a test:

    fake_adapter.py SCENARIO.json      {"nodes": 100, "jobs": [{...submit()...}, ...],
                                        "faults": [{"op": ..., "fault": ..., ...}, ...]}
    fake_adapter.py --socket PATH      of a World elsewhere
"""

import collections
import itertools
import json
import os
import pathlib
import re
import shutil
import socket
import sys
import tempfile
import threading
import time

WAITING = {"pending", "special-exit", "requeued"}
ALIVE = {"configuring", "running", "suspended"}
REQUEUE_DELAY = 121
LAUNCH_PAUSE = 2  # an attempt that starts earlier after PENDING is lost, as in Slurm
LINE_MAX = 256 * 1024
FAULTS = {
    "hang": "no answer, and nothing is done",
    "late": "no answer, but it is done",
    "die": "ends before it does anything",
    "die-after": "does it and ends without an answer",
    "nonsense": "answers with what is no JSON",
    "wrong-id": "answers another request",
    "odd": "each list of the answer holds what has no place there, too",
    "lag": "answers after `seconds`",
    "error": "answers `error`, and nothing is done",
}

JOB = {
    "cut": [], "array": None, "het": None, "name": "job", "user": "alice", "uid": 1000, "gid": 1000,
    "account": "", "partition": "main", "qos": "", "reservation": "", "features": "",
    "dependency": "", "comment": "", "admin_comment": "", "command": "", "work_dir": "/tmp",
    "stdout": "", "stderr": "", "stdout_path": "", "stderr_path": "", "batch": True,
    "requeue": True, "restarts": 0, "state": "pending", "completing": False, "power_up": False,
    "held": False, "reason": "None", "reason_text": "", "reason_kind": "none", "priority": 1000,
    "exit": {"code": 0, "signal": 0}, "derived_exit": {"code": 0, "signal": 0}, "start": 0,
    "end": 0, "time_limit": 0, "nodes": [], "nodes_text": "", "n_nodes": 1, "n_tasks": 1,
    "n_cpus": 1, "gpus": 0, "exclude": [], "required": [], "failed_node": "", "batch_host": "",
}
NODE = {
    "address": "127.0.0.1", "host": "", "state": "idle", "flags": [], "usable": True, "reason": "",
    "reason_user": "", "reason_time": 0, "features": [], "partitions": ["main"], "gpus": 8,
    "cpus": 64, "boot": 1, "daemon_start": 1,
}
CONFIG = {
    "cluster": "fake", "version": "1", "user": "slurm", "operator": True, "scheduler_user": "slurm", "scheduler_uid": 64030,
    "forget_s": 3600, "node_timeout_s": 300, "requeue_delay_s": REQUEUE_DELAY,
    "requeue_default": True, "kill_on_bad_exit": True, "message_timeout_s": 10, "kill_wait_s": 30,
    "parameters": "", "file_append": False,
}
COUNT = itertools.count()
ENDINGS = {"failed": "exit", "timeout": "time-limit", "node-fail": "node", "out-of-memory": "memory"}


class Refused(Exception):
    """A request that is not done: the error's word, its text and what else the answer has."""

    def __init__(self, error, text, **more):
        super().__init__(text)
        self.answer = {"ok": False, "error": error, "text": text, **more}


class World:
    def __init__(self, nodes=4, clock=time.time, complete_s=0.0, launch_race=False, config=None, prefix="n"):
        self.clock, self.complete_s, self.launch_race = clock, complete_s, launch_race
        # A scheduler of its own, whatever it is called.
        self.config = {**CONFIG, "controller": f"memory:{os.getpid()}:{next(COUNT)}", **(config or {})}
        self.jobs, self.nodes, self.plans, self.faults, self.reserved = {}, {}, {}, [], {}
        self.done = []  # the requests that were carried out, in order
        self.asked = collections.Counter()  # how often what was asked
        self.lock = threading.RLock()
        self.last_id = 0
        for number in range(1, nodes + 1):
            name = f"{prefix}{number}"
            self.nodes[name] = {"name": name, **NODE, "host": name}

    # What a test says and asks.

    def submit(self, runs=(), **members):
        """Adds a job; returns its id. members: of its record."""
        with self.lock:
            self.last_id += 1
            job = members.pop("id", str(self.last_id))
            assert members.keys() <= JOB.keys(), f"no record has {members.keys() - JOB.keys()}"
            now = int(self.clock())
            self.jobs[job] = {"id": job, "label": job, **JOB, "submit": now, "eligible": now, **members}
            self.plans[job] = {"runs": [tuple(run) for run in runs], "pending_since": 0.0,
                               "partitions": self.jobs[job]["partition"],
                               "completing_until": None, "began": 0.0, "shown": False}
            self._step()
            return job

    def job(self, job):
        with self.lock:
            self._step()
            return dict(self.jobs[job])

    def end(self, job, state="failed", code=1, signal=0, failed_node=""):
        with self.lock:
            self._end(job, state, code, signal, failed_node)

    def cancel(self, job):
        with self.lock:
            self._end(job, "cancelled", 0, 15)

    def forget(self, job):
        with self.lock:
            self.jobs.pop(job)
            self.plans.pop(job)

    def change(self, job, **members):
        with self.lock:
            self.jobs[job].update(members)

    def set_node(self, node, state="down", flags=(), reason="", user="root"):
        """As an operator would. The jobs on a node that goes down end with node-fail, and are requeued."""
        with self.lock:
            record = self.nodes[node]
            record.update(state=state, flags=list(flags), reason=reason, reason_user=user if reason else "",
                          usable=state != "down" and not {"drain", "fail", "maint"} & set(flags))
            hit = [j for j, r in self.jobs.items() if r["state"] in ALIVE and node in r["nodes"]]
            for job in hit if state == "down" else ():
                held = self.jobs[job]["held"]
                self._end(job, "node-fail", 0, 0, node)
                if self.jobs[job]["requeue"]:
                    self._requeue(job, delay=0)
                    self.jobs[job]["held"] = held  # a hold outlives it, as in Slurm

    def break_next(self, op, fault, times=1, **more):
        """The next `times` requests with that op ("*" = any) meet one of FAULTS."""
        assert fault in FAULTS, fault
        with self.lock:
            self.faults.append({"op": op, "fault": fault, "times": times, **more})

    def mend(self):
        """Nothing is broken any more."""
        with self.lock:
            self.faults.clear()

    # The life of jobs.

    def _end(self, job, state, code, signal, failed_node=""):
        r, plan = self.jobs[job], self.plans[job]
        if r["state"] not in ALIVE | WAITING:
            return
        alive = r["state"] in ALIVE
        r.update(state=state, end=int(self.clock()), exit={"code": code, "signal": signal},
                 derived_exit={"code": code, "signal": signal}, failed_node=failed_node, held=False,
                 reason_kind=ENDINGS.get(state, "none"), reason=state if state in ENDINGS else "None")
        self._begin_completing(r, plan, alive)

    def _begin_completing(self, r, plan, alive):
        if alive and self.complete_s > 0:
            r["completing"] = True
            plan["completing_until"] = self.clock() + self.complete_s

    def _requeue(self, job, delay=REQUEUE_DELAY):
        r, plan, now = self.jobs[job], self.plans[job], self.clock()
        self._begin_completing(r, plan, r["state"] in ALIVE)
        if plan["completing_until"] is None:
            r["nodes"], r["nodes_text"], r["batch_host"] = [], "", ""
        plan["pending_since"] = plan["completing_until"] or now
        r.update(state="pending", restarts=r["restarts"] + 1, submit=int(now), partition=plan["partitions"],
                 eligible=int(now) + delay, start=0, end=0)

    def _step(self):
        """Brings the world up to the present."""
        busy = {node for r in self.jobs.values() if r["state"] in ALIVE or r["completing"] for node in r["nodes"]}
        for job in list(self.jobs):
            self._step_job(job, self.jobs[job], self.plans[job], self.clock(), busy)

    def _step_job(self, job, r, plan, now, busy):
        if plan["completing_until"] is not None and now >= plan["completing_until"]:
            plan["completing_until"], r["completing"] = None, False
            if r["state"] in WAITING:
                r["nodes"], r["nodes_text"], r["batch_host"] = [], "", ""
        if r["state"] == "running" and r["restarts"] < len(plan["runs"]):
            seconds, state, code = plan["runs"][r["restarts"]]
            if now >= plan["began"] + seconds and plan["shown"]:
                self._end(job, state, code, 0)
        if r["state"] == "pending" and not r["completing"] and r["dependency"] == "":
            self._try_start(job, r, plan, now, busy)

    def _try_start(self, job, r, plan, now, busy):
        able = {p: [n for n, node in self.nodes.items() if n not in r["exclude"] and p in node["partitions"]]
                for p in r["partition"].split(",")}
        able = {p: nodes for p, nodes in able.items() if len(nodes) >= r["n_nodes"]}
        if not able or set(r["required"]) & set(r["exclude"]):
            r.update(held=True, priority=0, reason="BadConstraints", reason_kind="constraints")
            return
        if r["reason_kind"] == "constraints":
            r.update(held=False, priority=1000, reason="None", reason_kind="none")
        if r["held"]:
            return
        if now < r["eligible"]:
            r.update(reason="BeginTime", reason_kind="time")
            return
        for partition, nodes in able.items():
            free = [n for n in nodes if n not in busy and self.nodes[n]["usable"]]
            if len(free) >= r["n_nodes"] and set(r["required"]) <= set(free):
                break
        else:
            r.update(reason="Resources", reason_kind="resources")
            return
        nodes = sorted(free, key=lambda n: n not in r["required"])[: r["n_nodes"]]
        busy.update(nodes)
        r.update(state="running", start=int(now), partition=partition, nodes=nodes, nodes_text=",".join(nodes),
                 batch_host=nodes[0], reason="None", reason_kind="none", failed_node="")
        plan["began"], plan["shown"] = now, False
        if self.launch_race and r["restarts"] and now < plan["pending_since"] + LAUNCH_PAUSE:
            self._end(job, "failed", 0, 0)
            r.update(reason="JobLaunchFailure", reason_kind="launch")

    # The protocol.

    def answer(self, request, session):
        """One answer, an object. session: a dict, what belongs to the connection."""
        with self.lock:
            self._step()
            self.asked[str(request.get("op"))] += 1
            handler = getattr(self, "op_" + str(request.get("op")).replace("-", "_"), None)
            try:
                if not isinstance(request.get("id"), int) or not handler:
                    raise Refused("invalid", "no id, or no op that is known")
                result = {"ok": True, **handler(request, session)}
            except Refused as refused:
                result = refused.answer
            if result["ok"] and request["op"] in ("requeue", "update", "cancel", "node"):
                self.done.append(request)
            number = request.get("id")
            return {"id": number if isinstance(number, int) else None, **result}

    def _list(self, what, records, request, session):
        now, told = int(self.clock()), session.get(what)
        texts = {key: json.dumps(record) for key, record in records.items()}
        if not request.get("diff"):
            return {"full": True, "time": now, what: list(records.values())}
        session[what] = texts
        if told is None or request.get("fresh"):
            return {"full": True, "time": now, what: list(records.values())}
        news = [records[key] for key, text in texts.items() if told.get(key) != text]
        gone = [key for key in told if key not in texts]
        if not news and not gone:
            return {"unchanged": True, "time": now}
        return {"full": False, "time": now, what: news, "gone": gone}

    def _show(self, jobs):
        """A run does not end before somebody has seen it, however slow he is: what comes of a job that
        was over before anybody looked is another matter, and end() makes one."""
        for job in jobs:
            self.plans[job]["shown"] |= self.jobs[job]["state"] == "running"

    def op_jobs(self, request, session):
        self._show(self.jobs)
        return self._list("jobs", self.jobs, request, session)

    def op_nodes(self, request, session):
        return self._list("nodes", self.nodes, request, session)

    def op_partitions(self, request, session):
        return {"partitions": [{"name": "main", "up": "up", "default": True, "hidden": False,
                                "nodes": list(self.nodes), "nodes_text": ",".join(self.nodes),
                                "time_limit": 0, "max_nodes": 0, "priority_tier": 1,
                                "allow_accounts": "", "allow_qos": ""}]}

    def op_reservations(self, request, session):
        return {"reservations": list(self.reserved.values())}

    def op_config(self, request, session):
        return {"config": self.config}

    def op_ping(self, request, session):
        return {"controllers": [{"host": "fake", "role": "primary", "up": True}], "clock": int(self.clock())}

    def _job(self, request):
        record = self.jobs.get(str(request.get("job")))
        if not record:
            raise Refused("no-such-job", "there is no such job")
        return record

    def _node(self, request):
        record = self.nodes.get(str(request.get("node")))
        if not record:
            raise Refused("no-such-job", "there is no such node")
        return record

    def op_job(self, request, session):
        record = self._job(request)
        self._show([record["id"]])
        return {"job": record}

    def op_node_look(self, request, session):
        return {"node": self._node(request)}

    def op_steps(self, request, session):
        records = [self._job(request)] if "job" in request else list(self.jobs.values())
        return {"steps": [{"job": r["id"], "step": "0", "name": "train", "state": "running", "nodes": r["nodes"],
                           "n_tasks": r["n_tasks"], "start": r["start"]} for r in records if r["state"] == "running"]}

    def op_layout(self, request, session):
        r = self._job(request)
        if r["state"] != "running" or str(request.get("step")) not in ("0", "batch"):
            raise Refused("no-such-job", "there is no such step")
        tasks = {node: [] for node in r["nodes"]}
        for task in range(r["n_tasks"]):
            tasks[r["nodes"][task * len(r["nodes"]) // r["n_tasks"]]].append(str(task))
        return {"n_tasks": r["n_tasks"], "order": r["nodes"], "nodes": {n: ",".join(t) for n, t in tasks.items()}}

    def _expect(self, request, record, demand=()):
        expect = request.get("expect", {})
        known = {"restarts", "submit", "states", "completing", "held", "name", "uid", "user_cancelled", "requeue",
                 "dependency"}
        if not set(expect) <= known or not set(demand) <= set(expect):
            raise Refused("invalid", "expect is not understood, or lacks something")
        for name, value in expect.items():
            there = (record["state"] in value if name == "states"
                     else (record["state"] == "cancelled") == value if name == "user_cancelled"
                     else record[name] == value)
            if not there:
                raise Refused("changed", f"{name} is another", now=record)

    def op_requeue(self, request, session):
        r = self._job(request)
        self._expect(request, r, ("restarts", "submit", "states"))
        if r["state"] == "cancelled" or not r["batch"] or not r["requeue"]:
            raise Refused("not-allowed", "it is cancelled, interactive, or must not be requeued")
        if r["state"] in WAITING:
            raise Refused("already-done", "the job is pending")
        self._requeue(r["id"])
        if request.get("special_exit") or request.get("hold"):
            r.update(held=True, priority=0, state="special-exit" if request.get("special_exit") else "pending")
        return {}

    def op_cancel(self, request, session):
        r = self._job(request)
        self._expect(request, r, ("restarts", "submit", "states"))
        if r["state"] not in ALIVE | WAITING:
            raise Refused("already-done", "it has ended")
        self._end(r["id"], "cancelled", 0, 15)
        return {}

    def op_update(self, request, session):
        r, new = self._job(request), dict(request.get("set") or {})
        self._expect(request, r)
        settable = {"exclude", "eligible", "requeue", "held", "priority", "dependency", "reservation",
                    "time_limit", "comment", "admin_comment"}
        if not new or not set(new) <= settable or not set(new.get("exclude", [])) <= set(self.nodes):
            raise Refused("invalid", "set is not understood")
        if r["state"] not in ALIVE | WAITING:
            raise Refused("not-allowed", "the job has finished")
        if "eligible" in new and (r["state"] not in WAITING or r["completing"]):
            raise Refused("changed", "only a pending job keeps a start time", now=r)
        left_out = []
        for name in ("comment", "admin_comment"):
            try:
                new.update({name: self._merge(r[name], new[name])} if name in new else {})
            except Refused:
                if name not in request.get("optional", []):
                    raise
                left_out.append(name)
                del new[name]
        if "held" in new:
            r["state"] = "pending" if not new["held"] and r["state"] == "special-exit" else r["state"]
            new["priority"] = 0 if new["held"] else 1000
            new.update(reason="JobHeldAdmin" if new["held"] else "None", reason_kind="held" if new["held"] else "none")
        r.update(new)
        self._step()
        return {"left_out": left_out, "text": "the comment holds other text"} if left_out else {}

    @staticmethod
    def _merge(comment, value):
        try:
            there = json.loads(comment or "{}")
        except ValueError:
            there = None
        if not isinstance(there, dict) and value is None:
            return comment
        if not isinstance(there, dict):
            raise Refused("not-allowed", "the comment holds other text")
        there.pop("reknit", None)
        if value is not None:
            there["reknit"] = value
        return json.dumps(there, separators=(",", ":")) if there else ""

    def op_reserve(self, request, session):
        name, nodes = request.get("name"), request.get("nodes")
        if not str(name).startswith("reknit-") or not nodes or not set(nodes) <= set(self.nodes):
            raise Refused("invalid", "no name of ours, or no nodes")
        self.reserved[name] = {"name": name, "active": True, "start": int(self.clock()),
                               "end": int(self.clock()) + request["seconds"], "nodes": nodes, "partition": "",
                               "users": "root", "accounts": "", "flags": ["ignore-jobs"]}
        return {}

    def op_unreserve(self, request, session):
        if not self.reserved.pop(request.get("name"), None):
            raise Refused("already-done", "there is no such reservation")
        return {}

    def op_node(self, request, session):
        r, what = self._node(request), request.get("set")
        if what == "drain":
            if not str(request.get("reason")).startswith("reknit:"):
                raise Refused("invalid", "the reason must begin with reknit:")
            if not r["usable"]:
                raise Refused("already-done", "it is out of service")
            r.update(flags=["drain"], usable=False, reason=request["reason"], reason_user="slurm")
        elif what == "undrain":
            if "drain" not in r["flags"]:
                raise Refused("already-done", "it is not drained")
            if not r["reason"].startswith("reknit:"):
                raise Refused("not-allowed", "somebody else drained it")
            r.update(flags=[], usable=r["state"] != "down", reason="", reason_user="")
        else:
            raise Refused("invalid", "set is neither drain nor undrain")
        return {}

    # Adapters of it.

    def __enter__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="reknit-fake-"))
        self.socket = self.dir / "world"
        self.command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--socket", str(self.socket)]
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.socket))
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as lines, connection.makefile("wb", buffering=0) as out:
            try:
                self.converse(lines, out)
            except OSError:
                pass  # the adapter was killed

    def converse(self, lines, out):
        """Speaks with one client until it, or a fault, ends the conversation."""
        session = {}
        out.write(json.dumps({"hello": {"protocol": 1, "adapter": "fake", "version": "1"}}).encode() + b"\n")
        for line in lines:
            try:
                request = json.loads(line) if len(line) <= LINE_MAX else None
            except ValueError:
                request = None
            if not isinstance(request, dict):
                request = {}
            text, goes_on = self._act(request, session)
            if text:
                out.write(text)
            if not goes_on:
                return

    def _fault_of(self, request):
        with self.lock:
            for fault in self.faults:
                if fault["op"] in ("*", request.get("op")):
                    fault["times"] -= 1
                    if fault["times"] <= 0:
                        self.faults.remove(fault)
                    return fault
        return {"fault": None}

    def _act(self, request, session):
        """What is said to a request, and whether the conversation goes on."""
        fault = self._fault_of(request)
        kind = fault["fault"]
        if kind == "die":
            return b"", False
        if kind == "hang":
            return b"", True
        if kind == "error":
            answer = {"id": request.get("id"), "ok": False, "error": fault["error"], "text": "as the test wants"}
        else:
            answer = self.answer(request, session)
        if kind in ("late", "die-after"):
            return b"", kind == "late"
        if kind == "nonsense":
            return b'{"id":%d,"ok":tr\xff\xfe\n' % request.get("id", 0), True
        if kind == "wrong-id":
            answer["id"] = request.get("id", 0) + 1000
        if kind == "odd":
            answer = with_oddities(answer)
        if kind == "lag":
            time.sleep(fault["seconds"])
        return json.dumps(answer).encode() + b"\n", True


def with_oddities(value):
    """The same with lists that hold numbers, null, and objects of nothing as well."""
    if isinstance(value, dict):
        return {name: with_oddities(member) for name, member in value.items()}
    if isinstance(value, list):
        return [12, None, {}, [], *map(with_oddities, value)]
    return value


def relay(path):
    """Standard input to the world and back, until either ends."""
    world = socket.socket(socket.AF_UNIX)
    world.connect(path)

    def inwards():
        while data := os.read(0, 65536):
            world.sendall(data)
        os._exit(0)

    threading.Thread(target=inwards, daemon=True).start()
    while data := world.recv(65536):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    os._exit(1)


def world_of(scenario):
    world = World(nodes=scenario.get("nodes", 4), complete_s=scenario.get("complete_s", 0.0),
                  launch_race=scenario.get("launch_race", False), config=scenario.get("config"))
    for job in scenario.get("jobs", []):
        copies = job.pop("copies", 1)
        for number in range(1, copies + 1):
            world.submit(**{k: re.sub("{n}", str(number), v) if isinstance(v, str) else v for k, v in job.items()})
    for fault in scenario.get("faults", []):
        world.break_next(**fault)
    return world


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--socket":
        relay(sys.argv[2])
    elif len(sys.argv) == 2 and not sys.argv[1].startswith("-"):
        scenario = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
        world_of(scenario).converse(sys.stdin.buffer, open(1, "wb", buffering=0, closefd=False))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
