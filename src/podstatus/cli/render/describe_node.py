"""The details of a node, in the format of `kubectl describe node`.

Upstream: describeNode, pkg/describe/describe.go, kubectl v0.36.4.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from podstatus.apiserver.printing.printers import node_roles
from podstatus.cli.render.described_fields import (
    KEY_WIDTH,
    NONE,
    Document,
    annotation_lines,
    columns,
    event_lines,
    field_line,
    join_lines,
    list_lines,
    map_lines,
    optional_field,
)
from podstatus.cli.render.node_load import load_lines
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.node import Node, NodeSystemInfo
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import pod_limits, pod_requests
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.node_load import NodeLoad

ResourceList = Mapping[str, Quantity]
_ZERO = Quantity("0")
_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_SYSTEM_INFO = {
    "Machine ID": "machine_id",
    "System UUID": "system_uuid",
    "Boot ID": "boot_id",
    "Kernel Version": "kernel_version",
    "OS Image": "os_image",
    "Operating System": "operating_system",
    "Architecture": "architecture",
    "Container Runtime Version": "container_runtime_version",
    "Kubelet Version": "kubelet_version",
}


def describe_node(
    node: Node,
    pods: Sequence[Pod],
    events: Sequence[Document],
    now: Time,
    load: NodeLoad | None = None,
) -> str:
    """Return the details of a node, its pods and its events as text; None: its load is unknown."""
    running = [pod for pod in pods if not is_terminal_phase(pod.status.phase)]
    lines = [
        *_head(node),
        *_conditions(node, now),
        *_addresses(node),
        *_amounts("Capacity", node.status.capacity),
        *_amounts("Allocatable", node.status.allocatable),
        *_system_info(node.status.node_info),
        *_pods(running, now),
        *_allocated(running, node.status.allocatable or {}),
        *(() if load is None else load_lines(load)),
    ]
    return join_lines((*lines, *event_lines(events, now)))


def _head(node: Node) -> Iterator[str]:
    meta, spec = node.metadata, node.spec
    yield field_line("Name", meta.name)
    yield field_line("Roles", ",".join(sorted(node_roles(to_document(node)))) or NONE)
    yield from map_lines("Labels", meta.labels)
    yield from annotation_lines(meta.annotations)
    yield from optional_field("CreationTimestamp", meta.creation_timestamp or "")
    taints = [
        f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
        for taint in spec.taints or ()
    ]
    yield from list_lines("Taints", taints)
    yield field_line("Unschedulable", str(spec.unschedulable).lower())


def _conditions(node: Node, now: Time) -> Iterator[str]:
    if not node.status.conditions:
        return
    yield "Conditions:"
    rows = [
        (
            condition.type,
            condition.status,
            format_age(condition.last_transition_time, now),
            ": ".join(filter(None, (condition.reason, condition.message))),
        )
        for condition in node.status.conditions
    ]
    yield from columns([("Type", "Status", "For", "Reason"), *rows])


def _addresses(node: Node) -> Iterator[str]:
    if node.status.addresses:
        yield "Addresses:"
        rows = [(f"{address.type}:", address.address) for address in node.status.addresses]
        yield from columns(rows)


def _amounts(title: str, amounts: ResourceList | None) -> Iterator[str]:
    if amounts:
        yield f"{title}:"
        yield from (f"  {name + ':':<{KEY_WIDTH}} {amounts[name]}" for name in sorted(amounts))


def _system_info(info: NodeSystemInfo) -> Iterator[str]:
    rows = [(f"{title}:", getattr(info, name)) for title, name in _SYSTEM_INFO.items()]
    yield "System Info:"
    yield from columns([row for row in rows if row[1]])


def _pods(pods: Sequence[Pod], now: Time) -> Iterator[str]:
    yield field_line("Non-terminated Pods", f"({len(pods)} in total)")
    if not pods:
        return
    rows = []
    for pod in pods:
        amounts = [
            str(total(pod.spec).get(name, _ZERO))
            for name in ("cpu", "memory")
            for total in (pod_requests, pod_limits)
        ]
        age = format_age(pod.metadata.creation_timestamp or Time(), now)
        rows.append((pod.namespace, pod.name, *amounts, age))
    titles = ("Namespace", "Name", "CPU Req.", "CPU Limit", "Mem. Req.", "Mem. Limit", "Age")
    yield from columns([titles, *rows])


def _allocated(pods: Sequence[Pod], allocatable: ResourceList) -> Iterator[str]:
    """The sums of requests and limits, with their fraction of what is allocatable."""
    requests, limits = _sum(pods, pod_requests), _sum(pods, pod_limits)
    others = sorted({*requests, *limits} - {*_RESOURCES})
    rows = [
        (
            name,
            *(
                _share(total.get(name, _ZERO), allocatable.get(name))
                for total in (requests, limits)
            ),
        )
        for name in (*_RESOURCES, *others)
    ]
    yield "Allocated resources:"
    yield "  (Total limits may be over 100 percent, i.e., overcommitted.)"
    yield from columns([("Resource", "Requests", "Limits"), *rows])


def _sum(pods: Sequence[Pod], total: Callable[[PodSpec], ResourceList]) -> dict[str, Quantity]:
    sums: dict[str, Quantity] = {}
    for pod in pods:
        for name, amount in total(pod.spec).items():
            sums[name] = sums[name].plus(amount) if name in sums else amount
    return sums


def _share(amount: Quantity, allocatable: Quantity | None) -> str:
    whole = 0 if allocatable is None else allocatable.nanos
    return f"{amount.canonical} ({amount.nanos * 100 // whole if whole else 0}%)"
