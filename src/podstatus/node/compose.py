"""Build the services of a node."""

from collections.abc import Callable
from functools import partial
from random import random
from typing import NamedTuple

from podstatus.base.clock import Clock
from podstatus.kube.objects.node import NodeSystemInfo
from podstatus.node.decide.conditions import AlertCondition
from podstatus.node.decide.eviction_thresholds import parse_thresholds
from podstatus.node.decide.node_object import NodeBuilder
from podstatus.node.decide.readings import UsageSnapshot
from podstatus.node.facts_collector import NodeFactsCollector
from podstatus.node.lease import LeaseService
from podstatus.node.machine.addresses import node_addresses
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import HealthReporter, NodeApi, NodeEvents
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


def build_node(
    settings: NodeSettings,
    *,
    api: NodeApi,
    lease_api: NodeApi | None = None,
    info: NodeSystemInfo,
    usage: Callable[[], UsageSnapshot | None],
    health: HealthReporter,
    events: NodeEvents,
    clock: Clock,
    port: Callable[[], int] = int,
    alert_conditions: Callable[[], tuple[AlertCondition, ...] | None] = tuple,
    on_recovered: Callable[[], None] = lambda: None,
    status_heartbeat: Callable[[], None] = lambda: None,
    lease_heartbeat: Callable[[], None] = lambda: None,
    random: Callable[[], float] = random,
) -> NodeServices:
    """Build the services of a node. Raises ValueError if `eviction_hard` is invalid.

    `lease_api`: a separate client for the lease, with its own connections or rate limit. `port`:
    the port that the agent listens on; 0 until it does. `alert_conditions`: conditions that are
    True while an alert fires; None until the alerts have been evaluated.
    """
    thresholds = parse_thresholds(settings.eviction_hard)
    collector = NodeFactsCollector(
        info=info,
        addresses=partial(node_addresses, settings),
        usage=usage,
        health=health,
        thresholds=thresholds,
        pressure_seconds=settings.pressure_transition_seconds,
        port=port,
        alert_conditions=alert_conditions,
        clock=clock,
    )
    builder = NodeBuilder(settings, thresholds)
    node_cache = NodeCache(builder.new_node(collector.facts()).node)

    def refresh_draft() -> None:
        node_cache.set_draft(builder.new_node(collector.facts()).node)

    registration = Registration(
        api,
        node_cache,
        builder,
        facts=collector.facts,
        clock=clock,
        random=random,
        heartbeat=status_heartbeat,
    )
    status = NodeStatusService(
        api,
        node_cache,
        settings=settings,
        builder=builder,
        collector=collector,
        registration=registration,
        events=events,
        clock=clock,
        random=random,
        heartbeat=status_heartbeat,
    )
    lease = LeaseService(
        lease_api or api,
        settings.name,
        clock=clock,
        node_uid=lambda: node_cache.uid,
        duration=settings.lease_duration_seconds,
        on_recovered=on_recovered,
        random=random,
        heartbeat=lease_heartbeat,
    )
    return NodeServices(node_cache, status, lease, refresh_draft)
