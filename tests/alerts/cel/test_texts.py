"""Durations and templates."""

import pytest

from podstatus.alerts.cel.compile_expression import Environment
from podstatus.alerts.cel.compile_rule import compile_template
from podstatus.alerts.rules.durations import RuleDurationError, parse_duration
from podstatus.alerts.rules.static_checks import CompileError
from tests.support.alert_rules import pod_like

POD = Environment.for_scope("pod")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("0s", 0), ("30s", 30), ("2m", 120), ("1h30m", 5400), ("1d", 86400),
        ("1w1d", 691200), ("500ms", 0.5), ("1m500ms", 60.5), ("90s", 90),
    ],
)  # fmt: skip
def test_a_length_of_time(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "3", "1.5h", "-1s", "+1s", "1s1m", "1m1m", " 1s", "1 s", "1y", "²s", "53w", "s"]
)
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(RuleDurationError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain", "plain"),
        ("", ""),
        ("{{ pod.namespace }}/{{pod.name}} crashes", "default/web crashes"),
        ("{{ pod.restarts }} times, {{ pod.ready }}", "4 times, false"),
        ("{{ double(pod.restarts) / 8.0 }}", "0.5"),
        ('{{ pod.labels[?"app"].orValue("no label") }}', "no label"),
        ("{{ pod.labels.app }}!", '<key not found in map : "app">!'),
        ("{{ [pod.name] }} {{ {'a': 1} }}", '["web"] {"a": 1}'),
        ("{{ pod.name +\n'-x' }}", "web-x"),
        ("{ not an expression }", "{ not an expression }"),
    ],
)
def test_a_template_is_filled_in(text: str, filled: str) -> None:
    facts = POD.activation(pod_like(name="web", namespace="default", restarts=4))
    assert compile_template(POD, text).render(facts) == filled


def test_a_text_does_not_become_endless() -> None:
    facts = POD.activation(pod_like(message="x" * 512))
    assert len(compile_template(POD, "{{ pod.message }}" * 100).render(facts)) == 2_000


def test_all_errors_of_a_template_have_their_locations() -> None:
    with pytest.raises(CompileError) as caught:
        compile_template(POD, "a {{ pod.fase }}\nb {{ pod.ready &&\n pod.foo }} {{ c")
    assert [(flaw.location.line, flaw.location.column) for flaw in caught.value.errors] == [
        (1, 6),
        (3, 2),
        (3, 13),
    ]


def test_what_may_be_nothing_is_no_text() -> None:
    with pytest.raises(CompileError, match="it may have no value"):
        compile_template(POD, 'of {{ pod.labels[?"app"] }}')
