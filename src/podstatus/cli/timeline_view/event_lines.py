"""The transitions and events of a pod as lines of text, with the time to the millisecond.

`event_list` prints one line per transition:

```
10:00:00.123   container app     running → terminated Error 3
10:00:00.123   condition Ready   True → False (ContainersNotReady: [app])
```

`event_digest` joins what was seen at the same instant, counts repeats, and leaves out what the
chart above shows:

```
10:00:00.123   app Error 3, not ready; Ready False
10:00:30.300   • Pulled, Created, Started app
```
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from podstatus.base.terminal import escape_control_chars
from podstatus.cli.render.styled_text import Line, Piece
from podstatus.cli.render.wrap import wrap_text
from podstatus.cli.timeline_view.chart import BLOCKS, Symbols
from podstatus.cli.timeline_view.intervals import short_state
from podstatus.cli.timeline_view.time_axis import MILLISECOND, format_time_of_day, format_timestamp
from podstatus.observe.history.store import HistoryEntry
from podstatus.observe.transitions import status_transitions as kinds
from podstatus.observe.transitions.status_transitions import Transition

_MAX_SUBJECT_WIDTH = 36
_STATES = (kinds.PHASE, kinds.CONDITION, kinds.CONTAINER, kinds.RESTART, kinds.READINESS)
EVENT_KINDS = (kinds.EVENT, kinds.FOREIGN_WRITE, kinds.SYNC)


def event_list(moments: Sequence[HistoryEntry], *, arrow: str = "→") -> list[Line]:
    """A line for each, the oldest first. The day is told if there are several."""
    when = time_format(moments)
    subjects = [_subject(moment.transition) for moment in moments]
    widest = min(_MAX_SUBJECT_WIDTH, max(map(len, subjects), default=0))
    return [
        (
            Piece(f"{when(moment.at)}   ", "dim"),
            Piece(
                f"{subject:<{widest}}   {_describe(moment.transition, arrow)}".rstrip(),
                transition_style(moment.transition),
            ),
        )
        for moment, subject in zip(moments, subjects, strict=True)
    ]


def time_format(moments: Iterable[HistoryEntry]) -> Callable[[int], str]:
    """How times are told: with the day if there are several."""
    days = {format_timestamp(moment.at)[:10] for moment in moments}
    return format_time_of_day if len(days) <= 1 else format_timestamp


def _subject(change: Transition) -> str:
    return to_single_line(f"{change.kind} {change.subject}".rstrip())


def _describe(change: Transition, arrow: str) -> str:
    why = ": ".join(filter(None, (change.reason, change.message)))
    if change.kind not in _STATES:
        return to_single_line(" ".join(filter(None, (change.after, why))))
    states = f"{change.before_text} {arrow} {change.after_text or '(none)'}".lstrip()
    # The reason of a state is in its text; what else there is to say is not.
    if change.reason and change.reason in change.after_text:
        why = change.message
    return to_single_line(f"{states} ({why})" if why else states)


def to_single_line(text: str) -> str:
    """Nobody's text becomes a line of ours."""
    return escape_control_chars(" ".join(text.split()))


def transition_style(change: Transition) -> str:
    """Warnings are red."""
    if change.kind == kinds.FOREIGN_WRITE or (change.kind, change.after) == (
        kinds.EVENT,
        "Warning",
    ):
        return "red"
    return ""


_MIN_TEXT_WIDTH = 24
"""Columns that a text gets at least, before it is left to the terminal to wrap."""


class _EventLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    at: int
    text: str
    style: str = ""
    is_event: bool = False
    """Whether it is an event, and no change."""
    count: int = 1
    until: int = 0


