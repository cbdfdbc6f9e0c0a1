"""The alert service: when it evaluates which subjects, and what follows."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec import structs

from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.delivery.store import AlertStore, AlertStoreError
from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.ports import EvaluationRequest, EvaluationResult, EvaluatorError
from podstatus.alerts.model import Action, Alert
from podstatus.alerts.rules.load import LoadedRule, load_rules
from podstatus.alerts.service.alert_service import AlertService, Readiness
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import CpuThrottling, MemoryUsage, Usage
from podstatus.kube.scalars.time import Time
from podstatus.observe.ports import ContainerUsage, NodeSummary
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary
from podstatus.testing.clock import FakeClock
from tests.support.alert_rules import ENVIRONMENTS, LocalEvaluator
from tests.support.web.fake_status_view import FakeStatusView

LOG = Action(kind="log")
RULES = """
rules:
- name: NotReady
  expr: '!pod.ready'
  for: 20s
  annotations: {summary: '{{ pod.name }} is not ready'}
- {name: Flapping, expr: pod.readyChanges10m >= 4}
- {name: Restarts, expr: pod.restarts10m >= 2}
- {name: Foreign, expr: pod.foreignWrites10m > 0}
- {name: NodeDown, scope: node, expr: '!node.ready'}
- {name: Away, scope: node, expr: '!sync.serverReachable', for: 10s}
"""


def a_pod(name: str = "web", *, ready: bool = True, restarts: int = 0, at: int = 1) -> PodSummary:
    condition = ConditionSummary(
        type="Ready",
        status="True" if ready else "False",
        since=Time.from_unix_nanos(at * 10**9),
    )
    return PodSummary(
        uid=PodUID(f"uid-{name}"),
        namespace="default",
        name=name,
        node="node-1",
        phase="Running",
        conditions=(condition,),
        containers=(
            ContainerSummary(name="app", state=parse_container_state("running"), restarts=restarts),
        ),
    )


class Heard:
    """An `AlertNotifier` that records what it gets."""

    def __init__(self) -> None:
        self.alerts: list[Alert] = []

    async def send(self, action: Action, alert: Alert) -> None:
        self.alerts.append(alert)

    @property
    def words(self) -> list[str]:
        return [f"{it.rule} {it.subject.name} {it.state}" for it in self.alerts]


class Unreliable:
    """A `RuleEvaluator` that can fail, be slow, and disable rules."""

    def __init__(self, rules: Sequence[LoadedRule]) -> None:
        self._local = LocalEvaluator(rules)
        self.is_away = False
        self.gate: asyncio.Event | None = None
        self.asked: list[str] = []
        self.switched_off: dict[str, str] = {}
        self.evaluations = 0

    async def evaluate(self, questions: Sequence[EvaluationRequest]) -> EvaluationResult:
        self.evaluations += 1
        if self.is_away:
            raise EvaluatorError("it is away")
        self.asked += [it.subject.name for it in questions]
        if self.gate is not None:
            await self.gate.wait()
        found = await self._local.evaluate(questions)
        off, self.switched_off = self.switched_off, {}
        return structs.replace(found, disabled=off)


class MeasuringStatusView(FakeStatusView):
    """A status view of a process that measures containers."""

    def __init__(self) -> None:
        super().__init__()
        self.usage: ContainerUsage = {}

    def container_usage(self) -> ContainerUsage:
        return self.usage

    def measure(self, **memory_percent: float) -> None:
        """Measure the containers of these pods, which have a memory limit."""
        self.usage = {
            PodUID(f"uid-{name}"): {
                "app": Usage(
                    at=0, memory_bytes=round(used * 10), memory=MemoryUsage(limit_bytes=1000)
                )
            }
            for name, used in memory_percent.items()
        }


class Scene:
    """Rules and their subjects. Another scene can continue from its store."""

    def __init__(self, rules: str = RULES, *, store: Path | None = None) -> None:
        self.clock = FakeClock()
        self.known = MeasuringStatusView()
        self.known.known_nodes = {"node-1": NodeSummary(name="node-1", ready=True)}
        self.received = Heard()
        self.rules = rules
        self.store = store
        self.has_pods = self.has_nodes = True
        self.action = LOG
        self.actions: dict[str, tuple[Action, ...]] = {}
        self.heartbeats = Heartbeats(self.clock)

    def alerting(self) -> AlertService:
        loaded = load_rules(self.rules, ENVIRONMENTS)
        assert loaded.errors == ()
        self.evaluator = Unreliable(loaded.rules)
        store = None if self.store is None else AlertStore.open(self.store)
        self.engine = Engine(loaded.rules, instance_id=str(self.clock.now()))
        return AlertService(
            self.known,
            self.engine,
            self.evaluator,
            AlertDispatcher(
                {"log": self.received, "mail": self.received},
                store,
                clock=self.clock,
                random=lambda: 0.5,
            ),
            actions=self.actions or {it.rule.name: (self.action,) for it in loaded.rules},
            readiness=Readiness(pods=lambda: self.has_pods, nodes=lambda: self.has_nodes),
            clock=self.clock,
            heartbeat=self.heartbeats.register("alerts", max_silent_seconds=10),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[AlertService]:
        alerting = self.alerting()
        task = asyncio.create_task(alerting.run())
        try:
            await self.passes(0)
            yield alerting
        finally:
            assert not task.done(), task.exception()
            task.cancel()
            await asyncio.wait({task})

    async def passes(self, seconds: float) -> None:
        """Advance the clock, and let the disk thread run."""
        await self.clock.advance(seconds)
        for _ in range(20):
            await asyncio.sleep(0.002 if self.store else 0)

    def put(self, *pods: PodSummary) -> None:
        for pod in pods:
            self.known.snapshot_cache.put(pod)


def refuse(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("a mistake")


def shown(alerting: AlertService) -> list[str]:
    return [f"{it.rule} {it.subject.name} {it.state}" for it in alerting.alerts().values()]


async def test_a_pod_is_asked_about_when_it_changes_and_when_its_time_has_come() -> None:
    scene = Scene()
    async with scene.running() as alerting:
        scene.put(a_pod())
        await scene.passes(1)
        assert shown(alerting) == []
        scene.put(a_pod(ready=False))
        await scene.passes(0.1)
        assert shown(alerting) == ["NotReady web pending"]
        await scene.passes(19)
        assert scene.received.words == []
        await scene.passes(1)
        assert scene.received.words == ["NotReady web firing"]
        assert scene.received.alerts[0].annotations == {"summary": "web is not ready"}
        scene.put(a_pod())
        await scene.passes(0.1)
        assert scene.received.words[1:] == ["NotReady web resolved"]
        assert shown(alerting) == ["NotReady web resolved"]
        await scene.passes(3601)
        assert shown(alerting) == []


HOUR = 3600
in_both_directions = pytest.mark.parametrize("step", [HOUR, -HOUR])


@in_both_directions
async def test_a_clock_step_changes_no_for(tmp_path: Path, step: int) -> None:
    scene = Scene(store=tmp_path / "alerts.db")
    scene.put(a_pod(ready=False))
    async with scene.running():
        await scene.passes(5)
        scene.clock.step(step)
        await scene.passes(5)
    async with scene.running():
        await scene.passes(9)
        assert scene.received.words == []
        await scene.passes(1)
        assert scene.received.words == ["NotReady web firing"]


@in_both_directions
async def test_a_clock_step_changes_no_keep_firing_for(step: int) -> None:
    scene = Scene("rules: [{name: NotReady, expr: '!pod.ready', keepFiringFor: 30s}]")
    scene.put(a_pod(ready=False))
    async with scene.running():
        await scene.passes(1)
        scene.put(a_pod())
        await scene.passes(10)
        scene.clock.step(step)
        await scene.passes(19)
        assert scene.received.words == ["NotReady web firing"]
        await scene.passes(1)
        assert scene.received.words[1:] == ["NotReady web resolved"]


@in_both_directions
async def test_a_clock_step_leaves_the_times_of_an_alert_in_order(step: int) -> None:
    scene = Scene()
    scene.put(a_pod(ready=False))
    async with scene.running() as alerting:
        await scene.passes(26)
        scene.clock.step(step)
        scene.put(a_pod())
        await scene.passes(4)
        resolved = scene.received.alerts[-1]
        assert [resolved] == list(alerting.alerts().values())
        now = scene.clock.now()
        ages = [(now - at) / 10**9 for at in (resolved.since, resolved.fired, resolved.resolved)]
        assert ages == [30, 10, 4]
        await scene.passes(HOUR - 5)
        assert shown(alerting) == ["NotReady web resolved"]


async def test_a_clock_that_is_set_back_between_two_processes_prolongs_no_for(
    tmp_path: Path,
) -> None:
    scene = Scene(store=tmp_path / "alerts.db")
    scene.put(a_pod(ready=False))
    async with scene.running():
        await scene.passes(5)
    scene.clock.step(-HOUR)
    async with scene.running():
        await scene.passes(19)
        assert scene.received.words == []
        await scene.passes(1)
        assert scene.received.words == ["NotReady web firing"]


@in_both_directions
async def test_a_clock_step_moves_no_window(step: int) -> None:
    scene = Scene()
    scene.put(a_pod())
    async with scene.running() as alerting:
        alerting.foreign_write(PodUID("uid-web"))
        await scene.passes(300)
        scene.clock.step(step)
        await scene.passes(299)
        assert scene.received.words == ["Foreign web firing"]
        await scene.passes(2)
        assert scene.received.words == ["Foreign web firing", "Foreign web resolved"]


@in_both_directions
async def test_a_clock_step_does_not_change_the_time_after_a_restart(
    tmp_path: Path, step: int
) -> None:
    rules = """
