"""Replay a history: apply its transitions to pods at the recorded times.

A history has transitions only. It lacks what never changes: labels, images, whether a container is
an init container; and times, addresses and resources.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from podstatus.alerts.model import Alert
from podstatus.alerts.rule_tests.cases import RuleTestStep
from podstatus.alerts.rule_tests.run import EngineEvaluation
from podstatus.alerts.service.subjects import PodSubjects
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.container_state import (
    RUNNING,
    STATUS_UNKNOWN,
    TERMINATED,
    ContainerStateSummary,
)
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary
from podstatus.observe.transitions import compare_statuses as kinds
from podstatus.observe.transitions.compare_statuses import FOREIGN_WRITE, Transition

_SECOND = 1_000_000_000
_STATE_TIMES = {RUNNING: ("started_at",), TERMINATED: ("finished_at",)}
_DEFAULT_GRACE = 30
"""Grace period of a deletion that does not record it, in seconds."""


def apply_transition(pod: PodSummary | None, entry: HistoryEntry) -> PodSummary | None:
    """Return the pod after a transition; None: it is gone."""
    if entry.transition.kind == kinds.FINISHED:
        return None
    at = Time.from_unix_nanos(entry.at)
    if pod is None:
        pod = PodSummary(uid=entry.uid, namespace=entry.namespace, name=entry.name, created=at)
    change = _APPLIERS.get(entry.transition.kind)
    return pod if change is None else change(pod, entry.transition, at)


def _phase(pod: PodSummary, change: Transition, _: Time) -> PodSummary:
    return replace(pod, phase=change.after, reason=change.reason, message=change.message)


def _condition(pod: PodSummary, change: Transition, at: Time) -> PodSummary:
    previous = pod.condition(change.subject)
    others = tuple(it for it in pod.conditions if it.type != change.subject)
    if not change.after:
        return replace(pod, conditions=others)
    # Only a change of the status updates lastTransitionTime, not one of the reason.
    since = previous.since if previous is not None and previous.status == change.after else at
    new = ConditionSummary(
        type=change.subject,
        status=change.after,
        reason=change.reason,
        message=change.message,
        since=since,
    )
    return replace(pod, conditions=(*others, new))


def _container(pod: PodSummary, change: Transition, at: Time) -> PodSummary:
    previous = _find(pod, change.subject)
    has_ended = previous.state is not None and previous.state.is_terminated
    state = change.state_after
    if state is not None:
        times = _STATE_TIMES.get(state.state, ())
        state = replace(state, message=change.message, **dict.fromkeys(times, at))
    new = replace(
        previous,
        state=state,
        last_state=previous.state if has_ended else previous.last_state,
        started=state is not None and state.is_running,
        created=previous.created or _has_run(change.state_before) or _has_run(change.state_after),
    )
    return _with_container(pod, new)


def _has_run(state: ContainerStateSummary | None) -> bool:
    """Whether the state proves that the container was created; an unknown exit does not."""
    if state is None:
        return False
    return state.is_running or (state.is_terminated and state.reason != STATUS_UNKNOWN)


def _restart(pod: PodSummary, change: Transition, _: Time) -> PodSummary:
    count = int(change.after) if change.after.isdecimal() else 0
    return _with_container(pod, replace(_find(pod, change.subject), restarts=count))


def _readiness(pod: PodSummary, change: Transition, _: Time) -> PodSummary:
    return _with_container(pod, replace(_find(pod, change.subject), ready=change.after == "True"))


def _deletion(pod: PodSummary, change: Transition, at: Time) -> PodSummary:
    grace = _DEFAULT_GRACE if change.duration_seconds is None else round(change.duration_seconds)
    return replace(pod, deleting=Time.from_unix_nanos(at.unix_nanos() + grace * _SECOND))


_APPLIERS: Mapping[str, Callable[[PodSummary, Transition, Time], PodSummary]] = {
    kinds.PHASE: _phase,
    kinds.CONDITION: _condition,
    kinds.CONTAINER: _container,
    kinds.RESTART: _restart,
    kinds.READINESS: _readiness,
    kinds.DELETION: _deletion,
}


def _find(pod: PodSummary, name: str) -> ContainerSummary:
    matching = (container for container in pod.containers if container.name == name)
    return next(matching, ContainerSummary(name=name))


def _with_container(pod: PodSummary, new: ContainerSummary) -> PodSummary:
    if not any(it.name == new.name for it in pod.containers):
        return replace(pod, containers=(*pod.containers, new))
    containers = tuple(new if it.name == new.name else it for it in pod.containers)
    return replace(pod, containers=containers)


class HistoryDriver:
    """A `RuleTestDriver` that replays a history in order."""

    def __init__(self, evaluation: EngineEvaluation, entries: Sequence[HistoryEntry]) -> None:
        self._evaluation = evaluation
        self._engine = evaluation.engine
        self._cache = SnapshotCache()
        self._pods = PodSubjects(self._cache, evaluation.engine)
        self._entries = entries
        self._next = 0
        self.start_time = entries[0].at if entries else 0
        self._end = max((entry.at for entry in entries), default=0)
        self._now = self.start_time

    def advance(self, to: int) -> Iterable[tuple[int, list[Alert]]]:
        """Yield the alerts that change until `to`; nothing after the last entry of the history.

        The history was not recorded beyond it, so conditions would seem to last forever.
        """
        while (at := self._next_time()) is not None and at <= min(to, self._end):
            self._now = at = max(at, self._now)
            changed = [*self._engine.advance(at), *self._evaluate_pods(self._pods.pop_due(at), at)]
            yield at, [*changed, *self._apply_due(at)]

    def step(self, step: RuleTestStep, now: int) -> list[Alert]:  # noqa: ARG002 - all is in the history
        """Return nothing: steps of a replay only have expectations."""
        return []

    def _next_time(self) -> int | None:
        recorded = self._entries[self._next].at if self._next < len(self._entries) else None
        times = (recorded, self._engine.next_due(), self._pods.next_due())
        return min((at for at in times if at is not None), default=None)

    def _apply_due(self, now: int) -> list[Alert]:
        """Apply all entries until now together: transitions of one status have the same time."""
        before = self._next
        while self._next < len(self._entries) and self._entries[self._next].at <= now:
            self._apply(self._entries[self._next], now)
            self._next += 1
        if self._next == before:
            return []
        return self._evaluate_pods(self._pods.pop_changed(), now)

    def _evaluate_pods(self, uids: Sequence[PodUID], now: int) -> list[Alert]:
        gone, requests = self._pods.collect(uids, now, wall=now)
        return [*gone, *self._evaluation.evaluate(requests, self._pods.apply)]

    def _apply(self, entry: HistoryEntry, now: int) -> None:
        if entry.transition.kind == FOREIGN_WRITE:
            self._pods.foreign_write(entry.uid, now)
        current = self._cache.find(entry.uid)
        pod = apply_transition(None if current is None else current[1], entry)
        if pod is None:
            self._cache.remove(entry.uid)
        else:
            self._cache.put(pod)
