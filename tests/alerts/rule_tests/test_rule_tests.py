"""Rule tests run on scripted or recorded changes, and report differences."""

from functools import partial

import pytest
from msgspec import structs

from podstatus.alerts.rule_tests.cases import RuleTest, read_rule_tests
from podstatus.alerts.rule_tests.replay import HistoryDriver
from podstatus.alerts.rule_tests.run import RuleTestResult, run_rule_test
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.transitions.compare_statuses import Transition
from tests.support.alert_rules import SECOND, BlockingLocalEvaluator, load

RULES = """
rules:
- {name: Slow, expr: pod.phase == "Pending", for: 1m, annotations: {summary: "{{ pod.name }} is slow"}}
- {name: Lost, scope: node, expr: "!node.ready"}
- {name: Crashes, expr: pod.restarts10m >= 2, labels: {team: web}}
- {name: Late, expr: pod.overdue}
- {name: Meddled, expr: pod.foreignWrites10m > 0}
"""  # noqa: E501
AT = 1_700_000_000 * SECOND
LOADED = load(RULES).rules
PLAYED = (LOADED, BlockingLocalEvaluator(LOADED))


def rehearsals(steps: str, **more: str) -> RuleTest:
    extra = "".join(f", {key}: {text}" for key, text in more.items())
    read, mistakes = read_rule_tests(f"tests: [{{name: it{extra}, steps: [{steps}]}}]")
    assert mistakes == ()
    [found] = read.tests
    return found


def play(steps: str, **more: str) -> RuleTestResult:
    return run_rule_test(rehearsals(steps, **more), *PLAYED)


