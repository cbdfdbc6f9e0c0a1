"""Follows what is known, asks the rules about what changed, and has everybody told.

    watchman = Watchman(observatory, engine, evaluator, dispatcher, actions=…, synced=…, clock=…)
    tasks.create_task(watchman.run())
    watchman.alerts()

Pods are looked at when the board says that they changed, and when something of them changes by
the time alone: a window of ten minutes moves, a `for` runs out. Nodes, and how far the API server
has everything, are few and are sampled. Nothing resolves after a start before all is known again.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.delivery.queue import receiver_name
from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.ports import (
    EvaluationRequest,
    EvaluatorError,
    RuleEvaluator,
    RuleResults,
)
from podstatus.alerts.model import Action, Alert, AlertId, RuleState
from podstatus.alerts.ports import DeliveryState
from podstatus.alerts.service.nodes import NodeSubjects
from podstatus.alerts.service.pods import PodSubjects
from podstatus.base.aio import wait_event_or_timeout
from podstatus.base.clock import Clock, Elapsed
from podstatus.base.failure_log import FailureLog
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.status_view import StatusView

logger = logging.getLogger(__name__)

SAMPLE_SECONDS = 5.0
"""Between two looks at nodes and at how far the API server has everything."""
_SECOND = 1_000_000_000
_BATCH_SIZE = 50
"""Pods that are looked at before others have their turn: some 5 ms."""
_MIN_WAIT_SECONDS, _RETRY_SECONDS = 0.01, 1.0
"""Between two looks; after one that failed: whatever is due then is due until it succeeds."""
_STARTUP_SAMPLE_SECONDS = 0.5
"""Between two looks whether nodes are known, after a start."""
_STARTUP_TIMEOUT_SECONDS = 30.0
"""After a start: then a node is asked about as far as it is known, say without an API server."""
_CLOCK_STEP_NANOS = _SECOND
"""A clock that gets ahead by more between two looks was set; NTP moves it by less."""
_MAX_RESOLVED = 1_000
_RESOLVED_NANOS = 3600 * _SECOND
"""How many alerts that are over are shown, and for how long."""
_STORE_NAME = "alerts.db"


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether all is known after a start; each of these stays true."""

    pods: Callable[[], bool]
    """All pods that there are have been on the board."""
    nodes: Callable[[], bool]
    """What is known of nodes is from this life, and whole."""


