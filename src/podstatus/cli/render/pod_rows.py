"""Table rows of pods for `podstatus watch`: the columns of `kubectl get`, and the health.

The status column follows the same rules as the pod printer of `apiserver.printing`, but is computed
from a summary, which is what the query API has.
"""

from collections.abc import Iterable, Sequence

import msgspec

from podstatus.cli.render.tables import MESSAGE_HEADING, Table
from podstatus.kube.objects.pod import is_terminal_phase
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.container_state import ContainerStateSummary
from podstatus.observe.summary.pod import ContainerSummary, PodSummary
from podstatus.web.v1.wire import PodView

_NONE = "<none>"
_NARROW = ("NAME", "READY", "STATUS", "RESTARTS", "AGE", "HEALTH")
_WIDE = (*_NARROW, "IP", "NODE", MESSAGE_HEADING)


def pod_table(
    pods: Iterable[PodView],
    now: Time,
    *,
    wide: bool = False,
    namespaces: bool = False,
    nodes: bool = False,
) -> Table:
    """Return a table with a row per pod; `wide` ends with the health message.

    `nodes` adds the node column, for pods of several nodes.
    """
    headings = _WIDE if wide else (*_NARROW, *(["NODE"] if nodes else []))
    rows = []
    for pod in pods:
        row = pod_row(pod)
        cells = [
            pod.name,
            f"{row.ready}/{row.total}",
            row.status,
            str(row.restarts),
            format_age(pod.created, now),
            pod.health.state.value,
        ]
        if wide:
            address = pod.ips[0] if pod.ips else _NONE
            cells += [address, pod.node or _NONE, pod.health.message]
        elif nodes:
            cells += [pod.node or _NONE]
        rows.append((*([pod.namespace] if namespaces else []), *cells))
    return Table((*(["NAMESPACE"] if namespaces else []), *headings), tuple(rows))


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """The computed columns of `kubectl get` for a pod."""

    ready: int
    total: int
    status: str
    restarts: int


def pod_row(pod: PodSummary) -> PodRow:
    """Compute the columns of a pod."""
    regular = [c for c in pod.containers if c.kind == "container"]
    first = [c for c in pod.containers if c.kind in ("init", "sidecar")]
    sidecars = [c for c in first if c.kind == "sidecar"]
    number, current = _first_incomplete(first)
    begun = first if current is None else first[: number + 1]
    ready = sum(
        c.ready for c in begun if c.kind == "sidecar" and c is not current and not _is_completed(c)
    )
    status = f"Init:{_init_status(current, number, len(first))}" if current is not None else ""
    if status and not _is_true(pod, "Initialized"):
        restarts = sum(c.restarts for c in begun)
    else:
        restarts = sum(c.restarts for c in (*regular, *(c for c in begun if c.kind == "sidecar")))
        ready += sum(c.ready and _is_running(c) for c in regular)
        status = _status_text(pod, regular, status or _reason(pod))
    total = len(regular) + len(sidecars)
    return PodRow(
        ready=ready, total=total, status=_deletion_status(pod) or status, restarts=restarts
    )


def _first_incomplete(
    init_containers: Sequence[ContainerSummary],
) -> tuple[int, ContainerSummary | None]:
    """The index and the first init container that is not completed; None if all are."""
    for number, container in enumerate(init_containers):
        if not _is_completed(container) and not (container.kind == "sidecar" and container.started):
            return number, container
    return len(init_containers), None


def _init_status(container: ContainerSummary, number: int, total: int) -> str:
    state = container.state
    if state is not None and state.is_terminated:
        return _exit_text(state)
    reason = _waiting_reason(container)
    return reason if reason not in ("", "PodInitializing") else f"{number}/{total}"


def _status_text(pod: PodSummary, regular: Sequence[ContainerSummary], word: str) -> str:
    """The reason of the first container that waits or has terminated, else `word`."""
    error = ""
    for container in reversed(regular):
        if reason := _waiting_reason(container):
            word = reason
        elif container.state is not None and container.state.is_terminated:
            word = _exit_text(container.state)
            error = error if _is_completed(container) else word
    if word != "Completed":
        return word
    running = any(c.ready and _is_running(c) for c in regular)
    if running and _is_true(pod, "Ready"):
        return "Running"
    return error or ("NotReady" if running else word)


def _reason(pod: PodSummary) -> str:
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.reason == "SchedulingGated":
        return scheduled.reason
    return pod.reason or pod.phase


def _deletion_status(pod: PodSummary) -> str:
    if not pod.deleting:
        return ""
    if pod.reason == "NodeLost":
        return "Unknown"
    return "" if is_terminal_phase(pod.phase) else "Terminating"


def _is_running(container: ContainerSummary) -> bool:
    return container.state is not None and container.state.is_running


def _is_completed(container: ContainerSummary) -> bool:
    state = container.state
    return state is not None and state.is_terminated and not state.has_failed


def _waiting_reason(container: ContainerSummary) -> str:
    state = container.state
    return state.reason if state is not None and state.is_waiting else ""


def _exit_text(state: ContainerStateSummary) -> str:
    return state.reason or f"ExitCode:{state.exit_code}"


def _is_true(pod: PodSummary, type_: str) -> bool:
    condition = pod.condition(type_)
    return condition is not None and condition.status == "True"
