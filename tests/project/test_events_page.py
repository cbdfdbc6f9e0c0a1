"""The page about events names every reason with its text, and every cause for which one is lost."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from podstatus.events import reasons
from podstatus.events.counts import DropReason
from podstatus.status.sync.parallel import STATUS_REJECTED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "events.md").read_text()
ROWS = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", PAGE, re.MULTILINE))
TYPES = ("Normal", "Warning", "Warning; for images Normal")


REASONS = [value for name, value in vars(reasons).items() if name.isupper()]


def test_every_constant_is_a_reason_of_its_own() -> None:
    assert len(REASONS) == len(set(REASONS))


@pytest.mark.parametrize("reason", REASONS)
def test_the_page_has_type_and_text_of(reason: str) -> None:
    type_, text, when = ROWS[reason].split(" | ")
    assert type_ in TYPES
    assert text
    assert when


def test_the_page_names_nothing_that_is_not_there() -> None:
    assert set(ROWS) == {*REASONS, *(cause.value for cause in DropReason)}


def test_the_status_manager_says_what_the_page_says() -> None:
    assert STATUS_REJECTED == reasons.STATUS_REJECTED


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_python_in_the_page_runs(block: str) -> None:
    subprocess.run([sys.executable, "-c", block], check=True)