rules:
- {name: Foreign, expr: pod.foreignWrites10m > 0}
- {name: Filling, scope: node, expr: node.diskFullInSeconds > 0}
"""
    scene = Scene(rules, store=tmp_path / "alerts.db")
    scene.put(a_pod())
    filling = NodeSummary(name="node-1", ready=True, disk_full_in_seconds=60.0)
    scene.known.known_nodes = {"node-1": filling}
    async with scene.running() as alerting:
        alerting.foreign_write(PodUID("uid-web"))
        await scene.passes(1)
    scene.known.known_nodes = {"node-1": NodeSummary(name="node-1", ready=True)}
    async with scene.running() as alerting:
        await scene.passes(10)
        scene.clock.step(step)
        await scene.passes(580)
        assert sorted(shown(alerting)) == ["Filling node-1 firing", "Foreign web firing"]
        await scene.passes(15)
        assert sorted(shown(alerting)) == ["Filling node-1 resolved", "Foreign web resolved"]


async def test_a_pod_that_goes_resolves_its_alerts() -> None:
    scene = Scene()
    async with scene.running():
        scene.put(a_pod(ready=False), a_pod("db", ready=False))
        await scene.passes(21)
        scene.known.snapshot_cache.remove(PodUID("uid-web"))
        await scene.passes(0.1)
        assert scene.received.words == [
            "NotReady web firing",
            "NotReady db firing",
            "NotReady web resolved",
        ]


async def test_windows_move_though_nothing_happens() -> None:
    scene = Scene()
    async with scene.running():
        scene.put(a_pod())
        await scene.passes(0.1)
        for number in range(1, 5):
            scene.put(a_pod(ready=number % 2 == 0, at=number))
            await scene.passes(1)
        assert scene.received.words == ["Flapping web firing"]
        await scene.passes(580)
        assert scene.received.words == ["Flapping web firing"]
        await scene.passes(30)
        assert scene.received.words == ["Flapping web firing", "Flapping web resolved"]


async def test_a_foreign_write_before_the_first_evaluation_is_counted() -> None:
    scene = Scene()
    async with scene.running() as alerting:
        await scene.passes(1)
        scene.put(a_pod())
        alerting.foreign_write(PodUID("uid-web"))
        await scene.passes(0.2)
        assert scene.received.words == ["Foreign web firing"]


async def test_restarts_and_foreign_writes_are_counted() -> None:
    scene = Scene()
    async with scene.running() as alerting:
        scene.put(a_pod(restarts=7))
        await scene.passes(0.1)
        alerting.foreign_write(PodUID("uid-web"))
        alerting.foreign_write(PodUID("uid-unknown"))
        await scene.passes(0.1)
        assert scene.received.words == ["Foreign web firing"]
        scene.put(a_pod(restarts=9))
        await scene.passes(0.1)
        assert sorted(scene.received.words) == ["Foreign web firing", "Restarts web firing"]
        await scene.passes(601)
        assert sorted(scene.received.words[2:]) == ["Foreign web resolved", "Restarts web resolved"]


MEMORY_RULES = """
rules:
- {name: Full, expr: 'pod.containers.exists(c, c.memoryUsedFraction > 0.9)', for: 30s}
"""


async def test_usage_is_evaluated_when_it_has_changed_enough() -> None:
    scene = Scene(MEMORY_RULES)
    scene.put(*(a_pod(name) for name in ("web", "db", "idle")))
    scene.known.measure(web=50, db=50)
    async with scene.running() as alerting:
        await scene.passes(6)
        for step in range(20):
            scene.known.measure(web=50 + step * 2.2, db=50 + step % 2)
            await scene.passes(10)
        assert shown(alerting) == ["Full web pending"]
        asked = [name for name in scene.evaluator.asked if name != "node-1"]
        assert (asked.count("idle"), asked.count("db")) == (1, 1)
        assert 18 <= asked.count("web") <= 21
        await scene.passes(30)
        assert scene.received.words == ["Full web firing"]
        scene.known.measure(db=50)
        await scene.passes(6)
        assert scene.received.words[1:] == ["Full web resolved"]


async def test_usage_that_is_measured_again_without_a_change_costs_nothing() -> None:
    scene = Scene(MEMORY_RULES)
    names = [f"p{number}" for number in range(300)]
    scene.put(*map(a_pod, names))
    async with scene.running():
        await scene.passes(6)
        before = len(scene.evaluator.asked)
        for percent in (50, 51, 50.5, 51.5):
            scene.known.measure(**dict.fromkeys(names, percent))
            await scene.passes(10)
        assert len(scene.evaluator.asked) - before == len(names)


@pytest.mark.parametrize(("used", "state"), [(95, "firing"), (40, "resolved")])
async def test_usage_that_is_not_measured_yet_ends_nothing_after_a_restart(
    tmp_path: Path, used: int, state: str
) -> None:
    scene = Scene(MEMORY_RULES, store=tmp_path / "alerts.db")
    scene.put(a_pod())
    scene.known.measure(web=95)
    async with scene.running():
        await scene.passes(40)
    assert scene.received.words == ["Full web firing"]
    scene.known.usage = {}
    scene.received.alerts.clear()
    async with scene.running() as alerting:
        await scene.passes(20)
        assert shown(alerting) == ["Full web firing"]
        scene.known.measure(web=used)
        await scene.passes(10)
        assert shown(alerting) == [f"Full web {state}"]


class CountedUsage(dict[PodUID, Mapping[str, Usage]]):
    """A measurement that counts how often it is read."""

    reads = 0

    def items(self):  # type: ignore[no-untyped-def]
        self.reads += 1
        return super().items()


async def test_a_measurement_is_read_once() -> None:
    scene = Scene(MEMORY_RULES)
    scene.put(a_pod())
    scene.known.measure(web=50)
    counted = scene.known.usage = CountedUsage(scene.known.usage)
    async with scene.running():
        await scene.passes(6)
        reads = counted.reads
        assert reads
        for step in range(20):
            scene.put(a_pod(restarts=step))
            await scene.passes(1)
        assert counted.reads == reads


async def test_throttling_of_a_short_time_ends_nothing_after_a_restart(tmp_path: Path) -> None:
    rules = """
