"""The transitions and events of a pod as lines of text, with the time to the millisecond.

`event_list` prints one line per transition:

```
10:00:00.123   container app     running → terminated Error 3
10:00:00.123   condition Ready   True → False (ContainersNotReady: [app])
```

`event_digest` joins entries of the same millisecond, counts repeated events, and omits conditions
that have no row in the chart:

```
10:00:00.123   app Error 3, not ready; Ready False
10:00:30.300   • Pulled, Created, Started app
```
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec
from rich.text import Text

from podstatus.base.control_chars import escape_control_chars
from podstatus.cli.render.wrap import wrap_text
from podstatus.cli.timeline_view.chart import BLOCKS, Symbols
from podstatus.cli.timeline_view.severities import short_state
from podstatus.cli.timeline_view.time_axis import MILLISECOND, format_time_of_day, format_timestamp
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.transitions import compare_statuses as kinds
from podstatus.observe.transitions.compare_statuses import Transition
from podstatus.observe.transitions.node_transitions import FOUND_AT_START

_MAX_SUBJECT_WIDTH = 36
_STATES = (
    kinds.PHASE,
    kinds.CONDITION,
    kinds.CONTAINER,
    kinds.RESTART,
    kinds.READINESS,
    kinds.TAINT,
    kinds.AGENT,
)
EVENT_KINDS = (kinds.EVENT, kinds.FOREIGN_WRITE, kinds.SYNC)


def event_list(entries: Sequence[HistoryEntry], *, arrow: str = "→") -> list[Text]:
    """Return a line per entry, in order. Times have a date if the entries span several days."""
    format_time = time_format(entries)
    subjects = [_subject(entry.transition) for entry in entries]
    widest = min(_MAX_SUBJECT_WIDTH, max(map(len, subjects), default=0))
    return [
        Text.assemble(
            (f"{format_time(entry.at)}   ", "dim"),
            (
                f"{subject:<{widest}}   {_describe(entry.transition, arrow)}".rstrip(),
                transition_style(entry.transition),
            ),
        )
        for entry, subject in zip(entries, subjects, strict=True)
    ]


def time_format(entries: Iterable[HistoryEntry]) -> Callable[[int], str]:
    """Return the function that formats times: with a date if there are several days."""
    days = {format_timestamp(entry.at)[:10] for entry in entries}
    return format_time_of_day if len(days) <= 1 else format_timestamp


def _subject(change: Transition) -> str:
    return to_single_line(f"{change.kind} {change.subject}".rstrip())


def _describe(change: Transition, arrow: str) -> str:
    cause = ": ".join(filter(None, (change.reason, change.message)))
    if change.kind not in _STATES:
        return to_single_line(" ".join(filter(None, (change.after_text, cause))))
    states = f"{change.before_text} {arrow} {change.after_text or '(none)'}".lstrip()
    # The text of a container state contains its reason already.
    if change.reason and change.reason in change.after_text:
        cause = change.message
    return to_single_line(f"{states} ({cause})" if cause else states)


def to_single_line(text: str) -> str:
    """Collapse whitespace and escape control characters: foreign text cannot forge a line."""
    return escape_control_chars(" ".join(text.split()))


def transition_style(change: Transition) -> str:
    """Return the style of a transition: red for warnings and foreign writes."""
    if change.kind == kinds.FOREIGN_WRITE or (change.kind, change.after) == (
        kinds.EVENT,
        "Warning",
    ):
        return "red"
    return ""


_MIN_TEXT_WIDTH = 24
"""Minimum width of wrapped text; below it the terminal wraps."""


class _EventLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the digest before formatting."""

    at: int
    text: str
    style: str = ""
    is_event: bool = False
    """True for an event, False for state changes."""
    count: int = 1
    until: int = 0


def event_digest(
    entries: Sequence[HistoryEntry],
    *,
    width: int,
    symbols: Symbols = BLOCKS,
    omitted_conditions: Collection[str] = (),
) -> list[list[Text]]:
    """Return the wrapped lines of each digest entry, the oldest first.

    `omitted_conditions`: condition types to leave out.
    """
    format_time = time_format(entries)
    relevant = [e for e in entries if not _is_condition(e.transition, omitted_conditions)]
    digest = []
    for event in _merge_repeats(_digest(relevant, symbols)):
        head = f"{format_time(event.at)}   "
        text = event.text
        if event.count > 1:
            text += f" {symbols.times}{event.count}, until {format_time(event.until)}"
        first, *more = wrap_text(text, max(_MIN_TEXT_WIDTH, width - len(head))) or [""]
        lines = [Text.assemble((head, "dim"), (first, event.style))]
        lines += [Text.assemble(" " * len(head), (line, event.style)) for line in more]
        digest.append(lines)
    return digest


