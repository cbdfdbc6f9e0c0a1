"""A metric as it is declared once, and what is told of it at one moment.

yield one(RUNNING_PODS, 3)
yield each(RESTARTED_PODS, {"": 0, "true": 2})
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum

import msgspec

from podstatus.base.metrics import Histogram

Labels = tuple[str, ...]
"""The values of a metric's labels, in the order of their names."""


class MetricKind(Enum):
    """What is done with the values of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric: docs/metrics.md has all of them, and is checked against this."""

    name: str
    kind: MetricKind
    help: str
    labels: Labels = ()
    buckets: tuple[float, ...] = ()
    """Of a histogram."""


class TimestampedValue(msgspec.Struct, frozen=True):
    """A value that was read some time ago."""

    value: float
    timestamp: float
    """When, since the Unix epoch."""


Value = float | Histogram | TimestampedValue


class Samples(msgspec.Struct, frozen=True):
    """What is told of a metric at one moment."""

    metric: Metric
    values: Mapping[Labels, Value]


LazySamples = Callable[[], Iterable[Samples]]
"""What takes long to work out, of values that do not change: it is done where pages are written."""


def flatten(entries: Iterable[Samples | LazySamples]) -> Iterator[Samples]:
    """All that is told, worked out now."""
    for it in entries:
        if isinstance(it, Samples):
            yield it
        else:
            yield from it()


def samples(metric: Metric, values: Mapping[Labels, Value]) -> Samples:
    """These values, by those of the labels; a metric without labels has one, of `()`."""
    return Samples(metric, values)


def by_label(metric: Metric, values: Mapping[str, Value]) -> Samples:
    """The values of a metric with one label, by that."""
    return Samples(metric, {(label,): value for label, value in values.items()})


def single(metric: Metric, value: float | Histogram | None) -> Samples:
    """The value of a metric without labels; None: nothing is known."""
    return Samples(metric, {} if value is None else {(): value})


def counter(name: str, text: str, *labels: str) -> Metric:
    """Declare what only grows."""
    return Metric(name=name, kind=MetricKind.COUNTER, help=text, labels=labels)


def gauge(name: str, text: str, *labels: str) -> Metric:
    """Declare what goes up and down."""
    return Metric(name=name, kind=MetricKind.GAUGE, help=text, labels=labels)


def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    """Declare what is spread."""
    return Metric(name=name, kind=MetricKind.HISTOGRAM, help=text, labels=labels, buckets=buckets)
