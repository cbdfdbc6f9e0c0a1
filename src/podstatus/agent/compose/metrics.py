"""Put the pages of metrics together."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from podstatus.agent.compose.node import NodeSide
from podstatus.agent.compose.pods import PodSide
from podstatus.alerts.metrics import alert_metrics
from podstatus.alerts.ports import AlertReader
from podstatus.base.clock import Clock
from podstatus.base.heartbeat import Heartbeats
from podstatus.client.rest.server_health import RequestMetrics
from podstatus.events.recorder import EventRecorder
from podstatus.observe.metrics.connection_collector import request_metrics, watch_metrics
from podstatus.observe.metrics.kubelet_collector import NodeState, kubelet_metrics, probe_metrics
from podstatus.observe.metrics.model import Later, Told
from podstatus.observe.metrics.pages import MetricPages
from podstatus.observe.metrics.podstatus_collector import (
    AgentState,
    agent_metrics,
    own_metrics,
    process_metrics,
)
from podstatus.observe.metrics.resource_collector import (
    UsageState,
    container_metrics,
    resource_metrics,
)
from podstatus.observe.metrics.sli_collector import Check, HealthMetrics
from podstatus.observe.metrics.watch_counters import WatchCounts
from podstatus.observe.metrics.work_counters import WorkCounts
from podstatus.observe.status_view import Observatory
from podstatus.runtime.pleg import Pleg


def make_pages(
    node_name: str,
    work: WorkCounts,
    pods: PodSide,
    node: NodeSide,
    view: Pleg,
    recorder: EventRecorder,
    observatory: Observatory,
    *,
    alerts: AlertReader | None,
    requests: RequestMetrics,
    watching: WatchCounts,
    metered: bool,
    heartbeats: Heartbeats,
    checks: Callable[[], Mapping[str, Check]],
    clock: Clock,
) -> MetricPages:
    """All pages of an agent; `metered`: its runtime knows what containers use."""
    state = NodeState(
        node_name=node_name,
        counts=pods.counters.snapshot,
        work=work,
        desired_pods=pods.directory.pods,
        mirror_pods=pods.directory.mirror_pods,
        active_pods=pods.lives.active_pods,
        lives=pods.lives.all,
        running=view.pods,
        last_listed=lambda: view.last_listed,
    )
    agent = AgentState(
        counts=pods.counters.snapshot, events=lambda: recorder.counts, heartbeats=heartbeats
    )
    used = UsageState(snapshot=lambda: node.usage.snapshot, running=view.pods, metered=metered)

    def everything() -> Iterator[Told | Later]:
        yield from kubelet_metrics(state)
        yield from request_metrics(requests)
        yield from own_metrics(observatory, clock)
        yield from agent_metrics(agent)
        yield from watch_metrics(watching)
        yield from process_metrics()
        if alerts is not None:
            yield from alert_metrics(alerts)

    def probes() -> Iterable[Told]:
        return probe_metrics(work)

    return MetricPages(
        {
            "": everything,
            "resource": lambda: resource_metrics(used),
            "cadvisor": lambda: container_metrics(used),
            "probes": probes,
            "slis": HealthMetrics(checks),
        }
    )
