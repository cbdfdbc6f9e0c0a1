"""Evaluate the rules for pods and nodes that changed, and dispatch the alerts.

    service = AlertService(view, engine, evaluator, dispatcher, actions=…, readiness=…, clock=…)
    tasks.create_task(service.run())
    service.alerts()

A pod is evaluated when the snapshot cache reports a change, when its measured usage has changed
enough, and when a fact changes by time alone: a window of ten minutes moves, a `for` expires. Nodes
and the status sync are few and are sampled.
After a start no alert resolves before the state is complete again.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import structs

from podstatus.alerts.delivery.decide.queue import receiver_name
from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.ports import (
    EvaluationRequest,
    EvaluatorError,
    RuleEvaluator,
    RuleResults,
)
from podstatus.alerts.model import Action, Alert, AlertId, RuleState
from podstatus.alerts.ports import DeliveryState
from podstatus.alerts.service.subjects import NodeSubjects, PodSubjects
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.ports import ContainerUsage, StatusView, SupportsContainerUsage

logger = logging.getLogger(__name__)

SAMPLE_SECONDS = 5.0
"""Between two samples of the nodes and the status sync."""
_SECOND = 1_000_000_000
_BATCH_SIZE = 50
"""Pods that are evaluated before other tasks run: about 5 ms."""
_MIN_WAIT_SECONDS, _RETRY_SECONDS = 0.01, 1.0
"""Between two evaluations; after a failure, since what was due stays due until it succeeds."""
_COALESCE_SECONDS = 0.1
"""Minimum time between the starts of two evaluations: at 100 changes a second, evaluating ten pods
at a time takes a third of the CPU time that evaluating each takes."""
_SAMPLE_PERIOD = round(SAMPLE_SECONDS * _SECOND)
_STARTUP_SAMPLE_PERIOD = _SECOND // 2
"""Between two samples after a start, until the nodes are known."""
_STARTUP_TIMEOUT = 30 * _SECOND
"""After a start: then a node is evaluated with what is known, for example without an API server."""
_MAX_RESOLVED = 1_000
_RESOLVED_NANOS = 3600 * _SECOND
"""How many resolved alerts are listed, and for how long."""
_STORE_NAME = "alerts.db"
_STEP_NANOS = 1_000_000_000
"""A larger difference means that the wall clock was set; below it, shown times stay the same."""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the state is complete after a start; once true, each stays true."""

    pods: Callable[[], bool]
    """All existing pods have been in the snapshot cache."""
    nodes: Callable[[], bool]
    """The node data was read completely by this process."""


