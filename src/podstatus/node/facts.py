"""Look at the node: everything that its status is made of, at one moment."""

from collections.abc import Callable, Mapping

from podstatus.base.clock import Clock
from podstatus.kube.objects.node import NodeAddress, NodeSystemInfo
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.conditions import Stated
from podstatus.node.decide.node_object import NodeFacts
from podstatus.node.decide.pressure import PressureHistory, Threshold, pressures, recovered
from podstatus.node.decide.readings import MachineReading, UsageSnapshot
from podstatus.node.ports import Health


class NodeObserver:
    """Gathers what is known, and remembers for how long there was pressure. Never blocks."""

    def __init__(
        self,
        *,
        info: NodeSystemInfo,
        addresses: Callable[[], tuple[NodeAddress, ...]],
        usage: Callable[[], UsageSnapshot | None],
        health: Health,
        thresholds: Mapping[str, Threshold],
        pressure_seconds: float = 300.0,
        port: Callable[[], int] = int,
        stated: Callable[[], tuple[Stated, ...] | None] = tuple,
        clock: Clock,
    ) -> None:
        self._info = info
        self._addresses = addresses
        self._usage = usage
        self._health = health
        self._thresholds = thresholds
        self._pressure_seconds = pressure_seconds
        self._port = port
        self._stated = stated
        self._clock = clock
        self._history = PressureHistory()

    def problems(self) -> tuple[str, ...]:
        """Why the node is not Ready."""
        return tuple(self._health.problems())

    def facts(self) -> NodeFacts:
        """What is known now."""
        now = self._clock.now()
        snapshot = self._usage()
        machine = None if snapshot is None else snapshot.machine
        return NodeFacts(
            info=self._info,
            addresses=self._addresses(),
            port=self._port(),
            machine=machine,
            pressures=self._pressures(machine, now),
            problems=self.problems(),
            stated=self._stated(),
            now=Time.from_unix_nanos(now).truncated(),
        )

    def _pressures(self, machine: MachineReading | None, now: int) -> frozenset[str]:
        if machine is None:
            return self._history.held(self._pressure_seconds, now)
        self._history = self._history.observed(pressures(machine, self._thresholds), now)
        ample = recovered(machine, self._thresholds)
        return self._history.held(self._pressure_seconds, now, ample)
