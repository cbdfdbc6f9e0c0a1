"""Build the services of a node."""

from collections.abc import Callable
from random import random
from typing import NamedTuple

from podstatus.base.clock import Clock
from podstatus.node.decide.node_object import NodeBuilder
from podstatus.node.facts_collector import FactSources, NodeFactsCollector
from podstatus.node.lease import LeaseService
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import NodeApi, NodeEvents
from podstatus.node.registration import NodeDependencies, Registration
from podstatus.node.settings import NodeSettings
from podstatus.node.status_service import NodeStatusService


class NodeServices(NamedTuple):
    """The services that `build_node` returns."""

    status: NodeStatusService
    lease: LeaseService
    refresh_draft: Callable[[], None]
    """Rebuild the Node that would be registered from the current facts."""


class NodeCallbacks(NamedTuple):
    """What the services that `build_node` returns call."""

    status_heartbeat: Callable[[], None]
    lease_heartbeat: Callable[[], None]
    on_recovered: Callable[[], None]
    """Called after an outage that was longer than the lease duration."""


def build_node(
    settings: NodeSettings,
    sources: FactSources,
    *,
    api: NodeApi,
    events: NodeEvents,
    clock: Clock,
    node_cache: NodeCache,
    callbacks: NodeCallbacks,
    random: Callable[[], float] = random,
) -> NodeServices:
    """Build the services of a node, and set the draft of `node_cache`."""
    collector = NodeFactsCollector(settings, sources, clock=clock)
    builder = NodeBuilder(settings, sources.reserve)

    def refresh_draft() -> None:
        node_cache.set_draft(builder.new_node(collector.facts()).node)

    refresh_draft()
    dependencies = NodeDependencies(
        api=api,
        node_cache=node_cache,
        builder=builder,
        collector=collector,
        clock=clock,
        heartbeat=callbacks.status_heartbeat,
    )
    registration = Registration(dependencies, random=random)
    status = NodeStatusService(settings, dependencies, registration, events=events, random=random)
    lease = LeaseService(
        api,
        settings.name,
        clock=clock,
        node_uid=lambda: node_cache.uid,
        duration=settings.lease_duration_seconds,
        on_recovered=callbacks.on_recovered,
        random=random,
        heartbeat=callbacks.lease_heartbeat,
    )
    return NodeServices(status, lease, refresh_draft)