rules:
- {name: Throttled, expr: 'pod.containers.exists(c, c.cpuThrottledFraction > 0.25)'}
"""
    scene = Scene(rules, store=tmp_path / "alerts.db")
    scene.put(a_pod())

    def throttle(periods: int, throttled: int) -> None:
        used = Usage(at=0, throttling=CpuThrottling(periods, throttled))
        scene.known.usage = {PodUID("uid-web"): {"app": used}}

    async with scene.running() as alerting:
        for step in (1, 2):
            throttle(100 * step, 50 * step)
            await scene.passes(10)
        assert shown(alerting) == ["Throttled web firing"]
    async with scene.running() as alerting:
        for step in (3, 4, 5):
            throttle(100 * step, 100)
            await scene.passes(10)
        assert shown(alerting) == ["Throttled web firing"]
        await scene.passes(600)
        assert shown(alerting) == ["Throttled web resolved"]


async def test_nodes_are_sampled() -> None:
    scene = Scene()
    async with scene.running():
        scene.known.known_nodes = {"node-1": NodeSummary(name="node-1", ready=False)}
        scene.known.age = structs.replace(scene.known.age, server_reachable=False)
        await scene.passes(5)
        assert scene.received.words == ["NodeDown node-1 firing"]
        await scene.passes(10)
        assert scene.received.words[1:] == ["Away node-1 firing"]
        scene.known.known_nodes = {}
        await scene.passes(5)
        assert sorted(scene.received.words[2:]) == [
            "Away node-1 resolved",
            "NodeDown node-1 resolved",
        ]


async def test_a_pending_alert_goes_on_over_a_restart(tmp_path: Path) -> None:
    scene = Scene(store=tmp_path / "alerts.db")
    scene.put(a_pod(ready=False), a_pod("gone", ready=False), a_pod("well", ready=False))
    async with scene.running():
        await scene.passes(12)
    scene.known = MeasuringStatusView()
    scene.has_pods = False
    async with scene.running() as alerting:
        await scene.passes(3)
        assert len(shown(alerting)) == 3
        scene.put(a_pod(ready=False), a_pod("well"))
        await scene.passes(4)
        assert scene.received.words == []
        # Alerts of a missing pod do not resolve before all pods are known.
        assert "NotReady gone pending" in shown(alerting)
        scene.has_pods = True
        await scene.passes(1)
        assert scene.received.words == ["NotReady web firing"]
        await scene.passes(5)
        assert shown(alerting) == ["NotReady web firing"]


async def test_what_happened_before_a_restart_is_not_over_before_ten_minutes(
    tmp_path: Path,
) -> None:
    scene = Scene(store=tmp_path / "alerts.db")
    scene.put(a_pod())
    async with scene.running() as alerting:
        alerting.foreign_write(PodUID("uid-web"))
        await scene.passes(1)
    async with scene.running():
        await scene.passes(599)
        assert scene.received.words == ["Foreign web firing"]
        await scene.passes(2)
        assert scene.received.words == ["Foreign web firing", "Foreign web resolved"]


async def test_a_node_fact_that_is_not_known_yet_ends_nothing_after_a_restart(
    tmp_path: Path,
) -> None:
    rules = "rules: [{name: Late, scope: node, expr: node.leaseAgeSeconds > 25}]"
    scene = Scene(rules, store=tmp_path / "alerts.db")
    late, unknown, renewed = (
        {"node-1": NodeSummary(name="node-1", ready=True, lease_age_seconds=age)}
        for age in (60.0, None, 1.0)
    )
    scene.known.known_nodes = late
    async with scene.running():
        await scene.passes(1)
    scene.known.known_nodes, scene.has_nodes = unknown, False
    async with scene.running():
        await scene.passes(700)
        assert scene.received.words == ["Late node-1 firing"]
        scene.known.known_nodes = renewed
        await scene.passes(5)
        assert scene.received.words == ["Late node-1 firing", "Late node-1 resolved"]


async def test_changes_in_quick_succession_are_evaluated_together() -> None:
    scene = Scene("rules: [{name: NotReady, expr: '!pod.ready'}]")
    scene.put(a_pod())
    async with scene.running():
        await scene.passes(1)
        scene.put(a_pod(ready=False))
        await scene.passes(0)
        assert scene.received.words == ["NotReady web firing"]
        evaluations = scene.evaluator.evaluations
        for number in range(20):
            scene.put(a_pod(f"web-{number}"))
            await scene.passes(0.005)
        await scene.passes(0.1)
        assert scene.evaluator.evaluations <= evaluations + 3


async def test_in_an_observer_no_node_is_blamed_for_the_rules_or_the_connection() -> None:
    scene = Scene(
        "rules:\n- {name: Over, scope: node, expr: node.rulesOverBudget != ''}\n"
        "- {name: Away, scope: node, expr: '!sync.serverReachable || sync.unsent > 0'}\n"
        "- {name: Down, scope: node, expr: '!node.ready'}"
    )
    scene.known.sync_state = None
    scene.known.known_nodes = {it: NodeSummary(name=it, ready=it == "n1") for it in ("n1", "n2")}
    async with scene.running() as alerting:
        scene.evaluator.switched_off = {"Away": "it takes too long"}
        await scene.passes(20)
        assert scene.received.words == ["Down n2 firing"]
        assert [it.failures for it in alerting.rules()] == [0, 0, 0]


async def test_who_is_new_hears_after_a_restart_of_what_still_holds(tmp_path: Path) -> None:
    scene = Scene(store=tmp_path / "alerts.db")
    scene.put(a_pod(ready=False), a_pod("well", ready=False), a_pod("gone", ready=False))
    async with scene.running():
        await scene.passes(21)
    scene.received.alerts.clear()
    scene.action = Action(kind="mail")
    scene.known = MeasuringStatusView()
    scene.has_pods = False
    async with scene.running():
        await scene.passes(1)
        assert scene.received.words == []
        scene.put(a_pod(ready=False), a_pod("well"))
        scene.has_pods = True
        await scene.passes(1)
        assert sorted(scene.received.words) == [
            "NotReady gone resolved",  # to the log, which got the firing alert
            "NotReady web firing",
            "NotReady well resolved",
        ]


async def test_a_node_is_not_asked_about_before_it_is_known_but_not_for_ever() -> None:
    scene = Scene()
    scene.has_nodes = False
    scene.known.known_nodes = {"node-1": NodeSummary(name="node-1", ready=False)}
    async with scene.running() as alerting:
        await scene.passes(25)
        assert shown(alerting) == []
        await scene.passes(10)
        assert shown(alerting) == ["NodeDown node-1 firing"]


async def test_a_pod_that_cannot_be_asked_about_does_not_touch_the_others() -> None:
    scene = Scene()
    async with scene.running() as alerting:
        broken = structs.replace(a_pod("broken"), conditions=None)
        scene.put(broken, a_pod(ready=False))
        await scene.passes(0.1)
        assert shown(alerting) == ["NotReady web pending"]


async def test_a_node_that_could_not_be_asked_about_is_asked_about_again() -> None:
    scene = Scene()
    scene.known.known_nodes = {"node-1": NodeSummary(name="node-1", ready=False)}
    scene.has_nodes = False
    async with scene.running() as alerting:
        scene.engine.apply = refuse  # type: ignore[method-assign]
        scene.has_nodes = True
        await scene.passes(10)
        assert shown(alerting) == []
        del scene.engine.apply
        await scene.passes(5)
        assert shown(alerting) == ["NodeDown node-1 firing"]


async def test_a_rule_that_fails_shows_it_and_the_others_run_on() -> None:
    scene = Scene("""
