"""A rule that exceeds its CPU or memory budget affects only itself."""

import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from podstatus.alerts.evaluator import budgeted_evaluator, child_process
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.alerts.evaluator.child_process import EvaluatorChild
from podstatus.alerts.evaluator.decide.budget import MAX_MEMORY
from podstatus.alerts.evaluator.ports import (
    EvaluationRequest,
    EvaluatorError,
    RuleFailed,
    RuleHolds,
)
from podstatus.alerts.evaluator.wire import (
    MAX_FRAME,
    PAGE_BYTES,
    EvaluationProgress,
    EvaluatorEnded,
)
from podstatus.alerts.model import Rule
from podstatus.alerts.rules.load import load_rules
from tests.support.alert_rules import node, node_like, pod, pod_like

TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
PATTERN = "pod.name.matches('a{1,900}' + string(a) + string(b) + string(c))"
ENDLESS = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, !{PATTERN})))"
"""2 s of CPU: each pattern is built at run time, and compiled each time."""
_GROWS = "".join(f"[{'+'.join([f's{n}'] * 20)}].exists(s{n + 1}, " for n in range(1, 7))
DOUBLING = f"['{'a' * 99}'].exists(s1, {_GROWS}size(s7) > 0{')' * 7}"
"""6 GB, unless memory is limited."""
GOOD = Rule(
    name="Good",
    expression="!pod.ready",
    annotations={"summary": "{{ pod.name }} is not ready"},
)
NODES = Rule(name="Nodes", scope="node", expression="!node.ready")
HELD = {"Good": RuleHolds({"summary": "web is not ready"})}


def victims_only(expression: str, name: str = "Bad") -> Rule:
    """A rule that passes the check on trial inputs."""
    return Rule(name=name, expression=f'"victim" in pod.labels && {expression}')


def about(*, victim: bool = True, **facts: Any) -> EvaluationRequest:
    labels = {"victim": ""} if victim else {}
    return EvaluationRequest(
        subject=pod(), facts=pod_like(name="web", labels=labels, **facts), now=1
    )


@pytest.fixture
def evaluator() -> Iterator[BudgetedEvaluator]:
    with BudgetedEvaluator() as made:
        yield made


def family(evaluator: BudgetedEvaluator) -> list[int]:
    """The process and its fork."""
    pid = evaluator.pid
    assert pid is not None
    forks = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, forks)]


def is_there(pid: int) -> bool:
    """Also as a zombie that nothing reaps."""
    return Path(f"/proc/{pid}").exists()


def until_gone(pids: list[int]) -> None:
    ends = time.monotonic() + 20
    while any(map(is_there, pids)):
        assert time.monotonic() < ends, pids
        time.sleep(0.01)


def test_answers_are_those_of_each_question(evaluator: BudgetedEvaluator) -> None:
    fails = Rule(name="Fails", expression='"n" in pod.labels && int(pod.labels.n) > 0')
    evaluator.load([GOOD, fails, NODES])
    odd = EvaluationRequest(subject=pod(), facts=pod_like(labels={"n": "?"}, ready=True), now=1)
    down = EvaluationRequest(subject=node(), facts=node_like(), now=1)
    found = evaluator.evaluate([about(), about(ready=True), odd, down])
    first, second, third, fourth = found.results
    assert (first, second, fourth) == (HELD, {}, {"Nodes": RuleHolds()})
    assert isinstance(third["Fails"], RuleFailed)
    assert (found.disabled, evaluator.child_exits) == ({}, 0)


@pytest.mark.parametrize("expression", [ENDLESS, DOUBLING])
def test_a_rule_over_budget_is_switched_off_and_the_others_go_on(
    evaluator: BudgetedEvaluator, expression: str
) -> None:
    evaluator.load([GOOD, victims_only(expression), NODES])
    assert evaluator.evaluate([about(victim=False)]).disabled == {}
    began = time.process_time()
    found = evaluator.evaluate([about(victim=False), about()])
    assert found.results == (HELD, HELD)
    assert list(found.disabled) == ["Bad"]
    # Once it is switched off, no process ends.
    deaths = evaluator.child_exits
    assert evaluator.evaluate([about()]).results == (HELD,)
    assert evaluator.child_exits == deaths <= 3
    assert time.process_time() - began < 1  # of this process


