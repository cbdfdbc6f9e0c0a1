"""promtool, in Debian's package `prometheus`, accepts the metrics."""

import shutil
import subprocess

import pytest

from podstatus.observe.metrics.exposition import render
from tests.observe.metrics.metric_pages import PAGES, pages
from tests.observe.metrics.metric_state import Watched

PROMTOOL = shutil.which("promtool")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not there; install prometheus")
@pytest.mark.parametrize("page", PAGES)
def test_promtool_finds_nothing_wrong_with_a_page(page: str) -> None:
    assert PROMTOOL is not None
    body = render(pages(Watched())[page]).body
    command = [PROMTOOL, "check", "metrics"]
    found = subprocess.run(command, input=body, capture_output=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")
