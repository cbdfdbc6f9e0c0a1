"""Nodes, events and the plain resources as rows.

Upstream: printNode, printEvent, … in pkg/printers/internalversion/printers.go v1.36.4; the
default columns in pkg/registry/rest/table.go of apiserver v0.36.4.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from podstatus.apiserver.printing.columns import AGE, NAME
from podstatus.apiserver.printing.pods import PodPrinter
from podstatus.apiserver.resources import (
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from podstatus.apiserver.strategies.base import Column, Document, Printer
from podstatus.kube.scalars.human_duration import age
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import list_at, map_at, text_at, time_at, value_at

_NONE, _UNKNOWN = "<none>", "<unknown>"
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


class PlainPrinter(msgspec.Struct, frozen=True):
    """Rows that one function makes."""

    columns: tuple[Column, ...]
    row: Callable[[Document, Time], list[Any]]

    def cells(self, document: Document, now: Time) -> list[Any]:
        """One cell per column."""
        return self.row(document, now)

    def conditions(self, _document: Document) -> list[Document]:
        """Nothing."""
        return []


def printer_of(resource: Resource) -> Printer:
    """How objects of this resource look in a Table."""
    return _PRINTERS.get(resource.kind, _DEFAULT)


def _name(document: Document) -> str:
    return text_at(document, "metadata", "name")


def _age(document: Document, now: Time) -> str:
    return age(time_at(document, "metadata", "creationTimestamp"), now)


def _default(document: Document, _now: Time) -> list[Any]:
    created = time_at(document, "metadata", "creationTimestamp")
    return [_name(document), str(created.truncated())]


def _node(document: Document, now: Time) -> list[Any]:
    info = map_at(document, "status", "nodeInfo")
    architecture = text_at(info, "architecture")
    kernel = text_at(info, "kernelVersion") or _UNKNOWN
    return [
        _name(document),
        _node_status(document),
        ",".join(sorted(_roles(document))) or _NONE,
        _age(document, now),
        text_at(info, "kubeletVersion"),
        _node_address(document, "InternalIP"),
        _node_address(document, "ExternalIP"),
        text_at(info, "osImage") or _UNKNOWN,
        f"{kernel} ({architecture})" if architecture else kernel,
        text_at(info, "containerRuntimeVersion") or _UNKNOWN,
    ]


def _node_status(document: Document) -> str:
    conditions = list_at(document, "status", "conditions")
    ready = {text_at(item, "type"): text_at(item, "status") for item in conditions}.get("Ready")
    known = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    unschedulable = value_at(document, "spec", "unschedulable")
    return f"{known},SchedulingDisabled" if unschedulable else known


def _roles(document: Document) -> set[str]:
    labels = map_at(document, "metadata", "labels")
    named = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return (named | {labels.get(_ROLE) or ""}) - {""}


def _node_address(document: Document, kind: str) -> str:
    for address in list_at(document, "status", "addresses"):
        if text_at(address, "type") == kind:
            return text_at(address, "address")
    return _NONE


def _event(document: Document, now: Time) -> list[Any]:
    first = time_at(document, "firstTimestamp") or time_at(document, "eventTime")
    last = time_at(document, "lastTimestamp") or first
    count = value_at(document, "count") or 1
    if (series := value_at(document, "series")) is not None:
        last, count = time_at(series, "lastObservedTime"), value_at(series, "count") or 0
    return [
        age(last, now),
        text_at(document, "type"),
        text_at(document, "reason"),
        _event_object(document),
        text_at(document, "involvedObject", "fieldPath"),
        _event_source(document),
        text_at(document, "message").strip(),
        age(first, now),
        count,
        _name(document),
    ]


def _event_object(document: Document) -> str:
    kind = text_at(document, "involvedObject", "kind").lower()
    name = text_at(document, "involvedObject", "name")
    return f"{kind}/{name}" if name else kind


def _event_source(document: Document) -> str:
    component = text_at(document, "source", "component") or text_at(document, "reportingComponent")
    instance = text_at(document, "source", "host") or text_at(document, "reportingInstance")
    return f"{component}, {instance}" if instance else component


def _namespace(document: Document, now: Time) -> list[Any]:
    return [_name(document), text_at(document, "status", "phase"), _age(document, now)]


def _lease(document: Document, now: Time) -> list[Any]:
    return [_name(document), text_at(document, "spec", "holderIdentity"), _age(document, now)]


def _config_map(document: Document, now: Time) -> list[Any]:
    entries = len(map_at(document, "data")) + len(map_at(document, "binaryData"))
    return [_name(document), entries, _age(document, now)]


def _secret(document: Document, now: Time) -> list[Any]:
    entries = len(map_at(document, "data"))
    return [_name(document), text_at(document, "type"), entries, _age(document, now)]


def _service_account(document: Document, now: Time) -> list[Any]:
    return [_name(document), _age(document, now)]


_DEFAULT = PlainPrinter(
    (NAME, Column(name="Created At", type="date", description="When the object was created.")),
    _default,
)

_NODE = PlainPrinter(
    (
        NAME,
        Column(name="Status", description="Whether the node is ready, and may get new pods."),
        Column(name="Roles", description="What the node's labels say that it is for."),
        AGE,
        Column(name="Version", description="The version of the node's agent."),
        Column(name="Internal-IP", priority=1, description="The address within the cluster."),
        Column(name="External-IP", priority=1, description="The address from outside."),
        Column(name="OS-Image", priority=1, description="The operating system."),
        Column(name="Kernel-Version", priority=1, description="The kernel."),
        Column(name="Container-Runtime", priority=1, description="What runs the containers."),
    ),
    _node,
)

_EVENT = PlainPrinter(
    (
        Column(name="Last Seen", description="How long ago it happened last."),
        Column(name="Type", description="Normal or Warning."),
        Column(name="Reason", description="What happened, in a word."),
        Column(name="Object", description="What it happened to."),
        Column(name="Subobject", priority=1, description="Which part of the object."),
        Column(name="Source", priority=1, description="Who reported it."),
        Column(name="Message", description="What happened."),
        Column(name="First Seen", priority=1, description="How long ago it happened first."),
        Column(name="Count", priority=1, description="How often it happened."),
        Column(name="Name", format="name", priority=1, description="The event's name."),
    ),
    _event,
)

_PRINTERS: dict[str, Printer] = {
    PODS.kind: PodPrinter(),
    NODES.kind: _NODE,
    EVENTS.kind: _EVENT,
    NAMESPACES.kind: PlainPrinter(
        (NAME, Column(name="Status", description="Active or Terminating."), AGE), _namespace
    ),
    LEASES.kind: PlainPrinter(
        (NAME, Column(name="Holder", description="Who holds it."), AGE), _lease
    ),
    CONFIG_MAPS.kind: PlainPrinter(
        (NAME, Column(name="Data", description="How many entries it has."), AGE), _config_map
    ),
    SECRETS.kind: PlainPrinter(
        (
            NAME,
            Column(name="Type", description="What kind of secret it is."),
            Column(name="Data", description="How many entries it has."),
            AGE,
        ),
        _secret,
    ),
    SERVICE_ACCOUNTS.kind: PlainPrinter((NAME, AGE), _service_account),
}