def test_very_many_rules_over_budget_let_others_have_their_turn(
    evaluator: BudgetedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgeted_evaluator, "_MAX_WORKER_EXITS", 3)
    evaluator.load([GOOD, *(victims_only(ENDLESS, f"Bad{number}") for number in range(3))])
    with pytest.raises(EvaluatorError, match="exceeded their budget"):
        evaluator.evaluate([about()])
    found = evaluator.evaluate([about()])
    assert (found.results, len(found.disabled)) == ((HELD,), 3)


def test_templates_have_a_budget_too(evaluator: BudgetedEvaluator) -> None:
    summary = f"{{{{ {ENDLESS} }}}}"
    bad = Rule(name="Bad", expression="!pod.ready", annotations={"summary": summary})
    evaluator.load([bad, GOOD])
    found = evaluator.evaluate([about()])
    assert (list(found.disabled), found.results) == (["Bad"], (HELD,))


@pytest.mark.slow
def test_many_rules_that_take_too_long_together_are_switched_off(
    evaluator: BudgetedEvaluator,
) -> None:
    slow = [
        victims_only("pod.name.matches('a{1,900}' + pod.uid)", f"Slow{number}")
        for number in range(80)
    ]
    evaluator.load([GOOD, *slow])
    asked = [about()] * 3
    off = set(evaluator.evaluate(asked).disabled)
    while new := set(evaluator.evaluate(asked).disabled):
        off |= new
    assert off
    assert off <= {rule.name for rule in slow}
    assert evaluator.evaluate([about()]).results == (HELD,)


def test_memory_is_bounded_and_nothing_is_passed_on(
    evaluator: BudgetedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODSTATUS_TOKEN", "secret")
    evaluator.load([GOOD])
    evaluator.evaluate([about()])
    for pid in family(evaluator):
        limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
        (space,) = [line.split() for line in limits if line.startswith("Max address space")]
        assert space[3:5] == [str(MAX_MEMORY)] * 2
        assert b"secret" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
        files = [it.readlink().name for it in Path(f"/proc/{pid}/fd").iterdir()]
        kinds = sorted(name.partition(":")[0] for name in files)
        assert kinds == ["memfd", "memfd", "null", "socket"]


def ask_until_it_fails(evaluator: BudgetedEvaluator) -> None:
    """Evaluate until it fails: a fork whose parent was killed may answer for a while."""
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        evaluator.evaluate([about()])


@pytest.mark.parametrize("index", [0, 1])
def test_one_that_is_killed_from_outside_is_replaced_and_no_rule_is_blamed(
    evaluator: BudgetedEvaluator, monkeypatch: pytest.MonkeyPatch, index: int
) -> None:
    evaluator.load([GOOD])
    evaluator.evaluate([about()])
    victim = family(evaluator)[index]
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(EvaluatorError, match="process died"):
        ask_until_it_fails(evaluator)
    with pytest.raises(EvaluatorError, match="restarts in"):
        evaluator.evaluate([about()])
    monkeypatch.setattr(evaluator, "_retry_at", 0.0)
    # No response is mistaken for that of another request.
    for is_ready in (True, False, True):
        found = evaluator.evaluate([about(ready=is_ready)])
        assert (found.results, found.disabled) == (({} if is_ready else HELD,), {})


class DeadBetweenRequests:
    """A worker whose fork died before the request, and whose next fork evaluates it already."""

    def __init__(self) -> None:
        self.progress = EvaluationProgress(mmap.mmap(-1, PAGE_BYTES))
        self.progress.write(1, [0])
        self.is_stopped = False

    def request(self, *_: object) -> EvaluatorEnded:
        return EvaluatorEnded(code=-9, rules=())

    def stop(self) -> tuple[int | None, str]:
        self.is_stopped = True
        return -9, ""

    def interrupt(self) -> None:
        pass


def test_rules_of_the_next_fork_are_not_blamed_and_its_response_is_not_read() -> None:
    worker = DeadBetweenRequests()
    with BudgetedEvaluator(start=lambda: cast(EvaluatorChild, worker)) as evaluator:
        evaluator.load([GOOD])
        with pytest.raises(EvaluatorError, match="process died"):
            evaluator.evaluate([about()])
        assert worker.is_stopped


def test_one_that_is_stopped_is_given_up(
    evaluator: BudgetedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "STUCK_SECONDS", 0.2)
    monkeypatch.setattr(child_process, "_TICK_SECONDS", 0.05)
    evaluator.load([GOOD])
    monkeypatch.setattr(child_process, "STUCK_SECONDS", 30.0)
    evaluator.evaluate([about()])
    monkeypatch.setattr(child_process, "STUCK_SECONDS", 0.2)
    pids = family(evaluator)
    os.kill(pids[1], signal.SIGSTOP)
    with pytest.raises(EvaluatorError):
        evaluator.evaluate([about()])
    until_gone(pids)


def test_it_stops_at_once_while_a_rule_is_evaluated() -> None:
    rules = [victims_only(ENDLESS, f"Bad{number}") for number in range(60)]
    with BudgetedEvaluator() as evaluator:
        evaluator.load(rules)
        evaluator.evaluate([about(victim=False)])
        pids = family(evaluator)
        raised: list[BaseException] = []

        def ask() -> None:
            try:
                evaluator.evaluate([about()])
            except EvaluatorError as error:
                raised.append(error)

        waits = threading.Thread(target=ask)
        waits.start()
        while evaluator.child_exits < 1:
            time.sleep(0.01)
        began = time.monotonic()
        evaluator.close()
        waits.join(10)
        assert time.monotonic() - began < 4
        assert [str(error) for error in raised] == [
            "rules are no longer evaluated: the agent is stopping"
        ]
    until_gone(pids)


@pytest.mark.slow
def test_it_ends_with_an_agent_that_is_killed() -> None:
    program = """
from tests.alerts.evaluator.test_budgeted_evaluator import *
evaluator = BudgetedEvaluator()
evaluator.load([GOOD])
evaluator.evaluate([about()])
print(*family(evaluator), flush=True)
time.sleep(60)
"""
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=root
    ) as agent:
        assert agent.stdout is not None
        pids = [int(it) for it in agent.stdout.readline().split()]
        assert len(pids) == 2
        agent.kill()
    until_gone(pids)


