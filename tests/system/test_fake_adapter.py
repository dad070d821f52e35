# SPDX-License-Identifier: Apache-2.0
"""The scheduler in memory that other tests use: it must speak as docs/ADAPTER.md says, and fail on demand."""

import re

import pytest
from adapter_client import Client
from fake_adapter import JOB, NODE, World


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def world(clock):
    with World(nodes=4, clock=clock) as world:
        yield world


@pytest.fixture
def client(world):
    with Client(world.command) as client:
        yield client


def test_the_records_have_the_members_that_are_documented(top):
    page = (top / "docs/ADAPTER.md").read_text(encoding="utf-8")
    tables = dict(zip(("job", "node"), re.split(r"^A job:$|^As `jobs`, with", page, flags=re.MULTILINE)[1:]))
    for name, members in (("job", {"id", "label", "submit", "eligible", *JOB}), ("node", {"name", *NODE})):
        rows = re.findall(r"^\|((?: `\w+`[^|`]*)+)\|", tables[name].split("\n\n###")[0].split("\n\nStates:")[0],
                          re.MULTILINE)
        listed = {member for row in rows for member in re.findall(r"`(\w+)`", row)}
        # What stands beside a member in its description, as nodes_text beside nodes.
        beside = set(re.findall(r"`(nodes_text|reason_text)`: ", tables[name]))
        assert listed | beside == members, name


def test_differences_are_told_and_no_more(world, client):
    job = world.submit(n_nodes=2)
    other = world.submit()
    first = client.ask("jobs", diff=True)
    assert first["full"] and {r["id"] for r in first["jobs"]} == {job, other}
    assert client.ask("jobs", diff=True)["unchanged"]
    world.end(job)
    second = client.ask("jobs", diff=True)
    assert not second["full"] and [r["id"] for r in second["jobs"]] == [job] and second["gone"] == []
    world.forget(job)
    assert client.ask("jobs", diff=True)["gone"] == [job]


def test_a_restart_goes_as_in_slurm(world, client, clock):
    job = world.submit(n_nodes=2, runs=[(10, "failed", 3)])
    assert client.job(job)["nodes"] == ["n1", "n2"]
    clock.now += 10
    failed = client.job(job)
    assert (failed["state"], failed["exit"]["code"]) == ("failed", 3)
    expect = client.expect(job)
    assert client.ask("requeue", job=job, expect=expect)["ok"]
    assert client.ask("requeue", job=job, expect=expect)["error"] == "changed"
    assert client.ask("requeue", job=job, expect=client.expect(job))["error"] == "already-done"
    assert client.job(job)["eligible"] == clock.now + 121
    assert client.ask("update", job=job, set={"exclude": ["n1"], "eligible": int(clock.now) + 3})["ok"]
    clock.now += 3
    assert (client.job(job)["state"], client.job(job)["nodes"]) == ("running", ["n2", "n3"])
    world.cancel(job)
    assert client.ask("requeue", job=job, expect=client.expect(job))["error"] == "not-allowed"


def test_what_cannot_be_satisfied_is_said_later(world, client, clock):
    job = world.submit(n_nodes=2)
    world.end(job)
    client.ask("requeue", job=job, expect=client.expect(job))
    assert client.ask("update", job=job, set={"exclude": ["n1", "n2", "n3"]})["ok"]
    assert client.job(job)["reason_kind"] == "constraints" and client.job(job)["held"]
    assert client.ask("update", job=job, set={"exclude": []})["ok"]
    assert not client.job(job)["held"]


@pytest.mark.parametrize("fault, executed", [("die", False), ("die-after", True)])
def test_an_adapter_dies_and_the_world_stays(world, fault, executed):
    job = world.submit()
    world.end(job)
    world.break_next("requeue", fault)
    with Client(world.command) as client:
        assert client.ask("requeue", job=job, expect=client.expect(job)) is None
    with Client(world.command) as client:
        assert client.job(job)["restarts"] == (1 if executed else 0)
    assert [r["op"] for r in world.done] == (["requeue"] if executed else [])


def test_an_adapter_answers_nonsense(world, client):
    world.break_next("ping", "nonsense")
    client.send("ping")
    with pytest.raises(ValueError):
        client.read()
    assert client.ask("ping")["ok"]


def test_what_is_late_is_done(world, client):
    job = world.submit()
    world.break_next("cancel", "late")
    client.send("cancel", job=job, expect=client.expect(job))
    assert client.ask("job", job=job)["job"]["state"] == "cancelled"
