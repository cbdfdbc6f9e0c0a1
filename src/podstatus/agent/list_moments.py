"""What happened to a pod, in lines with the time to the millisecond.

A line for each moment, for those who want to know everything. `digest_moments` is for those who
read.

10:00:00.123   container app     running → terminated Error 3
10:00:00.123   condition Ready   True → False (ContainersNotReady: [app])
"""

from collections.abc import Callable, Iterable, Sequence

from podstatus.agent.styled_text import Line, Piece
from podstatus.agent.time_axis import stamp, time_of_day
from podstatus.base.terminal import harmless
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
    return harmless(" ".join(text.split()))


def style_of(change: Transition) -> str:
    """Warnings are red."""
    if change.kind == kinds.FOREIGN or (change.kind, change.after) == (kinds.EVENT, "Warning"):
        return "red"
    return ""
