"""What metrics say of those who are spoken to: the API server, and those who watch here."""

from collections.abc import Iterator

from podstatus.client.rest.server_health import RequestMetrics
from podstatus.observe.metrics import kubelet_catalog, podstatus_catalog
from podstatus.observe.metrics.model import Told, each, one, told
from podstatus.observe.metrics.watch_counters import Cut, Places, WatchCounts


def request_metrics(requests: RequestMetrics) -> Iterator[Told]:
    """What was asked of the API server."""
    yield told(kubelet_catalog.REQUESTS, requests.responses.snapshot())
    yield told(kubelet_catalog.REQUEST_DURATION, requests.seconds.snapshot())


def watch_metrics(counts: WatchCounts) -> Iterator[Told]:
    """Who watches, and what became of those who did."""
    yield one(podstatus_catalog.WATCHERS, counts.connected)
    yield one(podstatus_catalog.WATCH_EVENTS, counts.events)
    cuts, refusals = counts.cuts.snapshot(), counts.refusals.snapshot()
    yield each(podstatus_catalog.WATCH_CUTS, {it.value: cuts.get((it.value,), 0) for it in Cut})
    refused = {it.value: refusals.get((it.value,), 0) for it in Places}
    yield each(podstatus_catalog.WATCH_REFUSALS, refused)
