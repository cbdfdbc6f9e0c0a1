"""Collect podstatus' own metrics, of an agent or of a whole cluster."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import psutil

from podstatus import __version__
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.events.counts import EventCounts
from podstatus.kube.objects.pod import POD_PHASES, PodUID
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.measured_usage import WINDOWS
from podstatus.observe.metrics import podstatus_catalog as table
from podstatus.observe.metrics.model import (
    Labels,
    LazySamples,
    Metric,
    Samples,
    by_label,
    single,
)
from podstatus.observe.metrics.watch_counters import CloseReason, LimitScope, WatchCounts
from podstatus.observe.ports import HistoryCounts, StatusView, SyncState
from podstatus.observe.summary.health import pod_health
from podstatus.observe.summary.node_load import NodeLoad, ResourceLoad
from podstatus.observe.summary.pod import PodSummary
from podstatus.status.counters import Counts

_OTHER_PHASE = "Unknown"


def podstatus_metrics(view: StatusView, clock: Clock) -> Iterator[Samples | LazySamples]:
    """Yield the metrics that agents and observers share."""
    yield by_label(table.BUILD_INFO, {__version__: 1})
    # Deferred to the render thread: 5,000 pods of a cluster take 16 ms.
    yield partial(_pod_samples, view.snapshot_cache.pods(), Time.from_unix_nanos(clock.now()))
    yield from _node_samples(view)
    yield from _freshness_samples(view)
    sync = view.sync()
    if sync is not None:
        yield from _sync_samples(sync)
    yield from _history_samples(view.history.counts)


def agent_metrics(counts: Counts, events: EventCounts, heartbeats: Heartbeats) -> Iterator[Samples]:
    """Yield the metrics that only an agent has."""
    yield by_label(table.SYNC_FAILURES, counts.sync_failures)
    yield from _event_samples(events)
    yield from service_metrics(heartbeats)


def service_metrics(heartbeats: Heartbeats) -> Iterator[Samples]:
    names = heartbeats.names()
    yield by_label(table.SERVICE_SILENT, {name: heartbeats.silent_seconds(name) for name in names})
    stalled = {name: int(heartbeats.find_stalled(name) is not None) for name in names}
    yield by_label(table.SERVICE_STALLED, stalled)


def watch_metrics(counts: WatchCounts) -> Iterator[Samples]:
    yield single(table.WATCHERS, counts.connected)
    yield single(table.WATCH_EVENTS, counts.events)
    closes, rejections = counts.closes.snapshot(), counts.rejections.snapshot()
    by_reason = {it.value: closes.get((it.value,), 0) for it in CloseReason}
    yield by_label(table.WATCHES_CLOSED, by_reason)
    by_scope = {it.value: rejections.get((it.value,), 0) for it in LimitScope}
    yield by_label(table.WATCHES_REJECTED, by_scope)


def process_metrics() -> Iterator[Samples]:
    """Yield the resource usage of this process, with the standard names of Prometheus clients."""
    process = psutil.Process()
    with process.oneshot():
        times, memory = process.cpu_times(), process.memory_info()
        yield single(table.CPU, times.user + times.system)
        yield single(table.RESIDENT, memory.rss)
        yield single(table.VIRTUAL, memory.vms)
        yield single(table.START, process.create_time())
        yield single(table.OPEN_FDS, process.num_fds())


def process_start() -> Samples:
    """Return the start time of this process, which the kubelet also has beside its probes."""
    return single(table.START, psutil.Process().create_time())


def _pod_samples(pods: Mapping[PodUID, PodSummary], now: Time) -> Iterator[Samples]:
    phases: Counter[Labels] = Counter()
    healths: Counter[Labels] = Counter()
    ready: Counter[Labels] = Counter()
    restarts: Counter[Labels] = Counter()
    for pod in pods.values():
        # The phase comes from an API server: bound the label values.
        phases[pod.node, pod.phase if pod.phase in POD_PHASES else _OTHER_PHASE] += 1
        healths[pod.node, pod_health(pod, now).state.value] += 1
        ready[pod.node,] += pod.ready
        restarts[pod.node,] += pod.restarts
    yield Samples(table.PODS, phases)
    yield Samples(table.PODS_BY_HEALTH, healths)
    yield Samples(table.READY_PODS, ready)
    yield Samples(table.RESTARTS, restarts)


def _node_samples(view: StatusView) -> Iterator[Samples | LazySamples]:
    nodes = view.nodes()
    yield by_label(table.NODE_READY, {name: int(node.ready) for name, node in nodes.items()})
    ages = {
        name: node.lease_age_seconds
        for name, node in nodes.items()
        if node.lease_age_seconds is not None
    }
    yield by_label(table.NODE_LEASE_AGE, ages)
    yield partial(_load_samples, {name: node.load for name, node in nodes.items()})


def _load_samples(nodes: Mapping[str, NodeLoad]) -> Iterator[Samples]:
    loads = {
        (node, name): resource
        for node, load in nodes.items()
        for name, resource in load.by_resource().items()
    }
    for metric, amount in _LOAD_METRICS:
        amounts = ((labels, amount(load)) for labels, load in loads.items())
        yield Samples(metric, {labels: it for labels, it in amounts if it is not None})
    averages: dict[Labels, float] = {
        (*labels, window): average.used
        for labels, load in loads.items()
        for window in WINDOWS
        if (average := load.complete_average(window)) is not None
    }
    yield Samples(table.NODE_USED_AVERAGE, averages)
    ages = {node: load.age_seconds for node, load in nodes.items()}
    yield by_label(table.NODE_USAGE_AGE, {name: it for name, it in ages.items() if it is not None})


_LOAD_METRICS: tuple[tuple[Metric, Callable[[ResourceLoad], float | None]], ...] = (
    (table.NODE_USED, lambda load: load.used),
    (table.NODE_REQUESTED, lambda load: load.requested),
    (table.NODE_ALLOCATABLE, lambda load: load.allocatable),
    (table.NODE_USED_RATIO, lambda load: load.used_fraction),
    (table.NODE_REQUESTED_RATIO, lambda load: load.requested_fraction),
)


def _freshness_samples(view: StatusView) -> Iterator[Samples]:
    freshness = view.freshness()
    yield single(table.SERVER_REACHABLE, int(freshness.server_reachable))
    yield single(table.SERVER_AGE, freshness.server_age_seconds)
    yield single(table.RUNTIME_AGE, freshness.runtime_age_seconds)


def _sync_samples(sync: SyncState) -> Iterator[Samples]:
    yield single(table.UNSENT, sync.unsent)
    yield single(table.STATUS_AGE, sync.oldest_unsent_seconds)
    yield single(table.IN_FLIGHT, sync.in_flight)
    yield single(table.QUARANTINED, sync.quarantined)
    yield single(table.OUTBOX, sync.outbox)


def _history_samples(counts: HistoryCounts) -> Iterator[Samples]:
    yield by_label(table.TRANSITIONS, counts.by_kind)
    yield single(table.HISTORY_WRITTEN, counts.written)
    yield single(table.HISTORY_OVERFLOWED, counts.overflowed)
    yield single(table.HISTORY_EVENTS_LOST, counts.lost_events)
    yield single(table.HISTORY_REPLACED, counts.replaced)
    yield single(table.HISTORY_WAITING, counts.waiting)


def _event_samples(counts: EventCounts) -> Iterator[Samples]:
    yield single(table.EVENTS_RECORDED, counts.recorded)
    yield single(table.EVENTS_SENT, counts.sent)
    yield single(table.EVENTS_PATCHED, counts.patched)
    yield by_label(table.EVENTS_DROPPED, counts.dropped)
    yield single(table.EVENTS_WAITING, counts.waiting)
