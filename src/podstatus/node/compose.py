"""Put the services of a node together."""

from collections.abc import Callable
from functools import partial
from random import random
from typing import NamedTuple

from podstatus.base.clock import Clock
from podstatus.kube.objects.node import NodeSystemInfo
from podstatus.node.decide.conditions import AlertCondition
from podstatus.node.decide.node_object import NodeBuilder
from podstatus.node.decide.pressure import parse_thresholds
from podstatus.node.decide.readings import UsageSnapshot
from podstatus.node.facts import NodeFactsCollector
from podstatus.node.lease import LeaseService
from podstatus.node.machine.addresses import node_addresses
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import HealthReporter, NodeApi, NodeEvents
from podstatus.node.registration import Registration
from podstatus.node.settings import NodeSettings
from podstatus.node.status import NodeStatusService


class NodeServices(NamedTuple):
    """What a node consists of."""

    node_cache: NodeCache
    status: NodeStatusService
    lease: LeaseService
    refresh_draft: Callable[[], None]
    """Take what is known now for the Node that we would register."""


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
    """The services of a node; ValueError if its thresholds cannot be read.

    `lease_api` is for the lease alone, if that is to have connections or a limit of its own.
    `port` tells where the agent listens, once it does; 0 until then. `alert_conditions` tells which
    conditions are True besides, as long as they are; None if nobody can say that yet.
    """
    thresholds = parse_thresholds(settings.eviction_hard)
    observer = NodeFactsCollector(
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
    descriptor = NodeBuilder(settings, thresholds)
    own_node = NodeCache(descriptor.new_node(observer.facts()).node, clock=clock)

    def propose() -> None:
        own_node.set_draft(descriptor.new_node(observer.facts()).node)

    registration = Registration(
        api,
        own_node,
        descriptor,
        facts=observer.facts,
        clock=clock,
        random=random,
        heartbeat=status_heartbeat,
    )
    status = NodeStatusService(
        api,
        own_node,
        settings=settings,
        builder=descriptor,
        collector=observer,
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
        node_uid=lambda: own_node.uid,
        duration=settings.lease_duration_seconds,
        on_recovered=on_recovered,
        random=random,
        heartbeat=lease_heartbeat,
    )
    return NodeServices(own_node, status, lease, propose)
