# SPDX-License-Identifier: Apache-2.0
"""Each number of /metrics, against what the journal and the other routes say."""

import collections
import contextlib
import json
import pathlib
import re
import sqlite3
import time

import pytest

from api_daemon import ALICE, BOB, Daemon, wait_for
from fake_adapter import World

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BOUNDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 120, 600, 3600)
Event = collections.namedtuple("Event", "seq time kind job attempt body")
# What a journal leaves out: the first word of each kind.
FIRST = {"outcome": "done", "intent": "inspect", "request": "interrupt", "finding": "hang-suspected",
         "action": "none", "mode": "off", "class": "healthy", "cause": "none", "state": "none"}


def word(e, key):
    return e.body.get(key, FIRST[key])


def journal(daemon):
    path = daemon.folder / "state" / "journal.db"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as db:
        rows = db.execute("SELECT seq, time_us, kind, job, attempt, body FROM event ORDER BY seq").fetchall()
    return [Event(seq, time, kind, job, attempt, json.loads(body)) for seq, time, kind, job, attempt, body in rows]


def samples(text):
    """{(name, labels): value}"""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
            found[name, frozenset(re.findall(r'(\w+)="([^"]*)"', labels or ""))] = float(value)
    return found


def settled(daemon):
    """Metrics and the journal of one moment."""
    def both():
        before, text, events = daemon.ask("/metrics")[1], daemon.ask("/metrics")[1], journal(daemon)
        last = samples(text)["reknit_journal_seq", frozenset()]
        same = samples(before)["reknit_journal_seq", frozenset()]
        return (samples(text), events) if last == same == (events[-1].seq if events else 0) else None
    return wait_for(both, "a quiet moment", 60)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A little of everything has happened."""
    folder = tmp_path_factory.mktemp("metrics")
    with World(nodes=8) as world:
        d = Daemon(folder, world, mode="propose", brakes={"early_start": "1s"})
        try:
            fails, rest = (1, "failed", 1), (600, "completed", 0)
            first = world.submit(n_nodes=2, name="first", user="alice", uid=ALICE, runs=[fails, rest])
            second = world.submit(n_nodes=1, name="second", user="bob", uid=BOB, runs=[fails, fails])
            lost = world.submit(n_nodes=1, name="lost", user="bob", uid=BOB, runs=[rest])
            world.submit(n_nodes=1, name="well", user="alice", uid=ALICE, runs=[(2, "completed", 0)])
            for job in (first, second):
                d.until(f"/v1/jobs/{job}", lambda j: j.get("decision", {}).get("proposal") == "open")
            seqs = [d.ask(f"/v1/jobs/{job}")[1]["decision"]["seq"] for job in (first, second)]
            assert d.ask(f"/v1/decisions/{seqs[0]}/approve", method="POST")[0] == 200
            assert d.ask(f"/v1/decisions/{seqs[1]}/reject", method="POST")[0] == 200
            d.until(f"/v1/jobs/{first}", lambda j: j["attempt"] == 2)
            d.ask("/v1/freeze", method="POST")
            world.set_node(world.job(lost)["nodes"][0], "down")
            d.until("/v1/incidents", lambda a: len(a["incidents"]) >= 3)
            yield (*settled(d), d)
            d.stop()
        finally:
            d.process.kill()
            d.process.wait()


def by(metrics, name):
    return {labels: value for (n, labels), value in metrics.items() if n == name}


def compare(metrics, name, expected):
    """expected: a Counter of tuples of (label, value)."""
    got = {labels: value for labels, value in by(metrics, name).items() if value != 0}
    assert got == {frozenset(labels): n for labels, n in expected.items() if n}, name


def test_counters(seen):
    metrics, events, _ = seen
    of = collections.defaultdict(list)
    for e in events:
        of[e.kind].append(e)
    count = collections.Counter
    compare(metrics, "reknit_events_total", count((("kind", e.kind),) for e in events))
    compare(metrics, "reknit_incidents_total",
            count((("class", word(e, "class")), ("cause", word(e, "cause"))) for e in of["verdict"]
                  if word(e, "class") != "healthy"))
    compare(metrics, "reknit_decisions_total",
            count((("action", word(e, "action")), ("mode", word(e, "mode"))) for e in of["decision"]
                  if word(e, "action") != "none"))
    compare(metrics, "reknit_findings_total", count((("finding", word(e, "finding")),) for e in of["finding"]))
    compare(metrics, "reknit_requests_total", count((("request", word(e, "request")),) for e in of["operator"]))
    intents = {e.seq: word(e, "intent") for e in of["intent"]}
    compare(metrics, "reknit_actions_total",
            count((("intent", intents[e.body["intent"]]), ("outcome", word(e, "outcome"))) for e in of["result"]
                  if e.body.get("intent") in intents))
    for name, number in (("attempts", len(of["attempt-started"])), ("launch_failures", len(of["launch-failed"])),
                         ("excluded_nodes", sum(len(e.body.get("nodes", [])) for e in of["decision"]))):
        assert by(metrics, f"reknit_{name}_total") == {frozenset(): number}, name
    assert len(of["verdict"]) >= 3 and of["operator"] and of["result"] and of["decision"]


def legs(events):
    """The histograms, told anew from the journal; seconds."""
    found = {leg: [] for leg in ("detection", "verdict", "decision", "action", "recovery", "scheduler")}
    jobs = collections.defaultdict(dict)
    for e in events:
        t = jobs[e.job]
        ends = e.kind == "look" and word(e, "state") in ("failed", "timeout", "node-fail", "out-of-memory", "cancelled",
                                                        "preempted", "boot-fail", "forgotten")
        if ends or e.kind == "attempt-exited":
            if "interrupted" not in t:
                at = e.body.get("ended", 0) if ends else 0
                at = at if 0 < at <= e.time and e.time - at <= 600e6 else e.time
                t["died"] = min(t.get("died", at), at)
        elif e.kind == "interrupted":
            if "died" in t:
                found["detection"].append(e.time - t.pop("died"))
            jobs[e.job] = t = {"interrupted": e.time, **{k: v for k, v in t.items() if isinstance(k, int) or k == "requeue"}}
        elif e.kind == "verdict" and "judged" not in t and t:
            if "interrupted" in t:
                found["verdict"].append(e.time - t["interrupted"])
            t["judged"] = e.time
        elif e.kind == "decision" and "decided" not in t and t:
            if "judged" in t:
                found["decision"].append(e.time - t["judged"])
            t["decided"] = e.time
        elif e.kind == "intent":
            t[e.seq] = e.time
            if word(e, "intent") == "requeue":
                t["requeue"] = e.seq
        elif e.kind == "result":
            of = e.body.get("intent")
            if of in t:
                found["scheduler"].append(e.time - t.pop(of))
            if of and t.get("requeue") == of and word(e, "outcome") == "done":
                found["action"].append(e.time - t["decided"])
                del t["requeue"]
        elif e.kind == "attempt-started":
            if "interrupted" in t:
                found["recovery"].append(e.time - t["interrupted"])
            for key in ("died", "interrupted", "judged", "decided"):
                t.pop(key, None)
        elif e.kind == "job-ended":
            jobs.pop(e.job, None)
    return {leg: [us / 1e6 for us in values] for leg, values in found.items()}


def test_latencies(seen):
    metrics, events, _ = seen
    told = legs(events)
    assert all(told[leg] for leg in ("detection", "verdict", "decision", "action", "recovery", "scheduler")), told
    for leg, values in told.items():
        name = f"reknit_{leg}_seconds"
        assert by(metrics, f"{name}_count") == {frozenset(): len(values)}, name
        assert by(metrics, f"{name}_sum")[frozenset()] == pytest.approx(sum(values), abs=1e-5), name
        buckets = {dict(labels)["le"]: n for labels, n in by(metrics, f"{name}_bucket").items()}
        assert buckets == {**{f"{b:g}": sum(v <= b for v in values) for b in BOUNDS}, "+Inf": len(values)}, name


def test_what_is_so_now(seen):
    metrics, events, daemon = seen
    jobs = daemon.ask("/v1/jobs?limit=500")[1]["jobs"]
    compare(metrics, "reknit_jobs", collections.Counter((("phase", j["phase"]), ("mode", j["mode"])) for j in jobs))
    health = daemon.ask("/v1/health")[1]
    single = {
        "proposals_open": len(daemon.ask("/v1/decisions")[1]["decisions"]),
        "nodes_kept_out": sum(len(j["kept_out"]) for j in jobs),
        "budget_actions_used": sum(e.kind == "intent" and word(e, "intent") == "requeue" for e in events),
        "budget_actions_allowed": 120,
        "budget_spent_jobs": sum(j["restarts"] >= j["max_restarts"] and j["phase"] != "ended" for j in jobs),
        "frozen": 1, "tilted": 0, "storm": int(health["storm"]), "adapter_up": 1,
        "adapter_errors_total": health["adapter"]["errors"], "adapter_restarts_total": health["adapter"]["restarts"],
        "readers_replaced_total": health["readers"]["replaced"], "journal_seq": events[-1].seq,
        "webhook_pending": 0, "webhook_failed_tries_total": 0, "agents_dropped": 0,
    }
    for name, value in single.items():
        assert by(metrics, f"reknit_{name}") == {frozenset(): value}, name
    assert by(metrics, "reknit_webhook_up") == {}  # there is none
    assert by(metrics, "reknit_agents") == {frozenset({("state", s)}): 0 for s in ("connected", "gone")}
    age = by(metrics, "reknit_adapter_look_age_seconds")[frozenset()]
    assert 0 <= age <= time.time() - health["started_us"] / 1e6
    assert by(metrics, "reknit_start_time_seconds")[frozenset()] == pytest.approx(health["started_us"] / 1e6)


def test_every_metric_is_explained_and_every_rule_uses_one(seen):
    """docs/CLUSTER.md has a row for each, and the example rules name none that is not."""
    text = seen[2].ask("/metrics")[1]
    names = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    docs = (TOP / "docs/CLUSTER.md").read_text()
    assert names == set(re.findall(r"^\| `(reknit_\w+)", docs, re.MULTILINE))
    rules = (TOP / "conf/prometheus-rules.yaml").read_text()
    used = set(re.findall(r"\breknit_\w+", rules))
    known = names | {f"{n}{end}" for n in names for end in ("_bucket", "_sum", "_count")}
    assert used and used <= known, used - known
