"""Collect the inputs of the node status."""

from collections.abc import Callable, Mapping

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.objects.node import NodeSystemInfo
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.conditions import AlertCondition
from podstatus.node.decide.node_object import NodeFacts
from podstatus.node.decide.pressure_conditions import (
    PressureHistory,
    Threshold,
    pressures,
    recovered_pressures,
)
from podstatus.node.decide.readings import MachineReading, UsageSnapshot
from podstatus.node.machine.node_addresses import node_addresses
from podstatus.node.settings import NodeSettings


class FactSources(msgspec.Struct, frozen=True, kw_only=True):
    """Where the facts come from."""

    info: NodeSystemInfo
    usage: Callable[[], UsageSnapshot | None]
    problems: Callable[[], tuple[str, ...]]
    """Reasons why the node is not Ready."""
    port: Callable[[], int]
    """The port that the agent listens on; 0 until it does."""
    alert_conditions: Callable[[], tuple[AlertCondition, ...]]
    """Conditions that are True while an alert fires."""


class NodeFactsCollector:
    """Collects facts, and keeps the history of pressures. Never blocks."""

    def __init__(
        self,
        settings: NodeSettings,
        sources: FactSources,
        *,
        thresholds: Mapping[str, Threshold],
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._sources = sources
        self.problems = sources.problems
        self._thresholds = thresholds
        self._clock = clock
        self._history = PressureHistory()

    def facts(self) -> NodeFacts:
        """The facts at this moment."""
        sources, now = self._sources, self._clock.now()
        snapshot = sources.usage()
        machine = None if snapshot is None else snapshot.machine
        return NodeFacts(
            info=sources.info,
            addresses=node_addresses(self._settings),
            port=sources.port(),
            machine=machine,
            pressures=self._pressures(machine),
            problems=self.problems(),
            alert_conditions=sources.alert_conditions(),
            now=Time.from_unix_nanos(now).truncated(),
        )

    def _pressures(self, machine: MachineReading | None) -> frozenset[str]:
        now, hold_seconds = self._clock.monotonic(), self._settings.pressure_transition_seconds
        if machine is None:
            return self._history.active(hold_seconds, now)
        self._history = self._history.with_observation(pressures(machine, self._thresholds), now)
        recovered = recovered_pressures(machine, self._thresholds)
        return self._history.active(hold_seconds, now, recovered)
