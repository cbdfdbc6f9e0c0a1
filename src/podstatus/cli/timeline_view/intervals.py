"""Compute how long a pod was in each state: rows of intervals and marks, with their severity.

```
phase   Pending for 2 s, Running for 40 s
app     running for 1 s, Error 3 for 0.1 s, CrashLoopBackOff for 10 s; restarted at …
events  BackOff at …
```
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum

import msgspec

from podstatus.cli.timeline_view.time_axis import SECOND
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.store import HistoryEntry
from podstatus.observe.summary.container_state import (
    ContainerStateSummary,
    format_container_state,
)
from podstatus.observe.transitions import status_transitions as kinds
from podstatus.observe.transitions.status_transitions import Transition

GOOD_WHEN_FALSE = ("DisruptionTarget", "PodResizePending", "PodResizeInProgress")
TERMINATING = "Terminating"


class Severity(IntEnum):
    """How a state is to be seen; what is worse is greater."""

    GOOD = 0
    DONE = 1
    WAITING = 2
    UNKNOWN = 3
    BACK_OFF = 4
    BAD = 5
    AWAY = 6
    """Nobody was there to see it."""


def short_state(state: ContainerStateSummary | None) -> str:
    """`running`, `CrashLoopBackOff`, `Error 3`: the severity of the row tells the rest."""
    if state is None or not (state.reason or state.is_terminated):
        return format_container_state(state)
    code = "" if state.exit_code is None else str(state.exit_code)
    return " ".join(filter(None, (state.reason, code)))


def phase_severity(text: str) -> Severity:
    """Of a phase."""
    tones = {
        "Running": Severity.GOOD,
        "Succeeded": Severity.DONE,
        "Failed": Severity.BAD,
        "Pending": Severity.WAITING,
        TERMINATING: Severity.WAITING,
    }
    return tones.get(text, Severity.UNKNOWN)


def condition_severity(change: Transition, text: str) -> Severity:
    """Of a condition: some are good when they are False."""
    if text not in ("True", "False"):
        return Severity.UNKNOWN
    is_true = text == "True"
    if change.subject in GOOD_WHEN_FALSE:
        return Severity.WAITING if is_true else Severity.DONE
    if is_true:
        return Severity.GOOD
    return {"PodCompleted": Severity.DONE, "PodFailed": Severity.BAD}.get(
        change.reason, Severity.WAITING
    )


def container_severity(state: ContainerStateSummary | None) -> Severity:
    """Of a container."""
    if state is None or state.is_starting or (state.is_waiting and not state.reason):
        return Severity.WAITING
    if state.is_running:
        return Severity.GOOD
    if state.is_terminated:
        return Severity.BAD if state.has_failed else Severity.DONE
    return Severity.BACK_OFF if state.reason.endswith("BackOff") else Severity.BAD


Part = tuple[str, str]
"""Of a pod: the kind of its transitions, and their subject."""
_PHASE = (kinds.PHASE, "")
_READY = (kinds.CONDITION, "Ready")
_EVENTS = (kinds.EVENT, "")
_AWAY = "agent away"
_RESYNC_NANOS = 2_000_000_000
"""Nanoseconds after its start in which an agent that is back says what it finds."""
_ORDER = (kinds.PHASE, kinds.CONDITION, kinds.CONTAINER, kinds.EVENT)


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A state, and how long it lasted. Nanoseconds since the Unix epoch."""

    begin: int
    end: int
    text: str
    severity: Severity


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened at once."""

    at: int
    text: str = ""
    """The number of a restart."""
    is_warning: bool = False


class ChartRow(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a pod."""

    part: Part
    intervals: tuple[Interval, ...] = ()
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
    rows: tuple[ChartRow, ...]
    same_as_ready: tuple[str, ...] = ()
    """Conditions that were as Ready all the time: they have no row."""
    always_true: tuple[str, ...] = ()
    """Conditions that were True all the time."""


def build_chart(moments: Sequence[HistoryEntry], *, begin: int, end: int) -> Chart:
    """What the moments, the oldest first, say about a span of time. Those before it say how
    things were when it began."""
    written = _ChartBuilder(begin, end)
    for moment in moments:
        written.add(moment)
    rows = written.rows()
    ready = next((row for row in rows if row.part == _READY), None)
    others = [row for row in rows if row.part[0] == kinds.CONDITION and row is not ready]
    as_ready = [row for row in others if ready is not None and _have_same_states(row, ready)]
    throughout = [row for row in others if row not in as_ready and _is_always_true(row)]
    return Chart(
        begin=begin,
        end=end,
        rows=tuple(row for row in rows if row not in as_ready and row not in throughout),
        same_as_ready=tuple(row.name for row in as_ready),
        always_true=tuple(row.name for row in throughout),
    )


