"""The details of a pod, in the format of `kubectl describe pod`.

Upstream: describePod, pkg/describe/describe.go, kubectl v0.36.4.
"""

from collections.abc import Iterator, Sequence

from podstatus.cli.render.described_fields import (
    KEY_WIDTH,
    NONE,
    Document,
    annotation_lines,
    event_lines,
    field_line,
    indented,
    join_lines,
    list_lines,
    map_lines,
    optional_field,
)
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerState, ContainerStatus
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.health import PodHealth, pod_health
from podstatus.observe.summary.pod import summarize_pod


def describe_pod(
    pod: Pod,
    events: Sequence[Document],
    now: Time,
    remedy: str = "",
    health: PodHealth | None = None,
) -> str:
    """Return the details of a pod and its events as text.

    `remedy`: lines below its health; `health`: that of the agent, if it knows more.
    """
    lines = [
        *_head(pod),
        *_health(health or pod_health(summarize_pod(pod), now), remedy),
        *_all_containers(pod),
        *_conditions(pod),
        *_tail(pod),
    ]
    return join_lines((*lines, *event_lines(events, now)))


def _head(pod: Pod) -> Iterator[str]:
    meta, spec, status = pod.metadata, pod.spec, pod.status
    yield field_line("Name", pod.name)
    yield field_line("Namespace", pod.namespace)
    yield field_line("Priority", str(spec.priority or 0))
    node = f"{spec.node_name}/{status.host_ip}" if status.host_ip else spec.node_name
    yield field_line("Node", node or NONE)
    if status.start_time:
        yield field_line("Start Time", str(status.start_time))
    yield from map_lines("Labels", meta.labels)
    yield from annotation_lines(meta.annotations)
    if meta.deletion_timestamp:
        grace = meta.deletion_grace_period_seconds or 0
        yield field_line("Status", f"Terminating (since {meta.deletion_timestamp})")
        yield field_line("Termination Grace Period", f"{grace}s")
    else:
        yield field_line("Status", status.phase)
    if status.reason:
        yield field_line("Reason", status.reason)
    if status.message:
        yield field_line("Message", status.message)
    yield field_line("IP", status.pod_ip)
    for owner in meta.owner_references or ():
        if owner.controller:
            yield field_line("Controlled By", f"{owner.kind}/{owner.name}")


def _health(health: PodHealth, remedy: str) -> Iterator[str]:
    """The health summary, which kubectl does not have."""
    text = f"{health.state.value}: {health.message}"
    yield field_line("Health", f"{text}\n{remedy}" if remedy else text)


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
    yield from optional_field("Container ID", status.container_id if status else "")
    yield field_line("Image", container.image)
    yield from optional_field("Image ID", status.image_id if status else "")
    for name, words in (("Command", container.command), ("Args", container.args)):
        if words:
            yield f"{name}:"
            yield from (f"  {line}" for word in words for line in word.splitlines() or [""])
    if status is not None:
        yield from _state("State", status.state)
        if status.last_state.terminated is not None:
            yield from _state("Last State", status.last_state)
        yield field_line("Ready", str(status.ready))
        yield field_line("Restart Count", str(status.restart_count))
    resources = container.resources
    for name, amounts in (
        ("Limits", resources.limits if resources else None),
        ("Requests", resources.requests if resources else None),
    ):
        if amounts:
            yield f"{name}:"
            yield from (f"  {key + ':':<{KEY_WIDTH - 2}} {amounts[key]}" for key in sorted(amounts))


def _state(name: str, state: ContainerState) -> Iterator[str]:
    if state.running is not None:
        yield field_line(name, "Running")
        yield from optional_field("  Started", state.running.started_at)
    elif state.terminated is not None:
        ended = state.terminated
        yield field_line(name, "Terminated")
        if ended.reason:
            yield field_line("  Reason", ended.reason)
        if ended.message:
            yield field_line("  Message", ended.message)
        yield field_line("  Exit Code", str(ended.exit_code))
        if ended.signal:
            yield field_line("  Signal", str(ended.signal))
        yield from optional_field("  Started", ended.started_at)
        yield from optional_field("  Finished", ended.finished_at)
    else:
        yield field_line(name, "Waiting")
        if state.waiting is not None:
            yield field_line("  Reason", state.waiting.reason)
            if state.waiting.message:
                yield field_line("  Message", state.waiting.message)


def _conditions(pod: Pod) -> Iterator[str]:
    if not pod.status.conditions:
        return
    widest = max(len(condition.type) for condition in pod.status.conditions)
    yield "Conditions:"
    yield f"  {'Type':<{widest}}   Status   Reason"
    for condition in pod.status.conditions:
        reason = ": ".join(filter(None, (condition.reason, condition.message)))
        yield indented(f"  {condition.type:<{widest}}   {condition.status:<6}   ", reason)


def _tail(pod: Pod) -> Iterator[str]:
    yield field_line("QoS Class", pod.status.qos_class or NONE)
    yield from map_lines("Node-Selectors", pod.spec.node_selector)
    tolerations = [
        f"{t.key}{'=' + t.value if t.value else ''}{':' + t.effect if t.effect else ''} "
        f"{'op=' + t.operator if t.operator else ''}".strip()
        + (f" for {t.toleration_seconds}s" if t.toleration_seconds is not None else "")
        for t in pod.spec.tolerations or ()
    ]
    yield from list_lines("Tolerations", tolerations)
