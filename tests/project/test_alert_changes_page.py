"""docs/alert-changes.md names each action on the node, its events, and the limits as they are."""

import re
from pathlib import Path

from podstatus.alerts.actions.guarded_remediation import PER_KIND, PER_SUBJECT
from podstatus.alerts.actions.name_prefix import OWN
from podstatus.alerts.actions.node_conditions import AT_ONCE, TTL
from podstatus.alerts.cel.compile import Environments
from podstatus.alerts.rules.action_kinds import CHANGING
from podstatus.alerts.rules.load import load_rules
from podstatus.events import reasons

PAGE = (Path(__file__).parents[2] / "docs" / "alert-changes.md").read_text()
MINUTE = 60 * 10**9


def test_the_page_has_every_action_that_changes_something() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert set(rows) == CHANGING


def test_the_page_has_every_event() -> None:
    ours = [it for name, it in reasons.reasons_by_constant().items() if name.startswith("ALERT_")]
    assert [reason for reason in ours if reason not in PAGE] == []


def test_the_limits_are_as_the_page_says() -> None:
    assert (PER_SUBJECT.burst, PER_SUBJECT.interval_ns) == (1, 10 * MINUTE)
    assert "once in 10 minutes" in PAGE
    assert (PER_KIND.burst, PER_KIND.interval_ns) == (10, 6 * MINUTE)
    assert "more than 10 in an hour" in PAGE
    assert (AT_ONCE.burst, AT_ONCE.interval_ns) == (5, MINUTE // 6)
    assert "after 5 times only every 10 s" in PAGE
    assert (TTL, OWN) == ("1h", "alerts.podstatus.dev/")


def test_the_rules_of_the_page_are_right() -> None:
    loaded = load_rules(PAGE.partition("```yaml\n")[2].partition("```")[0], Environments())
    assert (loaded.mistakes, loaded.hints) == ((), ())
    assert loaded.rule_set.allow_actions == CHANGING
