"""Compute how long a pod was in each state: rows of intervals and marks, with their severity.

```
phase   Pending for 2 s, Running for 40 s
app     running for 1 s, Error 3 for 0.1 s, CrashLoopBackOff for 10 s; restarted at …
events  BackOff at …
```
"""

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum

import msgspec

from podstatus.cli.timeline_view.time_axis import SECOND
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.store import Moment
from podstatus.observe.transitions import status_transitions as kinds
from podstatus.observe.transitions.status_transitions import Transition

GOOD_WHEN_FALSE = ("DisruptionTarget", "PodResizePending", "PodResizeInProgress")
_STARTING = ("ContainerCreating", "PodInitializing", "")
TERMINATING = "Terminating"


class Tone(IntEnum):
    """How a state is to be seen; what is worse is greater."""

    GOOD = 0
    DONE = 1
    WAITING = 2
    UNKNOWN = 3
    BACK_OFF = 4
    BAD = 5
    AWAY = 6
    """Nobody was there to see it."""


def short_state(text: str) -> str:
    """A state without the word for its kind, which its tone tells."""
    return text.removeprefix("waiting ").removeprefix("terminated ")


def phase_tone(_: Transition, text: str) -> Tone:
    """Of a phase."""
    tones = {
        "Running": Tone.GOOD,
        "Succeeded": Tone.DONE,
        "Failed": Tone.BAD,
        "Pending": Tone.WAITING,
        TERMINATING: Tone.WAITING,
    }
    return tones.get(text, Tone.UNKNOWN)


def condition_tone(change: Transition, text: str) -> Tone:
    """Of a condition: some are good when they are False."""
    if text not in ("True", "False"):
        return Tone.UNKNOWN
    is_true = text == "True"
    if change.subject in GOOD_WHEN_FALSE:
        return Tone.WAITING if is_true else Tone.DONE
    if is_true:
        return Tone.GOOD
    return {"PodCompleted": Tone.DONE, "PodFailed": Tone.BAD}.get(change.reason, Tone.WAITING)


def container_tone(_: Transition, text: str) -> Tone:
    """Of a container."""
    if text == "running":
        return Tone.GOOD
    if text.startswith("terminated"):
        return Tone.DONE if text.endswith(" 0") else Tone.BAD
    waits_for = short_state(text) if text != "waiting" else ""
    if waits_for in _STARTING:
        return Tone.WAITING
    return Tone.BACK_OFF if waits_for.endswith("BackOff") else Tone.BAD


Part = tuple[str, str]
"""Of a pod: the kind of its transitions, and their subject."""
_PHASE = (kinds.PHASE, "")
_READY = (kinds.CONDITION, "Ready")
_EVENTS = (kinds.EVENT, "")
_AWAY = "agent away"
_AT_ONCE = 2_000_000_000
"""Nanoseconds after its start in which an agent that is back says what it finds."""
_ORDER = (kinds.PHASE, kinds.CONDITION, kinds.CONTAINER, kinds.EVENT)


class Spell(msgspec.Struct, frozen=True, kw_only=True):
    """A state, and how long it lasted. Nanoseconds since the Unix epoch."""

    begin: int
    end: int
    text: str
    tone: Tone


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened at once."""

    at: int
    text: str = ""
    """The number of a restart."""
    is_warning: bool = False


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a pod."""

    part: Part
    spells: tuple[Spell, ...] = ()
    marks: tuple[Mark, ...] = ()

    @property
    def name(self) -> str:
        """What it is called."""
        kind, subject = self.part
        return "events" if self.is_events else subject or kind

    @property
    def is_events(self) -> bool:
        """Whether its marks are events, and not restarts."""
        return self.part == _EVENTS


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """All rows within one span of time."""

    begin: int
    end: int
    rows: tuple[Row, ...]
    as_ready: tuple[str, ...] = ()
    """Conditions that were as Ready all the time: they have no row."""
    throughout: tuple[str, ...] = ()
    """Conditions that were True all the time."""


def chart(moments: Sequence[Moment], *, begin: int, end: int) -> Chart:
    """What the moments, the oldest first, say about a span of time. Those before it say how
    things were when it began."""
    written = _Written(begin, end)
    for moment in moments:
        written.add(moment)
    rows = written.rows()
    ready = next((row for row in rows if row.part == _READY), None)
    others = [row for row in rows if row.part[0] == kinds.CONDITION and row is not ready]
    as_ready = [row for row in others if ready is not None and _alike(row, ready)]
    throughout = [row for row in others if row not in as_ready and _is_true_throughout(row)]
    return Chart(
        begin=begin,
        end=end,
        rows=tuple(row for row in rows if row not in as_ready and row not in throughout),
        as_ready=tuple(row.name for row in as_ready),
        throughout=tuple(row.name for row in throughout),
    )


