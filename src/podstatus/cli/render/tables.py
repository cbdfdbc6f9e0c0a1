"""Rows of objects as `kubectl get` prints them, from the same printers as the API server's."""

from collections.abc import Sequence
from typing import Any

import msgspec

from podstatus.apiserver.printing.printers import printer_for
from podstatus.apiserver.resources import ResourceInfo
from podstatus.apiserver.strategies.base import Document
from podstatus.base.terminal import escape_control_chars
from podstatus.kube.encoding.codec import DecodeError, from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.health import pod_health
from podstatus.observe.summary.pod import summarize_pod

MESSAGE_HEADING = "MESSAGE"
"""The heading of sentences."""
PROSE_HEADINGS = (MESSAGE_HEADING, "SUMMARY", "WHAT TO DO")
"""Headings of a last column that may be folded."""
MIN_TEXT_WIDTH = 24
"""Columns that a long last text gets at least, before it is cut, or left to the terminal."""
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
    """Headings, and a text for each cell."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def widths(self) -> list[int]:
        """How wide the widest text of each column is."""
        return [max(map(len, column)) for column in zip(self.headings, *self.rows, strict=True)]


def object_table(
    resource: ResourceInfo,
    documents: Sequence[Document],
    now: Time,
    *,
    wide: bool = False,
    namespaces: bool = False,
) -> Table:
    """A row for each object; with its namespace, if there may be several."""
    printer = printer_for(resource)
    chosen = [i for i, column in enumerate(printer.columns) if wide or not column.priority]
    headings = [printer.columns[i].name.upper() for i in chosen]
    rows = []
    for document in documents:
        cells = _cells(resource, document, now)
        row = [str(cells[i]) for i in chosen]
        rows.append((*_namespace(document, include=namespaces), *row))
    return Table((*(["NAMESPACE"] if namespaces else []), *headings), tuple(rows))


def with_health(table: Table, pods: Sequence[Document], now: Time) -> Table:
    """The table of these pods with a column more: how each of them is, in a word."""
    words = [_health(pod, now) for pod in pods]
    rows = tuple((*row, word) for row, word in zip(table.rows, words, strict=True))
    return Table((*table.headings, "HEALTH"), rows)


def _health(document: Document, now: Time) -> str:
    try:
        return pod_health(summarize_pod(from_document(document, Pod)), now).state.value
    except DecodeError:
        return "<unreadable>"


def escape_table(table: Table) -> Table:
    """The same with cells that a terminal shows and does not obey."""
    return Table(table.headings, tuple(tuple(map(escape_control_chars, row)) for row in table.rows))


def _cells(resource: ResourceInfo, document: Document, now: Time) -> list[Any]:
    printer = printer_for(resource)
    try:
        return printer.cells(document, now)
    except DecodeError:
        # Of a server that knows more than we do; its name is still worth a row.
        name = (document.get("metadata") or {}).get("name", "")
        return [name, *["<unreadable>"] * (len(printer.columns) - 1)]


def _namespace(document: Document, *, include: bool) -> list[str]:
    return [(document.get("metadata") or {}).get("namespace") or ""] if include else []


def cell_style(heading: str, text: str) -> str:
    """The colour of a cell: how things are, at a glance."""
    if heading == "HEALTH":
        return _HEALTH_STYLES.get(text, "red" if text else "")
    if heading == "SEVERITY":
        return {"critical": "red", "warning": "yellow"}.get(text, "")
    if heading not in ("STATUS", "TYPE", "RESULT"):
        return ""
    if text in _GOOD_STATES:
        return "green"
    return "yellow" if text.startswith(_WARNING_STATES) or text.startswith("Init:") else "red"
