"""promtool, in Debian's package `prometheus`, accepts the metrics."""

import shutil
import subprocess

import pytest

from podstatus.observe.metrics.exposition import render
from tests.observe.metrics.metric_pages import PAGES, pages
from tests.observe.metrics.metric_state import Watched

PROMTOOL = shutil.which("promtool")
UPSTREAMS_NAMES = {"container_fs_inodes_total"}
"""Gauges that end in _total, as cAdvisor names them."""


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not there; install prometheus")
@pytest.mark.parametrize("page", PAGES)
def test_promtool_finds_nothing_wrong_with_a_page(page: str) -> None:
    assert PROMTOOL is not None
    body = render(pages(Watched())[page]).body
    command = [PROMTOOL, "check", "metrics"]
    found = subprocess.run(command, input=body, capture_output=True, check=False)
    lines = (found.stdout + found.stderr).decode().splitlines()
    assert [line for line in lines if line.partition(" ")[0] not in UPSTREAMS_NAMES] == []
    assert found.returncode == (3 if lines else 0)
