"""The history of nodes: transitions, load, restarts, retention, and files of earlier versions."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from podstatus.observe.history.node_recorder import NodeRecorder
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import History, HistoryEntry, NodeRecords, node_entry
from podstatus.observe.history.writer import SummaryHistoryWriter
from podstatus.observe.ports import NodeSummary, TaintSummary
from podstatus.observe.summary.node_load import LoadAverage, NodeLoad, ResourceLoad
from podstatus.observe.summary.pod import summarize_pod
from podstatus.observe.transitions.compare_statuses import (
    AGENT,
    AGENT_DOWNTIME,
    EVENT,
    PHASE,
    TAINT,
    Transition,
)
from podstatus.testing.builders import make_pod, make_status, running
from podstatus.testing.clock import FakeClock

HOUR = 3600 * 1_000_000_000
FOREVER = {"max_age": 1_000 * HOUR, "max_bytes": 2**30}
UNREACHABLE = "node.kubernetes.io/unreachable:NoExecute"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = History.open(tmp_path / "history.db")
    yield history
    history.close()


class Recording:
    """A recorder of nodes that a test sets, and its writer."""

    def __init__(self, history: History, **nodes: NodeSummary) -> None:
        self.clock = FakeClock()
        self.writer = SummaryHistoryWriter(history, clock=self.clock)
        self.nodes = nodes
        self.asked = 0
        self.recorder = NodeRecorder(
            self._nodes, self.writer, version=lambda: self.nodes, clock=self.clock
        )

    def _nodes(self) -> dict[str, NodeSummary]:
        self.asked += 1
        return self.nodes

    def after(self, seconds: float = 1.0, **nodes: NodeSummary) -> None:
        """Record after some seconds, with these nodes, or the same as before."""
        asyncio.run(self.clock.advance(seconds))
        self.nodes = nodes or self.nodes
        self.record()

    def record(self) -> None:
        self.recorder.record_once()
        asyncio.run(self.writer.write_once())


def node(ready: str = "True", *, taints: tuple[str, ...] = (), **more: Any) -> NodeSummary:
    """A node with taints as `key:effect`."""
    pairs = (text.split(":") for text in taints)
    summaries = tuple(TaintSummary(key, "", effect) for key, effect in pairs)
    return NodeSummary(name="n", conditions={"Ready": ready}, taints=summaries, **more)


def loaded(cpu: float | None, *, average: float | None = None) -> NodeSummary:
    averages = {}
    if average is not None:
        averages["1m"] = LoadAverage(used=0.0, used_fraction=average, covered_seconds=60.0)
    return node(load=NodeLoad(cpu=ResourceLoad(used_fraction=cpu, averages=averages)))


def texts(history: History, name: str = "n") -> list[str]:
    entries = [entry.transition for entry in history.node_timeline(name).entries]
    return [
        " ".join(filter(None, (it.kind, it.subject, it.before_text, ">", it.after_text)))
        for it in entries
    ]


def levels(history: History) -> list[float | None]:
    return [sample.cpu for sample in history.node_timeline("n").samples]


def test_changes_of_conditions_and_taints_are_recorded(history: History) -> None:
    recording = Recording(history, n=node())
    recording.record()
    lost = node(
        "Unknown", taints=(UNREACHABLE,), reason="NodeStatusUnknown", message="no heartbeat"
    )
    recording.after(n=lost)
    recording.after(n=node())
    assert texts(history) == [
        "seen >",
        "condition Ready > True",
        "condition Ready True > Unknown",
        f"taint {UNREACHABLE} > set",
        "condition Ready Unknown > True",
        f"taint {UNREACHABLE} set >",
    ]
    unknown = history.node_timeline("n").entries[2]
    assert (unknown.transition.reason, unknown.transition.message) == (
        "NodeStatusUnknown", "no heartbeat",
    )  # fmt: skip
    assert (unknown.name, unknown.namespace, unknown.uid) == ("n", "", "")


def test_a_node_that_does_not_change_is_looked_at_every_15_seconds(history: History) -> None:
    recording = Recording(history, n=loaded(0.5))
    for _ in range(59):
        recording.after()
    assert (recording.asked, levels(history)) == (4, [])
    recording.after()
    assert (recording.asked, levels(history)) == (5, [0.5])


def test_after_a_restart_only_what_has_changed_is_recorded(history: History) -> None:
    Recording(history, n=node(taints=("old:NoSchedule",))).record()
    before = texts(history)
    Recording(history, n=node(taints=("old:NoSchedule",))).record()
    assert texts(history) == before
    Recording(history, n=node("False")).record()
    assert texts(history)[len(before) :] == [
        "condition Ready True > False",
        "taint old:NoSchedule set >",
    ]


def test_entries_of_agents_and_events_are_no_part_of_the_state(history: History) -> None:
    recording = Recording(history, n=node())
    recording.record()
    recording.writer.add_node_entry("n", Transition(kind=AGENT, before="running", after="stopped"))
    recording.writer.add_node_entry("n", Transition(kind=AGENT_DOWNTIME, duration_seconds=3.0))
    recording.writer.add_node_entry("n", Transition(kind=EVENT, after="Normal", reason="Starting"))
    recording.after()
    before = texts(history)
    assert before[-3:] == ["agent running > stopped", "away > 3.000 s", "event > Normal"]
    Recording(history, n=node()).record()
    assert texts(history) == before


def test_a_removed_node_ends_and_comes_back_as_a_new_one(history: History) -> None:
    recording = Recording(history, n=node(), other=structs.replace(node(), name="other"))
    recording.record()
    recording.after(other=structs.replace(node(), name="other"))
    recording.after(n=node())
    assert texts(history)[2:] == ["finished >", "seen >", "condition Ready > True"]
    assert texts(history, "other")[-1] == "finished >"


def test_a_sample_is_the_average_of_a_minute_and_written_if_it_differs(history: History) -> None:
    recording = Recording(history, n=loaded(0.9, average=0.5))
    recording.after(60)
    for average in (0.54, 0.46, 0.55, 0.51, 0.49):
        recording.after(60, n=loaded(0.9, average=average))
    assert levels(history) == [0.5, 0.55, 0.49]


def test_a_load_that_does_not_change_is_written_every_ten_minutes(history: History) -> None:
    recording = Recording(history, n=loaded(0.5))
    for _ in range(26):
        recording.after(60)
    assert levels(history) == [0.5, 0.5, 0.5]
    first, second, _ = history.node_timeline("n").samples
    assert second.at - first.at == 600 * 1_000_000_000


def test_an_unknown_load_is_a_gap_and_is_not_written_before_it_was_known(history: History) -> None:
    recording = Recording(history, n=loaded(None))
    recording.after(60)
    # In a gap, the average is older than the minute.
    for cpu, average in ((0.5, None), (None, 0.5), (None, 0.5), (0.5, None)):
        recording.after(60, n=loaded(cpu, average=average))
    assert levels(history) == [0.5, None, 0.5]


def measured(cpu: float | None, age: float) -> NodeSummary:
    return node(load=NodeLoad(cpu=ResourceLoad(used_fraction=cpu), age_seconds=age))


def seconds_and_levels(history: History, start: int) -> list[tuple[float, float | None]]:
    samples = history.node_timeline("n").samples
    return [((it.at - start) / 1_000_000_000, it.cpu) for it in samples]


def test_a_sample_has_the_time_of_its_measurement_and_a_gap_begins_at_the_last(
    history: History,
) -> None:
    recording = Recording(history, n=measured(0.68, 0))
    start = recording.clock.now()
    recording.record()
    # The only measurement was at 10 s.
    recording.after(60, n=measured(0.68, 50))
    recording.after(15, n=measured(None, 65))
    recording.after(60, n=measured(None, 125))
    recording.after(15, n=measured(0.48, 4))
    assert seconds_and_levels(history, start) == [(10, 0.68), (10, None), (146, 0.48)]


def test_between_two_samples_only_gaps_are_recorded(history: History) -> None:
    recording = Recording(history, n=measured(0.1, 5))
    start = recording.clock.now()
    for cpu in (0.1, 0.1, 0.1, 0.1, 0.9, 0.5):
        recording.after(15, n=measured(cpu, 5))
    assert seconds_and_levels(history, start) == [(55, 0.1)]


def test_a_taint_that_is_there_at_the_start_was_set_earlier(history: History) -> None:
    Recording(history, n=node()).record()
    recording = Recording(history, n=node(taints=("early:NoSchedule",)))
    recording.record()
    recording.after(n=node(taints=("early:NoSchedule", "late:NoSchedule")))
    taints = [it.transition for it in history.node_timeline("n").entries if it.transition.subject]
    assert [(it.subject, it.after, it.reason) for it in taints if it.kind == TAINT] == [
        ("early:NoSchedule", "set", "FoundAtStart"),
        ("late:NoSchedule", "set", ""),
    ]


def test_nodes_are_no_pods(history: History) -> None:
    recording = Recording(history, n=node())
    recording.record()
    recording.writer.pod_changed(summarize_pod(make_pod("n", status=make_status("Running"))))
    recording.after(n=node("False"))
    assert {entry.namespace for entry in history.entries_after(0, limit=100)} == {"default"}
    assert history.timeline("", "n") == []
    assert len(history.unfinished_pods()) == len(history.pod_uids()) == 1


def test_after_the_file_is_lost_nodes_are_seen_again(history: History, tmp_path: Path) -> None:
    recording = Recording(history, n=node(taints=("a:NoSchedule",)))
    recording.record()
    for path in tmp_path.glob("history.db*"):
        path.unlink()
    recording.after(n=node("False", taints=("a:NoSchedule",)))
    assert texts(history) == [
        "away > 0.000 s",
        "seen >",
        "condition Ready > True",
        "taint a:NoSchedule > set",
        "condition Ready True > False",
    ]


def sample(at: int) -> NodeLoadSample:
    return NodeLoadSample(node="n", at=at, cpu=0.1)


def ready(at: int) -> HistoryEntry:
    return node_entry("n", at, Transition(kind=EVENT, after="Normal", reason=str(at)))


def test_rows_expire_by_the_time_that_the_file_is_written(history: History) -> None:
    for hour in range(5):
        history.append([], NodeRecords([ready(hour)], [sample(hour)]))
        history.prune(elapsed=HOUR, max_age=3 * HOUR, max_bytes=2**30)
    kept = history.node_timeline("n")
    assert [entry.at for entry in kept.entries] == [sample.at for sample in kept.samples] == [3, 4]
    history.prune(elapsed=9 * HOUR, max_age=3 * HOUR, max_bytes=2**30)
    assert history.node_timeline("n") == NodeRecords([], [])


def test_rows_take_an_eighth_of_the_file_at_most(history: History, tmp_path: Path) -> None:
    limit = 1024**2
    for _ in range(20):
        many = [sample(at) for at in range(200)]
        history.append([], NodeRecords([ready(at) for at in range(200)], many))
        history.prune(elapsed=1, max_age=1_000 * HOUR, max_bytes=limit)
    kept = history.node_timeline("n")
    assert len(kept.entries) == len(kept.samples) == limit // 8 // 128 // 2
    with sqlite3.connect(tmp_path / "history.db") as database:
        pages = "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'node_%'"
        try:
            (size,) = database.execute(pages).fetchone()
        except sqlite3.OperationalError:
            return  # built without dbstat
    assert size <= limit / 8


def test_pods_have_the_same_retention_with_nodes(history: History) -> None:
    pod = HistoryEntry(
        at=1, uid=make_pod("p").uid, namespace="d", name="p",
        transition=Transition(kind=PHASE, after="Running"),
    )  # fmt: skip
    history.append([pod], NodeRecords([ready(1)], [sample(1)]))
    history.prune(elapsed=HOUR, **FOREVER)
    assert history.count() == 1


EARLIER = """
CREATE TABLE pods (
    id INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE, namespace TEXT NOT NULL, name TEXT NOT NULL
);
CREATE INDEX pods_by_name ON pods (namespace, name);
CREATE TABLE moments (
    id INTEGER PRIMARY KEY AUTOINCREMENT, pod INTEGER NOT NULL, at INTEGER NOT NULL,
    kind TEXT NOT NULL, subject TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    reason TEXT NOT NULL, message TEXT NOT NULL
);
CREATE INDEX moments_of_pod ON moments (pod, id);
CREATE TABLE retention_clock (
    one INTEGER PRIMARY KEY CHECK (one = 1), nanos INTEGER NOT NULL
);
CREATE TABLE retention_marks (nanos INTEGER PRIMARY KEY, newest INTEGER NOT NULL);
INSERT INTO pods VALUES (1, 'u', 'default', 'web');
INSERT INTO moments VALUES (7, 1, 5, 'phase', '', '', 'Running', '', '');
PRAGMA user_version = 1;
"""


def test_a_file_of_an_earlier_version_gets_the_tables(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "history.db") as database:
        database.executescript(EARLIER)
    history = History.open(tmp_path / "history.db")
    recording = Recording(history, n=loaded(0.5))
    recording.writer.pod_changed(
        summarize_pod(make_pod("web", status=make_status("Running", running("app"))))
    )
    recording.after(60)
    assert texts(history) == ["seen >", "condition Ready > True"]
    assert levels(history) == [0.5]
    assert [entry.id for entry in history.timeline("default", "web")][:2] == [7, 8]
    history.close()
