"""docs/reference/metrics.md has every metric, with type, labels and meaning, and no other."""

import re
from pathlib import Path

import pytest

from podstatus.observe.metrics.model import Metric
from tests.observe.metrics.metric_pages import PAGES

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
SECTIONS = dict(re.findall(r"^## (/\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def row(metric: Metric) -> str:
    labels = " ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.help} |"


@pytest.mark.parametrize("path", PAGES)
def test_a_section_has_every_metric_of_its_page_and_no_other(path: str) -> None:
    rows = re.findall(r"^\| `.*\|$", SECTIONS[path], re.MULTILINE)
    assert rows == [row(metric) for metric in PAGES[path]]


def test_there_is_a_section_for_each_page_and_for_no_other() -> None:
    assert SECTIONS.keys() == PAGES.keys()