class _ChartBuilder:
    """Rows that grow, moment after moment."""

    def __init__(self, begin: int, end: int) -> None:
        self._begin = begin
        self._end = end
        self._at = 0
        self._open: dict[tuple[PodUID, Part], tuple[int, str, Severity]] = {}
        self._intervals: dict[Part, list[Interval]] = {_PHASE: [], _READY: []}
        self._marks: dict[Part, list[Mark]] = {}
        self._deleting: set[PodUID] = set()
        self._last_seen: dict[PodUID, int] = {}
        """When something was last noted of each pod."""

    def add(self, moment: HistoryEntry) -> None:
        # A clock that was set back does not turn the order around.
        self._at = max(self._at, moment.at)
        change, uid = moment.transition, moment.uid
        match change.kind:
            case kinds.PHASE:
                after = TERMINATING if uid in self._deleting else change.after
                self._set_state(uid, _PHASE, _phase_state(change.before), _phase_state(after))
            case kinds.CONDITION:
                part = kinds.CONDITION, change.subject
                before, after = change.before, change.after
                self._set_state(
                    uid,
                    part,
                    (before, condition_severity(change, before)),
                    (after, condition_severity(change, after)),
                )
            case kinds.CONTAINER:
                part = kinds.CONTAINER, change.subject
                self._set_state(
                    uid,
                    part,
                    _container_state(change.state_before),
                    _container_state(change.state_after),
                )
            case kinds.RESTART:
                part = kinds.CONTAINER, change.subject
                self._mark(part, Mark(at=self._at, text=change.after))
            case kinds.DELETION:
                self._delete(uid)
            case kinds.FINISHED:
                self._finish(uid)
            case kinds.AGENT_DOWNTIME:
                self._agent_away(uid, change.after)
            case kinds.EVENT | kinds.FOREIGN_WRITE | kinds.SYNC:
                warning = change.after == "Warning" or change.kind == kinds.FOREIGN_WRITE
                self._mark(_EVENTS, Mark(at=self._at, is_warning=warning))
        self._last_seen[uid] = self._at

    def rows(self) -> list[ChartRow]:
        """The phase first, then Ready and the other conditions, then containers, then events."""
        for uid, part in list(self._open):
            self._switch(uid, part, "", Severity.DONE, at=self._end)
        parts = dict.fromkeys((*self._intervals, *self._marks))
        rows = (
            ChartRow(
                part=part,
                intervals=tuple(self._intervals.get(part, ())),
                marks=tuple(self._marks.get(part, ())),
            )
            for part in sorted(parts, key=lambda part: _ORDER.index(part[0]))
        )
        return [row for row in rows if row.intervals or row.marks]

    def _delete(self, uid: PodUID) -> None:
        self._deleting.add(uid)
        if (uid, _PHASE) in self._open:
            self._switch(uid, _PHASE, TERMINATING, Severity.WAITING)

    def _finish(self, uid: PodUID) -> None:
        for owner, part in [key for key in self._open if key[0] == uid]:
            self._switch(owner, part, "", Severity.DONE)

    def _agent_away(self, uid: PodUID, duration: str) -> None:
        """Nobody saw the pod for so long; what it was like before is taken to be so again."""
        # What was noted was seen: the length is known to the second only.
        since = max(self._at - _parse_nanos(duration), self._last_seen.get(uid, 0))
        if since >= self._at:
            return
        for owner, part in [key for key in self._open if key[0] == uid]:
            _, text, tone = self._open[owner, part]
            self._switch(owner, part, _AWAY, Severity.AWAY, at=since)
            self._switch(owner, part, text, tone)

    def _set_state(
        self,
        uid: PodUID,
        part: Part,
        before: tuple[str, Severity],
        after: tuple[str, Severity],
    ) -> None:
        # Rows are in the order in which their parts first appear.
        self._intervals.setdefault(part, [])
        if before[0] and (uid, part) not in self._open:
            # The state before is known, its beginning is not: the history has pruned it.
            self._open[uid, part] = self._begin, *before
        self._switch(uid, part, *after)

    def _switch(
        self, uid: PodUID, part: Part, text: str, severity: Severity, *, at: int | None = None
    ) -> None:
        """It is like this from now on; without a text, nothing is there any more."""
        now = self._at if at is None else at
        found = self._open.pop((uid, part), None)
        if found is not None:
            self._close(part, found, now)
        if text:
            self._open[uid, part] = now, text, severity

    def _close(self, part: Part, state: tuple[int, str, Severity], end: int) -> None:
        since, text, tone = state
        begin, end = max(since, self._begin), min(end, self._end)
        if begin > end:
            return
        spells = self._intervals[part]
        if (
            spells
            and spells[-1].severity is Severity.AWAY
            and 0 <= end - spells[-1].end < _RESYNC_NANOS
        ):
            return  # it was different when the agent came back: nobody knows since when
        if spells and (spells[-1].end, spells[-1].text, spells[-1].severity) == (begin, text, tone):
            begin = spells.pop().begin  # only its reason has changed
        spells.append(Interval(begin=begin, end=end, text=text, severity=tone))

    def _mark(self, part: Part, mark: Mark) -> None:
        if self._begin <= mark.at <= self._end:
            self._marks.setdefault(part, []).append(mark)


def _phase_state(phase: str) -> tuple[str, Severity]:
    return phase, phase_severity(phase)


def _container_state(state: ContainerStateSummary | None) -> tuple[str, Severity]:
    return short_state(state), container_severity(state)


def _parse_nanos(length: str) -> int:
    """A length as it is noted, `12.345 s`; 0 for one that is none."""
    try:
        return max(0, round(float(length.removesuffix(" s")) * SECOND))
    except (ValueError, OverflowError):
        return 0


def _have_same_states(row: ChartRow, other: ChartRow) -> bool:
    return _states(row.intervals) == _states(other.intervals)


def _states(intervals: Iterable[Interval]) -> list[tuple[int, int, str]]:
    return [(spell.begin, spell.end, spell.text) for spell in intervals]


def _is_always_true(row: ChartRow) -> bool:
    states = {spell.text for spell in row.intervals if spell.severity is not Severity.AWAY}
    return row.part[1] not in GOOD_WHEN_FALSE and states == {"True"}
