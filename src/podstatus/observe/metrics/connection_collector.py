"""Metrics of connections: requests to the API server, and clients of /v1/watch."""

from collections.abc import Iterator

from podstatus.client.rest.server_health import RequestMetrics
from podstatus.observe.metrics import kubelet_catalog, podstatus_catalog
from podstatus.observe.metrics.model import Samples, by_label, samples, single
from podstatus.observe.metrics.watch_counters import CloseReason, LimitScope, WatchCounts


def request_metrics(requests: RequestMetrics) -> Iterator[Samples]:
    """Yield the metrics of requests to the API server."""
    yield samples(kubelet_catalog.REQUESTS, requests.responses.snapshot())
    yield samples(kubelet_catalog.REQUEST_DURATION, requests.seconds.snapshot())


def watch_metrics(counts: WatchCounts) -> Iterator[Samples]:
    """Yield the metrics of /v1/watch and its clients."""
    yield single(podstatus_catalog.WATCHERS, counts.connected)
    yield single(podstatus_catalog.WATCH_EVENTS, counts.events)
    closes, rejections = counts.closes.snapshot(), counts.rejections.snapshot()
    by_reason = {it.value: closes.get((it.value,), 0) for it in CloseReason}
    yield by_label(podstatus_catalog.WATCHES_CLOSED, by_reason)
    by_scope = {it.value: rejections.get((it.value,), 0) for it in LimitScope}
    yield by_label(podstatus_catalog.WATCHES_REJECTED, by_scope)
