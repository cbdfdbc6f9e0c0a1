"""What happened to a pod, for those who read: a line for all that was seen at once.

10:00:00.123   app Error 3, not ready; Ready False
10:00:00.300   ! BackOff app: Back-off restarting failed container ×3, until 10:00:20.300
10:00:30.300   • Pulled, Created, Started app

What a drawing above says is not said again, and what was said again and again is said once.
"""  # noqa: RUF002 - it is the sign

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from podstatus.agent.draw_timeline import BLOCKS, Signs
from podstatus.agent.fold_text import fold
from podstatus.agent.list_moments import SAID, clock_of, one_line, style_of
from podstatus.agent.styled_text import Line, Piece
from podstatus.agent.time_axis import MILLISECOND
from podstatus.agent.tones import short_state
from podstatus.observe.history.store import Moment
from podstatus.observe.transitions import status_transitions as kinds
from podstatus.observe.transitions.status_transitions import Transition

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
