"""A real pod that crashes again and again, then recovers: its history has every transition."""

from pathlib import Path

import pytest

from podstatus.observe.history.sqlite_store import HistoryEntry, open_history_reader
from tests.support.processes.agent_process import Cluster, is_ready, until
from tests.support.processes.mortal_node import mortal_node, pod_of

pytestmark = pytest.mark.slow

CRASHES = 2
SCRIPT = """
echo x >> {counter}
number=$(wc -l < {counter})
if [ $number -le {crashes} ]; then
    while [ ! -e {counter}-$number ]; do sleep 0.1; done
    exit 3
fi
trap 'exit 0' TERM; sleep 1000 & wait
"""


def history_of(root: Path, name: str) -> list[HistoryEntry]:
    with open_history_reader(root / "history.db") as history:
        return history.timeline("default", name)


def of_kind(moments: list[HistoryEntry], kind: str, subject: str = "") -> list[str]:
    found = [m.transition for m in moments if m.transition.kind == kind]
    return [it.after_text for it in found if it.subject == subject]


def has_restarted(cluster: Cluster) -> bool:
    pod = cluster.pod("crashing")
    assert pod is not None
    statuses = pod["status"].get("containerStatuses") or [{"restartCount": 0}]
    return bool(statuses[0]["restartCount"] == CRASHES and is_ready(pod))


def runs_noted(root: Path) -> int:
    """How often it was seen running."""
    return of_kind(history_of(root, "crashing"), "container", "app").count("running")


def is_noted_ready(root: Path) -> bool:
    moments = history_of(root, "crashing")
    restarts = of_kind(moments, "restart", "app")
    return len(restarts) == CRASHES and of_kind(moments, "condition", "Ready")[-1] == "True"


def test_the_timeline_of_a_crash_loop_is_complete_also_over_a_kill(tmp_path: Path) -> None:
    script = SCRIPT.format(counter=tmp_path / "counter", crashes=CRASHES)
    options = ("--max-container-restart-period", "1s")
    with mortal_node(tmp_path / "root", "none", *options) as node:
        cluster = node.start_ready()
        cluster.create(pod_of("crashing", "sh", "-c", script, node=node.node))
        for number in range(1, CRASHES + 1):
            # It goes on when it has been seen.
            until(lambda: runs_noted(node.root_dir) == number)  # noqa: B023
            (tmp_path / f"counter-{number}").touch()
        until(lambda: has_restarted(cluster) or None)
        until(lambda: is_noted_ready(node.root_dir) or None)
        node.kill()
        before = history_of(node.root_dir, "crashing")
        cluster = node.start_ready()
        cluster.delete("crashing")
        cluster.wait_gone("crashing")
        until(
            lambda: "Succeeded" in of_kind(history_of(node.root_dir, "crashing"), "phase") or None
        )
        whole = history_of(node.root_dir, "crashing")
    assert [moment.id for moment in whole] == sorted(moment.id for moment in whole)
    assert whole[: len(before)] == before
    assert of_kind(whole, "restart", "app") == [str(n + 1) for n in range(CRASHES)]
    states = of_kind(before, "container", "app")
    assert states.count("running") == CRASHES + 1
    assert states.count("terminated Error 3") == CRASHES
    assert of_kind(whole, "container", "app")[len(states) :] == ["terminated Completed 0"]
    assert of_kind(before, "phase") == ["Pending", "Running"]
    assert of_kind(whole, "seen") == [""]
    events = [m.transition.reason for m in before if m.transition.kind == "event"]
    assert events.count("Started") == CRASHES + 1
    assert "BackOff" in events
