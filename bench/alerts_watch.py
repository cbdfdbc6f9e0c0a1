"""What the default rules cost who looks after 5,000 pods: idle, and at 200 changes a second.

The whole way: a board of pods, the watchman that follows it, the rules that are shipped, alerts on
the disk, and receivers that do nothing. CPU seconds of all threads and of the process that
evaluates rules, in part of a core;
beside it the same without alerts, where only the board changes. One pod of fifty is in a crash
loop, so there are alerts that live. A change is a container that ends or is ready again.
"""

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import msgspec
import psutil

from podstatus.alerts.defaults import default_rules
from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.delivery.store import AlertStore
from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.process import EvaluatorProcess
from podstatus.alerts.evaluator.thread import EvaluatorThread
from podstatus.alerts.model import Action, Alert
from podstatus.alerts.service.alert_service import AlertService, Readiness
from podstatus.base.aio import SystemClock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.status_writer import HistoryCounts
from podstatus.observe.history.store import HistoryEntry
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.status_view import Freshness, NodeSummary, SyncState
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary

RESULTS = Path(__file__).parent / "results" / "alerts_watch.json"
PODS = 5_000
CHANGES_A_SECOND = 200
SECONDS = 30.0
WARM_SECONDS = 3.0
AT_MOST = {"idle_percent": 5.0, "changes_percent": 20.0}
_TYPES = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class StaticStatusView:
    """What is known, as an agent has it; its node is well, and a little different every time."""

    def __init__(self) -> None:
        self.snapshot_cache = SnapshotCache()
        self._asked = count()

    def nodes(self) -> Mapping[str, NodeSummary]:
        """One."""
        age = float(next(self._asked) % 10)
        conditions = {"Ready": "True", "MemoryPressure": "False"}
        node = NodeSummary(name="node", ready=True, conditions=conditions, lease_age_seconds=age)
        return {"node": node}

    def sync(self) -> SyncState:
        """All is sent."""
        return SyncState()

    def freshness(self) -> Freshness:
        """The API server is there."""
        return Freshness()

    def history(self) -> HistoryCounts:
        """None is kept."""
        return HistoryCounts()

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """None is kept."""
        return []

    async def transitions(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """None is kept."""
        return []


class Silent:
    """A receiver that does nothing."""

    async def send(self, action: Action, alert: Alert) -> None:
        """It is done."""


def make_pod(number: int) -> PodSummary:
    """One of fifty is in a crash loop."""
    crashes = number % 50 == 0
    since = Time.from_unix_nanos(time.time_ns()).truncated()
    ready = "False" if crashes else "True"
    state = "waiting CrashLoopBackOff" if crashes else "running"
    app = ContainerSummary(
        name="app",
        image="web:1",
        state=parse_container_state(state),
        ready=not crashes,
        started=not crashes,
    )
    return PodSummary(
        uid=PodUID(f"00000000-0000-0000-0000-{number:012}"),
        namespace="default",
        name=f"web-{number}",
        node="node",
        labels={"app": "web", "pod-template-hash": "5d4f8c7b9"},
        phase="Running",
        qos="Burstable",
        created=since,
        started=since,
        conditions=tuple(
            ConditionSummary(type=it, status=ready if it.endswith("Ready") else "True", since=since)
            for it in _TYPES
        ),
        containers=(
            ContainerSummary(
                name="setup", kind="init", state=parse_container_state("terminated Completed 0")
            ),
            app,
        ),
    )


def changed(pod: PodSummary) -> PodSummary:
    """Its container ends, or is ready again."""
    setup, app = pod.containers
    ready = not app.ready
    since = Time.from_unix_nanos(time.time_ns()).truncated()
    conditions = tuple(
        ConditionSummary(type=it.type, status="True" if ready else "False", since=since)
        if it.type.endswith("Ready")
        else it
        for it in pod.conditions
    )
    state = "running" if ready else "terminated Error 1"
    restarts = app.restarts + ready
    app = msgspec.structs.replace(
        app, state=parse_container_state(state), ready=ready, restarts=restarts
    )
    return msgspec.structs.replace(pod, conditions=conditions, containers=(setup, app))


async def change_pods(board: SnapshotCache) -> None:
    """So many a second, evenly, until cancelled."""
    uids = list(board.pods())
    began, done = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * CHANGES_A_SECOND)
        while done < due:
            found = board.find(uids[done * 7 % len(uids)])
            if found is not None:
                board.put(changed(found[1]))
            done += 1
        await asyncio.sleep(0.01)


def used() -> float:
    """CPU seconds of this process and of those that it has started and that live."""
    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return time.process_time() + sum(it.user + it.system for it in times)


async def measure(folder: Path, *, alerts: bool, changes: bool) -> tuple[float, int]:
    """The part of a core that is used, in percent; and how many alerts there are in the end."""
    known, clock = StaticStatusView(), SystemClock()
    for number in range(PODS):
        known.snapshot_cache.put(make_pod(number))
    evaluator = EvaluatorProcess()
    rules = default_rules(evaluator).rules
    evaluator.load(it.rule for it in rules)
    asking = EvaluatorThread(evaluator)
    store = AlertStore.open(folder / f"alerts-{alerts}-{changes}.db")
    actions = {it.rule.name: (Action(kind="log"),) for it in rules}
    watchman = AlertService(
        known,
        Engine(rules),
        asking,
        AlertDispatcher({"log": Silent()}, store, clock=clock, random=lambda: 0.5),
        actions=actions,
        readiness=Readiness(pods=lambda: True, nodes=lambda: True),
        clock=clock,
    )
    tasks = [asyncio.create_task(watchman.run())] if alerts else []
    tasks += [asyncio.create_task(change_pods(known.snapshot_cache))] if changes else []
    await asyncio.sleep(WARM_SECONDS)
    gc.collect()
    began, spent = time.monotonic(), used()
    await asyncio.sleep(SECONDS)
    part = (used() - spent) / (time.monotonic() - began) * 100
    living = len(watchman.alerts())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    asking.close()
    with evaluator:
        store.close()
    return part, living


def main() -> None:
    """Measure, print and write it down."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, changes in (("idle", False), ("changes", True)):
            bare, _ = asyncio.run(measure(Path(folder), alerts=False, changes=changes))
            whole, living = asyncio.run(measure(Path(folder), alerts=True, changes=changes))
            figures[f"{name}_percent"] = round(whole, 2)
            figures[f"{name}_without_percent"] = round(bare, 2)
            figures[f"{name}_alerts"] = living
    what = {
        "idle": f"{PODS} pods, nothing happens",
        "changes": f"{PODS} pods, {CHANGES_A_SECOND} changes a second",
    }
    for name, meaning in what.items():
        whole, bare = figures[f"{name}_percent"], figures[f"{name}_without_percent"]
        most = AT_MOST[f"{name}_percent"]
        beside = f"{bare:.2f} without alerts (at most {most})"
        there = f"{figures[f'{name}_alerts']} alerts"
        print(f"{name:8} {whole:6.2f} % of a core, {beside}  {meaning}, {there}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    if any(figures[name] > most for name, most in AT_MOST.items()):
        raise SystemExit("slower than promised")


if __name__ == "__main__":
    main()
