"""What the parts of a node agent share, and how they notify each other."""

from collections.abc import Callable, Sequence
from typing import Generic, ParamSpec

import msgspec

from podstatus.agent.compose.history import AgentHistory
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.client import ApiClient, Reflector
from podstatus.client.rest.server_health import ServerHealth
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.service import Service
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import NodeEvents
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.metrics import RuntimeMetrics
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import Runtime

Parameters = ParamSpec("Parameters")


class Signal(Generic[Parameters]):
    """A notification: calling it calls each receiver, in the order in which they connected."""

    def __init__(self) -> None:
        self._receivers: list[Callable[Parameters, None]] = []

    def connect(self, receiver: Callable[Parameters, None]) -> None:
        """Add a receiver. Its exceptions reach the sender."""
        self._receivers.append(receiver)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        for receiver in self._receivers:
            receiver(*args, **kwargs)


class Signals(msgspec.Struct, frozen=True):
    """The notifications between parts; each part connects what it receives when it is built."""

    pod_changed: Signal[[PodUID]] = msgspec.field(default_factory=Signal)
    """A pod must be synced: its containers, a probe result or its allocation changed."""
    mirror_changed: Signal[[]] = msgspec.field(default_factory=Signal)
    """A mirror pod or its static pod changed."""
    resources_freed: Signal[[]] = msgspec.field(default_factory=Signal)
    """A pod finished or was resized: a deferred resize may fit."""
    node_changed: Signal[[]] = msgspec.field(default_factory=Signal)
    """The node status must be sent before its next period."""
    foreign_write: Signal[[PodUID]] = msgspec.field(default_factory=Signal)
    """Another client wrote the status of a pod."""
    history_lost: Signal[[str]] = msgspec.field(default_factory=Signal)
    """The history file was lost and replaced, with the reason."""


class ApiClients(msgspec.Struct, frozen=True, kw_only=True):
    """Separate clients: lease and node status never queue behind pod statuses or events."""

    pods: ApiClient
    node: ApiClient
    events: ApiClient


class AgentDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """What the parts of a node agent share; complete before the first part is built."""

    settings: AgentSettings
    root: RootDir
    clock: Clock
    heartbeats: Heartbeats
    signals: Signals
    clients: ApiClients
    server_health: ServerHealth
    history: AgentHistory
    recorder: EventRecorder
    node_events: NodeEvents
    """Records events about the agent's Node."""
    node_cache: NodeCache
    services: Reflector[Service]
    host_ips: Callable[[], Sequence[str]]
    """The internal IPs of the node, for `status.hostIPs` of its pods."""
    pod_manager: PodManager
    runtime: Runtime
    """As it was built: without the counts of `counted_runtime`."""
    counted_runtime: Runtime
    pleg: Pleg
    runtime_metrics: RuntimeMetrics
