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
    bounds: tuple[float, ...] = ()
    """Of a histogram."""


class At(msgspec.Struct, frozen=True):
    """A value that was read some time ago."""

    value: float
    seconds: float
    """When, since the Unix epoch."""


Value = float | Histogram | At


class Told(msgspec.Struct, frozen=True):
    """What is told of a metric at one moment."""

    metric: Metric
    values: Mapping[Labels, Value]


Later = Callable[[], Iterable[Told]]
"""What takes long to work out, of values that do not change: it is done where pages are written."""


def flat(moment: Iterable[Told | Later]) -> Iterator[Told]:
    """All that is told, worked out now."""
    for it in moment:
        if isinstance(it, Told):
            yield it
        else:
            yield from it()


def told(metric: Metric, values: Mapping[Labels, Value]) -> Told:
    """These values, by those of the labels; a metric without labels has one, of `()`."""
    return Told(metric, values)


def each(metric: Metric, values: Mapping[str, Value]) -> Told:
    """The values of a metric with one label, by that."""
    return Told(metric, {(label,): value for label, value in values.items()})


def one(metric: Metric, value: float | Histogram | None) -> Told:
    """The value of a metric without labels; None: nothing is known."""
    return Told(metric, {} if value is None else {(): value})


def counter(name: str, text: str, *labels: str) -> Metric:
    """Declare what only grows."""
    return Metric(name=name, kind=MetricKind.COUNTER, help=text, labels=labels)


def gauge(name: str, text: str, *labels: str) -> Metric:
    """Declare what goes up and down."""
    return Metric(name=name, kind=MetricKind.GAUGE, help=text, labels=labels)


def histogram(name: str, text: str, bounds: tuple[float, ...], *labels: str) -> Metric:
    """Declare what is spread."""
    return Metric(name=name, kind=MetricKind.HISTOGRAM, help=text, labels=labels, bounds=bounds)
