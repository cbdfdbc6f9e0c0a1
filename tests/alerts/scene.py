"""Rules, pods and nodes for tests of alerts."""

from typing import Any

from podstatus.alerts.alert import Alert, Subject
from podstatus.alerts.compiled_rule import Environments, LoadedRules, compile_rule, load_rules
from podstatus.alerts.engine import Engine
from podstatus.alerts.rule import Rule
from podstatus.alerts.samples import samples
from podstatus.kube.pod import PodUID

SECOND = 1_000_000_000
ENVIRONMENTS = Environments()
"""Rules of all tests are compiled in the same."""
_POD = samples("pod")["a pod that has nothing yet"]
_NODE = samples("node")["a node that has nothing yet"]


def load(text: str) -> LoadedRules:
    return load_rules(text, ENVIRONMENTS)


def engine(*rules: Rule, environments: Environments = ENVIRONMENTS) -> Engine:
    return Engine([compile_rule(rule, environments) for rule in rules], environments)


def pod(name: str = "web", *, node: str = "n1", uid: str = "") -> Subject:
    uid = uid or f"uid-{name}"
    return Subject(scope="pod", namespace="default", name=name, uid=PodUID(uid), node=node)


def node(name: str = "n1") -> Subject:
    return Subject(scope="node", name=name, node=name)


def pod_like(**facts: Any) -> dict[str, Any]:
    """The facts of a pod that has nothing yet, but these: `phase="Pending"`."""
    return _POD | {f"pod.{name}": value for name, value in facts.items()}


def node_like(**facts: Any) -> dict[str, Any]:
    return _NODE | {name.replace("_", "."): value for name, value in facts.items()}


def brief(alerts: list[Alert]) -> list[tuple[str, str, str]]:
    """Rule, pod or node, and state."""
    return [(alert.rule, alert.subject.name, alert.state) for alert in alerts]
