"""docs/reference/alerting.md has every key, limit and default rule; `make docs` writes the rest."""

import re
from pathlib import Path

import pytest

from podstatus.alerts.actions.guarded_remediation import KIND_RATE_LIMIT, SUBJECT_RATE_LIMIT
from podstatus.alerts.actions.name_prefix import PREFIX
from podstatus.alerts.actions.node_conditions import DEFAULT_TTL, REPORT_RATE_LIMIT
from podstatus.alerts.cel.compile_rule import Environments
from podstatus.alerts.defaults import default_rules
from podstatus.alerts.rules.action_kinds import REMEDIATION_KINDS
from podstatus.alerts.rules.durations import parse_duration
from podstatus.alerts.rules.load import load_rules
from podstatus.alerts.rules.parse_rule_file import FILE_KEYS, RULE_KEYS
from podstatus.events import reasons
from tests.support.alert_rules import load

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "alerting.md").read_text()
CHANGES = PAGE.partition("\n## Actions on the node\n")[2].partition("\n## ")[0]
MINUTE = 60 * 10**9


@pytest.mark.parametrize(("title", "keys"), [("A file", FILE_KEYS), ("A rule", RULE_KEYS)])
def test_the_page_has_the_keys(title: str, keys: tuple[str, ...]) -> None:
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == sorted(keys)


def test_the_rule_of_the_page_is_right() -> None:
    loaded = load(PAGE.partition("```yaml\n")[2].partition("```")[0])
    assert not loaded.errors
    assert [rule.problem for rule in loaded.rules] == [""]


def test_the_page_has_every_action_that_changes_something() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", CHANGES, re.MULTILINE)
    assert set(rows) == REMEDIATION_KINDS


def test_the_page_has_every_event_of_an_action() -> None:
    ours = [it for name, it in vars(reasons).items() if name.startswith("ALERT_")]
    assert [reason for reason in ours if reason not in CHANGES] == []


def test_the_limits_of_actions_are_as_the_page_says() -> None:
    assert (SUBJECT_RATE_LIMIT.burst, SUBJECT_RATE_LIMIT.interval_ns) == (1, 10 * MINUTE)
    assert "once in 10 minutes" in CHANGES
    assert (KIND_RATE_LIMIT.burst, KIND_RATE_LIMIT.interval_ns) == (10, 6 * MINUTE)
    assert "more than 10 in an hour" in CHANGES
    assert (REPORT_RATE_LIMIT.burst, REPORT_RATE_LIMIT.interval_ns) == (5, MINUTE // 6)
    assert "after 5 times only every 10 s" in CHANGES
    assert (DEFAULT_TTL, PREFIX) == ("1h", "alerts.podstatus.dev/")


def test_the_rules_with_actions_are_right() -> None:
    loaded = load_rules(CHANGES.partition("```yaml\n")[2].partition("```")[0], Environments())
    assert (loaded.errors, loaded.warnings) == ((), ())
    assert loaded.rule_set.allow_actions == REMEDIATION_KINDS


def test_the_page_has_a_row_for_every_default_rule() -> None:
    rules = [compiled.rule for compiled in default_rules(Environments()).rules]
    section = PAGE.partition("\n## Default rules\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| .* \| (\w+) \| (\w+) \|$", section, re.MULTILINE)
    documented = [(name, parse_duration(span), severity) for name, span, severity in rows]
    assert documented == [(rule.name, rule.for_seconds, rule.severity) for rule in rules]
