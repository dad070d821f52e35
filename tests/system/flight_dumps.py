# SPDX-License-Identifier: Apache-2.0
"""Dumps of PyTorch's flight recorder, of jobs that stand still for a reason we chose.

A small machine runs one program a rank. A CPU asks for operations, at most DEPTH ahead of its GPU;
a GPU does them in order; a collective ends when all its members' GPUs have come to it. What stands
when nothing moves any more is written as PyTorch would.
"""

import dataclasses
import json
import pickle

DEPTH = 6


@dataclasses.dataclass
class Op:
    group: tuple  # ranks
    name: str = "all_reduce"
    size: int = 1024
    peer: int = None  # of a send or recv: the other rank
    batch: bool = False  # one number for it and its neighbours that are batched too
    kind: str = ""  # tells apart groups with the same members
    state: str = "scheduled"
    seq: int = 0
    order: int = 0

    @property
    def key(self):
        return self.group, self.kind


def train(world, tp=1, pp=1, steps=8, kinds=("DP", "TP", "PP")):
    """The program of each rank: in each step a pipeline of messages, collectives of its tensor
    group, one of its data group, one of all."""
    dp = world // (tp * pp)
    programs = {}
    for rank in range(world):
        t, d, p = rank % tp, rank // tp % dp, rank // (tp * dp)
        at = lambda t, d, p: t + tp * (d + dp * p)
        groups = {"TP": tuple(at(i, d, p) for i in range(tp)), "DP": tuple(at(t, i, p) for i in range(dp)),
                  "PP": tuple(at(t, d, i) for i in range(pp)), "ALL": tuple(range(world))}
        one = []
        for k in range(2 if tp > 1 else 0):
            one.append(Op(groups["TP"], "_all_gather_base", 4096 + k, kind="TP"))
        if pp > 1 and p > 0:
            one.append(Op(groups["PP"], "recv", peer=at(t, d, p - 1), kind="PP"))
        for k in range(2 if tp > 1 else 0):
            one.append(Op(groups["TP"], "_reduce_scatter_base", 8192 + k, kind="TP"))
        if pp > 1 and p < pp - 1:
            one.append(Op(groups["PP"], "send", peer=at(t, d, p + 1), kind="PP"))
        if dp > 1:
            one.append(Op(groups["DP"], "all_reduce", 1 << 20, kind="DP"))
        one.append(Op(groups["ALL"], "all_reduce", 1, kind="ALL"))
        programs[rank] = [dataclasses.replace(op) for _ in range(steps) for op in one]
    return programs


class Rank:
    def __init__(self, rank, program):
        self.rank, self.program, self.asked, self.done = rank, program, 0, 0
        self.cpu_stop = self.gpu_stop = self.blind = None  # place in the program
        self.seq, self.p2p_seq = {}, {}

    def head(self):
        """What its GPU is at."""
        if self.done < self.asked and self.done != self.gpu_stop:
            return self.program[self.done]
        return None

    def ask(self):
        moved = False
        while (self.asked < len(self.program) and self.asked != self.cpu_stop
               and self.asked - self.done < DEPTH):
            op = self.program[self.asked]
            before = self.program[self.asked - 1] if self.asked else None
            if not (op.batch and before is not None and before.batch and before.key == op.key):
                self.seq[op.key] = self.seq.get(op.key, 0) + 1
            op.seq, op.order = self.seq[op.key], self.asked
            self.asked += 1
            moved = True
        return moved