class AlertService:
    """The alert service; also an `AlertReader`. For one event loop."""

    def __init__(
        self,
        view: StatusView,
        engine: Engine,
        evaluator: RuleEvaluator,
        dispatcher: AlertDispatcher,
        *,
        actions: Mapping[str, Sequence[Action]],
        readiness: Readiness,
        clock: Clock,
        heartbeat: Callable[[], None],
    ) -> None:
        """`actions` by rule name. The alerts of the previous process are restored.

        `heartbeat` is called before each evaluation, at least every `SAMPLE_SECONDS`.
        """
        self._view = view
        self._engine = engine
        self._evaluator = evaluator
        self._dispatcher = dispatcher
        self._actions = actions
        self._rules_by_receiver = _rules_of_receivers(actions)
        self._readiness = readiness
        self._clock = clock
        self._heartbeat = heartbeat
        self._usage_view = view if isinstance(view, SupportsContainerUsage) else None
        self._usage: ContainerUsage | None = None
        self._wall_times = WallTimes(clock)
        self._pods = PodSubjects(view.snapshot_cache, engine)
        self._nodes = NodeSubjects(view, engine)
        self._started_at = clock.monotonic()
        self._wakeup = asyncio.Event()
        self._sampled_at: int | None = None
        self._are_pods_synced = self._are_nodes_synced = False
        self._resolved: OrderedDict[AlertId, Alert] = OrderedDict()
        self._failures = FailureLog(logger, "evaluating alert rules", expected=EvaluatorError)
        engine.restore(map(self._wall_times.to_monotonic, dispatcher.restored.values()))

    @property
    def action_kinds(self) -> frozenset[str]:
        """The kinds of actions that can be executed."""
        return self._dispatcher.kinds

    # AlertReader

    def alerts(self) -> Mapping[AlertId, Alert]:
        """Return pending and firing alerts, and those resolved within an hour."""
        self._prune_resolved()
        alerts = {**self._resolved, **self._engine.alerts()}
        return {id_: self._wall_times.to_wall(alert) for id_, alert in alerts.items()}

    def rules(self) -> Sequence[RuleState]:
        return self._engine.rules()

    def deliveries(self) -> Sequence[DeliveryState]:
        """Return all receivers, and the alert file if it has a problem."""
        receivers = [
            structs.replace(state, rules=self._rules_by_receiver.get(state.name, ()))
            for state in self._dispatcher.deliveries()
        ]
        problem = self._dispatcher.problem
        if not problem:
            return receivers
        return [*receivers, DeliveryState(name=_STORE_NAME, problem=problem)]

    # Notifications

    def foreign_write(self, uid: PodUID) -> None:
        """Count a write to the pod's status by another client."""
        self._pods.foreign_write(uid, self._clock.monotonic())
        self._wakeup.set()

    # The loop

    async def run(self) -> None:
        """Evaluate and deliver, until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._dispatcher.run(), name="alert receivers")
            tasks.create_task(self._watch_cache(), name="alert news")
            while True:
                began = self._clock.monotonic()
                self._heartbeat()
                self._wakeup.clear()
                await self._evaluate_safely()
                await wait_event_or_timeout(self._wakeup, self._clock, self._seconds_until_due())
                passed = (self._clock.monotonic() - began) / _SECOND
                await self._clock.wait(max(0.0, _COALESCE_SECONDS - passed))

    async def evaluate_once(self) -> None:
        """Evaluate the subjects that changed, by an update or by time.

        Raises EvaluatorError: what could not be evaluated is retried by the next call.
        """
        if self._wall_times.update():
            self._dispatch(self._engine.waiting())
        self._take_usage()
        try:
            await self._evaluate_pods(self._pods.pop_changed())
            await self._evaluate_pods(self._pods.pop_due(self._clock.monotonic()))
        finally:
            self._dispatch(self._engine.advance(self._clock.monotonic()))
        if not self._are_pods_synced and self._readiness.pods() and not self._pods.has_changes:
            self._are_pods_synced = True
            self._dispatch(self._engine.all_known("pod", self._clock.monotonic()))
        await self._sample_nodes()
        # After a restart their rules may have other actions.
        self._dispatch(self._engine.resumed())

    def _take_usage(self) -> None:
        """Take the usage of containers, if it was measured since the last call."""
        if self._usage_view is None:
            return
        usage = self._usage_view.container_usage()
        if usage is not self._usage:
            self._usage = usage
            self._pods.usage_measured(usage, self._clock.monotonic())

    async def _evaluate_pods(self, uids: Sequence[PodUID]) -> None:
        for first in range(0, len(uids), _BATCH_SIZE):
            self._heartbeat()
            changed, requests = self._pods.collect(
                uids[first : first + _BATCH_SIZE], self._clock.monotonic(), wall=self._clock.now()
            )
            self._dispatch(changed)
            try:
                await self._evaluate(requests, self._pods.apply)
            except BaseException:
                self._pods.requeue(uids[first:])
                raise
            # Yield to other tasks: many pods take long.
            await asyncio.sleep(0)

    async def _evaluate(
        self,
        requests: Sequence[EvaluationRequest],
        apply: Callable[[EvaluationRequest, RuleResults], list[Alert]],
    ) -> None:
        """Evaluate and dispatch. Changes during the evaluation are handled by the next call."""
        if not requests:
            return
        evaluated = await self._evaluator.evaluate(requests)
        for rule, problem in evaluated.disabled.items():
            self._engine.disable_rule(rule, problem)
        for request, results in zip(requests, evaluated.results, strict=True):
            self._dispatch(apply(request, results))

    async def _evaluate_safely(self) -> None:
        """Evaluate; log a failure and retry later."""
        try:
            await self.evaluate_once()
        except Exception as error:  # noqa: BLE001 - logged and retried
            self._failures.failed(error)
        else:
            self._failures.recovered()

    async def _watch_cache(self) -> None:
        cache, revision = self._view.snapshot_cache, 0
        while True:
            await cache.wait(revision)
            revision = cache.revision
            self._wakeup.set()

    async def _sample_nodes(self) -> None:
        now = self._clock.monotonic()
        if self._sampled_at is not None and now - self._sampled_at < self._period:
            return
        self._sampled_at = now
        if (
            not self._are_nodes_synced
            and not self._readiness.nodes()
            and now - self._started_at < _STARTUP_TIMEOUT
        ):
            return
        changed, requests = self._nodes.sample(now)
        self._dispatch(changed)
        await self._evaluate(requests, self._nodes.apply)
        if not self._are_nodes_synced:
            self._are_nodes_synced = True
            self._dispatch(self._engine.all_known("node", now))

    @property
    def _period(self) -> int:
        return _SAMPLE_PERIOD if self._are_nodes_synced else _STARTUP_SAMPLE_PERIOD

    def _seconds_until_due(self) -> float:
        """Return the seconds until something is due by time alone."""
        sampled_at = self._started_at if self._sampled_at is None else self._sampled_at
        times = (sampled_at + self._period, self._engine.next_due(), self._pods.next_due())
        left = min(due for due in times if due is not None) - self._clock.monotonic()
        at_least = _MIN_WAIT_SECONDS if self._failures.error is None else _RETRY_SECONDS
        return max(at_least, left / _SECOND)

    def _dispatch(self, changed: Iterable[Alert]) -> None:
        for alert in changed:
            shown = self._wall_times.to_wall(alert)
            self._dispatcher.dispatch(shown, self._actions.get(alert.rule, ()))
            if alert.state == "resolved" and alert.fired:
                self._resolved[alert.id] = alert
        self._prune_resolved()

    def _prune_resolved(self) -> None:
        oldest = self._clock.monotonic() - _RESOLVED_NANOS
        while self._resolved:
            first = next(iter(self._resolved.values()))
            if len(self._resolved) <= _MAX_RESOLVED and first.resolved >= oldest:
                return
            del self._resolved[first.id]


class WallTimes:
    """Converts the times of alerts between the monotonic clock and the wall clock.

    The engine measures with the monotonic clock. Its times become wall-clock times when an alert
    leaves it, and stored ones become monotonic once, when they are loaded.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = clock.now() - clock.monotonic()

    def update(self) -> bool:
        """Use the current wall clock; return whether it was set since the last call.

        Waiting alerts are then to be stored again, or a restart would change how long they wait.
        """
        offset = self._clock.now() - self._clock.monotonic()
        if abs(offset - self._offset) < _STEP_NANOS:
            return False
        self._offset = offset
        return True

    def to_wall(self, alert: Alert) -> Alert:
        return _shift_times(alert, self._offset)

    def to_monotonic(self, alert: Alert) -> Alert:
        """Return a stored alert with monotonic times, none of them in the future."""
        now = self._clock.monotonic()
        latest = max(alert.since, alert.fired, alert.ceased) - self._offset
        return _shift_times(alert, -self._offset - max(0, latest - now))


def _shift_times(alert: Alert, nanos: int) -> Alert:
    since, fired, ceased, resolved = (
        at and at + nanos for at in (alert.since, alert.fired, alert.ceased, alert.resolved)
    )
    return structs.replace(alert, since=since, fired=fired, ceased=ceased, resolved=resolved)


def firing_actions(
    alerts: Iterable[Alert], actions: Mapping[str, Sequence[Action]]
) -> Iterator[tuple[Alert, Action]]:
    """Yield each firing alert with each of its actions; `actions` by rule name."""
    for alert in alerts:
        if alert.state == "firing":
            for action in actions.get(alert.rule, ()):
                yield alert, action


def _rules_of_receivers(actions: Mapping[str, Sequence[Action]]) -> dict[str, tuple[str, ...]]:
    """Return the rules that use each receiver, by its name."""
    by_receiver: dict[str, dict[str, None]] = {}
    for rule, rule_actions in actions.items():
        for action in rule_actions:
            by_receiver.setdefault(receiver_name(action), {})[rule] = None
    return {name: tuple(rules) for name, rules in by_receiver.items()}
