"""Compute how long a pod or node was in each state: rows of intervals and marks.

```
phase   Pending for 2 s, Running for 40 s
app     running for 1 s, Error 3 for 0.1 s, CrashLoopBackOff for 10 s; restarted at …
events  BackOff at …
```
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from podstatus.cli.timeline_view.load_rows import LoadRow, load_rows
from podstatus.cli.timeline_view.severities import (
    GOOD_WHEN_FALSE,
    TERMINATING,
    Severity,
    condition_severity,
    container_severity,
    node_condition_severity,
    phase_severity,
    short_state,
    taint_severity,
)
from podstatus.cli.timeline_view.time_axis import SECOND
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.summary.container_state import ContainerStateSummary
from podstatus.observe.transitions import compare_statuses as kinds
from podstatus.observe.transitions.compare_statuses import Transition
from podstatus.observe.transitions.node_transitions import RUNNING

Part = tuple[str, str]
"""The key of a row: the kind of the transitions, and their subject."""
_PHASE = (kinds.PHASE, "")
_READY = (kinds.CONDITION, "Ready")
_EVENTS = (kinds.EVENT, "")
_AWAY = "agent away"
_MAX_AWAY_SECONDS = 1e9
"""31 years: a longer downtime is drawn as this one."""
_RESYNC_NANOS = 2_000_000_000
"""Time after its start in which a restarted agent records the current states."""
_ORDER = (
    kinds.PHASE,
    kinds.CONDITION,
    kinds.TAINT,
    kinds.AGENT,
    kinds.CONTAINER,
    kinds.EVENT,
)


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A state from `begin` to `end`, in nanoseconds since the Unix epoch."""

    begin: int
    end: int
    text: str
    severity: Severity


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A restart or an event at one point in time."""

    at: int
    text: str = ""
    """The restart count; empty for an event."""
    is_warning: bool = False


class ChartRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the chart: phase, condition, container, taint, agent or events."""

    part: Part
    intervals: tuple[Interval, ...] = ()
    marks: tuple[Mark, ...] = ()

    @property
    def name(self) -> str:
        """The name of the row."""
        kind, subject = self.part
        if kind == kinds.TAINT:
            subject = subject.rpartition("/")[2]
        return "events" if self.is_events else subject or kind

    @property
    def is_events(self) -> bool:
        """True if its marks are events, not restarts."""
        return self.part == _EVENTS


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of a time span, in nanoseconds since the Unix epoch."""

    begin: int
    end: int
    rows: tuple[ChartRow, ...]
    same_as_ready: tuple[str, ...] = ()
    """Conditions that were always equal to Ready; they have no row."""
    always_true: tuple[str, ...] = ()
    """Conditions that were always True; they have no row."""
    always_false: tuple[str, ...] = ()
    """Conditions of a node that were always False, which is good; they have no row."""
    loads: tuple[LoadRow, ...] = ()
    """The load of a node."""


def build_chart(
    entries: Sequence[HistoryEntry], *, begin: int, end: int, existing: PodUID | None = None
) -> Chart:
    """Build the chart of a time span from entries in order.

    Entries before `begin` determine the initial states. `existing`: the pod that still exists,
    whose states last until `end` even if it has finished.
    """
    rows = _build_rows(entries, _ChartBuilder(begin, end, existing))
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


def build_node_chart(
    entries: Sequence[HistoryEntry],
    samples: Sequence[NodeLoadSample],
    *,
    begin: int,
    end: int,
) -> Chart:
    """Build the chart of a node from entries and samples in order."""
    rows = _build_rows(
        entries, _ChartBuilder(begin, end, None, condition_severity=node_condition_severity)
    )
    good = [row for row in rows if row.part[0] == kinds.CONDITION and _is_always_false(row)]
    return Chart(
        begin=begin,
        end=end,
        rows=tuple(row for row in rows if row not in good),
        always_false=tuple(row.name for row in good),
        loads=load_rows(samples, _downtimes(entries), begin=begin, end=end),
    )


def _build_rows(entries: Iterable[HistoryEntry], builder: "_ChartBuilder") -> list[ChartRow]:
    for entry in entries:
        builder.add(entry)
    return builder.rows()


def _downtimes(entries: Iterable[HistoryEntry]) -> list[tuple[int, int]]:
    """Return beginning and end of each downtime: nothing was measured in it."""
    return [
        (entry.at - round(min(seconds, _MAX_AWAY_SECONDS) * SECOND), entry.at)
        for entry in entries
        if entry.transition.kind == kinds.AGENT_DOWNTIME
        and (seconds := entry.transition.duration_seconds)
    ]


class _ChartBuilder:
    """Builds the rows from history entries, added in order."""

    def __init__(
        self,
        begin: int,
        end: int,
        existing: PodUID | None,
        *,
        condition_severity: Callable[[Transition, str], Severity] = condition_severity,
    ) -> None:
        self._condition_severity = condition_severity
        self._begin = begin
        self._end = end
        self._existing = existing
        self._at = 0
        self._open: dict[tuple[PodUID, Part], tuple[int, str, Severity]] = {}
        self._intervals: dict[Part, list[Interval]] = {_PHASE: [], _READY: []}
        self._marks: dict[Part, list[Mark]] = {}
        self._deleting: set[PodUID] = set()
        self._last_seen: dict[PodUID, int] = {}
        """Time of the last entry of each pod."""

    def add(self, entry: HistoryEntry) -> None:
        # Keep the order of entries even if the wall clock was set back.
        self._at = max(self._at, entry.at)
        change, uid = entry.transition, entry.uid
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
                    (before, self._condition_severity(change, before)),
                    (after, self._condition_severity(change, after)),
                )
            case kinds.TAINT | kinds.AGENT:
                part = change.kind, change.subject
                self._set_state(
                    uid, part, _node_state(change, change.before), _node_state(change, change.after)
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
            case kinds.FINISHED if uid != self._existing:
                self._finish(uid)
            case kinds.AGENT_DOWNTIME:
                self._agent_away(uid, change.duration_seconds or 0.0)
            case kinds.EVENT | kinds.FOREIGN_WRITE | kinds.SYNC:
                warning = change.after == "Warning" or change.kind == kinds.FOREIGN_WRITE
                self._mark(_EVENTS, Mark(at=self._at, is_warning=warning))
        self._last_seen[uid] = self._at

    def rows(self) -> list[ChartRow]:
        """Return the rows: phase, Ready, other conditions, containers, events."""
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

    def _agent_away(self, uid: PodUID, seconds: float) -> None:
        """Insert an interval without an agent; the state before it is assumed to continue."""
        # Not before the last entry: the downtime is accurate to the second only.
        since = max(
            self._at - round(min(seconds, _MAX_AWAY_SECONDS) * SECOND), self._last_seen.get(uid, 0)
        )
        if since >= self._at:
            return
        for owner, part in [key for key in self._open if key[0] == uid]:
            _, text, severity = self._open[owner, part]
            self._switch(owner, part, _AWAY, Severity.AWAY, at=since)
            self._switch(owner, part, text, severity)

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
        """Close the open interval and start a new one, unless `text` is empty."""
        now = self._at if at is None else at
        state = self._open.pop((uid, part), None)
        if state is not None:
            self._close(part, state, now)
        if text:
            self._open[uid, part] = now, text, severity

    def _close(self, part: Part, state: tuple[int, str, Severity], end: int) -> None:
        since, text, severity = state
        begin, end = max(since, self._begin), min(end, self._end)
        if begin > end:
            return
        intervals = self._intervals[part]
        last = intervals[-1] if intervals else None
        if last is not None:
            if last.severity is Severity.AWAY and 0 <= end - last.end < _RESYNC_NANOS:
                return  # the state changed during the downtime, at an unknown time
            if (last.end, last.text, last.severity) == (begin, text, severity):
                begin = intervals.pop().begin  # only the reason changed
        intervals.append(Interval(begin=begin, end=end, text=text, severity=severity))

    def _mark(self, part: Part, mark: Mark) -> None:
        if self._begin <= mark.at <= self._end:
            self._marks.setdefault(part, []).append(mark)


def _phase_state(phase: str) -> tuple[str, Severity]:
    return phase, phase_severity(phase)


def _node_state(change: Transition, text: str) -> tuple[str, Severity]:
    """The state of a taint or of the agent."""
    if change.kind == kinds.TAINT:
        return text, taint_severity(change.subject)
    return text, Severity.GOOD if text == RUNNING else Severity.AWAY


def _container_state(state: ContainerStateSummary | None) -> tuple[str, Severity]:
    return short_state(state), container_severity(state)


def _have_same_states(row: ChartRow, other: ChartRow) -> bool:
    return _states(row.intervals) == _states(other.intervals)


def _states(intervals: Iterable[Interval]) -> list[tuple[int, int, str]]:
    return [(it.begin, it.end, it.text) for it in intervals]


def _is_always_false(row: ChartRow) -> bool:
    states = {it.text for it in row.intervals if it.severity is not Severity.AWAY}
    return row.part[1] != "Ready" and states == {"False"}


def _is_always_true(row: ChartRow) -> bool:
    states = {it.text for it in row.intervals if it.severity is not Severity.AWAY}
    return row.part[1] not in GOOD_WHEN_FALSE and states == {"True"}