rules:
- {name: Odd, expr: '10 / (size(pod.name) - 3) > 100'}
- {name: NotReady, expr: '!pod.ready'}
""")
    async with scene.running() as alerting:
        scene.put(a_pod("web", ready=False), a_pod("other", ready=False))
        await scene.passes(0.1)
        odd, _not_ready = alerting.rules()
        assert (odd.failing, odd.failures, "web" in odd.problem) == (1, 1, True)
        assert sorted(scene.received.words) == ["NotReady other firing", "NotReady web firing"]


async def test_what_could_not_be_evaluated_is_evaluated_later() -> None:
    scene = Scene()
    scene.put(a_pod("old", ready=False))
    async with scene.running() as alerting:
        await scene.passes(0.1)
        scene.evaluator.is_away = True
        for number in range(120):
            scene.put(a_pod(f"p{number}", ready=False))
        scene.put(a_pod("gone"))
        await scene.passes(5)
        assert shown(alerting) == ["NotReady old pending"]
        scene.known.snapshot_cache.remove(PodUID("uid-gone"))
        # Timers continue.
        await scene.passes(16)
        assert scene.received.words == ["NotReady old firing"]
        scene.evaluator.is_away = False
        await scene.passes(2)
        assert len(shown(alerting)) == 121
        assert scene.heartbeats.stalled() == []


async def test_what_changes_while_rules_are_evaluated_is_asked_about_again() -> None:
    scene = Scene()
    async with scene.running() as alerting:
        scene.evaluator.gate = asyncio.Event()
        scene.put(a_pod(ready=False), a_pod("gone", ready=False))
        await scene.passes(0.1)
        scene.put(a_pod(ready=True))
        scene.known.snapshot_cache.remove(PodUID("uid-gone"))
        await scene.passes(0.1)
        scene.evaluator.gate.set()
        await scene.passes(0.1)
        assert shown(alerting) == []


async def test_a_rule_that_is_switched_off_is_shown_and_alerted() -> None:
    rule = "{name: Over, scope: node, expr: 'node.rulesOverBudget == \"NotReady\"'}"
    scene = Scene(f"{RULES}- {rule}\n")
    async with scene.running() as alerting:
        scene.evaluator.switched_off = {"NotReady": "it takes too long"}
        scene.put(a_pod(ready=False))
        await scene.passes(6)
        assert shown(alerting) == ["Over node-1 firing"]
        off = [it.name for it in alerting.rules() if it.switched_off]
        assert off == ["NotReady"]


async def test_many_pods_leave_others_their_turn() -> None:
    scene = Scene()
    for number in range(1000):
        scene.put(a_pod(f"p{number}", ready=False))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    alerting = scene.alerting()
    busy = asyncio.create_task(other())
    await alerting.evaluate_once()
    busy.cancel()
    assert len(alerting.alerts()) == 1000
    assert turns >= 1000 // 50 - 1


async def test_a_disk_in_trouble_is_shown_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> NoReturn:
        raise AlertStoreError("the disk is full")

    monkeypatch.setattr(AlertStore, "replace", write)
    scene = Scene(store=tmp_path / "alerts.db")
    scene.put(a_pod(ready=False))
    async with scene.running() as alerting:
        await scene.passes(21)
        assert alerting.deliveries()[-1].problem == "the disk is full"
        assert shown(alerting) == ["NotReady web firing"]


async def test_receivers_list_their_rules() -> None:
    scene = Scene()
    mail = Action(kind="mail")
    scene.actions = {"NotReady": (LOG, mail), "NodeDown": (LOG,), "Away": (mail,)}
    scene.put(a_pod(ready=False))
    async with scene.running() as alerting:
        await scene.passes(21)
        receivers = {it.name: it.rules for it in alerting.deliveries()}
        assert receivers == {"log": ("NotReady", "NodeDown"), "mail": ("NotReady", "Away")}


async def test_a_mistake_of_ours_ends_nothing_and_is_tried_again_in_a_while() -> None:
    scene = Scene()
    looks = 0

    def broken() -> NoReturn:
        nonlocal looks
        looks += 1
        raise RuntimeError("a mistake")

    async with scene.running() as alerting:
        scene.put(a_pod(ready=False))
        await scene.passes(0.1)
        scene.known.nodes = broken  # type: ignore[method-assign]
        await scene.passes(20)
        assert 1 <= looks <= 20
        del scene.known.nodes
        await scene.passes(2)
        assert shown(alerting) == ["NotReady web firing"]


async def test_it_shows_that_it_is_alive_and_when_it_hangs() -> None:
    scene = Scene()
    async with scene.running() as alerting:
        for _ in range(10):
            await scene.passes(7)
            assert scene.heartbeats.stalled() == []
        alerting.evaluate_once = asyncio.Event().wait  # type: ignore[method-assign,assignment]
        await scene.passes(20)
        assert [it.name for it in scene.heartbeats.stalled()] == ["alerts"]
