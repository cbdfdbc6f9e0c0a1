"""The page about sending events has every cause of a lost event; reasons are unique."""

import re
from pathlib import Path

from podstatus.events import reasons
from podstatus.events.counts import DropReason
from podstatus.status.sync.parallel import STATUS_REJECTED

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "explanation" / "how-events-are-sent.md").read_text()


def test_every_constant_is_a_reason_of_its_own() -> None:
    constants = [value for name, value in vars(reasons).items() if name.isupper()]
    assert len(constants) == len(set(constants))


def test_the_page_has_every_cause() -> None:
    table = PAGE.partition("| dropped | because |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [it.value for it in DropReason]


def test_the_status_manager_uses_the_same_reason() -> None:
    assert STATUS_REJECTED == reasons.STATUS_REJECTED
