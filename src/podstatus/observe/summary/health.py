"""The health of a pod: a state for tables and alerts, and a sentence with the cause.

crashing   Container app exited: Error 3, 4 restarts; it will be restarted after a back-off.
crashing   Container app exited 34 s ago: Error 3, 2 restarts; it is running again.
stuck      The deletion is overdue by 95 s; container app is still running.
"""

from enum import StrEnum

import msgspec

from podstatus.kube.objects.pod import is_terminal_phase
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
"""Time beyond the grace period after which a deletion is stuck."""
STUCK_PENDING_SECONDS = 300
"""Time after which a Pending pod is stuck."""
CRASH_WINDOW_SECONDS = 600
"""Time after a crash until a container that runs again is healthy. The kubelet resets the restart
back-off of a container that has run for so long (MaxContainerBackOff twice).
"""


class HealthState(StrEnum):
    """Health states of a pod."""

    HEALTHY = "healthy"
    """It works as specified."""
    STARTING = "starting"
    ENDING = "ending"
    """It is being deleted, or its node terminates it."""
    DONE = "done"
    """It completed successfully."""
    UNREADY = "unready"
    """It runs, but a readiness probe or gate fails."""
    CRASHING = "crashing"
    """A container has crashed, and is restarted or was restarted within the last ten minutes."""
    BLOCKED = "blocked"
    """A container cannot be started."""
    STUCK = "stuck"
    """It takes much longer than it should."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Its outcome was not seen."""


class PodHealth(msgspec.Struct, frozen=True):
    """The health of a pod: a state for programs, a message of one line for people."""

    state: HealthState
    message: str


def pod_health(pod: PodSummary, now: Time) -> PodHealth:
    """Return the health of a pod at `now`: its worst problem, in one line."""
    health = _pod_health(pod, now)
    return PodHealth(health.state, " ".join(health.message.split()))


def _pod_health(pod: PodSummary, now: Time) -> PodHealth:
    if is_terminal_phase(pod.phase):
        return _terminal_health(pod)
    if pod.deleting or pod.terminating is not None:
        return _ending_health(pod, now)
    for container in pod.containers:
        if (health := _container_health(pod, container)) is not None:
            return health
    for container in pod.containers:
        if (message := _recent_crash_message(container, now)) is not None:
            return PodHealth(HealthState.CRASHING, message)
    if pod.ready:
        return PodHealth(HealthState.HEALTHY, _ready_message(pod, now))
    if pod.phase == "Pending":
        return _pending_health(pod, now)
    if (health := _completed_containers_health(pod)) is not None:
        return health
    return PodHealth(HealthState.UNREADY, _unready_message(pod))


def _terminal_health(pod: PodSummary) -> PodHealth:
    if pod.phase == "Succeeded":
        return PodHealth(HealthState.DONE, "All containers exited with code 0.")
    # A container in back-off when the pod ended is reported so, too, but its exit is known.
    unknown = [c.name for c in pod.containers if _is_unknown(c) and c.last_state is None]
    if unknown:
        return PodHealth(
            HealthState.UNKNOWN, f"The exit code of container {unknown[0]} is unknown."
        )
    if pod.reason:
        return PodHealth(
            HealthState.FAILED, f"{pod.reason}: {pod.message or 'the node terminated it'}"
        )
    failed = [c for c in pod.containers if _has_failed(c)]
    if failed:
        return PodHealth(
            HealthState.FAILED,
            f"Container {failed[0].name} exited: {_termination_detail(failed[0])}.",
        )
    return PodHealth(HealthState.FAILED, "The pod has failed.")


def _ending_health(pod: PodSummary, now: Time) -> PodHealth:
    if pod.deleting:
        return _deletion_health(pod, now)
    message = f"The pod is terminating; {_running_text(pod)}."
    return PodHealth(HealthState.ENDING, f"{message} {pod.terminating or ''}")


def _deletion_health(pod: PodSummary, now: Time) -> PodHealth:
    late = (now - pod.deleting) / _SECOND
    what = _running_text(pod)
    if late > STUCK_DELETION_SECONDS:
        return PodHealth(HealthState.STUCK, f"The deletion is overdue by {late:.0f} s; {what}.")
    return PodHealth(HealthState.ENDING, f"The pod is being deleted; {what}.")


def _running_text(pod: PodSummary) -> str:
    running = [c.name for c in pod.containers if _is_running(c)]
    return f"container {running[0]} is still running" if running else "no container is running"


def _container_health(pod: PodSummary, container: ContainerSummary) -> PodHealth | None:
    """Return the health by a container's problem; None if it has none."""
    state, name = container.state, container.name
    if state is None or state.is_starting:
        return None
    if state.is_waiting and state.reason == CRASH_LOOP_BACK_OFF:
        return PodHealth(HealthState.CRASHING, _crash_message(container))
    if state.is_waiting and state.reason:
        why = f": {state.message}" if state.message else ""
        return PodHealth(HealthState.BLOCKED, f"Container {name} is waiting: {state.reason}{why}")
    if not state.is_terminated or container.kind == "ephemeral":
        return None
    if _will_restart(pod, container):
        return PodHealth(HealthState.CRASHING, _crash_message(container))
    if _has_failed(container) and pod.phase == "Running":
        return PodHealth(
            HealthState.FAILED,
            f"Container {name} exited: {_termination_text(state)}; it will not be restarted.",
        )
    return None


