"""The details of a pod, in the format of `kubectl describe pod`.

Upstream: describePod, pkg/describe/describe.go, kubectl v0.36.4.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podstatus.apiserver.printing.printers import event_component, event_occurrences
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerState, ContainerStatus
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import nested_str
from podstatus.observe.summary.health import pod_health
from podstatus.observe.summary.pod import summarize_pod

Document = dict[str, Any]

_NONE = "<none>"
_KEYS = 18
"""Width of the column of field names."""


def describe_pod(pod: Pod, events: Sequence[Document], now: Time) -> str:
    """Return the details of a pod and its events as text."""
    lines = [*_head(pod), *_health(pod, now), *_all_containers(pod), *_conditions(pod), *_tail(pod)]
    return "".join(f"{line.rstrip()}\n" for line in (*lines, *_events(events, now)))


def _head(pod: Pod) -> Iterator[str]:
    meta, spec, status = pod.metadata, pod.spec, pod.status
    yield _field("Name", pod.name)
    yield _field("Namespace", pod.namespace)
    yield _field("Priority", str(spec.priority or 0))
    node = f"{spec.node_name}/{status.host_ip}" if status.host_ip else spec.node_name
    yield _field("Node", node or _NONE)
    if status.start_time:
        yield _field("Start Time", str(status.start_time))
    yield from _map("Labels", meta.labels)
    yield from _map("Annotations", meta.annotations)
    if meta.deletion_timestamp:
        grace = meta.deletion_grace_period_seconds or 0
        yield _field("Status", f"Terminating (since {meta.deletion_timestamp})")
        yield _field("Termination Grace Period", f"{grace}s")
    else:
        yield _field("Status", status.phase)
    if status.reason:
        yield _field("Reason", status.reason)
    if status.message:
        yield _field("Message", status.message)
    yield _field("IP", status.pod_ip)
    for owner in meta.owner_references or ():
        if owner.controller:
            yield _field("Controlled By", f"{owner.kind}/{owner.name}")


def _health(pod: Pod, now: Time) -> Iterator[str]:
    """The health summary, which kubectl does not have."""
    health = pod_health(summarize_pod(pod), now)
    yield _field("Health", f"{health.state.value}: {health.message}")


def _all_containers(pod: Pod) -> Iterator[str]:
    spec, status = pod.spec, pod.status
    yield from _containers("Init Containers", spec.init_containers, status.init_container_statuses)
    yield from _containers("Containers", spec.containers, status.container_statuses)


def _containers(
    title: str,
    containers: Sequence[Container] | None,
    statuses: Sequence[ContainerStatus] | None,
) -> Iterator[str]:
    if not containers:
        return
    by_name = {status.name: status for status in statuses or ()}
    yield f"{title}:"
    for container in containers:
        yield f"  {container.name}:"
        yield from (f"    {line}" for line in _container(container, by_name.get(container.name)))


def _container(container: Container, status: ContainerStatus | None) -> Iterator[str]:
    yield from _optional_field("Container ID", status.container_id if status else "")
    yield _field("Image", container.image)
    yield from _optional_field("Image ID", status.image_id if status else "")
    for name, words in (("Command", container.command), ("Args", container.args)):
        if words:
            yield f"{name}:"
            yield from (f"  {line}" for word in words for line in word.splitlines() or [""])
    if status is not None:
        yield from _state("State", status.state)
        if status.last_state.terminated is not None:
            yield from _state("Last State", status.last_state)
        yield _field("Ready", str(status.ready))
        yield _field("Restart Count", str(status.restart_count))
    resources = container.resources
    for name, amounts in (
        ("Limits", resources.limits if resources else None),
        ("Requests", resources.requests if resources else None),
    ):
        if amounts:
            yield f"{name}:"
            yield from (f"  {key + ':':<{_KEYS - 2}} {amounts[key]}" for key in sorted(amounts))


def _state(name: str, state: ContainerState) -> Iterator[str]:
    if state.running is not None:
        yield _field(name, "Running")
        yield from _optional_field("  Started", state.running.started_at)
    elif state.terminated is not None:
        ended = state.terminated
        yield _field(name, "Terminated")
        if ended.reason:
            yield _field("  Reason", ended.reason)
        if ended.message:
            yield _field("  Message", ended.message)
        yield _field("  Exit Code", str(ended.exit_code))
        if ended.signal:
            yield _field("  Signal", str(ended.signal))
        yield from _optional_field("  Started", ended.started_at)
        yield from _optional_field("  Finished", ended.finished_at)
    else:
        yield _field(name, "Waiting")
        if state.waiting is not None:
            yield _field("  Reason", state.waiting.reason)
            if state.waiting.message:
                yield _field("  Message", state.waiting.message)


def _conditions(pod: Pod) -> Iterator[str]:
    if not pod.status.conditions:
        return
    widest = max(len(condition.type) for condition in pod.status.conditions)
    yield "Conditions:"
    yield f"  {'Type':<{widest}}   Status   Reason"
    for condition in pod.status.conditions:
        reason = ": ".join(filter(None, (condition.reason, condition.message)))
        yield _indented(f"  {condition.type:<{widest}}   {condition.status:<6}   ", reason)


def _tail(pod: Pod) -> Iterator[str]:
    yield _field("QoS Class", pod.status.qos_class or _NONE)
    yield from _map("Node-Selectors", pod.spec.node_selector)
    tolerations = [
        f"{t.key}{'=' + t.value if t.value else ''}{':' + t.effect if t.effect else ''} "
        f"{'op=' + t.operator if t.operator else ''}".strip()
        + (f" for {t.toleration_seconds}s" if t.toleration_seconds is not None else "")
        for t in pod.spec.tolerations or ()
    ]
    yield from _list("Tolerations", tolerations)


def _events(events: Sequence[Document], now: Time) -> Iterator[str]:
    if not events:
        yield _field("Events", _NONE)
        return
    rows = [
        ("Type", "Reason", "Age", "From", "Message"),
        ("----", "------", "----", "----", "-------"),
    ]
    rows += [_event(event, now) for event in events]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    yield "Events:"
    for row in rows:
        cells = [f"{text:<{width}}" for text, width in zip(row, widths, strict=False)]
        yield _indented("  " + "".join(f"{cell}  " for cell in cells), row[4])


def _event(event: Document, now: Time) -> tuple[str, str, str, str, str]:
    first, last, count = event_occurrences(event)
    when = format_age(last, now)
    if count > 1:
        when = f"{when} (x{count} over {format_age(first, now)})"
    source, message = event_component(event), nested_str(event, "message").strip()
    return nested_str(event, "type"), nested_str(event, "reason"), when, source, message


def _map(name: str, values: Mapping[str, str] | None) -> Iterator[str]:
    yield from _list(
        name, [f"{key}={values[key]}" for key in sorted(values or {})] if values else []
    )


def _list(name: str, items: Sequence[str]) -> Iterator[str]:
    first, *rest = items or (_NONE,)
    yield _field(name, first)
    yield from (_field("", item) for item in rest)


def _optional_field(name: str, value: str | Time) -> Iterator[str]:
    """The field if it has a value: a pod built from a summary lacks ids and some times."""
    if value:
        yield _field(name, str(value))


def _field(name: str, text: str) -> str:
    label = f"{name}:" if name else ""
    return _indented(f"{label:<{_KEYS}} ", text)


def _indented(prefix: str, text: str) -> str:
    """Indent continuation lines of the text, so that foreign text cannot forge a field."""
    first, *rest = text.splitlines() or [""]
    return "\n".join([f"{prefix}{first}", *(f"{'':<{len(prefix)}}{line}" for line in rest)])