class AlertService:
    """The service. It is an `Alerts`, for those who ask. For one event loop."""

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
        monotonic: Callable[[], int] = time.monotonic_ns,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        """`actions` by the names of rules. What lived when another process stopped goes on.

        `monotonic`: nanoseconds of a clock that nobody sets. `heartbeat`: it is called before each
        look, once in `SAMPLE_SECONDS` at least."""
        self._view = view
        self._engine = engine
        self._evaluator = evaluator
        self._dispatcher = dispatcher
        self._actions = actions
        self._rules_by_receiver = _rules_of_receivers(actions)
        self._readiness = readiness
        self._clock = clock
        self._monotonic = monotonic
        self._heartbeat = heartbeat
        self._clock_reading = clock.now(), monotonic()
        """Both clocks, when they were last looked at."""
        self._pods = PodSubjects(view.snapshot_cache, engine)
        self._nodes = NodeSubjects(view, engine)
        self._uptime = Elapsed(clock)
        self._wakeup = asyncio.Event()
        self._sampled_at: float | None = None
        self._are_pods_synced = self._are_nodes_synced = False
        self._resolved: OrderedDict[AlertId, Alert] = OrderedDict()
        self._failures = FailureLog(logger, "asking alert rules", expected=EvaluatorError)
        engine.restore(dispatcher.restored.values())

    # What others ask

    def alerts(self) -> Mapping[AlertId, Alert]:
        """Those that are pending or firing, and those that resolved within an hour."""
        self._prune_resolved()
        return {**self._resolved, **self._engine.alerts()}

    def rules(self) -> Sequence[RuleState]:
        """All rules, in the order of their files."""
        return self._engine.rules()

    def deliveries(self) -> Sequence[DeliveryState]:
        """All receivers; and the disk, if it is in trouble."""
        told = [
            structs.replace(state, rules=self._rules_by_receiver.get(state.name, ()))
            for state in self._dispatcher.deliveries()
        ]
        problem = self._dispatcher.problem
        return [*told, DeliveryState(name=_STORE_NAME, problem=problem)] if problem else told

    def firing(self) -> Iterable[tuple[Alert, Action]]:
        """Each alert that fires, with each of its actions."""
        for alert in self._engine.alerts().values():
            if alert.state == "firing":
                for action in self._actions.get(alert.rule, ()):
                    yield alert, action

    # What it is told

    def foreign_write(self, uid: PodUID) -> None:
        """Others wrote what is ours of this pod's status."""
        self._pods.foreign_write(uid, self._clock.now())
        self._wakeup.set()

    # What it does

    async def run(self) -> None:
        """Look at what changes until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._dispatcher.run(), name="alert receivers")
            tasks.create_task(self._watch_cache(), name="alert news")
            while True:
                self._heartbeat()
                self._wakeup.clear()
                await self._evaluate_safely()
                await wait_event_or_timeout(self._wakeup, self._clock, self._seconds_until_due())

    async def evaluate_once(self) -> None:
        """Look at all that has changed, and at what time has changed.

        Raises EvaluatorError: what could not be asked about is looked at the next time.
        """
        try:
            await self._evaluate_pods(self._pods.pop_changed())
            await self._evaluate_pods(self._pods.pop_due(self._now()))
        finally:
            self._dispatch(self._engine.advance(self._now()))
        if not self._are_pods_synced and self._readiness.pods() and not self._pods.has_changes:
            self._are_pods_synced = True
            self._dispatch(self._engine.all_known("pod", self._now()))
        await self._sample_nodes()
        # Their rules may have got other actions.
        self._dispatch(self._engine.resumed())

    async def _evaluate_pods(self, uids: Sequence[PodUID]) -> None:
        for first in range(0, len(uids), _BATCH_SIZE):
            self._heartbeat()
            changed, questions = self._pods.collect(uids[first : first + _BATCH_SIZE], self._now())
            self._dispatch(changed)
            try:
                await self._evaluate(questions, self._pods.apply)
            except BaseException:
                self._pods.requeue(uids[first:])
                raise
            # Others have their turn: of many pods this takes long.
            await asyncio.sleep(0)

    async def _evaluate(
        self,
        questions: Sequence[EvaluationRequest],
        apply: Callable[[EvaluationRequest, RuleResults], list[Alert]],
    ) -> None:
        """Have the rules evaluated. What changes meanwhile is asked about the next time."""
        if not questions:
            return
        evaluated = await self._evaluator.evaluate(questions)
        for rule, problem in evaluated.disabled.items():
            self._engine.disable_rule(rule, problem)
        for question, answers in zip(questions, evaluated.results, strict=True):
            self._dispatch(apply(question, answers))

    async def _evaluate_safely(self) -> None:
        """No mistake of ours ends a node."""
        try:
            await self.evaluate_once()
        except Exception as error:  # noqa: BLE001 - it is logged, and tried again
            self._failures.failed(error)
        else:
            self._failures.recovered()

    async def _watch_cache(self) -> None:
        board, seen = self._view.snapshot_cache, 0
        while True:
            await board.wait(seen)
            seen = board.revision
            self._wakeup.set()

    async def _sample_nodes(self) -> None:
        elapsed = self._uptime.seconds()
        if self._sampled_at is not None and elapsed - self._sampled_at < self._period:
            return
        self._sampled_at = elapsed
        if (
            not self._are_nodes_synced
            and not self._readiness.nodes()
            and elapsed < _STARTUP_TIMEOUT_SECONDS
        ):
            return
        now = self._now()
        changed, questions = self._nodes.sample(now)
        self._dispatch(changed)
        await self._evaluate(questions, self._nodes.apply)
        if not self._are_nodes_synced:
            self._are_nodes_synced = True
            self._dispatch(self._engine.all_known("node", now))

    def _now(self) -> int:
        """What time it is. By how much the clock was set ahead, nobody has waited."""
        (wall, steady), self._clock_reading = (
            self._clock_reading,
            (self._clock.now(), self._monotonic()),
        )
        now, passed = self._clock_reading[0], self._clock_reading[1] - steady
        ahead = now - wall - passed
        if ahead >= _CLOCK_STEP_NANOS:
            self._pods.step_clock(ahead)
            self._nodes.step_clock(ahead)
            self._dispatch(self._engine.step_clock(ahead))
        return now

    @property
    def _period(self) -> float:
        return SAMPLE_SECONDS if self._are_nodes_synced else _STARTUP_SAMPLE_SECONDS

    def _seconds_until_due(self) -> float:
        """Seconds until there is something to do, though nothing changes."""
        left = self._period - (self._uptime.seconds() - (self._sampled_at or 0.0))
        now = self._clock.now()
        for due in (self._engine.next_due(), self._pods.next_due()):
            if due is not None:
                left = min(left, (due - now) / _SECOND)
        return max(_MIN_WAIT_SECONDS if self._failures.error is None else _RETRY_SECONDS, left)

    def _dispatch(self, changed: Iterable[Alert]) -> None:
        for alert in changed:
            self._dispatcher.dispatch(alert, self._actions.get(alert.rule, ()))
            if alert.state == "resolved" and alert.fired:
                self._resolved[alert.id] = alert
        self._prune_resolved()

    def _prune_resolved(self) -> None:
        oldest = self._clock.now() - _RESOLVED_NANOS
        while self._resolved:
            first = next(iter(self._resolved.values()))
            if len(self._resolved) <= _MAX_RESOLVED and first.resolved >= oldest:
                return
            del self._resolved[first.id]


def _rules_of_receivers(actions: Mapping[str, Sequence[Action]]) -> dict[str, tuple[str, ...]]:
    """By the names of receivers, the rules that tell them."""
    found: dict[str, dict[str, None]] = {}
    for rule, wanted in actions.items():
        for action in wanted:
            found.setdefault(receiver_name(action), {})[rule] = None
    return {name: tuple(rules) for name, rules in found.items()}
