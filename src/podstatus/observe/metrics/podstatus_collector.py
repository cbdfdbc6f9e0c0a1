"""What our own metrics say at one moment, of an agent or of a whole cluster."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec
import psutil

from podstatus import __version__
from podstatus.base.clock import Clock
from podstatus.base.heartbeat import Heartbeats
from podstatus.events.counts import EventCounts
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.status_writer import HistoryCounts
from podstatus.observe.metrics import podstatus_catalog as table
from podstatus.observe.metrics.model import Labels, Later, Told, each, one, told
from podstatus.observe.status_view import Observatory, SyncState
from podstatus.observe.summary.health import pod_health
from podstatus.observe.summary.pod import PodSummary
from podstatus.status.metrics import Counts

_PHASES = ("Pending", "Running", "Succeeded", "Failed")
_OTHER_PHASE = "Unknown"


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """What only an agent knows. Nothing of it waits."""

    counts: Callable[[], Counts]
    events: Callable[[], EventCounts]
    heartbeats: Heartbeats


def own_metrics(observatory: Observatory, clock: Clock) -> Iterator[Told | Later]:
    """What is told of everything that is known, whoever knows it."""
    yield each(table.BUILD_INFO, {__version__: 1})
    # Of the 5,000 pods of a cluster it would take 16 ms.
    yield partial(_pods, observatory.board.pods(), Time.from_unix_nanos(clock.now()))
    yield from _nodes(observatory)
    yield from _knowledge(observatory)
    sync = observatory.sync()
    if sync is not None:
        yield from _sync(sync)
    yield from _history(observatory.history())


def agent_metrics(state: AgentState) -> Iterator[Told]:
    """What is told of an agent besides."""
    yield each(table.SYNC_FAILURES, state.counts().sync_failures)
    yield from _events(state.events())
    yield from service_metrics(state.heartbeats)


def service_metrics(beats: Heartbeats) -> Iterator[Told]:
    """Whether the services of this process do something."""
    names = beats.names()
    yield each(table.SERVICE_SILENT, {name: beats.silent_seconds(name) for name in names})
    stalled = {name: int(beats.find_stalled(name) is not None) for name in names}
    yield each(table.SERVICE_STALLED, stalled)


def process_metrics() -> Iterator[Told]:
    """What the agent's own process uses; with the names that all programs give to it."""
    process = psutil.Process()
    with process.oneshot():
        times, memory = process.cpu_times(), process.memory_info()
        yield one(table.CPU, times.user + times.system)
        yield one(table.RESIDENT, memory.rss)
        yield one(table.VIRTUAL, memory.vms)
        yield one(table.START, process.create_time())
        yield one(table.OPEN_FDS, process.num_fds())


def _pods(pods: Mapping[PodUID, PodSummary], now: Time) -> Iterator[Told]:
    phases: Counter[Labels] = Counter()
    healths: Counter[Labels] = Counter()
    ready: Counter[Labels] = Counter()
    restarts: Counter[Labels] = Counter()
    for pod in pods.values():
        # A phase is a word of somebody else's, and there are not to be more than these.
        phases[pod.node, pod.phase if pod.phase in _PHASES else _OTHER_PHASE] += 1
        healths[pod.node, pod_health(pod, now).word.value] += 1
        ready[pod.node,] += pod.ready
        restarts[pod.node,] += pod.restarts
    yield told(table.PODS, phases)
    yield told(table.PODS_BY_HEALTH, healths)
    yield told(table.READY_PODS, ready)
    yield told(table.RESTARTS, restarts)


def _nodes(observatory: Observatory) -> Iterator[Told]:
    nodes = observatory.nodes()
    yield each(table.NODE_READY, {name: int(node.ready) for name, node in nodes.items()})
    ages = {
        name: node.lease_age_seconds
        for name, node in nodes.items()
        if node.lease_age_seconds is not None
    }
    yield each(table.NODE_LEASE_AGE, ages)


def _knowledge(observatory: Observatory) -> Iterator[Told]:
    known = observatory.knowledge()
    yield one(table.SERVER_REACHABLE, int(known.server_reachable))
    yield one(table.SERVER_AGE, known.server_age_seconds)
    yield one(table.RUNTIME_AGE, known.runtime_age_seconds)


def _sync(sync: SyncState) -> Iterator[Told]:
    yield one(table.UNSENT, sync.unsent)
    yield one(table.STATUS_AGE, sync.oldest_unsent_seconds)
    yield one(table.IN_FLIGHT, sync.in_flight)
    yield one(table.QUARANTINED, sync.quarantined)
    yield one(table.OUTBOX, sync.outbox)


def _history(counts: HistoryCounts) -> Iterator[Told]:
    yield each(table.TRANSITIONS, counts.by_kind)
    yield one(table.HISTORY_WRITTEN, counts.written)
    yield one(table.HISTORY_OVERFLOWED, counts.overflowed)
    yield one(table.HISTORY_LOST, counts.lost_events)
    yield one(table.HISTORY_REPLACED, counts.replaced)
    yield one(table.HISTORY_WAITING, counts.waiting)


def _events(counts: EventCounts) -> Iterator[Told]:
    yield one(table.EVENTS_RECORDED, counts.recorded)
    yield one(table.EVENTS_SENT, counts.sent)
    yield one(table.EVENTS_PATCHED, counts.patched)
    yield each(table.EVENTS_DROPPED, counts.dropped)
    yield one(table.EVENTS_WAITING, counts.waiting)
