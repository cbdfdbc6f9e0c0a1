"""docs/reference/alerting.md has every fact, key and action that rules may name, and no other."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from podstatus.alerts.rules.action_kinds import ACTIONS, ActionKind, ActionOption
from podstatus.alerts.rules.fact_variables import (
    CONTAINER_FACTS,
    NODE_FACTS,
    POD_FACTS,
    SYNC_FACTS,
    Fact,
)
from podstatus.alerts.rules.parse_rule_file import FILE_KEYS, RULE_KEYS
from tests.support.alert_rules import load

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "alerting.md").read_text()


def fact_rows(facts: Iterable[Fact]) -> str:
    return "\n".join(f"| `{fact.name}` | {fact.kind} | {fact.meaning} |" for fact in facts)


def action_rows() -> str:
    return "\n".join(row for kind in ACTIONS.values() for row in _rows(kind))


def _rows(kind: ActionKind) -> list[str]:
    where = " Only with scope `pod`." if kind.scopes == {"pod"} else ""
    first = f"| `{kind.name}`{' ✎' if kind.is_remediation else ''} | | {kind.meaning}{where} |"
    return [first, *(f"| | `{option.name}` | {_meaning(option)} |" for option in kind.options)]


def _meaning(option: ActionOption) -> str:
    default = f" Default: `{option.default}`." if option.default else ""
    return f"{option.meaning}{' Required.' if option.required else default}"


@pytest.mark.parametrize("facts", [POD_FACTS, CONTAINER_FACTS, NODE_FACTS, SYNC_FACTS])
def test_the_page_has_a_table_of_these_facts(facts: tuple[Fact, ...]) -> None:
    assert f"|---|---|---|\n{fact_rows(facts)}\n\n" in PAGE


def test_the_page_has_a_table_of_actions() -> None:
    assert PAGE.endswith(f"|---|---|---|\n{action_rows()}\n")


@pytest.mark.parametrize(("title", "keys"), [("A file", FILE_KEYS), ("A rule", RULE_KEYS)])
def test_the_page_has_the_keys(title: str, keys: tuple[str, ...]) -> None:
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == sorted(keys)


def test_the_rule_of_the_page_is_right() -> None:
    loaded = load(PAGE.partition("```yaml\n")[2].partition("```")[0])
    assert not loaded.errors
    assert [rule.problem for rule in loaded.rules] == [""]
