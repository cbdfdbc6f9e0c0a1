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

from podstatus.alerts.delivery.dispatcher import Dispatcher
from podstatus.alerts.delivery.queue import receiver_name
from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.ports import Answers, EvaluatorError, Question, RuleEvaluator
from podstatus.alerts.model import Action, Alert, AlertId, RuleState
from podstatus.alerts.ports import DeliveryState
from podstatus.alerts.service.nodes import NodeWatch
from podstatus.alerts.service.pods import PodWatch
from podstatus.base.aio import wait_event_or_timeout
from podstatus.base.clock import Clock, Elapsed
from podstatus.base.failure_log import FailureLog
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.status_view import Observatory

logger = logging.getLogger(__name__)

SAMPLE_SECONDS = 5.0
"""Between two looks at nodes and at how far the API server has everything."""
_SECOND = 1_000_000_000
_AT_ONCE = 50
"""Pods that are looked at before others have their turn: some 5 ms."""
_LEAST_SECONDS, _AGAIN_SECONDS = 0.01, 1.0
"""Between two looks; after one that failed: whatever is due then is due until it succeeds."""
_FIRST_SECONDS = 0.5
"""Between two looks whether nodes are known, after a start."""
_PATIENCE_SECONDS = 30.0
"""After a start: then a node is asked about as far as it is known, say without an API server."""
_STEP_NANOS = _SECOND
"""A clock that gets ahead by more between two looks was set; NTP moves it by less."""
_MOST_RESOLVED = 1_000
_RESOLVED_NANOS = 3600 * _SECOND
"""How many alerts that are over are shown, and for how long."""
_STORE = "alerts.db"


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """Whether all is known after a start; each of these stays true."""

    pods: Callable[[], bool]
    """All pods that there are have been on the board."""
    nodes: Callable[[], bool]
    """What is known of nodes is from this life, and whole."""


