"""Tables of objects in the format of `kubectl get`, by the printers of the embedded API server."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from podstatus.apiserver.printing.printers import printer_for
from podstatus.apiserver.resources import ResourceInfo
from podstatus.apiserver.strategies.base import Document
from podstatus.cli.render.node_load import WIDE_HEADINGS, wide_cells
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import nested_dict, nested_str
from podstatus.observe.summary.health import PodHealth, pod_health
from podstatus.observe.summary.node_load import NodeLoad
from podstatus.observe.summary.pod import summarize_pod

MESSAGE_HEADING = "MESSAGE"
"""Heading of a column of messages."""
PROSE_HEADINGS = (MESSAGE_HEADING, "SUMMARY", "WHAT TO DO")
"""Headings of a last column that may be wrapped."""
_HEALTH_STYLES = {"healthy": "green", "done": "green"} | dict.fromkeys(
    ("starting", "ending", "unready"), "yellow"
)
_GOOD_STATES = ("Running", "Completed", "Succeeded", "Ready", "Normal", "True", "ok")
_WARNING_STATES = (
    "Pending",
    "ContainerCreating",
    "PodInitializing",
    "Terminating",
    "Warning",
    "hint",
)


class Table(msgspec.Struct, frozen=True):
    """A table of text cells."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def object_table(
    resource: ResourceInfo,
    documents: Sequence[Document],
    now: Time,
    *,
    wide: bool = False,
    namespaces: bool = False,
) -> Table:
    """Return a table with a row per object; `namespaces` adds the namespace column."""
    printer = printer_for(resource)
    selected = [i for i, column in enumerate(printer.columns) if wide or not column.priority]
    headings = [printer.columns[i].name.upper() for i in selected]
    rows = []
    for document in documents:
        cells = _cells(resource, document, now)
        row = [str(cells[i]) for i in selected]
        rows.append((*_namespace(document, include=namespaces), *row))
    return Table((*(["NAMESPACE"] if namespaces else []), *headings), tuple(rows))


def with_health(
    table: Table, pods: Sequence[Document], now: Time, terminating: Mapping[PodUID, PodHealth]
) -> Table:
    """Return the table of these pods with a column for their health.

    `terminating`: the health of pods that their node terminates, by UID.
    """
    words = [_health(pod, now, terminating) for pod in pods]
    rows = tuple((*row, word) for row, word in zip(table.rows, words, strict=True))
    return Table((*table.headings, "HEALTH"), rows)


def with_load(table: Table, nodes: Sequence[Document], loads: Mapping[str, NodeLoad]) -> Table:
    """Return the table of these nodes with columns for their load, which is by name."""
    cells = [wide_cells(loads.get(nested_str(node, "metadata", "name"))) for node in nodes]
    rows = tuple((*row, *more) for row, more in zip(table.rows, cells, strict=True))
    return Table((*table.headings, *WIDE_HEADINGS), rows)


def with_labels(table: Table, documents: Sequence[Document]) -> Table:
    """Return the table of these objects with a column for their labels."""
    labels = [nested_dict(document, "metadata", "labels") for document in documents]
    texts = [",".join(f"{key}={it[key]}" for key in sorted(it)) or "<none>" for it in labels]
    rows = tuple((*row, text) for row, text in zip(table.rows, texts, strict=True))
    return Table((*table.headings, "LABELS"), rows)


def _health(document: Document, now: Time, terminating: Mapping[PodUID, PodHealth]) -> str:
    try:
        pod = from_document(document, Pod)
    except DecodeError:
        return "<unreadable>"
    health = terminating.get(pod.uid) or pod_health(summarize_pod(pod), now)
    return health.state.value


def _cells(resource: ResourceInfo, document: Document, now: Time) -> list[Any]:
    printer = printer_for(resource)
    try:
        return printer.cells(document, now)
    except DecodeError:
        # An object of a newer server: print at least its name.
        name = (document.get("metadata") or {}).get("name", "")
        return [name, *["<unreadable>"] * (len(printer.columns) - 1)]


def _namespace(document: Document, *, include: bool) -> list[str]:
    return [(document.get("metadata") or {}).get("namespace") or ""] if include else []


def cell_style(heading: str, text: str) -> str:
    """Return the style of a cell by its column and text."""
    if heading == "HEALTH":
        return _HEALTH_STYLES.get(text, "red" if text else "")
    if heading == "SEVERITY":
        return {"critical": "red", "warning": "yellow"}.get(text, "")
    if heading not in ("STATUS", "TYPE", "RESULT"):
        return ""
    if text in _GOOD_STATES:
        return "green"
    return "yellow" if text.startswith(_WARNING_STATES) or text.startswith("Init:") else "red"
