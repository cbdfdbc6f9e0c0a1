"""Table rows of pods: readiness, a one-word status, restarts.

The status is the phase, unless there is something more specific: the progress of an init container,
the reason of the first waiting or terminated container, or the pod's deletion.

Upstream: printPod, pkg/printers/internalversion/printers.go v1.36.4.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from podstatus.apiserver.printing.columns import AGE, NAME, Column, Printer
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStateTerminated, ContainerStatus, PodStatus
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.time import UNSET_TIME, Time

_NONE = "<none>"
_COMPLETED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


_COLUMNS = (
    NAME,
    Column(name="Ready", description="Ready containers and all containers."),
    Column(name="Status", description="The aggregate status of the containers, in a word."),
    Column(name="Restarts", description="The number of container restarts, and the last one."),
    AGE,
    Column(name="IP", priority=1, description="The pod's first IP address."),
    Column(name="Node", priority=1, description="The node that the pod is bound to."),
    Column(name="Nominated Node", priority=1, description="The node chosen for preemption."),
    Column(name="Readiness Gates", priority=1, description="Readiness gates that are True."),
)


def pod_cells(pod: Pod, now: Time) -> list[str]:
    """Return one cell per column."""
    summary = _summary(pod)
    sidecars = filter(is_restartable_init_container, pod.spec.init_containers or ())
    total = len(pod.spec.containers or ()) + len(list(sidecars))
    return [
        pod.name,
        f"{summary.ready}/{total}",
        _deletion(pod) or summary.reason,
        _format_restarts(summary.restarts, now),
        format_age(pod.metadata.creation_timestamp, now),
        _address(pod.status) or _NONE,
        pod.spec.node_name or _NONE,
        pod.status.nominated_node_name or _NONE,
        _readiness_gates(pod),
    ]


def _cells(document: Document, now: Time) -> list[Any]:
    return pod_cells(from_document(document, Pod), now)


def _conditions(document: Document) -> list[Document]:
    phase = (document.get("status") or {}).get("phase")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


POD_PRINTER = Printer(_COLUMNS, _cells, _conditions)


class _Restarts(NamedTuple):
    times: int = 0
    last: Time = UNSET_TIME

    def add(self, status: ContainerStatus) -> "_Restarts":
        ended = status.last_state.terminated
        last = max(self.last, ended.finished_at) if ended else self.last
        return _Restarts(self.times + status.restart_count, last)


class _Summary(NamedTuple):
    reason: str
    ready: int
    restarts: _Restarts


def _summary(pod: Pod) -> _Summary:
    reason, ready, total, sidecars = _init_containers(pod)
    if reason and not _first_condition_is_true(pod.status, "Initialized"):
        return _Summary(reason, ready, total)
    return _containers(pod.status, _Summary(reason or _pod_reason(pod.status), ready, sidecars))


def _pod_reason(status: PodStatus) -> str:
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.reason == "SchedulingGated":
            return condition.reason
    return status.reason or status.phase


def _init_containers(pod: Pod) -> tuple[str, int, _Restarts, _Restarts]:
    """Summarize the init containers.

    Returns the reason of the first incomplete one (empty if all are complete), the number of ready
    sidecars before it, and the restarts up to it: of all, and of the sidecars alone.
    """
    specs = pod.spec.init_containers or ()
    is_sidecar = {spec.name: is_restartable_init_container(spec) for spec in specs}
    ready, total, sidecars = 0, _Restarts(), _Restarts()
    for index, status in enumerate(pod.status.init_container_statuses or ()):
        sidecar = is_sidecar.get(status.name, False)
        total = total.add(status)
        sidecars = sidecars.add(status) if sidecar else sidecars
        if status.state.terminated and not status.state.terminated.exit_code:
            continue
        if not (sidecar and status.started):
            return f"Init:{_init_reason(status, index, len(specs))}", ready, total, sidecars
        ready += status.ready
    return "", ready, total, sidecars


def _init_reason(status: ContainerStatus, index: int, total: int) -> str:
    if status.state.terminated:
        return _end_reason(status.state.terminated)
    waiting = status.state.waiting
    if waiting and waiting.reason not in ("", "PodInitializing"):
        return waiting.reason
    return f"{index}/{total}"


def _end_reason(ended: ContainerStateTerminated) -> str:
    if ended.reason:
        return ended.reason
    return f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exit_code}"


def _containers(pod: PodStatus, before: _Summary) -> _Summary:
    """Summarize the regular containers; the first one with a reason wins."""
    reason, ready, restarts = before
    running, error = 0, ""
    for status in reversed(pod.container_statuses or ()):
        restarts = restarts.add(status)
        state = status.state
        if state.waiting and state.waiting.reason:
            reason = state.waiting.reason
        elif state.terminated:
            reason = _end_reason(state.terminated)
            error = reason if state.terminated.exit_code else error
        elif status.ready and state.running:
            running += 1
    if reason == "Completed":
        reason = _completed_reason(pod, error, running=bool(running))
    return _Summary(reason, ready + running, restarts)


def _completed_reason(pod: PodStatus, error: str, *, running: bool) -> str:
    """One container has completed, but others may still run or have failed."""
    if running and _any_condition_is_true(pod, "Ready"):
        return "Running"
    return error or ("NotReady" if running else "Completed")


def _deletion(pod: Pod) -> str:
    if pod.metadata.deletion_timestamp is None:
        return ""
    if pod.status.reason == "NodeLost":
        return "Unknown"
    return "" if pod.status.phase in _COMPLETED else "Terminating"


def _format_restarts(restarts: _Restarts, now: Time) -> str:
    if not restarts.times or not restarts.last:
        return str(restarts.times)
    return f"{restarts.times} ({format_age(restarts.last, now)} ago)"


def _address(status: PodStatus) -> str:
    return status.pod_ip or (status.pod_ips[0].ip if status.pod_ips else "")


def _readiness_gates(pod: Pod) -> str:
    gates = pod.spec.readiness_gates or ()
    is_open = [_first_condition_is_true(pod.status, gate.condition_type) for gate in gates]
    return f"{sum(is_open)}/{len(is_open)}" if is_open else _NONE


def _first_condition_is_true(status: PodStatus, type_: str) -> bool:
    return next(_condition_values(status, type_), False)


def _any_condition_is_true(status: PodStatus, type_: str) -> bool:
    return any(_condition_values(status, type_))


def _condition_values(status: PodStatus, type_: str) -> Iterator[bool]:
    return (item.status == "True" for item in status.conditions or () if item.type == type_)