class Watchman:
    """The service. It is an `Alerts`, for those who ask. For one event loop."""

    def __init__(
        self,
        known: Observatory,
        engine: Engine,
        evaluator: RuleEvaluator,
        dispatcher: Dispatcher,
        *,
        actions: Mapping[str, Sequence[Action]],
        synced: Synced,
        clock: Clock,
        monotonic: Callable[[], int] = time.monotonic_ns,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """`actions` by the names of rules. What lived when another process stopped goes on.

        `monotonic`: nanoseconds of a clock that nobody sets. `beat`: it is called before each look,
        once in `SAMPLE_SECONDS` at least.
        """
        self._known = known
        self._engine = engine
        self._evaluator = evaluator
        self._dispatcher = dispatcher
        self._actions = actions
        self._rules_of = _rules_of_receivers(actions)
        self._synced = synced
        self._clock = clock
        self._monotonic = monotonic
        self._beat = beat
        self._seen = clock.now(), monotonic()
        """Both clocks, when they were last looked at."""
        self._pods = PodWatch(known.board, engine)
        self._nodes = NodeWatch(known, engine)
        self._running = Elapsed(clock)
        self._news = asyncio.Event()
        self._sampled: float | None = None
        self._has_pods = self._has_nodes = False
        self._resolved: OrderedDict[AlertId, Alert] = OrderedDict()
        self._trouble = FailureLog(logger, "asking alert rules", expected=EvaluatorError)
        engine.restore(dispatcher.restored.values())

    # What others ask

    def alerts(self) -> Mapping[AlertId, Alert]:
        """Those that are pending or firing, and those that resolved within an hour."""
        self._forget_resolved()
        return {**self._resolved, **self._engine.alerts()}

    def rules(self) -> Sequence[RuleState]:
        """All rules, in the order of their files."""
        return self._engine.rules()

    def deliveries(self) -> Sequence[DeliveryState]:
        """All receivers; and the disk, if it is in trouble."""
        told = [
            structs.replace(state, rules=self._rules_of.get(state.name, ()))
            for state in self._dispatcher.deliveries()
        ]
        problem = self._dispatcher.problem
        return [*told, DeliveryState(name=_STORE, problem=problem)] if problem else told

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
        self._news.set()

    # What it does

    async def run(self) -> None:
        """Look at what changes until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._dispatcher.run(), name="alert receivers")
            tasks.create_task(self._listen(), name="alert news")
            while True:
                self._beat()
                self._news.clear()
                await self._look()
                await wait_event_or_timeout(self._news, self._clock, self._rest())

    async def look_once(self) -> None:
        """Look at all that has changed, and at what time has changed.

        Raises EvaluatorError: what could not be asked about is looked at the next time.
        """
        try:
            await self._look_at(self._pods.changed())
            await self._look_at(self._pods.run_out(self._now()))
        finally:
            self._tell(self._engine.run_out(self._now()))
        if not self._has_pods and self._synced.pods() and not self._pods.has_changed:
            self._has_pods = True
            self._tell(self._engine.synced("pod", self._now()))
        await self._sample()
        # Their rules may have got other actions.
        self._tell(self._engine.met())

    async def _look_at(self, uids: Sequence[PodUID]) -> None:
        for first in range(0, len(uids), _AT_ONCE):
            self._beat()
            changed, questions = self._pods.look_at(uids[first : first + _AT_ONCE], self._now())
            self._tell(changed)
            try:
                await self._ask(questions, self._pods.apply)
            except BaseException:
                self._pods.again(uids[first:])
                raise
            # Others have their turn: of many pods this takes long.
            await asyncio.sleep(0)

    async def _ask(
        self, questions: Sequence[Question], apply: Callable[[Question, Answers], list[Alert]]
    ) -> None:
        """Have the rules evaluated. What changes meanwhile is asked about the next time."""
        if not questions:
            return
        evaluated = await self._evaluator.evaluate(questions)
        for rule, problem in evaluated.switched_off.items():
            self._engine.switch_off(rule, problem)
        for question, answers in zip(questions, evaluated.answers, strict=True):
            self._tell(apply(question, answers))

    async def _look(self) -> None:
        """No mistake of ours ends a node."""
        try:
            await self.look_once()
        except Exception as error:  # noqa: BLE001 - it is logged, and tried again
            self._trouble.failed(error)
        else:
            self._trouble.recovered()

    async def _listen(self) -> None:
        board, seen = self._known.board, 0
        while True:
            await board.wait(seen)
            seen = board.number
            self._news.set()

    async def _sample(self) -> None:
        elapsed = self._running.seconds()
        if self._sampled is not None and elapsed - self._sampled < self._period:
            return
        self._sampled = elapsed
        if not self._has_nodes and not self._synced.nodes() and elapsed < _PATIENCE_SECONDS:
            return
        now = self._now()
        changed, questions = self._nodes.sample(now)
        self._tell(changed)
        await self._ask(questions, self._nodes.apply)
        if not self._has_nodes:
            self._has_nodes = True
            self._tell(self._engine.synced("node", now))

    def _now(self) -> int:
        """What time it is. By how much the clock was set ahead, nobody has waited."""
        (wall, steady), self._seen = self._seen, (self._clock.now(), self._monotonic())
        now, passed = self._seen[0], self._seen[1] - steady
        ahead = now - wall - passed
        if ahead >= _STEP_NANOS:
            self._pods.set_ahead(ahead)
            self._nodes.set_ahead(ahead)
            self._tell(self._engine.set_ahead(ahead))
        return now

    @property
    def _period(self) -> float:
        return SAMPLE_SECONDS if self._has_nodes else _FIRST_SECONDS

    def _rest(self) -> float:
        """Seconds until there is something to do, though nothing changes."""
        left = self._period - (self._running.seconds() - (self._sampled or 0.0))
        now = self._clock.now()
        for due in (self._engine.due(), self._pods.due()):
            if due is not None:
                left = min(left, (due - now) / _SECOND)
        return max(_LEAST_SECONDS if self._trouble.error is None else _AGAIN_SECONDS, left)

    def _tell(self, changed: Iterable[Alert]) -> None:
        for alert in changed:
            self._dispatcher.tell(alert, self._actions.get(alert.rule, ()))
            if alert.state == "resolved" and alert.fired:
                self._resolved[alert.id] = alert
        self._forget_resolved()

    def _forget_resolved(self) -> None:
        oldest = self._clock.now() - _RESOLVED_NANOS
        while self._resolved:
            first = next(iter(self._resolved.values()))
            if len(self._resolved) <= _MOST_RESOLVED and first.resolved >= oldest:
                return
            del self._resolved[first.id]


def _rules_of_receivers(actions: Mapping[str, Sequence[Action]]) -> dict[str, tuple[str, ...]]:
    """By the names of receivers, the rules that tell them."""
    found: dict[str, dict[str, None]] = {}
    for rule, wanted in actions.items():
        for action in wanted:
            found.setdefault(receiver_name(action), {})[rule] = None
    return {name: tuple(rules) for name, rules in found.items()}
