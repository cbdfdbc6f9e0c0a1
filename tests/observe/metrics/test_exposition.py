"""Rendered metrics: the parsers of prometheus-client read them back."""

from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from podstatus.base.metric_values import Histogram
from podstatus.observe.metrics.exposition import OPENMETRICS_TYPE, accepts_openmetrics, render
from podstatus.observe.metrics.model import (
    Metric,
    Samples,
    TimestampedValue,
    by_label,
    counter,
    gauge,
    histogram,
    single,
)

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
"""The Accept header of Prometheus 2.42."""
SIZES = histogram("sizes", "How large.", (0.5, 1, 2.5), "of")
COUNTED = counter("counted_total", "How often.", "kind")
NOW = gauge("now", "What is.")
SPREAD = Histogram.empty(0.5, 1, 2.5).observe(0.7).observe(9)
MOMENT = [Samples(SIZES, {("a",): SPREAD}), by_label(COUNTED, {"x": 3, "y": 0}), single(NOW, 1.5)]


def read(text: str, accept: str) -> list[Any]:
    """Parse with prometheus-client."""
    parse: Any = read_open if accept else read_text
    return list(parse(text))


def test_text_is_as_go_writes_it() -> None:
    page = render(MOMENT)
    assert page.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert page.body.decode().splitlines() == [
        "# HELP sizes How large.",
        "# TYPE sizes histogram",
        'sizes_bucket{le="0.5",of="a"} 0.0',
        'sizes_bucket{le="1",of="a"} 1.0',
        'sizes_bucket{le="2.5",of="a"} 1.0',
        'sizes_bucket{le="+Inf",of="a"} 2.0',
        'sizes_count{of="a"} 2.0',
        'sizes_sum{of="a"} 9.7',
        "# HELP counted_total How often.",
        "# TYPE counted_total counter",
        'counted_total{kind="x"} 3.0',
        'counted_total{kind="y"} 0.0',
        "# HELP now What is.",
        "# TYPE now gauge",
        "now 1.5",
    ]


def test_open_metrics_has_its_own_form_of_bounds_and_an_end() -> None:
    page = render(MOMENT, "application/openmetrics-text")
    lines = page.body.decode().splitlines()
    assert page.content_type == OPENMETRICS_TYPE
    assert 'sizes_bucket{le="1.0",of="a"} 1.0' in lines
    assert lines[-1] == "# EOF"


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text"])
def test_what_is_written_is_read_back(accept: str) -> None:
    text = render(MOMENT, accept).body.decode()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in read(text, accept)
        for sample in family.samples
    }
    assert found["counted_total", "x"] == 3
    assert found["now",] == 1.5
    assert found["sizes_sum", "a"] == pytest.approx(9.7)


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("text/plain;version=0.0.4", False),
        ("application/openmetrics-text", True),
        (PROMETHEUS, True),
        ("text/plain, Application/OpenMetrics-Text; version=x", True),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text; q=0.000", False),
        ("application/openmetrics-text;q=0.1", True),
        (",;=,;q=", False),
    ],
)
def test_who_reads_open_metrics_gets_them(accept: str, is_open: bool) -> None:
    assert accepts_openmetrics(accept) is is_open


def test_a_value_that_was_read_before_has_its_time() -> None:
    entry = [single(NOW, None), Samples(NOW, {(): TimestampedValue(1.0, 12.5)})]
    assert render(entry).body.decode().splitlines()[-1] == "now 1.0 12500"
    assert "now 1.0 12.5" in render(entry, "application/openmetrics-text").body.decode()


def test_what_is_not_known_is_not_there() -> None:
    assert render([single(NOW, None), by_label(COUNTED, {})]).body == b""


@pytest.mark.parametrize("label", ['a"b', "a\\b", "a\nb", "é", "\ud800", "\x00", "x" * 5000])
@pytest.mark.parametrize("accept", ["", "application/openmetrics-text"])
def test_no_label_breaks_a_page(label: str, accept: str) -> None:
    text = render([by_label(COUNTED, {label: 1}), single(NOW, 2)], accept).body.decode()
    families = read(text, accept)
    (sample,) = families[0].samples
    assert sample.labels["kind"] == label.encode(errors="backslashreplace").decode()
    assert families[1].samples[0].value == 2


@pytest.mark.parametrize(("metric", "value"), [(SIZES, 1.0), (NOW, SPREAD)])
def test_a_value_of_another_kind_is_a_mistake(metric: Metric, value: float | Histogram) -> None:
    with pytest.raises(TypeError, match=metric.name):
        render([Samples(metric, {metric.labels: value})])


@pytest.mark.parametrize(("accept", "kind"), [("", "untyped"), (OPENMETRICS_TYPE, "unknown")])
def test_a_counter_of_the_kubelet_without_a_suffix_keeps_its_name(accept: str, kind: str) -> None:
    evictions = counter("kubelet_evictions", "Evictions.", "eviction_signal")
    text = render([Samples(evictions, {("memory.available",): 2})], accept).body.decode()
    assert f"# TYPE kubelet_evictions {kind}" in text
    assert 'kubelet_evictions{eviction_signal="memory.available"} 2.0' in text