def test_a_rule_that_hangs_when_it_is_tried_is_a_mistake_with_its_place(
    evaluator: BudgetedEvaluator,
) -> None:
    text = (
        f'rules:\n- name: A\n  expr: "{ENDLESS}"\n- {{name: B, expr: pod.ready}}\n'
        f'- name: C\n  expr: pod.ready\n  annotations: {{summary: "{{{{ {ENDLESS} }}}}"}}\n'
    )
    loaded = load_rules(text, evaluator)
    found = [mistake.format("f") for mistake in loaded.errors]
    (problem,) = found
    assert problem.startswith("f:3:10: expr: it takes more than 0.1 s of CPU per pod or node; ")
    assert [bool(it.problem) for it in loaded.rules] == [True, False, False]


def test_to_check_rules_has_a_budget(
    evaluator: BudgetedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator, "_check_budget", 0.0)
    (check,) = evaluator.check([GOOD])
    ((field, flaw),) = check.errors
    assert (field, flaw.message) == ("expr", "checking the rules took more than 30 s")


def test_facts_that_cannot_be_sent_fail_alone(evaluator: BudgetedEvaluator) -> None:
    evaluator.load([GOOD, NODES])
    huge = about(message="x" * (MAX_FRAME // 2))
    first, second, third = evaluator.evaluate([about(restarts=2**70), about(), huge]).results
    assert second == HELD
    for answers in (first, third):
        assert [type(it) for it in answers.values()] == [RuleFailed]


def test_one_that_sends_garbage_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import os; os.read(0, 9999); os.write(0, b'\\xff' * 9); os.read(0, 1)"
    monkeypatch.setattr(child_process, "COMMAND", (sys.executable, "-c", program))
    monkeypatch.setattr(budgeted_evaluator, "_CHECK_TRIES", 1)
    with BudgetedEvaluator() as evaluator, pytest.raises(EvaluatorError, match="process died"):
        evaluator.check([GOOD])


def test_one_that_cannot_be_started_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "COMMAND", ("/no/such/program",))
    with pytest.raises(EvaluatorError, match=r"cannot start .* no such file"):
        EvaluatorChild()


@pytest.mark.slow
def test_this_process_does_not_need_cel() -> None:
    program = (
        "import sys, podstatus.alerts.evaluator.budgeted_evaluator;"
        "import podstatus.alerts.service.alert_service;"
        "print('cel_expr_python' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert said.stdout == b"False\n"
