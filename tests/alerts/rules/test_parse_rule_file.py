"""Rule files: their content, and every error with its location."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.alerts.cel.compile_rule import compile_checked
from podstatus.alerts.model import Action, Location
from tests.support.alert_rules import ENVIRONMENTS, load

FILE = """\
allowActions: [deletePod]
dryRun: false
rules:
- name: CrashLoop
  scope: pod
  expr: pod.containers.exists(c, c.reason == "CrashLoopBackOff")
  for: 2m
  keepFiringFor: 1h30m
  severity: critical
  labels: {team: web, tier: 1}
  annotations:
    summary: "{{ pod.namespace }}/{{ pod.name }} crashes again and again"
  actions:
  - event
  - webhook: {url: https://example.org/x, secretFile: /etc/secret, timeout: 5s}
  - deletePod: {gracePeriodSeconds: 0}
- name: Down
  scope: node
  expr: |
    !node.ready
"""


def mistakes(text: str) -> list[str]:
    return [mistake.format("f").removeprefix("f:") for mistake in load(dedent(text)).errors]


def test_everything_that_a_file_can_say() -> None:
    loaded = load(FILE)
    assert not loaded.errors
    assert not loaded.warnings
    assert loaded.rule_set.allow_actions == {"deletePod"}
    assert not loaded.rule_set.dry_run
    crash, down = loaded.rule_set.rules
    assert (crash.name, crash.scope, crash.severity) == ("CrashLoop", "pod", "critical")
    assert (crash.for_seconds, crash.keep_firing_for_seconds) == (120, 5400)
    assert crash.labels == {"team": "web", "tier": "1"}
    assert [action.kind for action in crash.actions] == ["event", "webhook", "deletePod"]
    options = {"url": "https://example.org/x", "secretFile": "/etc/secret", "timeout": "5s"}
    assert crash.actions[1] == Action(kind="webhook", options=options, place=Location(15, 5))
    assert crash.location == Location(4, 3)
    assert (down.scope, down.severity) == ("node", "warning")
    assert [rule.problem for rule in loaded.rules] == ["", ""]


def test_nothing_is_done_unless_it_is_said() -> None:
    rule_set = load("rules: []").rule_set
    assert (rule_set.allow_actions, rule_set.dry_run, rule_set.rules) == (frozenset(), True, ())


def test_an_action_that_is_not_allowed_is_a_hint() -> None:
    text = "rules:\n- name: A\n  expr: pod.ready\n  actions: [{deletePod: {}}]\n"
    loaded = load(text)
    assert not loaded.errors
    [hint] = loaded.warnings
    assert hint.format("f") == (
        "f:4:13: deletePod has no effect unless it is in allowActions: [deletePod]"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [("rules: []", "1:8"), ("dryRun: true\nrules:", "2:7"), ("{}", "1:1"), ("dryRun: true", "1:1")],
)
def test_a_file_that_does_nothing_has_a_note(text: str, place: str) -> None:
    loaded = load(text)
    assert not loaded.errors
    message = f"f:{place}: the file has no rules and disables none: it has no effect"
    assert [hint.format("f") for hint in loaded.warnings] == [message]


def test_a_file_that_only_disables_does_something() -> None:
    assert load("disable: [PodNotReady]\nrules: []").warnings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '1:1: the file is empty; a rule file without rules contains "rules: []"'),
        ("- a", "1:1: the file must be a mapping, not a list"),
        ("rules: 3", "1:8: rules must be a list, not '3'"),
        ("rulez: []", "1:1: the file has no rulez; did you mean rules?"),
        (
            "groups:\n- {name: a, rules: []}",
            "1:1: this is a Prometheus rule file; rules are a list",
        ),
        ("rules: [a]\ntests: []", "1:1: this is a file of rule tests: use the command alerts test"),
        ("rules: []\nrules: []", "2:1: duplicate key rules"),
        ("rules: [", "invalid YAML"),
        ("rules: []\n---\nrules: []", "2:1: invalid YAML"),
        ("dryRun: no", "1:9: dryRun must be true or false"),
        ('dryRun: "true"', "1:9: dryRun must be true or false"),
        (
            "allowActions: [event]",
            "1:16: allowActions must be deletePod, restartContainer or taintNode, not 'event'",
        ),
        ("rules: [3]", "1:9: a rule must be a mapping, not '3'"),
        ("rules: [{expr: pod.ready}]", "1:9: the rule has no name"),
        ("rules: [{name: A}]", "1:9: rule A has no expr"),
        ("rules: [{}]", "1:9: rule number 1 has no expr\n1:9: the rule has no name"),
        ("rules:\n- {name: A, expr: pod.ready}\n- {}", "3:3: rule number 2 has no expr"),
        ("rules:\n- {nam: A}", "2:3: the rule has no name\n2:4: a rule has no nam; did you mean"),
        ("rules:\n-", "2:2: a rule must be a mapping, not nothing"),
        ("rules: [{name: A, expr: ~}]", "1:25: expr must be a string, not nothing"),
        ("rules: [{name: A, expr: ''}]", "1:25: expr is empty"),
        (
            "rules: [{name: A-b, expr: pod.ready}]",
            "1:16: a name consists of at most 100 letters, digits and underscores, not 'A-b'",
        ),
        (
            "rules: [{name: A, expr: pod.ready}, {name: A, expr: pod.static}]",
            "1:44: duplicate rule A, first defined in line 1",
        ),
        ("rules: [{name: A, exp: pod.ready}]", "1:19: a rule has no exp; did you mean expr?"),
    ],
)
def test_a_file_with_a_mistake(text: str, message: str) -> None:
    assert message in "\n".join(mistakes(text))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("name: My Rule, ", "2:10: a name consists of at most 100 letters, digits and underscores"),
        ("name: A, ", "2:10: duplicate rule A, first defined in line 1"),
        ("", "2:3: the rule has no name"),
    ],
)
def test_all_is_looked_at_in_a_rule_without_a_name_of_its_own(name: str, message: str) -> None:
    first = "rules: [{name: A, expr: pod.ready},\n"
    loaded = load(f"{first}  {{{name}for: 3, expr: pod.fase, actions: [evnt]}}, {{{name}}}]")
    messages = "\n".join(mistake.message for mistake in loaded.errors)
    assert message in loaded.errors[0].format("f")
    assert "for: '3' is not a duration" in messages
    assert "unknown action evnt" in messages
    assert "expr: there is no pod.fase" in messages
    assert "rule number 3 has no expr" in messages
    assert [(rule.rule.name, rule.problem) for rule in loaded.rules] == [("A", "")]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("scope: pods", "4:10: scope must be pod or node, not 'pods'"),
        ("severity: page", "4:13: severity must be info, warning or critical, not 'page'"),
        ("for: 30", "4:8: for: '30' is not a duration such as 30s, 2m or 1h30m"),
        ("for: -3m", "4:8: for: '-3m' is not a duration such as 30s, 2m or 1h30m"),
        ("keepFiringFor: 400d", "4:18: keepFiringFor: '400d' is longer than a year"),
        ("labels: [a]", "4:11: labels must be a mapping, not a list"),
        ("labels: {a: [b]}", "4:15: labels: a must be a string, not a list"),
        (
            "labels: {a-b: c}",
            "4:17: a label name consists of letters, digits and underscores, not 'a-b'",
        ),
        ("labels: {severity: c}", "4:22: the label severity is reserved; choose another name"),
        (
            "annotations: {a: 'x {{ pod.fase }}'}",
            "4:26: annotations.a: there is no pod.fase",
        ),
        ("annotations: {a: 'x {{ pod.name'}", "4:23: annotations.a: {{ without }}"),
        ("annotations: {a: 'x }} y'}", "4:23: annotations.a: }} without {{"),
        (
            "actions: [mail]",
            (
                "4:13: unknown action mail; use one of log, event, webhook, alertmanager, "
                "nodeCondition, restartContainer, deletePod, taintNode"
            ),
        ),
        ("actions: event", "4:12: actions must be a list, not 'event'"),
        (
            "actions: [{event: {}, log: {}}]",
            "4:13: an action is a kind with its options: {event: {}}",
        ),
        ("actions: [{event: {a: b}}]", "4:22: event has no a; allowed: none"),
        ("actions: [{webhook: {}}]", "4:13: webhook needs url: URL to post to."),
        (
            "actions: [{webhook: {url: example.org}}]",
            "4:29: webhook: url must be a URL such as https://example.org/alerts",
        ),
        (
            "actions: [{webhook: 'https://example.org/s3cret'}]",
            "4:23: webhook must be a mapping of its options, not a string",
        ),
        (
            "actions: [{webhook: {url: 'https://me:s3cret@h/x', tokenFile: /t}}]",
            "4:29: webhook: a url with a user cannot have tokenFile",
        ),
        (
            "actions: [{webhook: {url: 'http://x', timeout: 5}}]",
            "4:50: webhook: timeout must be a duration such as 30s or 2m, not '5'",
        ),
        (
            "actions: [{deletePod: {gracePeriodSeconds: -1}}]",
            "4:46: deletePod: gracePeriodSeconds must be a number, 0 or more, not '-1'",
        ),
        (
            "actions: [{webhook: {url: 'http://x', timeout: 31s}}]",
            "4:50: webhook: timeout must be at most 30s, not '31s'",
        ),
        (
            "actions: [{taintNode: {key: a, value: b c}}]",
            (
                "4:41: taintNode: value must be at most 63 letters, digits, -, _ and ., "
                "with a letter or digit at both ends, not 'b c'"
            ),
        ),
        (
            "actions: [{taintNode: {key: a b, effect: No}}]",
            (
                "4:44: taintNode: effect must be one of NoSchedule, PreferNoSchedule, NoExecute, "
                "not 'No'"
            ),
        ),
        (
            "actions: [{nodeCondition: {ttl: 3m}}]",
            (
                "4:13: nodeCondition needs type: Condition type, prefixed with "
                "`alerts.podstatus.dev/`."
            ),
        ),
    ],
)
def test_a_rule_with_a_mistake(field: str, message: str) -> None:
    assert message in mistakes(f"rules:\n- name: A\n  expr: pod.ready\n  {field}\n")


def test_deeds_on_pods_are_for_rules_about_pods() -> None:
    text = "rules: [{name: A, scope: node, expr: node.ready, actions: [deletePod]}]"
    assert mistakes(text) == ["1:60: deletePod is for rules with scope pod"]


@pytest.mark.parametrize(
    ("expr", "place"),
    [
        ("expr: pod.ready && pod.fase", "3:22"),
        ("expr: 'pod.ready && pod.fase'", "3:23"),
        ("expr: \"pod.name == \\\"a\\\" && pod.fase\"", "3:31"),
        ("expr: 'pod.name == ''a'' && pod.fase'", "3:31"),
        ("expr: |\n    pod.ready &&\n      pod.fase", "5:7"),
        ("expr: |2-\n    pod.ready &&\n    pod.fase", "5:5"),
        ("expr: |\n\n    // first a remark\n    pod.ready && pod.fase", "6:18"),
        ("expr: >-\n    pod.ready &&\n    pod.fase", "5:5"),
        ("expr: pod.ready &&\n    pod.fase", "4:5"),
        ("expr:\n    pod.ready && pod.fase", "4:18"),
    ],
)  # fmt: skip
def test_the_place_in_an_expression_is_the_place_in_the_file(expr: str, place: str) -> None:
    assert mistakes(f"rules:\n- name: A\n  {expr}\n") == [f"{place}: expr: there is no pod.fase"]


def test_the_place_is_not_taken_for_the_mark_of_a_block() -> None:
    [message] = mistakes("rules:\n- name: A\n  expr: |-\n    -pod.ready\n")
    assert message.startswith("4:5: expr: found no matching overload")


EVERYTHING = "it fails for a pod with all facts"
NOTHING = "it fails for a pod with empty facts"
NO_KEY = 'key not found in map : "%s"; check first whether it exists'


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        ("pod.name", "it must be true or false, but has type string"),
        (
            'pod.labels.app == "web"',
            'without "app" in pod.labels; check first: "app" in pod.labels && …',
        ),
        (
            'pod.conditions["Ready"] == "True"',
            'without "Ready" in pod.conditions; check first: "Ready" in pod.conditions && …',
        ),
        ("pod.labels[pod.name] == 'x'", f"{EVERYTHING}: {NO_KEY % 'text'}"),
        ("pod.containers[0].fase == 1", f"{EVERYTHING}: {NO_KEY % 'fase'}"),
        (
            'pod.containers.filter(c, c.name == "app")[0].restarts > 3',
            f"{EVERYTHING}: a list of 0 has no [0]; check first: size(…) > 0 && …, or use exists()",
        ),
        (
            "pod.containers[0].ready",
            "has type dyn; its type is known only on evaluation: write … == true",
        ),
        ("10 / pod.restarts > 3", f"{NOTHING}: divide by zero"),
        ('pod.name.matches("(")', f"{EVERYTHING}: invalid regular expression: missing ): ("),
    ],
)
def test_what_would_fail_of_many_is_tried_before(expr: str, message: str) -> None:
    [mistake] = mistakes(f"rules:\n- name: A\n  expr: {expr}\n")
    assert mistake.startswith("3:9: expr: it ")
    assert mistake.endswith(message)


def test_all_errors_are_reported_at_once_in_file_order() -> None:
    text = """\
        rules:
        - name: A
          expr: pod.fase || pod.foo
          for: 3
        - nam: B
        - name: C
          expr: pod.ready
    """
    places = [message.split(" ")[0] for message in mistakes(text)]
    assert places == ["3:9:", "3:21:", "4:8:", "5:3:", "5:3:", "5:3:"]


def test_a_rule_with_a_mistake_is_shown_and_the_others_are_asked() -> None:
    loaded = load("rules:\n- {name: A, expr: pod.fase}\n- {name: B, expr: pod.ready, for: 1}\n"
                  "- {name: C, expr: pod.ready}\n")  # fmt: skip
    assert [(rule.rule.name, rule.problem) for rule in loaded.rules] == [
        ("A", "line 2: expr: there is no pod.fase"),
        ("B", "line 3: for: '1' is not a duration such as 30s, 2m or 1h30m"),
        ("C", ""),
    ]
    assert [bool(rule.problem) for rule in loaded.rules] == [True, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 500_000,
        "rules: " + "[" * 30 + "]" * 30,
        "a: &a [*a]\nrules: *a",
        "rules: &a [{name: A, expr: pod.ready, labels: *a}]",
        "\ud800",
        "rules: \x00",
        "x" * 2_000_000,
        "rules: !!python/object:os.system {}",
        "? [a]\n: b",
        "rules:\n- {? {a: b} : c}",
    ],
)
def test_no_text_is_too_strange_to_be_refused(text: str) -> None:
    assert load(text).errors


@given(
    st.integers(0, len(FILE)),
    st.integers(0, 12),
    st.one_of(
        st.text(max_size=6), st.sampled_from(("{{", "*a", "&a ", "!!int ", "|", "\n  ", "~"))
    ),
)
def test_a_file_that_was_spoilt_is_read_all_the_same(at: int, length: int, put: str) -> None:
    spoilt = FILE[:at] + put + FILE[at + length :]
    lines = spoilt.count("\n") + 2
    loaded = load(spoilt)
    assert all(1 <= mistake.location.line <= lines for mistake in loaded.errors)
    right = [rule.rule for rule in loaded.rules if not rule.problem]
    assert all(compile_checked(rule, ENVIRONMENTS).condition.is_bool for rule in right)
