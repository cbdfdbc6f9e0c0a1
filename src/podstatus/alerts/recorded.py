"""What a pod was like, from the moments of its history, one after the other.

A history has transitions. What never changes is not in it: labels, images, whether a container is
an init container. Times, addresses and resources are not either.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from podstatus.kube.scalars.time import Time
from podstatus.observe.history.store import Moment
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary
from podstatus.observe.transitions import status_transitions as kinds
from podstatus.observe.transitions.status_transitions import Transition

_SECOND = 1_000_000_000
_DEFAULT_GRACE = 30
"""Of a deletion whose grace is not told."""


def after(pod: PodSummary | None, moment: Moment, node: str = "") -> PodSummary | None:
    """The pod after a moment of it; None: it is gone."""
    if moment.transition.kind == kinds.FINISHED:
        return None
    at = Time.from_unix_nanos(moment.at)
    if pod is None:
        pod = PodSummary(
            uid=moment.uid, namespace=moment.namespace, name=moment.name, node=node, created=at
        )
    change = _CHANGES.get(moment.transition.kind)
    return pod if change is None else change(pod, moment.transition, at)


def _phase(pod: PodSummary, change: Transition, _: Time) -> PodSummary:
    return replace(pod, phase=change.after, reason=change.reason, message=change.message)


def _condition(pod: PodSummary, change: Transition, at: Time) -> PodSummary:
    known = pod.condition(change.subject)
    others = tuple(it for it in pod.conditions if it.type != change.subject)
    if not change.after:
        return replace(pod, conditions=others)
    # Only a change of the status makes it new, not one of the reason.
    since = known.since if known is not None and known.status == change.after else at
    new = ConditionSummary(
        type=change.subject,
        status=change.after,
        reason=change.reason,
        message=change.message,
        since=since,
    )
    return replace(pod, conditions=(*others, new))


def _container(pod: PodSummary, change: Transition, at: Time) -> PodSummary:
    known = _find(pod, change.subject)
    ended = known.state if known.state.startswith("terminated ") else known.last
    runs = change.after == "running"
    new = replace(
        known, state=change.after, message=change.message, since=at, last=ended, started=runs
    )
    return _with(pod, new)


def _restart(pod: PodSummary, change: Transition, _: Time) -> PodSummary:
    count = int(change.after) if change.after.isdecimal() else 0
    return _with(pod, replace(_find(pod, change.subject), restarts=count))


def _readiness(pod: PodSummary, change: Transition, _: Time) -> PodSummary:
    return _with(pod, replace(_find(pod, change.subject), ready=change.after == "True"))


def _deletion(pod: PodSummary, change: Transition, at: Time) -> PodSummary:
    number = change.after.removesuffix(" s")
    grace = int(number) if number.isdecimal() else _DEFAULT_GRACE
    return replace(pod, deleting=Time.from_unix_nanos(at.unix_nanos() + grace * _SECOND))


_CHANGES: Mapping[str, Callable[[PodSummary, Transition, Time], PodSummary]] = {
    kinds.PHASE: _phase,
    kinds.CONDITION: _condition,
    kinds.CONTAINER: _container,
    kinds.RESTART: _restart,
    kinds.READINESS: _readiness,
    kinds.DELETION: _deletion,
}


def _find(pod: PodSummary, name: str) -> ContainerSummary:
    found = (container for container in pod.containers if container.name == name)
    return next(found, ContainerSummary(name=name))


def _with(pod: PodSummary, new: ContainerSummary) -> PodSummary:
    if not any(it.name == new.name for it in pod.containers):
        return replace(pod, containers=(*pod.containers, new))
    containers = tuple(new if it.name == new.name else it for it in pod.containers)
    return replace(pod, containers=containers)
