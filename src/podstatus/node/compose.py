"""Put the services of a node together."""

from collections.abc import Callable
from functools import partial
from random import random
from typing import NamedTuple

from podstatus.base.clock import Clock
from podstatus.kube.objects.node import NodeSystemInfo
from podstatus.node.decide.conditions import Stated
from podstatus.node.decide.node_object import Descriptor
from podstatus.node.decide.pressure import parse_thresholds
from podstatus.node.decide.readings import UsageSnapshot
from podstatus.node.facts import NodeObserver
from podstatus.node.lease import LeaseService
from podstatus.node.machine.addresses import node_addresses
from podstatus.node.node_cache import OwnNode
from podstatus.node.ports import Health, NodeApi, NodeEvents
from podstatus.node.registration import Registration
from podstatus.node.settings import NodeSettings
from podstatus.node.status import NodeStatusService


class NodeServices(NamedTuple):
    """What a node consists of."""

    own_node: OwnNode
    status: NodeStatusService
    lease: LeaseService
    propose: Callable[[], None]
    """Take what is known now for the Node that we would register."""


def make_node(
    settings: NodeSettings,
    *,
    api: NodeApi,
    lease_api: NodeApi | None = None,
    info: NodeSystemInfo,
    usage: Callable[[], UsageSnapshot | None],
    health: Health,
    events: NodeEvents,
    clock: Clock,
    port: Callable[[], int] = int,
    stated: Callable[[], tuple[Stated, ...] | None] = tuple,
    on_recovered: Callable[[], None] = lambda: None,
    status_beat: Callable[[], None] = lambda: None,
    lease_beat: Callable[[], None] = lambda: None,
    chance: Callable[[], float] = random,
) -> NodeServices:
    """The services of a node; ValueError if its thresholds cannot be read.

    `lease_api` is for the lease alone, if that is to have connections or a limit of its own.
    `port` tells where the agent listens, once it does; 0 until then. `stated` tells which
    conditions are True besides, as long as they are; None if nobody can say that yet.
    """
    thresholds = parse_thresholds(settings.eviction_hard)
    observer = NodeObserver(
        info=info,
        addresses=partial(node_addresses, settings),
        usage=usage,
        health=health,
        thresholds=thresholds,
        pressure_seconds=settings.pressure_transition_seconds,
        port=port,
        stated=stated,
        clock=clock,
    )
    descriptor = Descriptor(settings, thresholds)
    own_node = OwnNode(descriptor.new_node(observer.facts()).node, clock=clock)

    def propose() -> None:
        own_node.propose(descriptor.new_node(observer.facts()).node)

    registration = Registration(
        api,
        own_node,
        descriptor,
        facts=observer.facts,
        clock=clock,
        chance=chance,
        beat=status_beat,
    )
    status = NodeStatusService(
        api,
        own_node,
        settings=settings,
        descriptor=descriptor,
        observer=observer,
        registration=registration,
        events=events,
        clock=clock,
        chance=chance,
        beat=status_beat,
    )
    lease = LeaseService(
        lease_api or api,
        settings.name,
        clock=clock,
        node_uid=lambda: own_node.uid,
        duration=settings.lease_duration_seconds,
        on_recovered=on_recovered,
        chance=chance,
        beat=lease_beat,
    )
    return NodeServices(own_node, status, lease, propose)
