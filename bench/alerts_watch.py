"""The cost of the default rules for 5,000 pods: idle, and at 200 changes per second.

The complete path: a snapshot cache of pods, the alert service, the default rules, alerts on disk,
and receivers that do nothing. Measured is the CPU time of all threads and of the process that
evaluates rules, as a fraction of a core; for comparison, the same without alerts, where only the
snapshot cache changes. One pod in fifty is in a crash loop, so some alerts are active. A change is
a container that terminates or becomes ready again.
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
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator, EvaluatorThread
from podstatus.alerts.model import Action, Alert
from podstatus.alerts.service.alert_service import AlertService, Readiness
from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.sqlite_store import HistoryEntry, NodeRecords
from podstatus.observe.ports import Freshness, HistoryCounts, NodeSummary, SyncState
from podstatus.observe.snapshot_cache import SnapshotCache
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
    """The status view of an agent; its node is healthy, and differs slightly at every call."""

    def __init__(self) -> None:
        self.snapshot_cache = SnapshotCache()
        self._calls = count()

    def nodes(self) -> Mapping[str, NodeSummary]:
        """Return the summary of one healthy node."""
        age = float(next(self._calls) % 10)
        conditions = {"Ready": "True", "MemoryPressure": "False"}
        node = NodeSummary(name="node", ready=True, conditions=conditions, lease_age_seconds=age)
        return {"node": node}

    def sync(self) -> SyncState:
        """Return a state without unsent statuses."""
        return SyncState()

    def freshness(self) -> Freshness:
        """Return the state of a reachable API server."""
        return Freshness()

    @property
    def history(self) -> "StaticStatusView":
        """The view itself, as an empty history."""
        return self

    @property
    def counts(self) -> HistoryCounts:
        """The counts of an empty history."""
        return HistoryCounts()

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """Return no entries: there is no history."""
        return []

    async def node_timeline(self, node: str, *, after: int = 0) -> NodeRecords:
        """Return no records: there is no history."""
        return NodeRecords()

    async def transitions(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """Return no entries: there is no history."""
        return []


class NullNotifier:
    """A notifier that does nothing."""

    async def send(self, action: Action, alert: Alert) -> None:
        """Do nothing: the alert counts as delivered."""


def make_pod(number: int) -> PodSummary:
    """Return a pod; one in fifty is in a crash loop."""
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
    """Return the pod with its container terminated, or ready again."""
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


async def change_pods(snapshot_cache: SnapshotCache) -> None:
    """Make `CHANGES_A_SECOND` changes per second, evenly, until cancelled."""
    uids = list(snapshot_cache.pods())
    began, done = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * CHANGES_A_SECOND)
        while done < due:
            entry = snapshot_cache.find(uids[done * 7 % len(uids)])
            if entry is not None:
                snapshot_cache.put(changed(entry[1]))
            done += 1
        await asyncio.sleep(0.01)


def used() -> float:
    """Return the CPU seconds of this process and its running descendants."""
    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return time.process_time() + sum(it.user + it.system for it in times)


async def measure(folder: Path, *, alerts: bool, changes: bool) -> tuple[float, int]:
    """Return the CPU usage in percent of a core, and the number of alerts at the end."""
    view, clock = StaticStatusView(), SystemClock()
    for number in range(PODS):
        view.snapshot_cache.put(make_pod(number))
    evaluator = BudgetedEvaluator()
    rules = default_rules(evaluator).rules
    evaluator.load(it.rule for it in rules)
    evaluator_thread = EvaluatorThread(evaluator)
    store = AlertStore.open(folder / f"alerts-{alerts}-{changes}.db")
    actions = {it.rule.name: (Action(kind="log"),) for it in rules}
    service = AlertService(
        view,
        Engine(rules),
        evaluator_thread,
        AlertDispatcher({"log": NullNotifier()}, store, clock=clock, random=lambda: 0.5),
        actions=actions,
        readiness=Readiness(pods=lambda: True, nodes=lambda: True),
        clock=clock,
        heartbeat=lambda: None,
    )
    tasks = [asyncio.create_task(service.run())] if alerts else []
    tasks += [asyncio.create_task(change_pods(view.snapshot_cache))] if changes else []
    await asyncio.sleep(WARM_SECONDS)
    gc.collect()
    began, spent = time.monotonic(), used()
    await asyncio.sleep(SECONDS)
    percent = (used() - spent) / (time.monotonic() - began) * 100
    active = len(service.alerts())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    evaluator_thread.close()
    with evaluator:
        store.close()
    return percent, active


def main() -> None:
    """Measure, print and store the figures."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, changes in (("idle", False), ("changes", True)):
            bare, _ = asyncio.run(measure(Path(folder), alerts=False, changes=changes))
            whole, active = asyncio.run(measure(Path(folder), alerts=True, changes=changes))
            figures[f"{name}_percent"] = round(whole, 2)
            figures[f"{name}_without_percent"] = round(bare, 2)
            figures[f"{name}_alerts"] = active
    loads = {
        "idle": f"{PODS} pods, no changes",
        "changes": f"{PODS} pods, {CHANGES_A_SECOND} changes per second",
    }
    for name, load in loads.items():
        whole, bare = figures[f"{name}_percent"], figures[f"{name}_without_percent"]
        maximum = AT_MOST[f"{name}_percent"]
        comparison = f"{bare:.2f} without alerts (at most {maximum})"
        alerts = f"{figures[f'{name}_alerts']} alerts"
        print(f"{name:8} {whole:6.2f} % of a core, {comparison}  {load}, {alerts}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    if any(figures[name] > maximum for name, maximum in AT_MOST.items()):
        raise SystemExit("above the limit")


if __name__ == "__main__":
    main()
