"""What metrics say of those who are spoken to: the API server, and those who watch here."""

from collections.abc import Iterator

from podstatus.client.rest.server_health import RequestMetrics
from podstatus.observe.metrics import kubelet_catalog, podstatus_catalog
from podstatus.observe.metrics.model import Samples, by_label, samples, single
from podstatus.observe.metrics.watch_counters import CloseReason, LimitScope, WatchCounts


def request_metrics(requests: RequestMetrics) -> Iterator[Samples]:
    """What was asked of the API server."""
    yield samples(kubelet_catalog.REQUESTS, requests.responses.snapshot())
    yield samples(kubelet_catalog.REQUEST_DURATION, requests.seconds.snapshot())


def watch_metrics(counts: WatchCounts) -> Iterator[Samples]:
    """Who watches, and what became of those who did."""
    yield single(podstatus_catalog.WATCHERS, counts.connected)
    yield single(podstatus_catalog.WATCH_EVENTS, counts.events)
    cuts, refusals = counts.closes.snapshot(), counts.rejections.snapshot()
    yield by_label(
        podstatus_catalog.WATCHES_CLOSED, {it.value: cuts.get((it.value,), 0) for it in CloseReason}
    )
    refused = {it.value: refusals.get((it.value,), 0) for it in LimitScope}
    yield by_label(podstatus_catalog.WATCHES_REJECTED, refused)
