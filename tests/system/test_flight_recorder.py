# SPDX-License-Identifier: Apache-2.0
"""reknit flight-recorder: dumps of jobs that stand still for a known reason, and what is made of them."""

import dataclasses
import json
import pickle
import random
import resource
import subprocess

import pytest

import flight_dumps as fd
from conftest import REKNIT


def judge(folder, status=0, **how):
    done = subprocess.run([REKNIT, "flight-recorder", "--format", "json", folder], capture_output=True, text=True,
                          timeout=60, **how)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if done.stdout else None, done.stderr


def verdict(folder):
    found, _ = judge(folder)
    reasons = {r["rank"]: r["reason"] for r in found["culprits"]["reasons"]}
    assert sorted(reasons) == found["culprits"]["ranks"]
    return found["verdict"], reasons


def stop_cpu(job, rank, kind, nth):
    job.ranks[rank].cpu_stop = fd.index_of(job, rank, kind, nth)


def stop_gpu(job, rank, kind, nth):
    job.ranks[rank].gpu_stop = fd.index_of(job, rank, kind, nth)


SHAPES = {"data": (8, 1, 1), "tensor": (8, 4, 1), "pipeline": (8, 1, 4), "all": (16, 2, 2), "deep": (32, 2, 4)}
KINDS = [(shape, kind) for shape, (world, tp, pp) in SHAPES.items() for kind in ("TP", "PP", "DP", "ALL")
         if {"TP": tp, "PP": pp, "DP": world // tp // pp, "ALL": world}[kind] > 1]
FORMS = {
    "pickle2": {}, "pickle4": {"protocol": 4}, "pickle0": {"protocol": 0}, "pickle5": {"protocol": 5},
    "json": {"form": "json"}, "active": {"active_only": True}, "no-starts": {"starts": False},
    "short": {"keep": 8}, "renumbered": {"renumber": True},
    "mixed": {"form": lambda r: "json" if r % 3 == 0 else "pickle", "protocol": lambda r: 2 + r % 4},
    "real": {"active_only": True, "starts": False},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape, kind", KINDS)
def test_a_program_that_stops_asking_is_found_wherever_it_stops(tmp_path, shape, kind, form):
    world, tp, pp = SHAPES[shape]
    for rank in (0, world // 2 + 1, world - 1):
        job = fd.Job(fd.train(world, tp, pp))
        stop_cpu(job, rank, kind, 4)
        found = verdict(fd.write(tmp_path / str(rank), job.run(), **FORMS[form]))
        assert found == ("stall", {rank: "cpu"}), rank


@pytest.mark.parametrize("shape, kind", KINDS)
def test_a_gpu_that_never_begins_is_found_when_the_others_begun(tmp_path, shape, kind):
    world, tp, pp = SHAPES[shape]
    for rank in (0, world // 2 + 1, world - 1):
        job = fd.Job(fd.train(world, tp, pp))
        stop_gpu(job, rank, kind, 4)
        what, who = verdict(fd.write(tmp_path / str(rank), job.run()))
        if kind == "PP":  # messages have no numbers: right or nobody
            assert who in ({rank: "gpu"}, {rank: "cpu"}, {}), rank
        else:
            assert (what, who) == ("stall", {rank: "gpu"}), rank


def test_a_gpu_whose_operations_end_for_its_peers_only(tmp_path):
    job = fd.Job(fd.train(16, 2, 2))
    stop_cpu(job, 14, "ALL", 5)
    job.ranks[14].blind = fd.index_of(job, 14, "TP", 12)
    assert verdict(fd.write(tmp_path / "d", job.run(), starts=False)) == ("stall", {14: "gpu"})


def test_two_at_once(tmp_path):
    job = fd.Job(fd.train(16, 4, 2))
    stop_cpu(job, 9, "TP", 6)
    stop_cpu(job, 14, "TP", 6)
    assert verdict(fd.write(tmp_path / "d", job.run())) == ("stall", {9: "cpu", 14: "cpu"})


@pytest.mark.parametrize("form", ["pickle2", "active", "json", "real"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_rank_without_dump(tmp_path, shape, form):
    world, tp, pp = SHAPES[shape]
    job = fd.Job(fd.train(world, tp, pp))
    stop_cpu(job, 3, "ALL", 4)
    assert verdict(fd.write(tmp_path / "d", job.run(), without=[3], **FORMS[form])) == ("stall", {3: "no_dump"})


def test_dumps_of_one_node_alone_prove_nothing_against_the_others(tmp_path):
    job = fd.Job(fd.train(16))
    stop_cpu(job, 3, "ALL", 4)
    found, _ = judge(fd.write(tmp_path / "d", job.run(), without=range(5)) and
                     fd.write(tmp_path / "few", job, without=range(5, 16)))
    assert found["verdict"] == "stall" and found["culprits"]["ranks"] == [3]
    found, _ = judge(fd.write(tmp_path / "none", job, without=range(4)))
    assert found["culprits"]["ranks"] == [0, 1, 2, 3]
    found, _ = judge(fd.write(tmp_path / "one", job, without=[r for r in range(16) if r not in (5, 6)]))
    assert (found["verdict"], found["culprits"]["ranks"]) == ("unclear", [])
    assert "no dump" in found["summary"]


def test_dumps_of_old_releases_list_no_groups(tmp_path):
    job = fd.Job(fd.train(8))
    stop_cpu(job, 5, "ALL", 4)
    assert verdict(fd.write(tmp_path / "d", job.run(), config=False)) == ("stall", {5: "cpu"})


def desync(job, rank, **change):
    at = fd.index_of(job, rank, "DP", 4)
    job.ranks[rank].program[at] = dataclasses.replace(job.ranks[rank].program[at], **change)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", [{"name": "broadcast"}, {"size": 7}])
def test_another_collective_or_size_is_the_program_and_no_stall(tmp_path, change, form):
    job = fd.Job(fd.train(8))
    desync(job, 5, **change)
    assert verdict(fd.write(tmp_path / "d", job.run(), **FORMS[form])) == ("desync", {5: "desync"})


def test_half_against_half_blames_nobody(tmp_path):
    job = fd.Job(fd.train(2))
    desync(job, 1, name="broadcast")
    assert verdict(fd.write(tmp_path / "d", job.run())) == ("desync", {})


def test_a_rank_that_skips_a_collective_differs_from_there_on(tmp_path):
    job = fd.Job(fd.train(8, 1, 1))
    for r in job.ranks.values():
        for i, op in enumerate(r.program):
            r.program[i] = dataclasses.replace(op, kind="ALL", group=tuple(range(8)))
    del job.ranks[2].program[8]
    assert verdict(fd.write(tmp_path / "d", job.run())) == ("desync", {2: "desync"})


def test_groups_taken_in_another_order_are_a_circle(tmp_path):
    job = fd.Job(fd.train(2))
    world, other = tuple(range(2)), "OTHER"
    for r in job.ranks.values():
        r.program = [fd.Op(world, kind=k) for k in ("A", other) * 3]
    job.ranks[1].program[2:4] = [fd.Op(world, kind=other), fd.Op(world, kind="A")]
    for r in job.ranks.values():  # a CPU that waits for each of them
        r.cpu_stop = 3
    assert verdict(fd.write(tmp_path / "d", job.run())) == ("deadlock", {})


def test_messages_alone(tmp_path):
    """A pipeline without any collective."""
    job = fd.Job(fd.train(4, 1, 4))
    for r in job.ranks.values():
        r.program = [op for op in r.program if op.peer is not None]
    stop_cpu(job, 1, "PP", 4)
    what, who = verdict(fd.write(tmp_path / "d", job.run()))
    assert (what, who) == ("stall", {1: "cpu"})


def test_parts_of_a_batch_of_messages_end_with_it(tmp_path):
    """None of them is ever seen to end by itself."""
    for rank in range(4):
        job = fd.Job(fd.train(4, 1, 4, batch=True))
        stop_cpu(job, rank, "ALL", 4)
        assert verdict(fd.write(tmp_path / str(rank), job.run())) == ("stall", {rank: "cpu"})
    job = fd.Job(fd.train(4, 1, 4, batch=True)).run()
    assert verdict(fd.write(tmp_path / "through", job)) == ("complete", {})


def test_operations_put_together_are_no_open_ones(tmp_path):
    """Parts of a batch are never seen to end: only the batch is."""
    job = fd.Job(fd.train(8))
    stop_cpu(job, 5, "ALL", 4)
    job.run()
    folder = fd.write(tmp_path / "d", job)
    for rank in range(8):
        path = folder / f"_dump_{rank}"
        data = pickle.loads(path.read_bytes())
        first = next(e for e in data["entries"] if e["process_group"][1] == "DP")
        part = {**first, "state": "scheduled", "retired": False, "record_id": 1}
        data["entries"] = [part, *data["entries"]] if rank == 3 else data["entries"]
        path.write_bytes(pickle.dumps(data, 2))
    assert verdict(folder) == ("stall", {5: "cpu"})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_job_that_is_through_has_no_culprit(tmp_path, shape, form):
    job = fd.Job(fd.train(*SHAPES[shape])).run()
    assert verdict(fd.write(tmp_path / "d", job, **FORMS[form])) == ("complete", {})


def test_all_inside_is_nobodys_fault(tmp_path):
    job = fd.Job(fd.train(8))
    for r in job.ranks:
        stop_gpu(job, r, "ALL", 4)
    what, who = verdict(fd.write(tmp_path / "d", job.run(), starts=False))
    assert (what, who) == ("inside", {})


def test_a_gpu_that_never_begins_is_nobodys_where_starts_are_not_recorded(tmp_path):
    """Its peers' programs are late elsewhere, too: they wait for their own GPUs."""
    job = fd.Job(fd.train(8, 1, 4))
    stop_gpu(job, 3, "DP", 2)
    assert verdict(fd.write(tmp_path / "d", job.run(), starts=False)) == ("inside", {})


JOBS = [(4, 1, 1), (8, 2, 1), (8, 1, 4), (8, 2, 2), (16, 2, 4), (16, 4, 2), (24, 2, 3), (12, 1, 3), (6, 3, 1)]
WAYS = [{}, {"aside": True}, {"apart": True}, {"batch": True}, {"aside": True, "batch": True}]
WRITTEN = [{}, {"form": "json"}, {"active_only": True}, {"starts": False}, {"active_only": True, "starts": False},
           {"renumber": True}]


def any_fault(seed, monkeypatch):
    """A job with a fault, the ranks at fault, those without dump, how dumps are written."""
    chance = random.Random(seed)
    monkeypatch.setattr(fd, "DEPTH", chance.choice([1, 2, 3, 6, 12, 30]))
    job = fd.Job(fd.train(*chance.choice(JOBS), steps=6, **chance.choice(WAYS)))
    rank = chance.choice(list(job.ranks))
    r, fault = job.ranks[rank], chance.choice(["cpu", "gpu", "missing", "two", "desync", "blind"])
    at, truth, without = chance.randrange(2, len(r.program) - 1), {rank}, []
    if fault == "gpu":
        r.gpu_stop = at
    elif fault == "desync":
        at = chance.choice([i for i, op in enumerate(r.program) if op.peer is None and len(op.group) > 2])
        r.program[at] = dataclasses.replace(r.program[at], size=3)
    else:
        r.cpu_stop = at
    if fault == "missing":
        without = [rank]
    elif fault == "two":
        other = chance.choice([x for x in job.ranks if x != rank])
        job.ranks[other].cpu_stop = min(at + 1, len(job.ranks[other].program) - 1)
        truth.add(other)
    elif fault == "blind":
        r.blind = max(0, at - 3)
    return fault, job.run(), truth, without, chance.choice(WRITTEN)


@pytest.mark.parametrize("seed", range(80))
def test_whatever_goes_wrong_nobody_else_is_blamed(tmp_path, monkeypatch, seed):
    fault, job, truth, without, how = any_fault(seed, monkeypatch)
    _, who = verdict(fd.write(tmp_path / "d", job, without=without, **how))
    assert set(who) <= truth, f"{fault} {how}"
    if fault in ("cpu", "missing") or (fault == "gpu" and how.get("starts", True)):
        assert set(who) == truth, f"{fault} {how}"


# ---- what is no dump ----


def refused(tmp_path, data, **how):
    (tmp_path / "d").mkdir(exist_ok=True)
    (tmp_path / "d/_dump_0").write_bytes(data)
    found, error = judge(tmp_path / "d", status=1, **how)
    assert found is None and error.startswith("reknit flight-recorder: ") and "_dump_0: " in error
    return error


class Evil:
    def __reduce__(self):
        return print, ("run",)


@pytest.mark.parametrize("protocol", range(6))
def test_what_would_run_is_refused_by_name_and_place(tmp_path, protocol):
    error = refused(tmp_path, pickle.dumps({"entries": [Evil()]}, protocol))
    assert "opcode GLOBAL" in error or "opcode STACK_GLOBAL" in error
    assert "at byte " in error


def test_every_cut_is_an_error(tmp_path):
    whole = pickle.dumps(fd.dump_of(fd.Job(fd.train(2)).run(), 0, keep=1), 2)
    for n in range(0, len(whole), 97):
        assert "cut short" in refused(tmp_path, whole[:n])
    assert "cut short" in refused(tmp_path, json.dumps({"entries": [1, 2]}).encode()[:-3])


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


HOSTILE = {
    "length": b"\x80\x02X\xff\xff\xff\xff",
    "length8": b"\x80\x04\x8d" + b"\xff" * 8,
    "long": b"\x80\x02\x8b\xff\xff\xff\x7f",
    "memo": b"\x80\x02]r\xff\xff\xff\xff.",
    "marks": b"\x80\x02" + b"(" * (1 << 22),
    "nested": b"\x80\x02" + b"]" * (1 << 22),
    "boxes": b"\x80\x02" + b"]0" * (5 << 20) + b"N.",
    "empty": b"",
    "text": b"hello",
    "number": b"\x80\x02K\x01.",
    "deep json": b"[" * 100000,
    "deep json map": b'{"a":' * 100000,
    "members": b"\x80\x02}(U\x07entries](" + b"N" * 300000 + b"eu.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_dumps_are_refused_in_bounded_memory(tmp_path, name):
    refused(tmp_path, HOSTILE[name], preexec_fn=bounded)


def test_a_memo_bomb_is_walked_no_further_than_a_dump_goes(tmp_path):
    """One list of a million references to one list of a million ... as sizes of every operation."""
    levels = b"]q\x00" + b"".join(
        b"]q" + bytes([i + 1]) + b"(" + (b"h" + bytes([i])) * 50000 + b"e" for i in range(4))
    entry = b"}(U\x0binput_sizesh\x04U\x0eprofiling_nameU\x0fnccl:all_reduceu"
    data = b"\x80\x02" + levels + b"0" * 4 + entry + b"q\x090" + b"}(U\x07entries](" + b"h\x09" * 200000 + b"eu."
    (tmp_path / "d").mkdir()
    (tmp_path / "d/_dump_0").write_bytes(data)
    found, _ = judge(tmp_path / "d", preexec_fn=bounded)
    assert found["culprits"]["ranks"] == []


def test_a_map_of_a_million_keys_is_not_searched_for_every_operation(tmp_path):
    keys = b"}q\x00(" + b"".join(b"J" + i.to_bytes(4, "little") + b"N" for i in range(200000)) + b"u0"
    data = b"\x80\x02" + keys + b"}(U\x07entries](" + b"h\x00" * 200000 + b"eu."
    (tmp_path / "d").mkdir()
    (tmp_path / "d/_dump_0").write_bytes(data)
    found, _ = judge(tmp_path / "d", preexec_fn=bounded)
    assert found["culprits"]["ranks"] == []


def test_a_dump_of_2_gb_is_refused_unread(tmp_path):
    (tmp_path / "d").mkdir()
    with open(tmp_path / "d/_dump_0", "wb") as f:
        f.truncate(2 << 30)
    found, error = judge(tmp_path / "d", status=1, preexec_fn=bounded)
    assert found is None and "larger than any dump" in error


def test_one_that_cannot_be_read_convicts_nobody_and_hides_nobody(tmp_path):
    job = fd.Job(fd.train(8))
    stop_cpu(job, 5, "ALL", 4)
    folder = fd.write(tmp_path / "d", job.run())
    (folder / "_dump_3").write_bytes((folder / "_dump_3").read_bytes()[:100])
    found, error = judge(folder, status=1)
    assert found["culprits"]["ranks"] == [5] and "_dump_3" in error
    assert [u["rank"] for u in found["unread"]] == [3]
    (folder / "_dump_5").write_bytes((folder / "_dump_5").read_bytes()[:100])
    found, _ = judge(folder, status=1)
    assert (found["verdict"], found["culprits"]["ranks"]) == ("unclear", [])


def test_folders_that_hold_no_dumps_of_one_standstill(tmp_path):
    said = lambda path: judge(path, status=1)[1]
    assert "No such file" in said(tmp_path / "none")
    assert "holds no dump" in said(tmp_path)
    (tmp_path / "a_1").write_bytes(b"")
    assert "Not a directory" in said(tmp_path / "a_1")
    (tmp_path / "b_1").write_bytes(b"")
    assert "are both of rank 1" in said(tmp_path)


def test_what_a_person_reads(tmp_path):
    job = fd.Job(fd.train(16, 2, 2))
    stop_cpu(job, 9, "TP", 4)
    text = subprocess.run([REKNIT, "flight-recorder", fd.write(tmp_path / "d", job.run())], capture_output=True,
                          text=True, check=True).stdout
    assert "Culprit   rank 9: its program never asked for " in text
    assert "it begins here" in text
