"""Build the services of a node."""

from collections.abc import Callable
from random import random
from typing import NamedTuple

from podstatus.base.clock import Clock
from podstatus.node.decide.node_object import NodeBuilder
from podstatus.node.decide.pressure_conditions import parse_thresholds
from podstatus.node.dependencies import NodeDependencies
from podstatus.node.facts_collector import FactSources, NodeFactsCollector
from podstatus.node.lease import LeaseService
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import NodeApi, NodeEvents
from podstatus.node.registration import Registration
from podstatus.node.settings import NodeSettings
from podstatus.node.status_service import NodeStatusService


class NodeServices(NamedTuple):
    """The services that `build_node` returns."""

    node_cache: NodeCache
    status: NodeStatusService
    lease: LeaseService
    refresh_draft: Callable[[], None]
    """Rebuild the Node that would be registered from the current facts."""


class NodeHeartbeats(NamedTuple):
    """Heartbeats of the services that `build_node` returns."""

    status: Callable[[], None]
    lease: Callable[[], None]


def build_node(
    settings: NodeSettings,
    sources: FactSources,
    *,
    api: NodeApi,
    events: NodeEvents,
    clock: Clock,
    heartbeats: NodeHeartbeats,
    on_recovered: Callable[[], None],
    random: Callable[[], float] = random,
) -> NodeServices:
    """Build the services of a node. Raises ValueError if `eviction_hard` is invalid.

    `on_recovered` is called after an outage that was longer than the lease duration.
    """
    thresholds = parse_thresholds(settings.eviction_hard)
    collector = NodeFactsCollector(settings, sources, thresholds=thresholds, clock=clock)
    builder = NodeBuilder(settings, thresholds)
    node_cache = NodeCache(builder.new_node(collector.facts()).node)

    def refresh_draft() -> None:
        node_cache.set_draft(builder.new_node(collector.facts()).node)

    dependencies = NodeDependencies(
        api=api,
        node_cache=node_cache,
        builder=builder,
        collector=collector,
        clock=clock,
        heartbeat=heartbeats.status,
    )
    registration = Registration(dependencies, random=random)
    status = NodeStatusService(settings, dependencies, registration, events=events, random=random)
    lease = LeaseService(
        api,
        settings.name,
        clock=clock,
        node_uid=lambda: node_cache.uid,
        duration=settings.lease_duration_seconds,
        on_recovered=on_recovered,
        random=random,
        heartbeat=heartbeats.lease,
    )
    return NodeServices(node_cache, status, lease, refresh_draft)
