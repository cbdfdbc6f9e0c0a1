"""Declarations of metrics, and their samples at one moment.

yield single(RUNNING_PODS, 3)
yield by_label(RESTARTED_PODS, {"": 0, "true": 2})
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum

import msgspec

from podstatus.base.metric_values import Histogram

Labels = tuple[str, ...]
"""Label values, in the order of the metric's label names."""


class MetricKind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric. `make docs` writes docs/reference/metrics.md from it."""

    name: str
    kind: MetricKind
    help: str
    labels: Labels = ()
    buckets: tuple[float, ...] = ()
    """Bounds of a histogram."""


class TimestampedValue(msgspec.Struct, frozen=True):
    """A value with the time of its measurement."""

    value: float
    timestamp: float
    """Seconds since the Unix epoch."""


Value = float | Histogram | TimestampedValue


class Samples(msgspec.Struct, frozen=True):
    """The samples of a metric at one moment, by label values; without labels, the key is `()`."""

    metric: Metric
    values: Mapping[Labels, Value]


LazySamples = Callable[[], Iterable[Samples]]
"""An expensive computation on immutable values, deferred to the thread that renders pages."""


def flatten(entries: Iterable[Samples | LazySamples]) -> Iterator[Samples]:
    """Yield all samples, computing the lazy ones."""
    for it in entries:
        if isinstance(it, Samples):
            yield it
        else:
            yield from it()


def by_label(metric: Metric, values: Mapping[str, Value]) -> Samples:
    return Samples(metric, {(label,): value for label, value in values.items()})


def single(metric: Metric, value: float | Histogram | None) -> Samples:
    """Return the sample of a metric without labels; None: unknown, so no sample."""
    return Samples(metric, {} if value is None else {(): value})


def counter(name: str, text: str, *labels: str) -> Metric:
    """Declare a counter, which only increases."""
    return Metric(name=name, kind=MetricKind.COUNTER, help=text, labels=labels)


def gauge(name: str, text: str, *labels: str) -> Metric:
    """Declare a gauge, which may decrease."""
    return Metric(name=name, kind=MetricKind.GAUGE, help=text, labels=labels)


def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    """Declare a histogram with these bucket bounds."""
    return Metric(name=name, kind=MetricKind.HISTOGRAM, help=text, labels=labels, buckets=buckets)
