"""The lines that descriptions of objects have in common: fields, lists, conditions, events."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from podstatus.apiserver.printing.printers import event_component, event_occurrences
from podstatus.cli.render.wrap import wrap_text
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import nested_str

Document = dict[str, Any]

NONE = "<none>"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KEY_WIDTH = 18
"""Width of the column of field names."""
_MIN_TEXT_WIDTH = 24
"""Minimum width of a wrapped last column."""
_HANGING_INDENT = 4
"""Of text that continues below its line."""
_BEFORE_LAST_COLUMN = re.compile(r"(?:.*\s{2,}|[\w -]+: )?")
"""Columns are two spaces or more apart; a long field name is followed by one."""


def join_lines(lines: Iterable[str]) -> str:
    """Return the text of a description, without trailing spaces."""
    return "".join(f"{line.rstrip()}\n" for line in lines)


def wrap_lines(text: str, width: int) -> str:
    """Wrap lines that are wider than `width`: the last column continues below itself.

    If it is too narrow for its words, it continues below the line. Words stay whole, so that they
    can be copied.
    """
    return "".join(f"{line}\n" for row in text.splitlines() for line in _wrap_line(row, width))


def _wrap_line(line: str, width: int) -> list[str]:
    indent = len(_BEFORE_LAST_COLUMN.match(line)[0])  # type: ignore[index]
    words = line[indent:].split()
    if len(line) <= width or len(words) == 1:
        return [line]
    room = width - indent
    if room >= max(_MIN_TEXT_WIDTH, *map(len, words)):
        first, *rest = wrap_text(line[indent:], room)
        return [line[:indent] + first, *(" " * indent + more for more in rest)]
    leading = len(line) - len(line.lstrip()) + _HANGING_INDENT
    return _continue_below(line[:indent], words, " " * leading, width)


def _continue_below(line: str, words: Sequence[str], leading: str, width: int) -> list[str]:
    """Append the words to the line and to lines below it; one that is wider is not split."""
    lines: list[str] = []
    gap = ""
    for word in words:
        if len(line + gap + word) > width and len(leading + word) <= width:
            lines.append(line.rstrip())
            line, gap = leading, ""
        line += gap + word
        gap = " "
    return [*lines, line]


def field_line(name: str, text: str) -> str:
    """Return a field name and its text, which may have several lines."""
    label = f"{name}:" if name else ""
    return indented(f"{label:<{KEY_WIDTH}} ", text)


def optional_field(name: str, value: str | Time) -> Iterator[str]:
    """The field if it has a value: an object built from a summary lacks ids and some times."""
    if value:
        yield field_line(name, str(value))


def map_lines(name: str, values: Mapping[str, str] | None) -> Iterator[str]:
    """The entries of a map as `key=value`, sorted, one per line."""
    yield from list_lines(name, [f"{key}={text}" for key, text in sorted((values or {}).items())])


def annotation_lines(annotations: Mapping[str, str] | None) -> Iterator[str]:
    """The annotations, without the copy of the manifest that kubectl apply stores, as kubectl."""
    shown = {key: text for key, text in (annotations or {}).items() if key != LAST_APPLIED}
    yield from map_lines("Annotations", shown)


def list_lines(name: str, items: Sequence[str]) -> Iterator[str]:
    """The items of a list, one per line."""
    first, *rest = items or (NONE,)
    yield field_line(name, first)
    yield from (field_line("", item) for item in rest)


def columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Indented rows with aligned columns; the last column may have several lines."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, last in rows:
        padded = (f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
        yield indented(f"  {''.join(padded)}", last)


def event_lines(events: Sequence[Document], now: Time) -> Iterator[str]:
    """The table of events, in their order."""
    if not events:
        yield field_line("Events", NONE)
        return
    yield "Events:"
    yield from columns(
        [
            ("Type", "Reason", "Age", "From", "Message"),
            ("----", "------", "----", "----", "-------"),
            *(_event(event, now) for event in events),
        ]
    )


def _event(event: Document, now: Time) -> tuple[str, ...]:
    first, last, count = event_occurrences(event)
    when = format_age(last, now)
    if count > 1:
        when = f"{when} (x{count} over {format_age(first, now)})"
    source, message = event_component(event), nested_str(event, "message").strip()
    return nested_str(event, "type"), nested_str(event, "reason"), when, source, message


def indented(prefix: str, text: str) -> str:
    """Indent continuation lines of the text, so that foreign text cannot forge a field."""
    first, *rest = text.splitlines() or [""]
    return "\n".join([f"{prefix}{first}", *(f"{'':<{len(prefix)}}{line}" for line in rest)])
