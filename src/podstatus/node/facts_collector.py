"""Collect the inputs of the node status."""

from collections.abc import Callable

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.objects.node import NodeSystemInfo
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.capacity import Reserve, reserve_nothing
from podstatus.node.decide.conditions import AlertCondition
from podstatus.node.decide.node_object import NodeFacts
from podstatus.node.decide.readings import UsageSnapshot
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
    pressures: Callable[[], tuple[str, ...]] = tuple
    """The pressure conditions that are True."""
    reserve: Reserve = reserve_nothing
    """What eviction thresholds keep free."""


class NodeFactsCollector:
    """Collects the inputs of the node status at one moment. Never blocks."""

    def __init__(self, settings: NodeSettings, sources: FactSources, *, clock: Clock) -> None:
        self._settings = settings
        self._sources = sources
        self.problems = sources.problems
        self._clock = clock

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
            pressures=sources.pressures(),
            problems=self.problems(),
            alert_conditions=sources.alert_conditions(),
            now=Time.from_unix_nanos(now).truncated(),
        )
