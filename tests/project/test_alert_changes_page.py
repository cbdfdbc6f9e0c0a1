"""docs/reference/alert-actions.md names each action on the node, its events, and its limits."""

import re
from pathlib import Path

from podstatus.alerts.actions.guarded_remediation import KIND_RATE_LIMIT, SUBJECT_RATE_LIMIT
from podstatus.alerts.actions.name_prefix import PREFIX
from podstatus.alerts.actions.node_conditions import DEFAULT_TTL, REPORT_RATE_LIMIT
from podstatus.alerts.cel.compile_rule import Environments
from podstatus.alerts.rules.action_kinds import REMEDIATION_KINDS
from podstatus.alerts.rules.load import load_rules
from podstatus.events import reasons

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "alert-actions.md").read_text()
MINUTE = 60 * 10**9


def test_the_page_has_every_action_that_changes_something() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert set(rows) == REMEDIATION_KINDS


def test_the_page_has_every_event() -> None:
    ours = [it for name, it in vars(reasons).items() if name.startswith("ALERT_")]
    assert [reason for reason in ours if reason not in PAGE] == []


def test_the_limits_are_as_the_page_says() -> None:
    assert (SUBJECT_RATE_LIMIT.burst, SUBJECT_RATE_LIMIT.interval_ns) == (1, 10 * MINUTE)
    assert "once in 10 minutes" in PAGE
    assert (KIND_RATE_LIMIT.burst, KIND_RATE_LIMIT.interval_ns) == (10, 6 * MINUTE)
    assert "more than 10 in an hour" in PAGE
    assert (REPORT_RATE_LIMIT.burst, REPORT_RATE_LIMIT.interval_ns) == (5, MINUTE // 6)
    assert "after 5 times only every 10 s" in PAGE
    assert (DEFAULT_TTL, PREFIX) == ("1h", "alerts.podstatus.dev/")


def test_the_rules_of_the_page_are_right() -> None:
    loaded = load_rules(PAGE.partition("```yaml\n")[2].partition("```")[0], Environments())
    assert (loaded.errors, loaded.warnings) == ((), ())
    assert loaded.rule_set.allow_actions == REMEDIATION_KINDS
