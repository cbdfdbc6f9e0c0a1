"""Every metric of three pages of a kubelet is served with its labels, or documented as missing.

kubelet-pages.txt has the pages, names and sorted labels of kubelet v1.36.4 with cAdvisor v0.56.2 on
containerd: metrics/prometheus.go and prometheus_machine.go with the metric sets of
pkg/kubelet/server/server.go, pkg/kubelet/metrics/collectors/resource_metrics.go and
pkg/kubelet/prober/prober_manager.go. Deprecated metrics that v1.36 hides are not listed.
"""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from podstatus.observe.metrics.exposition import render
from tests.observe.metrics.metric_pages import PAGES, pages
from tests.observe.metrics.metric_state import Watched

PAGE = Path(__file__).parents[3] / "docs/reference/metrics.md"
NAME = Path(__file__).name
_LINES = (Path(__file__).parent / "kubelet-pages.txt").read_text().splitlines()
KUBELET = {
    page: {
        name: tuple(filter(None, labels.split(",")))
        for kind, name, labels in (f"{line} ".split(" ")[:3] for line in _LINES)
        if f"/metrics/{kind}" == page
    }
    for page in ("/metrics/cadvisor", "/metrics/resource", "/metrics/probes")
}


def documented() -> set[str]:
    """The metrics that are documented as missing."""
    table = PAGE.read_text().partition(
        "<!-- checked by tests/observe/metrics/test_kubelet_pages.py"
    )
    rows = re.findall(r"^\| (`.+`) \|", table[2].partition("<!-- end -->")[0], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize("page", KUBELET)
def test_every_metric_is_served_or_documented_as_missing(page: str) -> None:
    names = {sample.name for sample in _samples(page)}
    served = {name for name in KUBELET[page] if names & {name, f"{name}_count"}}
    assert served & documented() == set()
    assert set(KUBELET[page]) - served - documented() == set()
    assert {metric.name for metric in PAGES[page]} == served


@pytest.mark.parametrize("page", KUBELET)
def test_labels_are_the_kubelets(page: str) -> None:
    for metric in PAGES[page]:
        assert tuple(sorted(metric.labels)) == KUBELET[page][metric.name], metric.name


def test_what_is_documented_as_missing_is_a_metric_of_the_kubelet() -> None:
    assert documented() <= {name for page in KUBELET.values() for name in page}


def _samples(page: str) -> list[Sample]:
    text = render(pages(Watched())[page]).body.decode()
    return [it for family in text_string_to_metric_families(text) for it in family.samples]
