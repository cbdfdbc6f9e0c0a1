"""Render metrics in the Prometheus text format or in OpenMetrics.

Bucket bounds are written as Go does in each format (`le="1"`, `le="1.0"`), so that queries written
for a kubelet match.

Pages are collected in the event loop and rendered in a dedicated thread, which takes milliseconds.
asyncio's default threads write checkpoints, and may all be blocked by a slow disk, just when
metrics are needed.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import inf

import msgspec
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    UntypedMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_open

from podstatus.base.metric_values import Histogram
from podstatus.observe.metrics.model import (
    LazySamples,
    Metric,
    MetricKind,
    Samples,
    TimestampedValue,
    Value,
    flatten,
)

OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_OPENMETRICS = "application/openmetrics-text"
CollectSamples = Callable[[], Iterable[Samples | LazySamples] | None]
"""Returns the samples of this moment; None: the page does not exist. Must not block."""


class MetricsPage(msgspec.Struct, frozen=True):
    """The body and content type of a metrics page."""

    body: bytes
    content_type: str


class MetricPages:
    """Serves `/metrics` and the pages below it. For one event loop."""

    def __init__(self, pages: Mapping[str, CollectSamples]) -> None:
        """`pages` by the last segment of their path; that of `/metrics` itself is empty."""
        self._pages = pages
        self._render_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metrics")

    async def page(self, name: str, accept: str = "") -> MetricsPage | None:
        """Return the page of this name for an Accept header; None if it does not exist."""
        collect = self._pages.get(name)
        entries = None if collect is None else collect()
        if entries is None:
            return None
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._render_thread, render, list(entries), accept)

    def close(self) -> None:
        """Stop the thread without waiting for it."""
        self._render_thread.shutdown(wait=False)


def accepts_openmetrics(accept: str) -> bool:
    """True if a client with this Accept header reads OpenMetrics."""
    for choice in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in choice.split(";"))
        if kind == _OPENMETRICS and not any(
            _has_zero_weight(parameter) for parameter in parameters
        ):
            return True
    return False


def render(entries: Iterable[Samples | LazySamples], accept: str = "") -> MetricsPage:
    """Render a page for this Accept header. Takes milliseconds: call it in a thread."""
    if accepts_openmetrics(accept):
        body: bytes = generate_open(_Collector(entries, _openmetrics_bound))  # type: ignore[no-untyped-call]
        return MetricsPage(body, OPENMETRICS_TYPE)
    return MetricsPage(
        generate_latest(_Collector(entries, _prometheus_bound)), CONTENT_TYPE_PLAIN_0_0_4
    )


class _Collector:
    """A prometheus-client collector over samples."""

    def __init__(
        self, entries: Iterable[Samples | LazySamples], bound: Callable[[float], str]
    ) -> None:
        self._entries = entries
        self._bound = bound

    def collect(self) -> Iterable[Family]:
        for it in flatten(self._entries):
            # Without values only HELP and TYPE would be written.
            if it.values:
                yield self._family(it)

    def _family(self, it: Samples) -> Family:
        metric = it.metric
        if metric.kind is MetricKind.HISTOGRAM:
            return self._histogram(it)
        family = _family_class(metric)(metric.name, metric.help, labels=metric.labels)
        for labels, value in it.values.items():
            number, at = _number_and_timestamp(metric, value)
            family.add_metric([*map(_escape_label, labels)], number, timestamp=at)
        return family

    def _histogram(self, it: Samples) -> Family:
        metric = it.metric
        family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, value in it.values.items():
            if not isinstance(value, Histogram):
                raise TypeError(f"{metric.name} is a histogram, but its value is {value!r}")
            buckets = [(self._bound(bound), count) for bound, count in value.cumulative()]
            family.add_metric([*map(_escape_label, labels)], buckets, value.sum)
        return family


def _family_class(
    metric: Metric,
) -> type[CounterMetricFamily | GaugeMetricFamily | UntypedMetricFamily]:
    if metric.kind is MetricKind.GAUGE:
        return GaugeMetricFamily
    # The client appends _total to the name of any counter; some of upstream's are without.
    return CounterMetricFamily if metric.name.endswith("_total") else UntypedMetricFamily


def _number_and_timestamp(metric: Metric, value: Value) -> tuple[float, float | None]:
    if isinstance(value, Histogram):
        raise TypeError(f"{metric.name} is not a histogram, but its value is {value!r}")
    return (value.value, value.timestamp) if isinstance(value, TimestampedValue) else (value, None)


def _escape_label(label: str) -> str:
    """Return a label value as valid UTF-8: a runtime may report lone surrogates."""
    return label if label.isascii() else label.encode(errors="backslashreplace").decode()


def _openmetrics_bound(bound: float) -> str:
    return "+Inf" if bound == inf else repr(float(bound))


def _prometheus_bound(bound: float) -> str:
    return _openmetrics_bound(bound).removesuffix(".0")


def _has_zero_weight(parameter: str) -> bool:
    name, _, weight = parameter.partition("=")
    return name.strip() == "q" and weight.strip().rstrip("0") in ("0.", "0", "")