def _will_restart(pod: PodSummary, container: ContainerSummary) -> bool:
    """True if a terminated container will be restarted."""
    if container.kind != "init" and (
        container.kind == "sidecar" or pod.restart_policy in ("", "Always")
    ):
        return True
    # A container that was restarted although the pod's policy is Never has its own rules.
    return _has_failed(container) and (pod.restart_policy != "Never" or container.restarts > 0)


def _completed_containers_health(pod: PodSummary) -> PodHealth | None:
    """Return the health of a pod that is not Ready only because some containers have completed."""
    regular = [c for c in pod.containers if c.kind in ("container", "sidecar")]
    completed = [c.name for c in regular if _is_terminated(c) and not _has_failed(c)]
    others = [c.name for c in regular if c.ready]
    if not completed or pod.gates or len(completed) + len(others) < len(regular):
        return None
    if not others:
        return PodHealth(HealthState.DONE, "All containers exited with code 0.")
    ended, running = _format_names("Container", completed), _format_names("container", others)
    verb = "is" if len(others) == 1 else "are"
    return PodHealth(
        HealthState.HEALTHY, f"{ended} exited with code 0; {running} {verb} still running."
    )


def _format_names(word: str, names: list[str]) -> str:
    return f"{word}{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _crash_message(container: ContainerSummary) -> str:
    ended = container.state if _is_terminated(container) else container.last_state
    how = _termination_text(ended) or "unknown"
    if not container.restarts:
        return f"Container {container.name} exited: {how}; it will be restarted."
    times = _count_restarts(container)
    return (
        f"Container {container.name} exited: {how}, {times}; it will be restarted after a back-off."
    )


def _recent_crash_message(container: ContainerSummary, now: Time) -> str | None:
    """Return the message for a running container that crashed a short time ago, None for others."""
    last = container.last_state
    if not _is_running(container) or last is None or not last.has_failed or not last.finished_at:
        return None
    elapsed = (now - last.finished_at) / _SECOND
    if elapsed >= CRASH_WINDOW_SECONDS:
        return None
    return (
        f"Container {container.name} exited {format_duration(elapsed)} ago: "
        f"{_termination_text(last)}, {_count_restarts(container)}; it is running again."
    )


def _count_restarts(container: ContainerSummary) -> str:
    return f"{container.restarts} restart{'s' if container.restarts != 1 else ''}"


def _termination_text(state: ContainerStateSummary | None) -> str:
    """`Error 3`; empty if the container has not terminated."""
    if state is None or not state.is_terminated:
        return ""
    return f"{state.reason} {state.exit_code}".strip()


def _termination_detail(container: ContainerSummary) -> str:
    """Return how a container ended, from the last state if the current one is unknown."""
    return _termination_text(
        container.last_state or container.state if _is_unknown(container) else container.state
    )


def _has_failed(container: ContainerSummary) -> bool:
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
    what = "it is waiting to be started"
    if init is not None:
        what = f"init container {init.name} is running"
    elif waiting is not None:
        what = f"container {waiting.name} has not started yet"
    if not pod.node:
        what = _unbound_message(pod)
    if waited > STUCK_PENDING_SECONDS:
        return PodHealth(HealthState.STUCK, f"Pending for {format_duration(waited)}: {what}.")
    return PodHealth(HealthState.STARTING, f"Pending for {format_duration(waited)}: {what}.")


def _unbound_message(pod: PodSummary) -> str:
    """Return why the scheduler binds the pod to no node, as far as it has said so."""
    scheduled = pod.condition("PodScheduled")
    why = "" if scheduled is None else scheduled.message.strip().removesuffix(".")
    return f"it is not bound to a node: {why}" if why else "it is not bound to a node"


def _unready_message(pod: PodSummary) -> str:
    ready = pod.condition("Ready")
    for container in pod.containers:
        if container.kind in ("container", "sidecar") and not container.ready:
            if container.started is False and _is_running(container):
                return f"Container {container.name} has not passed its startup probe."
            if _is_running(container):
                return f"Container {container.name} is not ready: its readiness probe fails."
            if not _is_terminated(container):
                state = format_container_state(container.state)
                return f"Container {container.name} is {state or 'not created yet'}."
    return ready.message if ready and ready.message else "The pod is not ready."


def format_duration(seconds: float) -> str:
    """Format a duration in its two largest units."""
    left = max(0, int(seconds))
    days, left = divmod(left, 86400)
    hours, left = divmod(left, 3600)
    minutes, left = divmod(left, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    units = [f"{count} {unit}" for count, unit in parts if count] or ["0 s"]
    return " ".join(units[:2])
