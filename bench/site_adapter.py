# SPDX-License-Identifier: Apache-2.0
"""The adapter of a big site that exists only in memory (docs/ADAPTER.md), for bench/site.

It takes as long for its answers as reknit-slurm was measured to take beside a slurmctld of that
size, and keeps count of it. A datagram socket takes orders: {"end": [ids]}, {"report": path}.
"""

import json
import os
import select
import socket
import sys
import time

COST = {"nodes": {"full": 0.090, "changed": 0.077, "unchanged": 0.002},
        "jobs": {"full": 0.020, "changed": 0.012, "unchanged": 0.002},
        "steps": {"full": 0.020}, "layout": {"full": 0.003}}  # the last two by their length, not measured
CHURN = 5  # nodes that change each second, as they do on a busy site


class Site:
    def __init__(self, orders, jobs, nodes, ranks, folder):
        self.orders = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.orders.bind(orders)
        self.folder, self.jobs, self.nodes = folder, {}, {}
        self.dirty = {"jobs": set(), "nodes": set()}
        self.told, self.waiting = set(), set()
        self.busy, self.asked, self.acts, self.began = 0.0, {}, [], time.time()
        self.churned = 0
        each = nodes // jobs
        for n in range(1, nodes + 1):
            self.nodes[f"n{n}"] = {
                "name": f"n{n}", "address": "127.0.0.1", "host": f"n{n}", "state": "allocated", "flags": [],
                "usable": True, "reason": "", "reason_user": "", "reason_time": 0, "features": ["gpu"],
                "partitions": ["main"], "gpus": 8, "cpus": 64, "boot": 1, "daemon_start": 1}
        for j in range(1, jobs + 1):
            names = [f"n{n}" for n in range((j - 1) * each + 1, j * each + 1)]
            now = int(time.time()) - 60
            self.jobs[str(j)] = {
                "id": str(j), "label": str(j), "array": None, "het": None, "name": f"train-{j}", "user": "root",
                "uid": os.getuid(), "gid": os.getgid(), "account": "a", "partition": "main", "qos": "", "reservation": "",
                "features": "", "dependency": "", "comment": "reknit", "admin_comment": "", "command": "train.sh",
                "work_dir": folder, "stdout": f"{folder}/{j}.out", "stderr": "", "stdout_path": f"{folder}/{j}.out",
                "stderr_path": f"{folder}/{j}.out", "batch": True, "requeue": True, "restarts": 0, "state": "running",
                "completing": False, "power_up": False, "held": False, "reason": "None", "reason_text": "",
                "reason_kind": "none", "priority": 1, "exit": {"code": 0, "signal": 0},
                "derived_exit": {"code": 0, "signal": 0}, "submit": now, "eligible": now, "start": now, "end": 0,
                "time_limit": 0, "nodes": names, "nodes_text": f"n[{(j - 1) * each + 1}-{j * each}]",
                "n_nodes": each, "n_tasks": ranks // jobs, "n_cpus": 64 * each, "gpus": 8 * each, "exclude": [],
                "required": [], "failed_node": "", "batch_host": names[0]}

    def order(self, text):
        order = json.loads(text)
        for job in order.get("end", ()):
            self.jobs[job].update(state="failed", end=int(time.time()), exit={"code": 1, "signal": 0},
                                  reason="NonZeroExitCode", reason_kind="exit")
            self.dirty["jobs"].add(job)
        if "report" in order:
            report = {"busy": self.busy, "asked": self.asked, "acts": self.acts, "at": time.time()}
            with open(order["report"] + ".new", "w", encoding="utf-8") as f:
                json.dump(report, f)
            os.rename(order["report"] + ".new", order["report"])

    def pass_time(self):
        now = time.time()
        for second in range(self.churned, int(now - self.began)):
            for i in range(CHURN):
                node = self.nodes[f"n{(second * CHURN + i) * 7919 % len(self.nodes) + 1}"]
                node["flags"] = [] if node["flags"] else ["completing"]
                self.dirty["nodes"].add(node["name"])
            self.churned = second + 1
        for job in [j for j in self.waiting if now >= self.jobs[j]["eligible"]]:
            self.jobs[job].update(state="running", start=int(now))
            self.waiting.discard(job)
            self.dirty["jobs"].add(job)

    def list(self, what, request):
        records, dirty = getattr(self, what), self.dirty[what]
        if not request.get("diff") or what not in self.told:
            self.told.add(what)
            dirty.clear()
            return "full", {"full": True, "time": int(time.time()), what: list(records.values())}
        if not dirty:
            return "unchanged", {"unchanged": True, "time": int(time.time())}
        news = [records[key] for key in sorted(dirty)]
        dirty.clear()
        return "changed", {"full": False, "time": int(time.time()), what: news, "gone": []}

    def layout(self, job):
        """The tasks of a job, as many on each node."""
        nodes, each = job["nodes"], job["n_tasks"] // job["n_nodes"]
        return {"n_tasks": job["n_tasks"], "order": nodes,
                "nodes": {name: f"{i * each}-{(i + 1) * each - 1}" for i, name in enumerate(nodes)}}

    def spend(self, op, kind="full"):
        self.asked[f"{op} {kind}"] = self.asked.get(f"{op} {kind}", 0) + 1
        self.busy += COST[op][kind]
        time.sleep(COST[op][kind])

    def act(self, request):
        r = self.jobs[request["job"]]
        if any(r[k] != v for k, v in request.get("expect", {}).items() if k in ("restarts", "submit", "completing")):
            return {"ok": False, "error": "changed", "text": "", "now": r}
        self.acts.append([time.time(), request["op"], request["job"]])
        self.dirty["jobs"].add(request["job"])
        now = int(time.time())
        if request["op"] == "requeue":
            r.update(state="pending", restarts=r["restarts"] + 1, submit=now, eligible=now + 121, start=0, end=0,
                     reason="BeginTime", reason_kind="time")
            self.waiting.add(request["job"])
        elif request["op"] == "update":
            r.update({k: v for k, v in request.get("set", {}).items() if k in ("exclude", "eligible")})
        return {"ok": True}

    def answer(self, request):
        op = request["op"]
        self.pass_time()
        if op in ("jobs", "nodes"):
            kind, answer = self.list(op, request)
            self.spend(op, kind)
        elif op == "steps":
            answer = {"steps": [{"job": j["id"], "step": "0", "name": "train", "state": "running", "nodes": j["nodes"],
                                 "n_tasks": j["n_tasks"], "start": j["start"]}
                                for j in self.jobs.values() if j["state"] == "running"]}
            self.spend(op)
        elif op == "layout" and self.jobs[request["job"]]["state"] == "running":
            answer = self.layout(self.jobs[request["job"]])
            self.spend(op)
        elif op == "job":
            answer = {"job": self.jobs[request["job"]]}
        elif op == "config":
            answer = {"config": {"cluster": "bench", "controller": f"memory:{os.getppid()}"}}
        elif op == "ping":
            answer = {"controllers": [], "clock": int(time.time())}
        elif op in ("requeue", "update", "cancel"):
            answer = self.act(request)
        else:
            answer = {"ok": False, "error": "invalid", "text": "not in this world"}
        return {"id": request["id"], "ok": True, **answer}

    def serve(self):
        out, pending = sys.stdout.buffer, b""
        out.write(b'{"hello":{"protocol":1,"adapter":"bench","version":"1"}}\n')
        out.flush()
        while True:
            ready, _, _ = select.select([0, self.orders], [], [])
            if self.orders in ready:
                self.order(self.orders.recv(1 << 20))
            if 0 not in ready:
                continue
            data = os.read(0, 1 << 16)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for text in lines:
                out.write(json.dumps(self.answer(json.loads(text))).encode() + b"\n")
            out.flush()


if __name__ == "__main__":
    Site(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]).serve()
