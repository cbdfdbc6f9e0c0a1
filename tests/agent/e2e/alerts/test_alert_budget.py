"""Expensive alert rules affect neither queries nor pods nor the stop of an agent."""

import time
from pathlib import Path

import pytest

from tests.support.processes.agent_process import agent, get_alerts, make_pod, until

TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
PATTERN = "pod.name.matches('a{1,900}' + string(a) + string(b) + string(c) + string(d))"
ENDLESS = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, !{PATTERN}))))"
"""20 s of CPU, if it gets them."""
SLOW = "pod.name.matches('a{1,900}')"
GOOD = "- {name: Good, expr: '\"victim\" in pod.labels'}\n"
_STOP_SECONDS, _ANSWER_SECONDS = 15.0, 5.0
"""On a busy machine, where an agent without rules takes 3 to stop; without budgets: minutes."""


def rules_of(folder: Path, *expressions: str) -> Path:
    path = folder / "rules.yaml"
    rules = "".join(
        f"- name: Bad{number}\n  expr: \"'victim' in pod.labels && {expression}\"\n"
        for number, expression in enumerate(expressions)
    )
    path.write_text(f"rules:\n{rules}{GOOD}")
    return path


@pytest.mark.slow
def test_rules_over_budget_stop_neither_agent_nor_pods(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, ENDLESS, ENDLESS, ENDLESS)
    victim = make_pod("web")
    victim["metadata"]["labels"] = {"victim": ""}
    with agent(tmp_path / "agent", "--alert-rules", str(rules), "--no-samples") as made:
        cluster = made.start_ready()
        cluster.create(victim)
        slowest = 0.0

        def is_told() -> bool:
            nonlocal slowest
            began = time.monotonic()
            assert made.health()[0] == 200
            slowest = max(slowest, time.monotonic() - began)
            return "alert rule switched off: rule=Bad" in made.log()

        until(is_told)
        cluster.create(make_pod("other"))
        cluster.wait_ready("web", "other")
        until(lambda: get_alerts(made).get("AlertRuleOverBudget", {}).get("state") == "firing")
        until(lambda: get_alerts(made).get("Good", {}).get("state") == "firing")
        assert slowest < _ANSWER_SECONDS
        family = made.family()
        began = time.monotonic()
        assert made.stop() == 0
        assert time.monotonic() - began < _STOP_SECONDS
        until(lambda: not [it for it in family if it.is_running() and _evaluates(it.cmdline())])


@pytest.mark.slow
def test_an_agent_stops_while_it_checks_rules(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, *[f"{SLOW} && {SLOW}"] * 999)
    with agent(tmp_path / "agent", "--alert-rules", str(rules)) as made:
        made.start()
        until(lambda: [it for it in made.family() if _evaluates(it.cmdline())])
        began = time.monotonic()
        made.stop()
        assert time.monotonic() - began < _STOP_SECONDS


def _evaluates(words: list[str]) -> bool:
    return "podstatus.alerts.evaluator.child_main" in words