def lines(outcome: RuleTestResult) -> list[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    return [(it.at // SECOND, it.expected, it.actual) for it in outcome.differences]


@pytest.mark.parametrize(
    ("expect", "difference"),
    [
        ("[{rule: Slow, pod: web}]", None),
        ("[{rule: Slow, pod: default/web, state: firing, labels: {severity: warning}}]", None),
        ("[]", (("nothing",), ("Slow pod/default/web firing",))),
        (
            "[{rule: Slow, pod: web, state: pending}]",
            (("Slow pod/default/web pending",), ("Slow pod/default/web firing",)),
        ),
        (
            "[{rule: Slow, pod: web, annotations: {summary: other}}]",
            (
                ("Slow pod/default/web firing summary='other'",),
                ("Slow pod/default/web firing summary='web is slow'",),
            ),
        ),
        (
            "[{rule: Slow, pod: web}, {rule: Slow, pod: a/web}]",
            (("Slow pod/a/web firing",), ("nothing",)),
        ),
        (
            "[{rule: Slow, node: web}]",
            (("Slow node/web firing",), ("Slow pod/default/web firing",)),
        ),
    ],
)
def test_alerts_are_those_expected_and_no_others(
    expect: str, difference: tuple[tuple[str, ...], tuple[str, ...]] | None
) -> None:
    outcome = play(f"{{at: 0s, pods: {{web: {{phase: Pending}}}}}}, {{at: 1m, expect: {expect}}}")
    assert lines(outcome) == ([] if difference is None else [(60, *difference)])


def test_time_passes_between_steps_as_rules_say() -> None:
    outcome = play(
        """
        {at: 0s, pods: {web: {phase: Pending}}, nodes: {n: {ready: false}}},
        {at: 1h, pods: {web: {phase: Running}}, nodes: {n: gone}}
        """
    )
    changes = [(it.at // SECOND, it.alert.rule, it.alert.state) for it in outcome.changes]
    assert changes == [
        (0, "Slow", "pending"),
        (0, "Lost", "firing"),
        (60, "Slow", "firing"),
        (3600, "Slow", "resolved"),
        (3600, "Lost", "resolved"),
    ]


def test_what_resolved_is_expected_once_and_only_if_it_fired() -> None:
    outcome = play(
        """
        {at: 0s, pods: {web: {phase: Pending}, short: {phase: Pending}}},
        {at: 30s, pods: {short: {phase: Running}}},
        {at: 2m, pods: {web: {phase: Running}}, expect: [{rule: Slow, pod: web, state: resolved}]},
        {at: 3m, expect: []}
        """
    )
    assert lines(outcome) == []


def test_facts_stay_until_something_else_is_said() -> None:
    outcome = play(
        """
        {at: 0s, pods: {web: {phase: Pending}}},
        {at: 30s, pods: {web: {restarts10m: 2}}},
        {at: 1m, expect: [{rule: Slow, pod: web}, {rule: Crashes, pod: web, labels: {team: web}}]}
        """
    )
    assert lines(outcome) == []


def test_it_may_be_about_some_rules_only() -> None:
    steps = "{at: 0s, pods: {web: {phase: Pending, restarts10m: 2}}, expect: []}"
    assert lines(play(steps, only="[Late]")) == []
    assert len(lines(play(steps))) == 1


def test_every_mistake_has_its_place() -> None:
    _, mistakes = read_rule_tests(
        """\
rules: [default]
tests:
- name: odd
  stepps: []
- steps:
  - at: 5
    pods: {web: {fase: x, restarts: many, containers: [{nam: x}], labels: none}}
    nodes: {n: {diskUsedFraction: nan, sync.unsent: 1.5, ready: perhaps}}
  - {at: 1m, expect: [{rule: x}, {rule: x, pod: a, node: b}, {rule: x, pod: y, state: gone}]}
  - {at: 30s}
  - {expect: []}
- {name: h, history: x.db, steps: [{at: 1s, pods: {}}]}
"""
    )
    errors = [(it.location.line, it.message.split(";")[0].split(",")[0]) for it in mistakes]
    assert errors == [
        (3, "the test has no steps"),
        (4, "a test has no stepps"),
        (5, "the test has no name"),
        (6, "at: '5' is not a duration such as 30s"),
        (7, "a pod"),
        (7, "restarts must be a whole number"),
        (7, "a container has no nam"),
        (7, "labels must be a mapping"),
        (8, "diskUsedFraction must be a number"),
        (8, "sync.unsent must be a whole number"),
        (8, "ready must be true or false"),
        (9, "an alert needs a rule"),
        (9, "an alert needs a rule"),
        (9, "state must be pending"),
        (10, "the step is earlier than the one above it"),
        (11, "the step has no time"),
        (12, "a step has no pods"),
    ]


def entry(
    seconds: float, kind: str, name: str = "web", state: str = "", **more: str | float
) -> HistoryEntry:
    return HistoryEntry(
        at=AT + round(seconds * SECOND),
        uid=PodUID(name),
        namespace="default",
        name=name,
        transition=structs.replace(
            Transition(kind=kind), state_after=parse_container_state(state), **more
        ),
    )


HISTORY = [
    entry(0, "seen"),
    entry(0, "phase", after="Pending"),
    entry(70, "phase", before="Pending", after="Running"),
    entry(70, "condition", subject="Ready", after="True"),
    entry(80, "restart", subject="app", before="0", after="1"),
    entry(80, "container", subject="app", state="running"),
    entry(90, "restart", subject="app", before="1", after="2"),
    entry(100, "event", after="Warning", reason="BackOff"),
    entry(100, "foreign", reason="ForeignStatusWrite", message="another client"),
    entry(800, "deletion", duration_seconds=30.0),
    entry(840, "finished"),
]


def test_a_history_is_played() -> None:
    rule_test = rehearsals(
        """
        {at: 59s, expect: [{rule: Slow, pod: web, state: pending}]},
        {at: 60s, expect: [{rule: Slow, pod: web}]},
        {at: 70s, expect: [{rule: Slow, pod: web, state: resolved}]},
        {at: 90s, expect: [{rule: Crashes, pod: web}]},
        {at: 100s, expect: [{rule: Crashes, pod: web}, {rule: Meddled, pod: web}]},
        {at: 679s, expect: [{rule: Crashes, pod: web}, {rule: Meddled, pod: web}]},
        {at: 700s, expect: [
            {rule: Crashes, pod: web, state: resolved},
            {rule: Meddled, pod: web, state: resolved}]},
        {at: 830s, expect: []},
        {at: 831s, expect: [{rule: Late, pod: web}]},
        {at: 840s, expect: [{rule: Late, pod: web, state: resolved}]}
        """,
        history="x.db",
    )
    play = partial(HistoryDriver, entries=HISTORY)
    outcome = run_rule_test(rule_test, *PLAYED, play)
    assert lines(outcome) == []


def test_a_container_of_a_history_was_created_if_it_ran() -> None:
    """The exit of a container that never ran is recorded as unknown, too."""
    unknown = "terminated ContainerStatusUnknown 137"
    loaded = load('rules: [{name: Vanished, expr: "pod.containers.exists(c, c.created)"}]').rules
    history = [
        entry(0, "container", "ran", "running", subject="app"),
        entry(0, "container", "never", "waiting CreateContainerError", subject="app"),
        entry(10, "container", "ran", unknown, subject="app"),
        entry(10, "container", "never", unknown, subject="app"),
    ]
    rule_test = rehearsals("{at: 10s, expect: [{rule: Vanished, pod: ran}]}", history="x.db")
    play = partial(HistoryDriver, entries=history)
    outcome = run_rule_test(rule_test, loaded, BlockingLocalEvaluator(loaded), play)
    assert lines(outcome) == []


def test_a_history_without_moments_has_no_alerts() -> None:
    rule_test = rehearsals("{at: 1h, expect: []}", history="x.db")
    outcome = run_rule_test(rule_test, *PLAYED, partial(HistoryDriver, entries=[]))
    assert outcome.differences == ()


def test_nothing_happens_after_the_last_moment_of_a_history() -> None:
    rule_test = rehearsals("{at: 7d, expect: []}", history="x.db")
    play = partial(
        HistoryDriver, entries=[*HISTORY[2:3], entry(800, "deletion", duration_seconds=30.0)]
    )
    outcome = run_rule_test(rule_test, *PLAYED, play)
    assert lines(outcome) == []
