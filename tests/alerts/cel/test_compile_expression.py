"""Expressions: errors are found on compilation, with their locations."""

import subprocess
import sys
import threading

import pytest

from podstatus.alerts.cel.compile_expression import MAX_EXPRESSION_LENGTH, Environment
from podstatus.alerts.evaluator.ports import RuleFailed
from podstatus.alerts.model import Location
from podstatus.alerts.rules.static_checks import MAX_EXPANSIONS, CompileError
from tests.support.alert_rules import pod_like

POD = Environment.for_scope("pod")
NODE = Environment.for_scope("node")
APP = {
    "name": "app", "kind": "container", "image": "i", "state": "waiting",
    "reason": "CrashLoopBackOff", "exitCode": -1, "message": "", "lastReason": "Error",
    "lastExitCode": 3, "ready": False, "started": False, "restarts": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ('pod.phase == "Pending"', True),
        ('pod.containers.exists(c, c.reason == "CrashLoopBackOff")', True),
        ('pod.containers.all(c, c.kind == "init" || c.ready)', False),
        ('pod.containers.exists(c, c.state == "waiting" && c.lastExitCode == 3)', True),
        ('pod.containers.filter(c, c.restarts > 3).size() == 1', True),
        ('"app" in pod.labels && pod.labels.app == "web"', True),
        ('has(pod.labels.tier) && pod.labels.tier == "web"', False),
        ('pod.labels[?"tier"].orValue("web") == "web"', True),
        ('pod.conditions[?"Ready"].orValue("Unknown") == "False"', True),
        ('pod.name.matches("^web-[0-9]+$")', True),
        ('pod.name.startsWith("web") && pod.restarts10m >= 3', True),
        ('pod.name.split("-")[0] == "web"', True),
        ("// a remark\npod.restarts == 4", True),
    ],
)  # fmt: skip
def test_what_a_pod_is_asked(text: str, held: bool) -> None:
    facts = pod_like(
        phase="Pending", containers=[APP], labels={"app": "web"}, name="web-1", restarts=4,
        conditions={"Ready": "False"}, restarts10m=3,
    )  # fmt: skip
    assert POD.compile(text).holds(POD.activation(facts)) is held


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("pod.fase", Location(1, 1), "there is no pod.fase"),
        ("pod.ready &&\n  pod.fase == 3", Location(2, 3), "there is no pod.fase"),
        (
            "node.ready",
            Location(1, 1),
            "there is no node.ready here; rules with scope node have it",
        ),
        ("sync.unsent > 3", Location(1, 1), "here; rules with scope node have it"),
        ('pod.phase = "Running"', Location(1, 11), "syntax error: write ==, not ="),
        ("pod.ready & pod.static", Location(1, 11), "syntax error: write &&, not &"),
        ("len(pod.name) > 3", Location(1, 1), "there is no len"),
        ("true && len(pod.name) > 3", Location(1, 9), "there is no len"),
        ("pod", Location(1, 1), "there is no pod"),
        ("pod.phase == 3", Location(1, 11), "no matching overload for '_==_'"),
        ('pod.name == "é" && pod.fase', Location(1, 20), "there is no pod.fase"),
        ("pod.ready &&", Location(1, 13), "syntax error: mismatched input '<EOF>'"),
        ("pod.ready and pod.static", Location(1, 11), "syntax error: write &&, not and"),
        ('"abc', Location(1, 1), "syntax error: token recognition error"),
        (
            "pod.containers.exists(c, c.fase > 3)",
            Location(1, 28),
            "containers have no fase; use one of",
        ),
        ("false && pod.containers.all( x ,\n x.ok)", Location(2, 4), "containers have no ok"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, place: Location, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        POD.compile(text)
    [flaw] = caught.value.errors
    assert flaw.message.startswith(message) or message in flaw.message
    assert flaw.location == place


def test_all_wrong_names_are_reported() -> None:
    with pytest.raises(CompileError) as caught:
        POD.compile("pod.a || pod.b || pod.ready")
    assert [flaw.location.column for flaw in caught.value.errors] == [1, 10]


def test_a_whole_number_where_a_fraction_is_needed_is_explained() -> None:
    with pytest.raises(CompileError, match=r"as 3\.0"):
        NODE.compile("node.cpuUsedFraction > 1")


@pytest.mark.parametrize(
    "text",
    [
        'pod.containers.exists(c, c.name == "c.fase")',
        'pod.containers.exists(c, c.name.startsWith("x")) // c.fase',
        'pod.labels.exists(c, c.startsWith("x"))',
        "pod.containers.exists(c, c.size() == 12)",
        '[{"fase": 1}].exists(m, m.fase == 1)',
    ],
)
def test_right_names_are_taken_for_no_mistake(text: str) -> None:
    assert POD.compile(text).is_bool


def test_what_fails_of_one_pod_says_why() -> None:
    asked = POD.compile("10 / pod.restarts > 3")
    assert asked.holds(POD.activation(pod_like(restarts=0))) == RuleFailed("divide by zero")
    assert asked.holds(POD.activation(pod_like(restarts=2))) is True


def test_a_text_that_is_no_unicode_fails_of_its_pod_alone() -> None:
    asked = POD.compile('pod.message == "x"')
    assert isinstance(asked.holds(POD.activation(pod_like(message="\ud800"))), RuleFailed)
    assert isinstance(asked.value(POD.activation(pod_like(message="\ud800"))), RuleFailed)


def test_what_python_has_no_value_for_fails_of_its_pod_alone() -> None:
    asked = POD.compile('pod.labels[?"app"]')
    assert isinstance(asked.value(POD.activation(pod_like())), RuleFailed)


def test_an_expression_is_asked_in_another_thread_than_it_was_compiled_in() -> None:
    asked, held = POD.compile("pod.restarts > 3"), list[object]()

    def ask() -> None:
        held.extend(asked.holds(POD.activation(pod_like(restarts=4))) for _ in range(1000))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held == [True] * 3000


def test_an_expression_that_is_too_long_is_refused() -> None:
    with pytest.raises(CompileError, match="longer than"):
        POD.compile("true" + " || true" * MAX_EXPRESSION_LENGTH)


@pytest.mark.parametrize(
    "text",
    [
        '"x"' + '.replace("x", "xxxxxxxxxx")' * 8 + ".size() > 0",
        '["x"]' + ".map(a, a + a)" * 30 + "[0].size() > 0",
        'optional.of("x")' + ".optMap(a, a + a)" * 30 + ".hasValue()",
        '"%s%s"' + '.format(["%s%s", "%s%s"])' * 30 + ".size() > 0",
        '["x"]' + '.join("x").split("").map (a, a + a)' * 30 + ".size() > 0",
    ],
)
def test_what_makes_more_and_more_of_a_text_is_refused(text: str) -> None:
    with pytest.raises(CompileError, match="more than 5 calls"):
        POD.compile(text)


def test_some_may_make_more_of_a_text_and_texts_may_name_them() -> None:
    five = '"a.b"' + '.replace(".", "-")' * MAX_EXPANSIONS
    asked = POD.compile(five + ' == "a-b" && ".map(.map(" != ""')
    assert asked.holds(POD.activation(pod_like())) is True
    with pytest.raises(CompileError) as caught:
        POD.compile(five + '\n  .replace("a", "") == ""')
    assert [flaw.location for flaw in caught.value.errors] == [Location(2, 3)]


MONSTERS = """
"(" * 10_000 + "true" + ")" * 10_000
"(" * 4_000 + "true" + ")" * 4_000
"!" * 9_990 + "true"
"[" * 4_000 + "]" * 4_000 + " == []"
"true" + " == true" * 1_200
"true ? true : " * 700 + "true"
"[1,2,3,4,5,6,7,8].exists(a, " * 8 + "false" + ")" * 8
"""
PROGRAM = """
from podstatus.alerts.cel.compile_expression import Environment
from podstatus.alerts.rules.static_checks import CompileError
environment = Environment.for_scope("pod")
for text in [%s]:
    try:
        environment.compile(text).holds(environment.activation({}))
        print("asked")
    except CompileError:
        print("refused")
"""


def test_no_expression_ends_the_agent() -> None:
    """In a child process: a crash would not be a Python exception."""
    program = PROGRAM % ", ".join(MONSTERS.strip().splitlines())
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*["refused"] * 2, "asked", *["refused"] * 3, "asked"]
