"""Table rows of nodes, events and other resources.

Upstream: printNode, printEvent, … in pkg/printers/internalversion/printers.go v1.36.4; the default
columns in pkg/registry/rest/table.go of apiserver v0.36.4.
"""

from typing import Any

from podstatus.apiserver.printing.columns import AGE, NAME, Column, Printer
from podstatus.apiserver.printing.metrics import NODE_METRICS_PRINTER, POD_METRICS_PRINTER
from podstatus.apiserver.printing.pods import POD_PRINTER
from podstatus.apiserver.printing.services import SERVICE_PRINTER
from podstatus.apiserver.resources import (
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODE_METRICS,
    NODES,
    POD_METRICS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    ResourceInfo,
)
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import (
    nested_dict,
    nested_list,
    nested_str,
    nested_time,
    nested_value,
)

_NONE, _UNKNOWN = "<none>", "<unknown>"
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


def printer_for(resource: ResourceInfo) -> Printer:
    return _PRINTERS.get(resource.kind, _DEFAULT)


def _name(document: Document) -> str:
    return nested_str(document, "metadata", "name")


def _age(document: Document, now: Time) -> str:
    return format_age(nested_time(document, "metadata", "creationTimestamp"), now)


def _default(document: Document, _now: Time) -> list[Any]:
    created = nested_time(document, "metadata", "creationTimestamp")
    return [_name(document), str(created.truncated())]


def _node(document: Document, now: Time) -> list[Any]:
    info = nested_dict(document, "status", "nodeInfo")
    architecture = nested_str(info, "architecture")
    kernel = nested_str(info, "kernelVersion") or _UNKNOWN
    return [
        _name(document),
        _node_status(document),
        ",".join(sorted(node_roles(document))) or _NONE,
        _age(document, now),
        nested_str(info, "kubeletVersion"),
        _node_address(document, "InternalIP"),
        _node_address(document, "ExternalIP"),
        nested_str(info, "osImage") or _UNKNOWN,
        f"{kernel} ({architecture})" if architecture else kernel,
        nested_str(info, "containerRuntimeVersion") or _UNKNOWN,
    ]


def _node_status(document: Document) -> str:
    conditions = nested_list(document, "status", "conditions")
    ready = {nested_str(item, "type"): nested_str(item, "status") for item in conditions}.get(
        "Ready"
    )
    status = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    unschedulable = nested_value(document, "spec", "unschedulable")
    return f"{status},SchedulingDisabled" if unschedulable else status


def node_roles(document: Document) -> set[str]:
    labels = nested_dict(document, "metadata", "labels")
    named = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return (named | {labels.get(_ROLE) or ""}) - {""}


def _node_address(document: Document, kind: str) -> str:
    for address in nested_list(document, "status", "addresses"):
        if nested_str(address, "type") == kind:
            return nested_str(address, "address")
    return _NONE


def event_occurrences(event: Document) -> tuple[Time, Time, int]:
    """Return the first and the last time of an event, and how often it occurred."""
    first = nested_time(event, "firstTimestamp") or nested_time(event, "eventTime")
    if (series := nested_value(event, "series")) is not None:
        return first, nested_time(series, "lastObservedTime"), nested_value(series, "count") or 0
    return first, nested_time(event, "lastTimestamp") or first, nested_value(event, "count") or 1


def event_component(event: Document) -> str:
    """Return the component that recorded an event of the old or the new style."""
    return nested_str(event, "source", "component") or nested_str(event, "reportingComponent")


def _event(document: Document, now: Time) -> list[Any]:
    first, last, count = event_occurrences(document)
    return [
        format_age(last, now),
        nested_str(document, "type"),
        nested_str(document, "reason"),
        _event_object(document),
        nested_str(document, "involvedObject", "fieldPath"),
        _event_source(document),
        nested_str(document, "message").strip(),
        format_age(first, now),
        count,
        _name(document),
    ]


def _event_object(document: Document) -> str:
    kind = nested_str(document, "involvedObject", "kind").lower()
    name = nested_str(document, "involvedObject", "name")
    return f"{kind}/{name}" if name else kind


def _event_source(document: Document) -> str:
    component = event_component(document)
    instance = nested_str(document, "source", "host") or nested_str(document, "reportingInstance")
    return f"{component}, {instance}" if instance else component


def _namespace(document: Document, now: Time) -> list[Any]:
    return [_name(document), nested_str(document, "status", "phase"), _age(document, now)]


def _lease(document: Document, now: Time) -> list[Any]:
    return [_name(document), nested_str(document, "spec", "holderIdentity"), _age(document, now)]


def _config_map(document: Document, now: Time) -> list[Any]:
    entries = len(nested_dict(document, "data")) + len(nested_dict(document, "binaryData"))
    return [_name(document), entries, _age(document, now)]


def _secret(document: Document, now: Time) -> list[Any]:
    entries = len(nested_dict(document, "data"))
    return [_name(document), nested_str(document, "type"), entries, _age(document, now)]


def _service_account(document: Document, now: Time) -> list[Any]:
    return [_name(document), _age(document, now)]


_DEFAULT = Printer(
    (NAME, Column(name="Created At", type="date", description="When the object was created.")),
    _default,
)

_NODE = Printer(
    (
        NAME,
        Column(name="Status", description="Whether the node is ready and schedulable."),
        Column(name="Roles", description="The roles in the node's labels."),
        AGE,
        Column(name="Version", description="The kubelet version."),
        Column(name="Internal-IP", priority=1, description="The IP address within the cluster."),
        Column(name="External-IP", priority=1, description="The external IP address."),
        Column(name="OS-Image", priority=1, description="The operating system."),
        Column(name="Kernel-Version", priority=1, description="The kernel version."),
        Column(name="Container-Runtime", priority=1, description="The container runtime."),
    ),
    _node,
)

_EVENT = Printer(
    (
        Column(name="Last Seen", description="The time since the last occurrence."),
        Column(name="Type", description="Normal or Warning."),
        Column(name="Reason", description="The reason, in CamelCase."),
        Column(name="Object", description="The object that the event is about."),
        Column(name="Subobject", priority=1, description="The field path in the object."),
        Column(name="Source", priority=1, description="The component that reported the event."),
        Column(name="Message", description="A description of the event."),
        Column(name="First Seen", priority=1, description="The time since the first occurrence."),
        Column(name="Count", priority=1, description="The number of occurrences."),
        Column(name="Name", format="name", priority=1, description="The event's name."),
    ),
    _event,
)

_PRINTERS: dict[str, Printer] = {
    PODS.kind: POD_PRINTER,
    SERVICES.kind: SERVICE_PRINTER,
    NODE_METRICS.kind: NODE_METRICS_PRINTER,
    POD_METRICS.kind: POD_METRICS_PRINTER,
    NODES.kind: _NODE,
    EVENTS.kind: _EVENT,
    NAMESPACES.kind: Printer(
        (NAME, Column(name="Status", description="Active or Terminating."), AGE), _namespace
    ),
    LEASES.kind: Printer(
        (NAME, Column(name="Holder", description="The identity of the holder."), AGE), _lease
    ),
    CONFIG_MAPS.kind: Printer(
        (NAME, Column(name="Data", description="The number of entries."), AGE), _config_map
    ),
    SECRETS.kind: Printer(
        (
            NAME,
            Column(name="Type", description="The type of the secret."),
            Column(name="Data", description="The number of entries."),
            AGE,
        ),
        _secret,
    ),
    SERVICE_ACCOUNTS.kind: Printer((NAME, AGE), _service_account),
}