def event_digest(
    moments: Sequence[HistoryEntry],
    *,
    width: int,
    symbols: Symbols = BLOCKS,
    omitted_conditions: Collection[str] = (),
) -> list[list[Line]]:
    """The lines of what happened at once, the oldest first; what is long goes on below itself.

    `omitted_conditions` are the conditions that are told otherwise.
    """
    when = time_format(moments)
    shown = [m for m in moments if not _is_condition(m.transition, omitted_conditions)]
    found = []
    for told in _merge_repeats(_digest(shown, symbols)):
        head = f"{when(told.at)}   "
        text = told.text
        if told.count > 1:
            text += f" {symbols.times}{told.count}, until {when(told.until)}"
        first, *more = wrap_text(text, max(_MIN_TEXT_WIDTH, width - len(head))) or [""]
        lines: list[Line] = [(Piece(head, "dim"), Piece(first, told.style))]
        lines += [(Piece(" " * len(head)), Piece(line, told.style)) for line in more]
        found.append(lines)
    return found


def _is_condition(change: Transition, of: Collection[str]) -> bool:
    return change.kind == kinds.CONDITION and change.subject in of


def _digest(moments: Iterable[HistoryEntry], symbols: Symbols) -> Iterator[_EventLine]:
    for (at, part), group in groupby(moments, key=_group_key):
        changes = [moment.transition for moment in group]
        if part == kinds.EVENT:
            yield from _event_lines(at, changes, symbols)
        elif part == kinds.AGENT_DOWNTIME:
            yield _EventLine(
                at=at, text=to_single_line(f"agent away for {changes[0].after}"), style="magenta"
            )
        else:
            yield _EventLine(at=at, text=to_single_line("; ".join(_describe_changes(changes))))


def _group_key(moment: HistoryEntry) -> tuple[int, str]:
    """What is told in a line: when, and whether it was said, missed, or has changed."""
    kind = moment.transition.kind
    part = (
        kinds.EVENT
        if kind in EVENT_KINDS
        else kinds.AGENT_DOWNTIME
        if kind == kinds.AGENT_DOWNTIME
        else ""
    )
    return moment.at // MILLISECOND * MILLISECOND, part


def _merge_repeats(lines: Iterable[_EventLine]) -> Iterator[_EventLine]:
    """Events that are said again before something changes are counted where they were first."""
    for said, group in groupby(lines, key=lambda told: told.is_event):
        if not said:
            yield from group
            continue
        first: dict[str, _EventLine] = {}
        for told in group:
            known = first.get(told.text, msgspec.structs.replace(told, count=0))
            first[told.text] = msgspec.structs.replace(known, count=known.count + 1, until=told.at)
        yield from first.values()


def _event_lines(at: int, changes: Iterable[Transition], symbols: Symbols) -> Iterator[_EventLine]:
    """Events; those that are as they should be in few words, if a container has several."""
    for (style, subject), group in groupby(
        changes, key=lambda it: (transition_style(it), it.subject)
    ):
        said = list(group)
        if style or len(said) == 1 or {it.kind for it in said} != {kinds.EVENT}:
            texts = [_event_text(change, symbols) for change in said]
        else:
            reasons = ", ".join(dict.fromkeys(change.reason for change in said))
            texts = [to_single_line(f"{symbols.event} {reasons} {subject}")]
        yield from (_EventLine(at=at, text=text, style=style, is_event=True) for text in texts)


def _describe_changes(changes: Iterable[Transition]) -> list[str]:
    """What became of each part: the words on it, one after the other."""
    words: dict[str, list[str]] = {}
    for change in changes:
        subject = change.subject or change.kind
        words.setdefault(subject, []).append(_describe_change(change))
    return [
        f"{subject} {', '.join(filter(None, said))}".rstrip() for subject, said in words.items()
    ]


def _describe_change(change: Transition) -> str:
    match change.kind:
        case kinds.RESTART:
            return f"restart {change.after}"
        case kinds.READINESS:
            return "ready" if change.after == "True" else "not ready"
        case kinds.PHASE if change.reason:
            return f"{change.after} ({change.reason})"
        case kinds.CONTAINER:
            return short_state(change.state_after) or "(none)"
        case kinds.CONDITION | kinds.PHASE:
            return change.after or "(none)"
        case _:
            return change.after


def _event_text(change: Transition, symbols: Symbols) -> str:
    sign = symbols.warning if transition_style(change) else symbols.event
    what = change.reason or f"{change.kind} {change.after}".rstrip()
    told = " ".join(filter(None, (sign, what, change.subject)))
    return to_single_line(f"{told}: {change.message}" if change.message else told)
