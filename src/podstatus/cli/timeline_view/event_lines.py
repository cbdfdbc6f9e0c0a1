"""The transitions and events of a pod as lines of text, with the time to the millisecond.

`list_moments` prints one line per transition:

```
10:00:00.123   container app     running → terminated Error 3
10:00:00.123   condition Ready   True → False (ContainersNotReady: [app])
```

`digest_moments` joins what was seen at the same instant, counts repeats, and leaves out what the
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
from podstatus.cli.render.wrap import fold
from podstatus.cli.timeline_view.chart import BLOCKS, Signs
from podstatus.cli.timeline_view.intervals import short_state
from podstatus.cli.timeline_view.time_axis import MILLISECOND, stamp, time_of_day
from podstatus.observe.history.store import Moment
from podstatus.observe.transitions import status_transitions as kinds
from podstatus.observe.transitions.status_transitions import Transition

_WIDEST_SUBJECT = 36
_STATES = (kinds.PHASE, kinds.CONDITION, kinds.CONTAINER, kinds.RESTART, kinds.READINESS)
SAID = (kinds.EVENT, kinds.FOREIGN, kinds.SYNC)


def list_moments(moments: Sequence[Moment], *, arrow: str = "→") -> list[Line]:
    """A line for each, the oldest first. The day is told if there are several."""
    when = clock_of(moments)
    subjects = [_subject(moment.transition) for moment in moments]
    widest = min(_WIDEST_SUBJECT, max(map(len, subjects), default=0))
    return [
        (
            Piece(f"{when(moment.at)}   ", "dim"),
            Piece(
                f"{subject:<{widest}}   {_told(moment.transition, arrow)}".rstrip(),
                style_of(moment.transition),
            ),
        )
        for moment, subject in zip(moments, subjects, strict=True)
    ]


def clock_of(moments: Iterable[Moment]) -> Callable[[int], str]:
    """How times are told: with the day if there are several."""
    days = {stamp(moment.at)[:10] for moment in moments}
    return time_of_day if len(days) <= 1 else stamp


def _subject(change: Transition) -> str:
    return one_line(f"{change.kind} {change.subject}".rstrip())


def _told(change: Transition, arrow: str) -> str:
    why = ": ".join(filter(None, (change.reason, change.message)))
    if change.kind not in _STATES:
        return one_line(" ".join(filter(None, (change.after, why))))
    states = f"{change.before} {arrow} {change.after or '(none)'}".lstrip()
    # The reason of a state is in its text; what else there is to say is not.
    if change.reason and change.reason in change.after:
        why = change.message
    return one_line(f"{states} ({why})" if why else states)


def one_line(text: str) -> str:
    """Nobody's text becomes a line of ours."""
    return escape_control_chars(" ".join(text.split()))


def style_of(change: Transition) -> str:
    """Warnings are red."""
    if change.kind == kinds.FOREIGN or (change.kind, change.after) == (kinds.EVENT, "Warning"):
        return "red"
    return ""


_LEAST_TEXT = 24
"""Columns that a text gets at least, before it is left to the terminal to wrap."""


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    at: int
    text: str
    style: str = ""
    is_said: bool = False
    """Whether it is an event, and no change."""
    times: int = 1
    until: int = 0


def digest_moments(
    moments: Sequence[Moment],
    *,
    width: int,
    signs: Signs = BLOCKS,
    without: Collection[str] = (),
) -> list[list[Line]]:
    """The lines of what happened at once, the oldest first; what is long goes on below itself.

    `without` are the conditions that are told otherwise.
    """
    when = clock_of(moments)
    shown = [m for m in moments if not _is_condition(m.transition, without)]
    found = []
    for told in _folded(_digest(shown, signs)):
        head = f"{when(told.at)}   "
        text = told.text
        if told.times > 1:
            text += f" {signs.times}{told.times}, until {when(told.until)}"
        first, *more = fold(text, max(_LEAST_TEXT, width - len(head))) or [""]
        lines: list[Line] = [(Piece(head, "dim"), Piece(first, told.style))]
        lines += [(Piece(" " * len(head)), Piece(line, told.style)) for line in more]
        found.append(lines)
    return found


def _is_condition(change: Transition, of: Collection[str]) -> bool:
    return change.kind == kinds.CONDITION and change.subject in of


def _digest(moments: Iterable[Moment], signs: Signs) -> Iterator[_Told]:
    for (at, part), group in groupby(moments, key=_together):
        changes = [moment.transition for moment in group]
        if part == kinds.EVENT:
            yield from _sayings(at, changes, signs)
        elif part == kinds.AWAY:
            yield _Told(at=at, text=one_line(f"agent away for {changes[0].after}"), style="magenta")
        else:
            yield _Told(at=at, text=one_line("; ".join(_parts(changes))))


def _together(moment: Moment) -> tuple[int, str]:
    """What is told in a line: when, and whether it was said, missed, or has changed."""
    kind = moment.transition.kind
    part = kinds.EVENT if kind in SAID else kinds.AWAY if kind == kinds.AWAY else ""
    return moment.at // MILLISECOND * MILLISECOND, part


def _folded(lines: Iterable[_Told]) -> Iterator[_Told]:
    """Events that are said again before something changes are counted where they were first."""
    for said, group in groupby(lines, key=lambda told: told.is_said):
        if not said:
            yield from group
            continue
        first: dict[str, _Told] = {}
        for told in group:
            known = first.get(told.text, msgspec.structs.replace(told, times=0))
            first[told.text] = msgspec.structs.replace(known, times=known.times + 1, until=told.at)
        yield from first.values()


def _sayings(at: int, changes: Iterable[Transition], signs: Signs) -> Iterator[_Told]:
    """Events; those that are as they should be in few words, if a container has several."""
    for (style, subject), group in groupby(changes, key=lambda it: (style_of(it), it.subject)):
        said = list(group)
        if style or len(said) == 1 or {it.kind for it in said} != {kinds.EVENT}:
            texts = [_saying(change, signs) for change in said]
        else:
            reasons = ", ".join(dict.fromkeys(change.reason for change in said))
            texts = [one_line(f"{signs.event} {reasons} {subject}")]
        yield from (_Told(at=at, text=text, style=style, is_said=True) for text in texts)


def _parts(changes: Iterable[Transition]) -> list[str]:
    """What became of each part: the words on it, one after the other."""
    words: dict[str, list[str]] = {}
    for change in changes:
        subject = change.subject or change.kind
        words.setdefault(subject, []).append(_word(change))
    return [
        f"{subject} {', '.join(filter(None, said))}".rstrip() for subject, said in words.items()
    ]


def _word(change: Transition) -> str:
    match change.kind:
        case kinds.RESTART:
            return f"restart {change.after}"
        case kinds.READINESS:
            return "ready" if change.after == "True" else "not ready"
        case kinds.PHASE if change.reason:
            return f"{change.after} ({change.reason})"
        case kinds.CONDITION | kinds.CONTAINER | kinds.PHASE:
            return short_state(change.after) or "(none)"
        case _:
            return change.after


def _saying(change: Transition, signs: Signs) -> str:
    sign = signs.warning if style_of(change) else signs.event
    what = change.reason or f"{change.kind} {change.after}".rstrip()
    told = " ".join(filter(None, (sign, what, change.subject)))
    return one_line(f"{told}: {change.message}" if change.message else told)