class Job:
    def __init__(self, programs):
        self.ranks = {r: Rank(r, p) for r, p in programs.items()}

    def _ready(self, rank):
        op = rank.head()
        if op is None:
            return None
        if op.peer is not None:
            other = self.ranks[op.peer]
            o = other.head()
            met = o is not None and o.peer == rank.rank and {o.name, op.name} == {"send", "recv"}
            return [rank, other] if met else None
        members = [self.ranks[r] for r in op.group]
        for m in members:
            o = m.head()
            if o is None or o.key != op.key or o.peer is not None or (o.name, o.size) != (op.name, op.size):
                return None
        return members

    def run(self):
        """Until nothing moves."""
        moved = True
        while moved:
            moved = False
            for rank in self.ranks.values():
                moved |= rank.ask()
            for rank in self.ranks.values():
                ready = self._ready(rank)
                for m in ready or []:
                    m.program[m.done].state = "completed"
                    m.done += 1
                moved |= bool(ready)
        for rank in self.ranks.values():
            if rank.blind is not None:  # its GPU took part, but from here on it saw nothing end
                for op in rank.program[rank.blind:rank.asked]:
                    op.state = "scheduled"
                rank.done = min(rank.done, rank.blind)
            op = rank.head()
            if op is not None:
                op.state = "started"
        return self


def shift_names(names, rank):
    return {key: str(int(name) + 3 * rank) for key, name in names.items()}


def dump_of(job, rank, starts=True, active_only=False, keep=2000, config=True, renumber=False, version="2.10"):
    """What the rank writes, as Python data."""
    r = job.ranks[rank]
    keys = sorted({op.key for x in job.ranks.values() for op in x.program}, key=lambda k: (k[1], k[0]))
    names = {key: str(i) for i, key in enumerate(keys)}
    if renumber:
        names = shift_names(names, rank)
    mine = [key for key in keys if rank in key[0]]
    local = {key: i for i, key in enumerate(mine)}
    entries = []
    for op in r.program[:r.asked]:
        state = op.state if starts or op.state != "started" else "scheduled"
        if active_only and state == "completed":
            continue
        index = op.group.index
        title = f"nccl:{op.name}"
        if op.peer is not None:
            title += f" {index(rank)}->{index(op.peer)}" if op.name == "send" else f" {index(rank)}<-{index(op.peer)}"
        entries.append({
            "record_id": 1000 + op.order, "pg_id": local[op.key],
            "process_group": (names[op.key], op.kind or "undefined"), "collective_seq_id": op.seq,
            "p2p_seq_id": 0, "op_id": op.order, "profiling_name": title,
            "time_created_ns": 1_700_000_000_000_000_000 + op.order,
            "input_sizes": [[op.size]], "input_dtypes": ["Float"], "output_sizes": [[op.size]],
            "output_dtypes": ["Float"], "state": state,
            "time_discovered_started_ns": 17 if starts and state != "scheduled" else None,
            "time_discovered_completed_ns": 18 if state == "completed" else None,
            "retired": state == "completed", "timeout_ms": 600000, "is_p2p": op.peer is not None,
            "frames": [{"name": "forward", "filename": "train.py", "line": 7}],
        })
    done = lambda key, *states: max((op.seq for op in r.program[:r.asked] if op.key == key and op.state in states), default=-1)
    data = {"version": version, "nccl_version": "2.21.5", "entries": entries[-keep:]}
    if config:
        data["pg_config"] = {names[key]: {"name": names[key], "desc": key[1] or "undefined",
                                          "ranks": json.dumps(list(key[0]))} for key in mine}
        data["pg_status"] = {str(local[key]): {
            "last_enqueued_collective": r.seq.get(key, -1),
            "last_started_collective": done(key, "started", "completed") if starts else -1,
            "last_completed_collective": done(key, "completed")} for key in mine}
    return data


def write(folder, job, without=(), form="pickle", protocol=2, prefix="_dump_", **how):
    folder.mkdir(exist_ok=True)
    for rank in job.ranks:
        if rank in without:
            continue
        kinds = form(rank) if callable(form) else form
        data = dump_of(job, rank, **how)
        path = folder / f"{prefix}{rank}"
        path.write_bytes(json.dumps(data).encode() if kinds == "json" else
                         pickle.dumps(data, protocol(rank) if callable(protocol) else protocol))
    return folder


def index_of(job, rank, kind, nth=0):
    """Place in the rank's program of the nth operation of such a group."""
    return [i for i, op in enumerate(job.ranks[rank].program) if op.kind == kind][nth]
