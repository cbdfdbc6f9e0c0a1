"""Collect the inputs of the node status."""

from collections.abc import Callable, Mapping

from podstatus.base.clock import Clock
from podstatus.kube.objects.node import NodeAddress, NodeSystemInfo
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.conditions import AlertCondition
from podstatus.node.decide.eviction_thresholds import (
    PressureHistory,
    Threshold,
    pressures,
    recovered_pressures,
)
from podstatus.node.decide.node_object import NodeFacts
from podstatus.node.decide.readings import MachineReading, UsageSnapshot
from podstatus.node.ports import HealthReporter


class NodeFactsCollector:
    """Collects facts, and keeps the history of pressures. Never blocks."""

    def __init__(
        self,
        *,
        info: NodeSystemInfo,
        addresses: Callable[[], tuple[NodeAddress, ...]],
        usage: Callable[[], UsageSnapshot | None],
        health: HealthReporter,
        thresholds: Mapping[str, Threshold],
        pressure_seconds: float = 300.0,
        port: Callable[[], int] = int,
        alert_conditions: Callable[[], tuple[AlertCondition, ...] | None] = tuple,
        clock: Clock,
    ) -> None:
        self._info = info
        self._addresses = addresses
        self._usage = usage
        self._health = health
        self._thresholds = thresholds
        self._pressure_seconds = pressure_seconds
        self._port = port
        self._alert_conditions = alert_conditions
        self._clock = clock
        self._history = PressureHistory()

    def problems(self) -> tuple[str, ...]:
        """Reasons why the node is not Ready."""
        return tuple(self._health.problems())

    def facts(self) -> NodeFacts:
        """The facts at this moment."""
        now = self._clock.now()
        snapshot = self._usage()
        machine = None if snapshot is None else snapshot.machine
        return NodeFacts(
            info=self._info,
            addresses=self._addresses(),
            port=self._port(),
            machine=machine,
            pressures=self._pressures(machine),
            problems=self.problems(),
            alert_conditions=self._alert_conditions(),
            now=Time.from_unix_nanos(now).truncated(),
        )

    def _pressures(self, machine: MachineReading | None) -> frozenset[str]:
        now = self._clock.monotonic()
        if machine is None:
            return self._history.active(self._pressure_seconds, now)
        self._history = self._history.with_observation(pressures(machine, self._thresholds), now)
        recovered = recovered_pressures(machine, self._thresholds)
        return self._history.active(self._pressure_seconds, now, recovered)
