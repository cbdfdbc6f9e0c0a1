"""Rules, pods and nodes for tests of alerts."""

from collections.abc import Iterable, Sequence
from typing import Any

from podstatus.alerts.cel.compile_rule import Environments, compile_checked
from podstatus.alerts.cel.evaluate import RuleEvaluation
from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.ports import EvaluationRequest, EvaluationResult, SubjectFacts
from podstatus.alerts.model import Alert, Rule, Subject
from podstatus.alerts.rules.fact_variables import Facts, trial_inputs
from podstatus.alerts.rules.load import LoadedRule, LoadedRules, load_rules
from podstatus.kube.objects.pod import PodUID

SECOND = 1_000_000_000
ENVIRONMENTS = Environments()
"""Rules of all tests are compiled in the same."""
_POD = trial_inputs("pod")["a pod with empty facts"]
_NODE = trial_inputs("node")["a node with empty facts"]


def load(text: str) -> LoadedRules:
    return load_rules(text, ENVIRONMENTS)


class BlockingLocalEvaluator:
    """Evaluates rules in this process, without budgets: a `BlockingEvaluator`."""

    def __init__(self, rules: Iterable[LoadedRule]) -> None:
        compiled = [compile_checked(it.rule, ENVIRONMENTS) for it in rules if not it.problem]
        self._evaluation = RuleEvaluation(compiled, ENVIRONMENTS)

    def evaluate(self, requests: Sequence[EvaluationRequest]) -> EvaluationResult:
        return self._evaluation.evaluate(
            [SubjectFacts(it.subject.scope, it.facts) for it in requests]
        )


class LocalEvaluator:
    """The same as a `RuleEvaluator`."""

    def __init__(self, rules: Iterable[LoadedRule]) -> None:
        self._blocking = BlockingLocalEvaluator(rules)

    async def evaluate(self, requests: Sequence[EvaluationRequest]) -> EvaluationResult:
        return self._blocking.evaluate(requests)


class EvaluatingEngine(Engine):
    """An engine whose rules are evaluated where it gets facts."""

    def __init__(self, rules: Sequence[LoadedRule], *, era: str = "") -> None:
        super().__init__(rules, instance_id=era)
        self._evaluator = BlockingLocalEvaluator(rules)

    def update(
        self, subject: Subject, facts: Facts, now: int, *, young: frozenset[str] = frozenset()
    ) -> list[Alert]:
        request = EvaluationRequest(subject=subject, facts=facts, now=now, warming_up=young)
        (results,) = self._evaluator.evaluate([request]).results
        return self.apply(subject, results, now, warming_up=young)


def checked(rule: Rule) -> LoadedRule:
    (check,) = ENVIRONMENTS.check([rule])
    return LoadedRule(rule=rule, problem=check.errors[0][1].message if check.errors else "")


def engine(*rules: Rule) -> EvaluatingEngine:
    return EvaluatingEngine([checked(rule) for rule in rules])


def pod(name: str = "web", *, node: str = "n1", uid: str = "") -> Subject:
    uid = uid or f"uid-{name}"
    return Subject(scope="pod", namespace="default", name=name, uid=PodUID(uid), node=node)


def node(name: str = "n1") -> Subject:
    return Subject(scope="node", name=name, node=name)


def pod_like(**facts: Any) -> dict[str, Any]:
    """The facts of a pod with empty facts, but these: `phase="Pending"`."""
    return _POD | {f"pod.{name}": value for name, value in facts.items()}


def node_like(**facts: Any) -> dict[str, Any]:
    return _NODE | {name.replace("_", "."): value for name, value in facts.items()}


def brief(alerts: list[Alert]) -> list[tuple[str, str, str]]:
    """Rule, pod or node, and state."""
    return [(alert.rule, alert.subject.name, alert.state) for alert in alerts]