def _is_condition(change: Transition, of: Collection[str]) -> bool:
    return change.kind == kinds.CONDITION and change.subject in of


def _digest(entries: Iterable[HistoryEntry], symbols: Symbols) -> Iterator[_EventLine]:
    for (at, part), group in groupby(entries, key=_group_key):
        changes = [entry.transition for entry in group]
        if part == kinds.EVENT:
            yield from _event_lines(at, changes, symbols)
        elif part == kinds.AGENT_DOWNTIME:
            yield _EventLine(
                at=at,
                text=to_single_line(f"agent away for {changes[0].after_text}"),
                style="magenta",
            )
        else:
            yield _EventLine(at=at, text=to_single_line("; ".join(_describe_changes(changes))))


def _group_key(entry: HistoryEntry) -> tuple[int, str]:
    """Entries with the same key share a line: same millisecond, and same kind of entry."""
    kind = entry.transition.kind
    part = kind if kind == kinds.AGENT_DOWNTIME else kinds.EVENT if kind in EVENT_KINDS else ""
    return entry.at // MILLISECOND * MILLISECOND, part


def _merge_repeats(lines: Iterable[_EventLine]) -> Iterator[_EventLine]:
    """Count repeated events without a change in between, at their first occurrence."""
    for is_event, group in groupby(lines, key=lambda line: line.is_event):
        if not is_event:
            yield from group
            continue
        by_text: dict[str, _EventLine] = {}
        for line in group:
            first = by_text.get(line.text, msgspec.structs.replace(line, count=0))
            by_text[line.text] = msgspec.structs.replace(
                first, count=first.count + 1, until=line.at
            )
        yield from by_text.values()


def _event_lines(at: int, changes: Iterable[Transition], symbols: Symbols) -> Iterator[_EventLine]:
    """A line per event; several normal events of a container share a line of their reasons."""
    for (style, subject), group in groupby(
        changes, key=lambda it: (transition_style(it), it.subject)
    ):
        events = list(group)
        if style or len(events) == 1 or {it.kind for it in events} != {kinds.EVENT}:
            texts = [_event_text(change, symbols) for change in events]
        else:
            reasons = ", ".join(dict.fromkeys(change.reason for change in events))
            texts = [to_single_line(f"{symbols.event} {reasons} {subject}")]
        yield from (_EventLine(at=at, text=text, style=style, is_event=True) for text in texts)


def _describe_changes(changes: Iterable[Transition]) -> list[str]:
    """The changes of each subject, joined: `app restart 1, running, ready`."""
    by_subject: dict[str, list[str]] = {}
    for change in changes:
        subject = change.subject or change.kind
        if change.kind == kinds.TAINT:
            subject = f"taint {subject}"
        by_subject.setdefault(subject, []).append(_describe_change(change))
    return [
        f"{subject} {', '.join(filter(None, texts))}".rstrip()
        for subject, texts in by_subject.items()
    ]


def _describe_change(change: Transition) -> str:
    match change.kind:
        case kinds.RESTART:
            return f"restart {change.after}"
        case kinds.READINESS:
            return "ready" if change.after == "True" else "not ready"
        case kinds.PHASE if change.reason:
            return f"{change.after} ({change.reason})"
        case kinds.TAINT:
            found = "found" if change.reason == FOUND_AT_START else "set"
            return found if change.after else "removed"
        case kinds.CONTAINER:
            return short_state(change.state_after) or "(none)"
        case kinds.CONDITION | kinds.PHASE:
            return change.after or "(none)"
        case _:
            return change.after_text


def _event_text(change: Transition, symbols: Symbols) -> str:
    symbol = symbols.warning if transition_style(change) else symbols.event
    reason = change.reason or f"{change.kind} {change.after_text}".rstrip()
    text = " ".join(filter(None, (symbol, reason, change.subject)))
    return to_single_line(f"{text}: {change.message}" if change.message else text)
