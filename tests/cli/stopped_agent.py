"""The history of a node under pressure, whose agent is stopped and started."""

from typing import Any

from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import HistoryEntry, node_entry
from podstatus.observe.transitions import compare_statuses as kinds
from podstatus.observe.transitions.compare_statuses import Transition
from tests.cli.crash_loop import BEGIN, SECOND

UNREACHABLE = "node.kubernetes.io/unreachable:NoExecute"


def entry(seconds: float, kind: str, subject: str = "", **change: Any) -> HistoryEntry:
    at = BEGIN + round(seconds * SECOND)
    return node_entry("n", at, Transition(kind=kind, subject=subject, **change))


def condition(seconds: float, subject: str, before: str, after: str) -> HistoryEntry:
    return entry(seconds, kinds.CONDITION, subject, before=before, after=after)


def sample(seconds: float, **load: float) -> NodeLoadSample:
    return NodeLoadSample(node="n", at=BEGIN + round(seconds * SECOND), **load)


STORY = [
    entry(0, kinds.AGENT, after="running"),
    entry(0, kinds.FIRST_SEEN),
    condition(0, "Ready", "", "True"),
    condition(0, "DiskPressure", "", "False"),
    condition(0, "MemoryPressure", "", "False"),
    condition(60, "MemoryPressure", "False", "True"),
    condition(120, "MemoryPressure", "True", "False"),
    entry(180, kinds.AGENT, before="running", after="stopped"),
    condition(222, "Ready", "True", "Unknown"),
    entry(222, kinds.TAINT, UNREACHABLE, after="set"),
    entry(300, kinds.AGENT_DOWNTIME, duration_seconds=120.0),
    entry(300, kinds.AGENT, after="running"),
    entry(300, kinds.EVENT, after="Warning", reason="AgentRestarted", message="killed"),
    condition(301, "Ready", "Unknown", "True"),
    entry(301, kinds.TAINT, UNREACHABLE, before="set"),
]
LOAD = [
    sample(30, cpu=0.1, memory=0.3, disk=0.2, inodes=0.1),
    sample(90, cpu=0.95, memory=0.3, disk=0.2, inodes=0.1),
    sample(150, cpu=0.5, memory=0.85, disk=0.2, inodes=0.1),
    sample(350, cpu=0.1, memory=0.3, disk=0.2, inodes=0.1),
]
