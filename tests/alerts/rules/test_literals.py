"""Comparisons with values that a fact never has."""

import pytest

from podstatus.alerts.cel.compile_rule import Environments
from podstatus.alerts.defaults import default_rules
from podstatus.alerts.rules.static_checks import unknown_literals
from tests.support.alert_rules import load

EXISTS = "pod.containers.exists(c, %s)"


@pytest.mark.parametrize(
    ("expression", "column", "message"),
    [
        ('pod.phase == "running"', 14, 'pod.phase is never "running"; did you mean Running?'),
        ("'Runing' != pod.phase", 1, "pod.phase is never 'Runing'; did you mean Running?"),
        (
            'pod.ready && pod.health == "ill"',
            28,
            'pod.health is never "ill"; it is one of healthy, ',
        ),
        (EXISTS % 'c.state == "wating"', 37, 'c.state is never "wating"; did you mean waiting?'),
        (EXISTS % 'c.kind == "job"', 36, 'c.kind is never "job"; it is one of container, init, '),
        ('pod.qos == "besteffort" || pod.ready', 12, "did you mean BestEffort?"),
    ],
)
def test_a_word_that_a_fact_never_is(expression: str, column: int, message: str) -> None:
    [flaw] = unknown_literals(expression)
    assert message in flaw.message
    assert (flaw.location.line, flaw.location.column) == (1, column)


@pytest.mark.parametrize(
    "expression",
    [
        'pod.phase == "Running"',
        'pod.phase != ""',
        'pod.phase.lowerAscii() == "running"',
        '"running" == pod.phase.lowerAscii()',
        'pod.phase == "Run" + "ning"',
        '"Run" + "ning" == pod.phase',
        'pod.phase == "RUNNING".lowerAscii()',
        "pod.name == \"pod.phase == 'x'\"",
        "pod.ready // pod.phase == 'x'",
        'pod.name == "running"',
        'pod.reason == "ill"',
        '["x"].exists(c, c == "x") && pod.ready',
        EXISTS % 'c.state == "waiting" && c.reason == "x"',
    ],
)
def test_a_possible_value_is_not_reported(expression: str) -> None:
    assert list(unknown_literals(expression)) == []


def test_it_is_a_hint_with_its_place_and_no_mistake() -> None:
    loaded = load("rules:\n- name: A\n  expr: >-\n    pod.ready ||\n    pod.phase == 'x'\n")
    assert not loaded.errors
    [hint] = loaded.warnings
    assert hint.format("f").startswith(
        "f:5:18: expr: pod.phase is never 'x'; it is one of Pending, "
    )


def test_default_rules_name_words_that_there_are() -> None:
    assert default_rules(Environments()).warnings == ()
