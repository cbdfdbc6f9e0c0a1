"""Pods as rows for those who watch: as `kubectl get` has them, and how each of them is.

What the word is made of is told by apiserver.pod_printer; here it is made of a summary, which is
what the agent's own API has.
"""

from collections.abc import Iterable, Sequence

import msgspec

from podstatus.cli.client.query_client import PodItem
from podstatus.cli.render.tables import MESSAGE_HEADING, Table
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.pod import ContainerSummary, PodSummary

_NONE = "<none>"
_NARROW = ("NAME", "READY", "STATUS", "RESTARTS", "AGE", "HEALTH")
_WIDE = (*_NARROW, "IP", "NODE", MESSAGE_HEADING)


def pod_table(
    pods: Iterable[PodItem],
    now: Time,
    *,
    wide: bool = False,
    namespaces: bool = False,
    nodes: bool = False,
) -> Table:
    """A row for each; what is said of its health comes last, since it may be long.

    `nodes`: there may be several, and each row says which.
    """
    headings = _WIDE if wide else (*_NARROW, *(["NODE"] if nodes else []))
    rows = []
    for pod in pods:
        told = pod_row(pod)
        cells = [
            pod.name,
            f"{told.ready}/{told.total}",
            told.status,
            str(told.restarts),
            format_age(pod.created, now),
            pod.health.word.value,
        ]
        if wide:
            address = pod.ips[0] if pod.ips else _NONE
            cells += [address, pod.node or _NONE, pod.health.sentence]
        elif nodes:
            cells += [pod.node or _NONE]
        rows.append((*([pod.namespace] if namespaces else []), *cells))
    return Table((*(["NAMESPACE"] if namespaces else []), *headings), tuple(rows))


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """What `kubectl get` shows of a pod."""

    ready: int
    total: int
    status: str
    restarts: int


def pod_row(pod: PodSummary) -> PodRow:
    """The row of a pod."""
    regular = [c for c in pod.containers if c.kind == "container"]
    first = [c for c in pod.containers if c.kind in ("init", "sidecar")]
    sidecars = [c for c in first if c.kind == "sidecar"]
    number, waits = _first_incomplete(first)
    told = first if waits is None else first[: number + 1]
    ready = sum(
        c.ready for c in told if c.kind == "sidecar" and c is not waits and not _is_completed(c)
    )
    status = f"Init:{_init_status(waits, number, len(first))}" if waits is not None else ""
    if status and not _is_true(pod, "Initialized"):
        restarts = sum(c.restarts for c in told)
    else:
        restarts = sum(c.restarts for c in (*regular, *(c for c in told if c.kind == "sidecar")))
        ready += sum(c.ready and c.state == "running" for c in regular)
        status = _status_text(pod, regular, status or _reason(pod))
    total = len(regular) + len(sidecars)
    return PodRow(
        ready=ready, total=total, status=_deletion_status(pod) or status, restarts=restarts
    )


def _first_incomplete(
    init_containers: Sequence[ContainerSummary],
) -> tuple[int, ContainerSummary | None]:
    """The first init container that is not done, and its place."""
    for number, container in enumerate(init_containers):
        if not _is_completed(container) and not (container.kind == "sidecar" and container.started):
            return number, container
    return len(init_containers), None


def _init_status(container: ContainerSummary, number: int, total: int) -> str:
    if _is_terminated(container):
        return _exit_text(container)
    waits_for = _waiting_reason(container)
    return waits_for if waits_for not in ("", "PodInitializing") else f"{number}/{total}"


def _status_text(pod: PodSummary, regular: Sequence[ContainerSummary], word: str) -> str:
    """The first container that has something to say says it."""
    error = ""
    for container in reversed(regular):
        if waits_for := _waiting_reason(container):
            word = waits_for
        elif _is_terminated(container):
            word = _exit_text(container)
            error = word if _exit_code(container) != "0" else error
    if word != "Completed":
        return word
    running = any(c.ready and c.state == "running" for c in regular)
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
    return "" if pod.phase in ("Succeeded", "Failed") else "Terminating"


def _is_terminated(container: ContainerSummary) -> bool:
    return container.state.startswith("terminated")


def _is_completed(container: ContainerSummary) -> bool:
    return _is_terminated(container) and _exit_code(container) == "0"


def _waiting_reason(container: ContainerSummary) -> str:
    word, _, reason = container.state.partition(" ")
    return reason if word == "waiting" else ""


def _exit_code(container: ContainerSummary) -> str:
    return container.state.rpartition(" ")[2]


def _exit_text(container: ContainerSummary) -> str:
    reason = container.state.removeprefix("terminated ").rpartition(" ")[0]
    return reason or f"ExitCode:{_exit_code(container)}"


def _is_true(pod: PodSummary, type_: str) -> bool:
    condition = pod.condition(type_)
    return condition is not None and condition.status == "True"
