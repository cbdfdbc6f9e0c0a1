"""How a pod is, in one word and one sentence, with its cause.

    crashing   Container app ended with Error 3, 4 restarts; it is started again after a back-off.
    stuck      It should have been gone 95 s ago; container app still runs.

The word is for tables and alerts, the sentence for people.
"""

from enum import StrEnum

import msgspec

from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.container_state import (
    CRASH_LOOP_BACK_OFF,
    STATUS_UNKNOWN,
    ContainerStateSummary,
    format_container_state,
)
from podstatus.observe.summary.pod import ContainerSummary, PodSummary

_SECOND = 1_000_000_000
STUCK_DELETION_SECONDS = 60
"""Beyond the time that a deletion may take."""
STUCK_PENDING_SECONDS = 300
"""A pod that has not started by then does not merely take its time."""


class HealthState(StrEnum):
    """How a pod is."""

    HEALTHY = "healthy"
    """It does what it should."""
    STARTING = "starting"
    ENDING = "ending"
    DONE = "done"
    """It ended as it should."""
    UNREADY = "unready"
    """It runs, and says itself, or by a gate, that it cannot serve."""
    CRASHING = "crashing"
    """A container ends again and again."""
    BLOCKED = "blocked"
    """A container cannot be started."""
    STUCK = "stuck"
    """It takes far longer than it may."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """What became of it was not seen."""


class PodHealth(msgspec.Struct, frozen=True):
    """The health of a pod: a state for programs, a message of one line for people."""

    state: HealthState
    message: str


def pod_health(pod: PodSummary, now: Time) -> PodHealth:
    """How the pod is at this moment. What is worst is told, in one line."""
    found = _pod_health(pod, now)
    return PodHealth(found.state, " ".join(found.message.split()))


def _pod_health(pod: PodSummary, now: Time) -> PodHealth:
    if pod.phase in ("Succeeded", "Failed"):
        return _terminal_health(pod)
    if pod.deleting:
        return _deletion_health(pod, now)
    for container in pod.containers:
        if (found := _container_health(pod, container)) is not None:
            return found
    if pod.ready:
        return PodHealth(HealthState.HEALTHY, _ready_message(pod, now))
    if pod.phase == "Pending":
        return _pending_health(pod, now)
    if (some := _completed_containers_health(pod)) is not None:
        return some
    return PodHealth(HealthState.UNREADY, _unready_message(pod))


def _terminal_health(pod: PodSummary) -> PodHealth:
    if pod.phase == "Succeeded":
        return PodHealth(HealthState.DONE, "All containers ended with 0.")
    # One that waited to be started again when the pod ended is shown so, too: its end is known.
    unknown = [c.name for c in pod.containers if _is_unknown(c) and c.last_state is None]
    if unknown:
        return PodHealth(HealthState.UNKNOWN, f"Nobody saw the end of container {unknown[0]}.")
    if pod.reason:
        return PodHealth(HealthState.FAILED, f"{pod.reason}: {pod.message or 'the node ended it'}")
    failed = [c for c in pod.containers if _has_failed(c)]
    if failed:
        return PodHealth(
            HealthState.FAILED,
            f"Container {failed[0].name} ended: {_termination_detail(failed[0])}.",
        )
    return PodHealth(HealthState.FAILED, "It has failed.")


def _deletion_health(pod: PodSummary, now: Time) -> PodHealth:
    late = (now - pod.deleting) / _SECOND
    running = [c.name for c in pod.containers if _is_running(c)]
    what = f"container {running[0]} still runs" if running else "nothing of it runs any more"
    if late > STUCK_DELETION_SECONDS:
        return PodHealth(HealthState.STUCK, f"It should have been gone {late:.0f} s ago; {what}.")
    return PodHealth(HealthState.ENDING, f"It is being deleted; {what}.")


def _container_health(pod: PodSummary, container: ContainerSummary) -> PodHealth | None:
    """What is wrong with a container, if something is."""
    state, name = container.state, container.name
    if state is None or state.is_starting:
        return None
    if state.is_waiting and state.reason == CRASH_LOOP_BACK_OFF:
        return PodHealth(HealthState.CRASHING, _crash_message(container))
    if state.is_waiting and state.reason:
        why = f": {state.message}" if state.message else ""
        return PodHealth(HealthState.BLOCKED, f"Container {name} waits, {state.reason}{why}")
    if not state.is_terminated or container.kind == "ephemeral":
        return None
    if _will_restart(pod, container):
        return PodHealth(HealthState.CRASHING, _crash_message(container))
    if _has_failed(container) and pod.phase == "Running":
        return PodHealth(
            HealthState.FAILED, f"Container {name} ended: {_termination_text(state)}; it stays so."
        )
    return None


def _will_restart(pod: PodSummary, container: ContainerSummary) -> bool:
    """Whether a container that has ended is to run again."""
    if container.kind != "init" and (
        container.kind == "sidecar" or pod.restart_policy in ("", "Always")
    ):
        return True
    # One that was restarted though its pod's are not has rules of its own.
    return _has_failed(container) and (pod.restart_policy != "Never" or container.restarts > 0)


def _completed_containers_health(pod: PodSummary) -> PodHealth | None:
    """A pod that is not Ready because some containers have done their work, and not otherwise."""
    regular = [c for c in pod.containers if c.kind in ("container", "sidecar")]
    over = [c.name for c in regular if _is_terminated(c) and not _has_failed(c)]
    others = [c.name for c in regular if c.ready]
    if not over or pod.gates or len(over) + len(others) < len(regular):
        return None
    if not others:
        return PodHealth(HealthState.DONE, "All containers ended with 0.")
    ended, runs = _format_names("Container", over), _format_names("container", others)
    return PodHealth(
        HealthState.HEALTHY,
        f"{ended} ended with 0; {runs} run{'s' if len(others) == 1 else ''} on.",
    )


def _format_names(word: str, names: list[str]) -> str:
    return f"{word}{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _crash_message(container: ContainerSummary) -> str:
    ended = container.state if _is_terminated(container) else container.last_state
    how = _termination_text(ended) or "somehow"
    if not container.restarts:
        return f"Container {container.name} ended: {how}; it is started again."
    times = f"{container.restarts} restart{'s' if container.restarts != 1 else ''}"
    return (
        f"Container {container.name} ended: {how}, {times}; it is started again after a back-off."
    )


def _termination_text(state: ContainerStateSummary | None) -> str:
    """`Error 3`; empty if the container has not terminated."""
    if state is None or not state.is_terminated:
        return ""
    return f"{state.reason} {state.exit_code}".strip()


def _termination_detail(container: ContainerSummary) -> str:
    """How it ended; also one of which the status says only that it was to be started again."""
    return _termination_text(
        container.last_state or container.state if _is_unknown(container) else container.state
    )


def _has_failed(container: ContainerSummary) -> bool:
    """Whether it ended without success."""
    return container.state is not None and container.state.has_failed


def _is_running(container: ContainerSummary) -> bool:
    return container.state is not None and container.state.is_running


def _is_terminated(container: ContainerSummary) -> bool:
    return container.state is not None and container.state.is_terminated


def _is_unknown(container: ContainerSummary) -> bool:
    return container.state is not None and container.state.reason == STATUS_UNKNOWN


def _ready_message(pod: PodSummary, now: Time) -> str:
    ready = pod.condition("Ready")
    since = (
        f" for {format_duration((now - ready.since) / _SECOND)}" if ready and ready.since else ""
    )
    again = (
        f", after {pod.restarts} restart{'s' if pod.restarts > 1 else ''}" if pod.restarts else ""
    )
    return f"Ready{since}{again}."


def _pending_health(pod: PodSummary, now: Time) -> PodHealth:
    began = pod.started or pod.created
    waited = (now - began) / _SECOND if began else 0.0
    waiting = next((c for c in pod.containers if c.state is None or c.state.is_starting), None)
    init = next((c for c in pod.containers if c.kind == "init" and _is_running(c)), None)
    what = "it waits to be started"
    if init is not None:
        what = f"init container {init.name} runs"
    elif waiting is not None:
        what = f"container {waiting.name} is not started yet"
    if not pod.node:
        what = "no node has taken it"
    if waited > STUCK_PENDING_SECONDS:
        return PodHealth(HealthState.STUCK, f"Pending for {format_duration(waited)}: {what}.")
    return PodHealth(HealthState.STARTING, f"Pending for {format_duration(waited)}: {what}.")


def _unready_message(pod: PodSummary) -> str:
    ready = pod.condition("Ready")
    for container in pod.containers:
        if container.kind in ("container", "sidecar") and not container.ready:
            if container.started is False and _is_running(container):
                return f"Container {container.name} has not started, says its startup probe."
            if _is_running(container):
                return f"Container {container.name} is not ready, says its readiness probe."
            if not _is_terminated(container):
                state = format_container_state(container.state)
                return f"Container {container.name} is {state or 'not there yet'}."
    return ready.message if ready and ready.message else "It is not ready."


def format_duration(seconds: float) -> str:
    """A length of time, in its two largest units."""
    left = max(0, int(seconds))
    days, left = divmod(left, 86400)
    hours, left = divmod(left, 3600)
    minutes, left = divmod(left, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    told = [f"{count} {unit}" for count, unit in parts if count] or ["0 s"]
    return " ".join(told[:2])