class _Written:
    """Rows that grow, moment after moment."""

    def __init__(self, begin: int, end: int) -> None:
        self._begin = begin
        self._end = end
        self._at = 0
        self._open: dict[tuple[PodUID, Part], tuple[int, str, Tone]] = {}
        self._spells: dict[Part, list[Spell]] = {_PHASE: [], _READY: []}
        self._marks: dict[Part, list[Mark]] = {}
        self._deleting: set[PodUID] = set()
        self._seen: dict[PodUID, int] = {}
        """When something was last noted of each pod."""

    def add(self, moment: Moment) -> None:
        # A clock that was set back does not turn the order around.
        self._at = max(self._at, moment.at)
        change, uid = moment.transition, moment.uid
        match change.kind:
            case kinds.PHASE:
                text = TERMINATING if uid in self._deleting else change.after
                self._state(uid, _PHASE, change, text, phase_tone)
            case kinds.CONDITION:
                part = kinds.CONDITION, change.subject
                self._state(uid, part, change, change.after, condition_tone)
            case kinds.CONTAINER:
                part = kinds.CONTAINER, change.subject
                self._state(uid, part, change, change.after, container_tone)
            case kinds.RESTART:
                part = kinds.CONTAINER, change.subject
                self._mark(part, Mark(at=self._at, text=change.after))
            case kinds.DELETION:
                self._delete(uid)
            case kinds.FINISHED:
                self._finish(uid)
            case kinds.AWAY:
                self._missed(uid, change.after)
            case kinds.EVENT | kinds.FOREIGN | kinds.SYNC:
                warning = change.after == "Warning" or change.kind == kinds.FOREIGN
                self._mark(_EVENTS, Mark(at=self._at, is_warning=warning))
        self._seen[uid] = self._at

    def rows(self) -> list[Row]:
        """The phase first, then Ready and the other conditions, then containers, then events."""
        for uid, part in list(self._open):
            self._switch(uid, part, "", Tone.DONE, at=self._end)
        parts = dict.fromkeys((*self._spells, *self._marks))
        rows = (
            Row(
                part=part,
                spells=tuple(self._spells.get(part, ())),
                marks=tuple(self._marks.get(part, ())),
            )
            for part in sorted(parts, key=lambda part: _ORDER.index(part[0]))
        )
        return [row for row in rows if row.spells or row.marks]

    def _delete(self, uid: PodUID) -> None:
        self._deleting.add(uid)
        if (uid, _PHASE) in self._open:
            self._switch(uid, _PHASE, TERMINATING, Tone.WAITING)

    def _finish(self, uid: PodUID) -> None:
        for owner, part in [key for key in self._open if key[0] == uid]:
            self._switch(owner, part, "", Tone.DONE)

    def _missed(self, uid: PodUID, length: str) -> None:
        """Nobody saw the pod for so long; what it was like before is taken to be so again."""
        # What was noted was seen: the length is known to the second only.
        since = max(self._at - _nanos(length), self._seen.get(uid, 0))
        if since >= self._at:
            return
        for owner, part in [key for key in self._open if key[0] == uid]:
            _, text, tone = self._open[owner, part]
            self._switch(owner, part, _AWAY, Tone.AWAY, at=since)
            self._switch(owner, part, text, tone)

    def _state(
        self,
        uid: PodUID,
        part: Part,
        change: Transition,
        text: str,
        tone: Callable[[Transition, str], Tone],
    ) -> None:
        # Rows are in the order in which their parts were first told of.
        self._spells.setdefault(part, [])
        if change.before and (uid, part) not in self._open:
            # What it was before is told, though not since when: the history has forgotten that.
            before = change.before
            self._open[uid, part] = self._begin, short_state(before), tone(change, before)
        self._switch(uid, part, short_state(text), tone(change, text))

    def _switch(
        self, uid: PodUID, part: Part, text: str, tone: Tone, *, at: int | None = None
    ) -> None:
        """It is like this from now on; without a text, nothing is there any more."""
        now = self._at if at is None else at
        found = self._open.pop((uid, part), None)
        if found is not None:
            self._close(part, found, now)
        if text:
            self._open[uid, part] = now, text, tone

    def _close(self, part: Part, found: tuple[int, str, Tone], end: int) -> None:
        since, text, tone = found
        begin, end = max(since, self._begin), min(end, self._end)
        if begin > end:
            return
        spells = self._spells[part]
        if spells and spells[-1].tone is Tone.AWAY and 0 <= end - spells[-1].end < _AT_ONCE:
            return  # it was different when the agent came back: nobody knows since when
        if spells and (spells[-1].end, spells[-1].text, spells[-1].tone) == (begin, text, tone):
            begin = spells.pop().begin  # only its reason has changed
        spells.append(Spell(begin=begin, end=end, text=text, tone=tone))

    def _mark(self, part: Part, mark: Mark) -> None:
        if self._begin <= mark.at <= self._end:
            self._marks.setdefault(part, []).append(mark)


def _nanos(length: str) -> int:
    """A length as it is noted, `12.345 s`; 0 for one that is none."""
    try:
        return max(0, round(float(length.removesuffix(" s")) * SECOND))
    except (ValueError, OverflowError):
        return 0


def _alike(row: Row, other: Row) -> bool:
    return _states(row.spells) == _states(other.spells)


def _states(spells: Iterable[Spell]) -> list[tuple[int, int, str]]:
    return [(spell.begin, spell.end, spell.text) for spell in spells]


def _is_true_throughout(row: Row) -> bool:
    states = {spell.text for spell in row.spells if spell.tone is not Tone.AWAY}
    return row.part[1] not in GOOD_WHEN_FALSE and states == {"True"}
