# SPDX-License-Identifier: Apache-2.0
"""Dumps of PyTorch's flight recorder, of jobs that stand still for a reason we chose.

A small machine runs one program a rank. A CPU asks for operations, at most DEPTH ahead of its GPU;
a GPU does them in order, in two queues; a collective ends when all its members' GPUs have come to it.
What stands when nothing moves any more is written as PyTorch would.
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
    kind: str = ""  # tells apart groups with the same members
    apart: bool = False  # a message that counts on numbers of its own
    aside: bool = False  # goes on beside the others: only they keep order
    state: str = "scheduled"
    seq: int = 0
    p2p_seq: int = 0
    order: int = 0

    @property
    def key(self):
        return self.group, self.kind


def train(world, tp=1, pp=1, steps=8, aside=False, apart=False, batch=False):
    """The program of each rank: in each step a pipeline of messages, collectives of its tensor
    group, one of its data group (aside), one of all; messages are counted apart, or put together with
    their answers (batch)."""
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
            one.append(Op(groups["PP"], "coalesced" if batch else "recv", peer=at(t, d, p - 1), kind="PP", apart=apart))
        for k in range(2 if tp > 1 else 0):
            one.append(Op(groups["TP"], "_reduce_scatter_base", 8192 + k, kind="TP"))
        if pp > 1 and p < pp - 1:
            one.append(Op(groups["PP"], "coalesced" if batch else "send", peer=at(t, d, p + 1), kind="PP", apart=apart))
        if dp > 1:
            one.append(Op(groups["DP"], "all_reduce", 1 << 20, kind="DP", aside=aside))
        one.append(Op(groups["ALL"], "all_reduce", 1, kind="ALL"))
        programs[rank] = [dataclasses.replace(op) for _ in range(steps) for op in one]
    return programs


class Rank:
    def __init__(self, rank, program):
        self.rank, self.program, self.asked = rank, program, 0
        self.cpu_stop = self.gpu_stop = self.blind = None  # place in the program
        self.seq, self.p2p_seq, self.last = {}, {}, {}

    def waiting(self, aside):
        """Operations in one of its two queues that are not done."""
        return [op for op in self.program[:self.asked] if op.aside == aside and op.state != "completed"]

    def heads(self):
        """What its GPU is at."""
        first = [ops[0] for ops in (self.waiting(False), self.waiting(True)) if ops]
        return [op for op in first if self.gpu_stop is None or op.order < self.gpu_stop]

    def number(self, op):
        op.order = self.asked
        if op.apart:
            self.p2p_seq[op.key] = self.p2p_seq.get(op.key, 0) + 1
        else:
            self.seq[op.key] = self.seq.get(op.key, 0) + 1
        op.seq, op.p2p_seq = self.seq.get(op.key, 0), self.p2p_seq.get(op.key, 0)
        self.last[op.key] = op.p2p_seq if op.apart else op.seq

    def ask(self):
        moved = False
        while self.asked < len(self.program) and self.asked != self.cpu_stop and len(self.waiting(False)) < DEPTH:
            self.number(self.program[self.asked])
            self.asked += 1
            moved = True
        return moved


MEETS = {"send": "recv", "recv": "send", "coalesced": "coalesced"}


class Job:
    def __init__(self, programs):
        self.ranks = {r: Rank(r, p) for r, p in programs.items()}

    def _other_end(self, rank, op):
        return [o for o in self.ranks[op.peer].heads() if o.peer == rank.rank and o.name == MEETS[op.name]][:1]

    def _others(self, op):
        found = []
        for r in op.group:
            found += [o for o in self.ranks[r].heads()
                      if o.peer is None and (o.key, o.name, o.size) == (op.key, op.name, op.size)]
        return found

    def _end(self, rank):
        """What ends now because all have come to it."""
        for op in rank.heads():
            ends = [op, *self._other_end(rank, op)] if op.peer is not None else self._others(op)
            if len(ends) == (2 if op.peer is not None else len(op.group)):
                for o in ends:
                    o.state = "completed"
                return True
        return False

    def run(self):
        """Until nothing moves."""
        moved = True
        while moved:
            moved = False
            for rank in self.ranks.values():
                moved |= rank.ask()
            for rank in self.ranks.values():
                moved |= self._end(rank)
        for rank in self.ranks.values():
            if rank.blind is not None:  # its GPU took part, but from here on it saw nothing end
                for op in rank.program[rank.blind:rank.asked]:
                    op.state = "scheduled"
            for op in rank.heads():
                op.state = "started"
        return self


def shift_names(names, rank):
    return {key: str(int(name) + 3 * rank) for key, name in names.items()}


def titles(op, rank):
    """Of the entries that an operation leaves, with whether this is the one that is seen to end."""
    if op.peer is None:
        return [(f"nccl:{op.name}", True)]
    me, other = op.group.index(rank), op.group.index(op.peer)
    ends = {"send": f"nccl:send {me}->{other}", "recv": f"nccl:recv {me}<-{other}"}
    if op.name == "coalesced":
        return [(ends["send"], False), (ends["recv"], False), ("nccl:coalesced", True)]
    return [(ends[op.name], True)]


def entries_of(op, rank, name, local, starts):
    state = op.state if starts or op.state != "started" else "scheduled"
    for i, (title, ends) in enumerate(titles(op, rank)):
        seen = state if ends else "scheduled"
        yield {
            "record_id": 1000 + 4 * op.order + i, "pg_id": local, "process_group": (name, op.kind or "undefined"),
            "collective_seq_id": op.seq, "p2p_seq_id": op.p2p_seq, "op_id": op.order, "profiling_name": title,
            "time_created_ns": 1_700_000_000_000_000_000 + op.order,
            "input_sizes": [[op.size]], "input_dtypes": ["Float"], "output_sizes": [[op.size]],
            "output_dtypes": ["Float"], "state": seen,
            "time_discovered_started_ns": 17 if starts and seen != "scheduled" else None,
            "time_discovered_completed_ns": 18 if seen == "completed" else None,
            "retired": seen == "completed", "timeout_ms": 600000, "is_p2p": op.peer is not None,
            "frames": [{"name": "forward", "filename": "train.py", "line": 7}],
        }


def status_of(r, key, starts):
    """Of messages that count apart the numbers are mixed with the collectives' own."""
    mine = [op for op in r.program[:r.asked] if op.key == key]
    last = lambda *states: next((op.p2p_seq if op.apart else op.seq for op in reversed(mine) if op.state in states), -1)
    return {"last_enqueued_collective": r.last.get(key, -1),
            "last_started_collective": last("started", "completed") if starts else -1,
            "last_completed_collective": last("completed")}


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
        if not (active_only and op.state == "completed"):
            entries += entries_of(op, rank, names[op.key], local[op.key], starts)
    data = {"version": version, "nccl_version": "2.21.5", "entries": entries[-keep:]}
    if config:
        data["pg_config"] = {names[key]: {"name": names[key], "desc": key[1] or "undefined",
                                          "ranks": json.dumps(list(key[0]))} for key in mine}
        data["pg_status"] = {str(local[key]): status_of(r, key, starts) for key in mine}
    return data


def write(folder, job, without=(), form="pickle", protocol=2, prefix="_dump_", **how):
    folder.mkdir(exist_ok=True)
    for rank in job.ranks:
        if rank in without:
            continue
        kind = form(rank) if callable(form) else form
        data = dump_of(job, rank, **how)
        path = folder / f"{prefix}{rank}"
        path.write_bytes(json.dumps(data).encode() if kind == "json" else
                         pickle.dumps(data, protocol(rank) if callable(protocol) else protocol))
    return folder


def index_of(job, rank, kind, nth=0):
    """Place in the rank's program of the nth operation of such a group."""
    return [i for i, op in enumerate(job.ranks[rank].program) if op.kind == kind][nth]
