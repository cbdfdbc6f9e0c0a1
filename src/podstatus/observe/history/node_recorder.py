"""Record the transitions and the load of nodes in the history.

    recorder = NodeRecorder(view.nodes, writer, version=lambda: changes, clock=clock)
    tasks.create_task(recorder.run())

A sample of the load is taken every minute, and written if it differs from the one before it by at
least 5 points, or is the first in ten minutes: a node whose load does not change takes 144 rows a
day. It has the time of the measurement. Beginning and end of a gap are written within seconds.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.writer import HistoryWriter
from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.node_load import ResourceLoad
from podstatus.observe.transitions.node_transitions import NodeState, node_state

_PERIOD_SECONDS = 1.0
_SECOND = 1_000_000_000
_SAMPLE_NANOS = 60 * _SECOND
_GAP_CHECK_NANOS = 15 * _SECOND
MAX_SAMPLE_SECONDS = 600.0
"""Time after which a sample is written even if nothing has changed."""
_MIN_DIFFERENCE = 0.05
_MEASURED = ("cpu", "memory", "disk", "inodes", "pids")
_RESOURCES = (*_MEASURED, "pods")


class NodeRecorder:
    """Records the nodes of a status view; a service."""

    def __init__(
        self,
        nodes: Callable[[], Mapping[str, NodeSummary]],
        writer: HistoryWriter[Any],
        *,
        version: Callable[[], object],
        clock: Clock,
    ) -> None:
        """`version` returns another object after a change of a node: `nodes` is expensive."""
        self._nodes = nodes
        self._writer = writer
        self._version = version
        self._clock = clock
        self._seen_version: object = None
        # Not at once: shortly after a start, the usage is that of the start itself.
        self._sampled_at = self._checked_at = clock.monotonic()
        self._states: dict[str, NodeState] = {}
        self._samples: dict[str, NodeLoadSample] = {}
        """The last written sample of each node."""

    async def run(self) -> None:
        """Record every second until cancelled."""
        while True:
            self.record_once()
            await self._clock.wait(_PERIOD_SECONDS)

    def record_once(self) -> None:
        """Queue what has changed, and a sample of the load if one is due or a gap was found."""
        now, version = self._clock.monotonic(), self._version()
        is_sample_due = now - self._sampled_at >= _SAMPLE_NANOS
        is_check_due = is_sample_due or now - self._checked_at >= _GAP_CHECK_NANOS
        if version is self._seen_version and not is_check_due:
            return
        nodes = self._nodes()
        self._seen_version = version
        self._record_states(nodes)
        if is_check_due:
            self._checked_at = now
            self._record_loads(nodes, gaps_only=not is_sample_due)
        if is_sample_due:
            self._sampled_at = now

    def _record_states(self, nodes: Mapping[str, NodeSummary]) -> None:
        for name in self._states.keys() - nodes.keys():
            del self._states[name]
            self._samples.pop(name, None)
            self._writer.node_removed(name)
        for name, node in nodes.items():
            state = node_state(node)
            if state != self._states.get(name):
                self._states[name] = state
                self._writer.node_changed(state)

    def _record_loads(self, nodes: Mapping[str, NodeSummary], *, gaps_only: bool) -> None:
        """Queue samples; with `gaps_only`, those that begin or end a gap."""
        now = self._clock.now()
        is_due = begins_or_ends_gap if gaps_only else is_worth_recording
        for name, node in nodes.items():
            before = self._samples.get(name)
            sample = load_sample(node, before, now)
            if is_due(before, sample):
                self._samples[name] = sample
                self._writer.add_node_load(sample)


def load_sample(node: NodeSummary, before: NodeLoadSample | None, now: int) -> NodeLoadSample:
    """Return the used fractions of the last minute; None where they are unknown.

    It has the time of the last measurement, also the one that begins a gap; in a gap, that of now.
    """
    fractions = {name: _last_minute(getattr(node.load, name)) for name in _RESOURCES}
    sample = NodeLoadSample(node=node.name, at=now, **fractions)
    if not _is_measured(sample) and (before is None or not _is_measured(before)):
        return sample
    return structs.replace(sample, at=now - round((node.load.age_seconds or 0.0) * _SECOND))


def begins_or_ends_gap(before: NodeLoadSample | None, sample: NodeLoadSample) -> bool:
    """Return whether a sample is measured and the one before it is not, or the other way."""
    return before is not None and _is_measured(before) != _is_measured(sample)


def is_worth_recording(before: NodeLoadSample | None, sample: NodeLoadSample) -> bool:
    """Return whether a sample adds something to the one that was written before it."""
    if before is None:
        return any(getattr(sample, name) is not None for name in _RESOURCES)
    if not 0 <= sample.at - before.at < MAX_SAMPLE_SECONDS * _SECOND:
        return True
    return any(_differs(getattr(before, name), getattr(sample, name)) for name in _RESOURCES)


def _is_measured(sample: NodeLoadSample) -> bool:
    return any(getattr(sample, name) is not None for name in _MEASURED)


def _differs(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) >= _MIN_DIFFERENCE


def _last_minute(load: ResourceLoad) -> float | None:
    """The average, which the current usage is part of; None in a gap."""
    average = load.averages.get("1m")
    is_known = load.used_fraction is not None and average is not None
    return average.used_fraction if is_known and average else load.used_fraction
