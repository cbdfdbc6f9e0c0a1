"""Build what the parts of a node agent share."""

from collections.abc import Callable
from functools import partial

from podstatus.agent.compose.dependencies import AgentDependencies, ApiClients, Signals
from podstatus.agent.compose.history import AgentHistory
from podstatus.agent.compose.node_services import NodeEventRecorder, host_ips
from podstatus.agent.compose.runtime import RuntimeDependencies
from podstatus.agent.daemon.run_agent import AgentContext
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.client import ApiClient, RateLimiter, Timeouts
from podstatus.client.rest.server_health import ServerHealth
from podstatus.client.typed.events import HttpEventSink
from podstatus.client.typed.services import service_reflector
from podstatus.events import reasons
from podstatus.events.rate_limits import EventPolicy
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.node import Node
from podstatus.node.node_cache import NodeCache
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.instrumented import instrument
from podstatus.runtime.metrics import RuntimeMetrics
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import Runtime

BuildRuntime = Callable[[RuntimeDependencies], Runtime]
"""Builds the runtime. Raises AgentError."""
RELIST = "relist"
"""Name of the heartbeat of the PLEG: it stops when the runtime does not answer."""
_LEASE_TIMING = Timeouts(total_seconds=10.0)


def build_dependencies(
    context: AgentContext, clock: Clock, heartbeats: Heartbeats, build_runtime: BuildRuntime
) -> AgentDependencies:
    """Build all that exists before the first part. Raises AgentError."""
    settings, root, signals, metrics = context.settings, context.root, Signals(), RuntimeMetrics()
    server_health, pod_manager, node_cache = ServerHealth(clock), PodManager(), NodeCache(Node())
    clients = _build_clients(context, server_health)
    history = AgentHistory(
        settings,
        root.path,
        clock,
        translate_uid=pod_manager.translate_pod_uid,
        on_foreign_write=signals.foreign_write,
        on_loss=signals.history_lost,
    )
    recorder = EventRecorder(
        HttpEventSink(clients.events),
        host=settings.node_name,
        clock=clock,
        policy=EventPolicy(qps=settings.event_qps, burst=settings.event_burst),
        heartbeat=heartbeats.register("events", max_silent_seconds=300),
        on_recorded=history.record_event,
    )
    node_events = NodeEventRecorder(recorder, settings.node_name)
    signals.history_lost.connect(
        lambda reason: node_events.warn(reasons.HISTORY_LOST, f"{reason}; started a new history")
    )
    addresses = host_ips(settings)
    services = service_reflector(clients.pods, clock)
    runtime = build_runtime(
        RuntimeDependencies(
            settings=settings,
            folder=root.folder("runtime"),
            client=clients.pods,
            services=services,
            recorder=recorder,
            host_ips=lambda: addresses,
            allocatable=lambda: node_cache.current().status.allocatable or {},
            clock=clock,
        )
    )
    counted_runtime = instrument(runtime, metrics, clock)
    pleg = Pleg(
        counted_runtime,
        clock=clock,
        on_change=signals.pod_changed,
        heartbeat=heartbeats.register(RELIST, max_silent_seconds=180),
        metrics=metrics,
    )
    return AgentDependencies(
        settings=settings,
        root=root,
        clock=clock,
        heartbeats=heartbeats,
        signals=signals,
        clients=clients,
        server_health=server_health,
        history=history,
        recorder=recorder,
        node_events=node_events,
        node_cache=node_cache,
        services=services,
        host_ips=lambda: addresses,
        pod_manager=pod_manager,
        runtime=runtime,
        counted_runtime=counted_runtime,
        pleg=pleg,
        runtime_metrics=metrics,
    )


def _build_clients(context: AgentContext, health: ServerHealth) -> ApiClients:
    client = partial(ApiClient, context.access, health=health)
    return ApiClients(
        pods=client(user_agent="podstatus/status", limit=_rate_limit(context.settings)),
        node=client(user_agent="podstatus/node", timeouts=_LEASE_TIMING),
        events=client(user_agent="podstatus/events"),
    )


def _rate_limit(settings: AgentSettings) -> RateLimiter | None:
    if not settings.kube_api_qps:
        return None
    return RateLimiter(settings.kube_api_qps, settings.kube_api_burst)
