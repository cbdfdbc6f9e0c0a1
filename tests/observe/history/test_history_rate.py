"""At 500 changes in a second through a real status manager, nothing is missing."""

import asyncio
import time
from collections import defaultdict
from pathlib import Path

import pytest

from podstatus import Pod, PodManager, PodStatus, StatusManager
from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.sqlite_store import History, open_history_reader
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.observe.transitions.compare_statuses import Transition, status_transitions
from podstatus.testing.builders import make_pod, make_status, running
from podstatus.testing.fakes import FakeDeletionSafety

PODS = 100
PER_SECOND = 500
STEP = 0.02


class Witness:
    """A listener that computes the transitions synchronously."""

    def __init__(self) -> None:
        self.known: dict[PodUID, PodStatus] = {}
        self.seen: defaultdict[str, list[Transition]] = defaultdict(list)
        self.changes = 0

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        self.changes += 1
        self.seen[pod.name] += status_transitions(self.known.get(pod.uid), status)
        self.known[pod.uid] = status

    def on_pod_removed(self, pod: Pod) -> None:
        raise AssertionError("no pod ends here")


async def flip(statuses: StatusManager, pods: list[Pod], seconds: float) -> None:
    """Toggle the readiness of pods in turn, at this rate."""
    began, done = time.monotonic(), 0
    while done < seconds * PER_SECOND:
        passed = min(seconds, time.monotonic() - began)
        while done < passed * PER_SECOND:
            pod = pods[done % len(pods)]
            ready = done // len(pods) % 2 == 0
            statuses.set_container_readiness(pod.uid, "fake://app", ready=ready)
            done += 1
        await asyncio.sleep(STEP)


async def run(path: Path, seconds: float) -> Witness:
    pods = [make_pod(f"pod-{number}") for number in range(PODS)]
    statuses = StatusManager(None, PodManager(pods), FakeDeletionSafety())
    history, witness = History.open(path), Witness()
    writer = StatusHistoryWriter(history, clock=SystemClock())
    statuses.add_notifier(writer)
    statuses.add_notifier(witness)
    writing = asyncio.create_task(writer.run())
    for pod in pods:
        statuses.set_pod_status(pod, make_status("Running", running("app", ready=False)))
    await flip(statuses, pods, seconds)
    writing.cancel()
    await asyncio.wait({writing})
    counts = writer.counts
    assert (counts.overflowed, counts.lost_events, counts.waiting) == (0, 0, 0)
    history.close()
    return witness


def judge(path: Path, seconds: float) -> None:
    witness = asyncio.run(run(path, seconds))
    assert witness.changes >= PER_SECOND * seconds
    with open_history_reader(path) as history:
        for name, seen in witness.seen.items():
            found = history.timeline("default", name)
            assert [entry.transition for entry in found][1:] == seen
            times = [entry.at for entry in found]
            assert times == sorted(times)


@pytest.mark.slow
def test_nothing_is_missing_in_10_seconds(tmp_path: Path) -> None:
    judge(tmp_path / "history.db", 10)


@pytest.mark.long
def test_nothing_is_missing_in_60_seconds(tmp_path: Path) -> None:
    judge(tmp_path / "history.db", 60)
