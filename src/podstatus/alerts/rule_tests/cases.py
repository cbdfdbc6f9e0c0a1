"""Rule tests: what happens to pods and nodes, when, and which alerts are expected.

Reads a file of rule tests, and reports every error in its form with its location. Times are
nanoseconds after the start of the test.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
import yaml

from podstatus.alerts.model import (
    Alert,
    AlertState,
    Diagnostic,
    Location,
    Scope,
    Subject,
    sort_diagnostics,
)
from podstatus.alerts.rules.facts import (
    CONTAINER_FACTS,
    FACTS,
    Fact,
    NodeReadings,
    node_facts,
    pod_facts,
    sync_facts,
)
from podstatus.alerts.rules.yaml_reader import YamlReader
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.status_view import Freshness, NodeSummary, SyncState
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary

DEFAULT_NODE = "node"
"""Where pods are that do not say it."""
_POD_CONDITIONS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


class ExpectedAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert that is to be there."""

    rule: str
    scope: Scope
    subject: str
    """`namespace/name` of a pod, or the name of a node."""
    state: AlertState
    labels: Mapping[str, str] = {}
    """Those that are compared; others may be there. So with annotations."""
    annotations: Mapping[str, str] = {}
    location: Location = Location(1, 1)


class RuleTestStep(msgspec.Struct, frozen=True, kw_only=True):
    """What is so from a time on, and what is expected then."""

    at: int
    changes: tuple[tuple[Subject, Mapping[str, Any] | None], ...] = ()
    """Whom it is about, and the facts that become others, with whole names; None: it is gone."""
    expect: tuple[ExpectedAlert, ...] | None = None
    """All alerts, and those that resolved since this was last said; None: nothing is said."""
    location: Location = Location(1, 1)


class RuleTest(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    name: str
    only: frozenset[str] = frozenset()
    """The rules that it is about; empty: all."""
    history: str = ""
    """The file of a history that is played, instead of what the steps say."""
    history_location: Location = Location(1, 1)
    steps: tuple[RuleTestStep, ...] = ()
    location: Location = Location(1, 1)


class RuleTestFile(msgspec.Struct, frozen=True, kw_only=True):
    """All of a file."""

    rules: tuple[str, ...] = ()
    """Files of rules."""
    tests: tuple[RuleTest, ...] = ()


def format_subject(scope: Scope, name: str) -> str:
    """As tables have it: `pod/default/web`, `node/node`."""
    return f"{scope}/{name}"


def subject_name(alert: Alert) -> str:
    """What it is about, as `ExpectedAlert` names it."""
    subject = alert.subject
    return f"{subject.namespace}/{subject.name}" if subject.scope == "pod" else subject.name


def baseline_facts(subject: Subject) -> dict[str, Any]:
    """Those of one that is as it should be."""
    return _baseline_pod(subject) if subject.scope == "pod" else _baseline_node(subject.name)


def baseline_container(name: str, state: str) -> dict[str, Any]:
    """The facts of a container in a state, of which nothing else is said."""
    runs = state == "running"
    text = f"{state} Completed 0" if state == "terminated" else state
    pod = PodSummary(
        uid=PodUID(""),
        namespace="",
        name="",
        containers=(ContainerSummary(name=name, state=text, ready=runs, started=runs),),
    )
    [container] = pod_facts(pod, 0)["pod.containers"]
    return dict(container)


def _baseline_pod(subject: Subject) -> dict[str, Any]:
    conditions = (ConditionSummary(type=it, status="True") for it in _POD_CONDITIONS)
    pod = PodSummary(
        uid=subject.uid,
        namespace=subject.namespace,
        name=subject.name,
        node=subject.node,
        phase="Running",
        qos="BestEffort",
        conditions=tuple(conditions),
        containers=(ContainerSummary(name="app", state="running", ready=True, started=True),),
    )
    return pod_facts(pod, 0)


def _baseline_node(name: str) -> dict[str, Any]:
    node = NodeSummary(
        name=name,
        ready=True,
        reason="KubeletReady",
        conditions={"Ready": "True", **dict.fromkeys(_PRESSURES, "False")},
        capacity={"cpu": "4", "memory": "8Gi"},
        used={"cpu": 0.4, "memory": 0.1 * 8 * 2**30},
        pods=1,
        lease_age_seconds=1.0,
    )
    return {
        **node_facts(node, NodeReadings(disk_used_fraction=0.1)),
        **sync_facts(SyncState(), Freshness()),
    }


_SECOND = 1_000_000_000
_REMOVED = "gone"
_STATES = ("pending", "firing", "resolved")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_CONTAINER_FACTS_BY_NAME = {fact.name: fact for fact in CONTAINER_FACTS}


def read_rule_tests(text: str) -> tuple[RuleTestFile, tuple[Diagnostic, ...]]:
    """What a file says, and all that is wrong with it."""
    reader = YamlReader(text)
    root = reader.root()
    if root is not None and _is_rule_file(reader, root):
        reader.add_error(root, "these are rules, not tests: podstatus alerts check looks at them")
        return RuleTestFile(), sort_diagnostics(reader.errors)
    said = {} if root is None else reader.mapping(root, "the file", ("rules", "tests"))
    files = [
        reader.text(item, "a file of rules") for item in reader.items(said.get("rules"), "rules")
    ]
    tests = [_read_test(reader, node) for node in reader.items(said.get("tests"), "tests")]
    if root is not None and not tests and not reader.errors:
        reader.add_error(root, "there are no tests in it: tests: […]")
    read = RuleTestFile(rules=tuple(file for file in files if file is not None), tests=tuple(tests))
    return read, sort_diagnostics(reader.errors)


def _is_rule_file(reader: YamlReader, root: yaml.Node) -> bool:
    """Whether the rules themselves are here, where the names of their files should be."""
    if not isinstance(root, yaml.MappingNode) or "tests" in reader.keys(root):
        return False
    rules = [node for key, node in root.value if key.value == "rules"]
    items = [item for node in rules if isinstance(node, yaml.SequenceNode) for item in node.value]
    return any(isinstance(item, yaml.MappingNode) for item in items)


def _read_test(reader: YamlReader, node: yaml.Node) -> RuleTest:
    said = reader.mapping(node, "a test", ("name", "only", "history", "steps"))
    name = reader.text(said["name"], "name") if "name" in said else None
    if said and "name" not in said:
        reader.add_error(node, "the test has no name")
    if said and "steps" not in said:
        reader.add_error(node, "the test has no steps")
    only = [reader.text(item, "a rule") for item in reader.items(said.get("only"), "only")]
    history = reader.text(said["history"], "history") if "history" in said else None
    steps = _Steps(reader, plays_history=history is not None)
    for item in reader.items(said.get("steps"), "steps"):
        steps.read(item)
    return RuleTest(
        name=name or "?",
        only=frozenset(rule for rule in only if rule is not None),
        history=history or "",
        history_location=reader.location(said.get("history", node)),
        steps=tuple(steps.steps),
        location=reader.location(node),
    )


class _Steps:
    """The steps of a test, one after the other."""

    def __init__(self, reader: YamlReader, *, plays_history: bool) -> None:
        self._yaml = reader
        self._keys = ("at", "expect") if plays_history else ("at", "pods", "nodes", "expect")
        self.steps: list[RuleTestStep] = []

    def read(self, node: yaml.Node) -> None:
        said = self._yaml.mapping(node, "a step", self._keys)
        self.steps.append(
            RuleTestStep(
                at=self._at(node, said.get("at")),
                changes=(
                    *self._changes(said, "pods", "pod"),
                    *self._changes(said, "nodes", "node"),
                ),
                expect=self._expect(said.get("expect")),
                location=self._yaml.location(node),
            )
        )

    def _at(self, step: yaml.Node, node: yaml.Node | None) -> int:
        before = self.steps[-1].at if self.steps else 0
        if node is None:
            self._yaml.add_error(step, "the step has no time; say at: 0s, or later")
            return before
        seconds = self._yaml.duration(node, "at")
        at = before if seconds is None else round(seconds * _SECOND)
        if at < before:
            self._yaml.add_error(node, "the step is before the one above it")
        return max(at, before)

    def _changes(
        self, said: Mapping[str, yaml.Node], key: str, scope: Scope
    ) -> list[tuple[Subject, Mapping[str, Any] | None]]:
        if key not in said:
            return []
        named = self._yaml.mapping(said[key], key)
        return [
            (parse_subject(scope, name), self._facts(node, scope)) for name, node in named.items()
        ]

    def _facts(self, node: yaml.Node, scope: Scope) -> Mapping[str, Any] | None:
        if isinstance(node, yaml.ScalarNode) and node.value == _REMOVED:
            return None
        known = {_short(fact.name): fact for fact in FACTS[scope]}
        said = self._yaml.mapping(node, f"a {scope}, or `gone`,", known)
        read = {known[name].name: _value(self._yaml, known[name], it) for name, it in said.items()}
        return {name: value for name, value in read.items() if value is not None}

    def _expect(self, node: yaml.Node | None) -> tuple[ExpectedAlert, ...] | None:
        if node is None:
            return None
        read = [_read_expected(self._yaml, item) for item in self._yaml.items(node, "expect")]
        return tuple(it for it in read if it is not None)


def parse_subject(scope: Scope, name: str) -> Subject:
    """Whom a name means: `web` is `default/web`, if it is a pod."""
    if scope == "node":
        return Subject(scope="node", name=name, node=name)
    namespace, _, rest = name.rpartition("/")
    namespace = namespace or "default"
    uid = PodUID(f"{namespace}/{rest}")
    return Subject(scope="pod", name=rest, namespace=namespace, uid=uid, node=DEFAULT_NODE)


def _short(name: str) -> str:
    """Facts of a node stand without it, as those of a pod do; those of sync as they are."""
    scope, _, rest = name.partition(".")
    return name if scope == "sync" else rest


def _read_expected(reader: YamlReader, node: yaml.Node) -> ExpectedAlert | None:
    keys = ("rule", "pod", "node", "state", "labels", "annotations")
    said = reader.mapping(node, "an alert", keys)
    if not said:
        return None
    if "rule" not in said or ("pod" in said) == ("node" in said):
        reader.add_error(node, "an alert has a rule, a pod or a node, and a state")
        return None
    scope: Scope = "pod" if "pod" in said else "node"
    rule, name = reader.text(said["rule"], "rule"), reader.text(said[scope], scope)
    state = reader.choice(said["state"], "state", _STATES) if "state" in said else "firing"
    if rule is None or name is None or state is None:
        return None
    return ExpectedAlert(
        rule=rule,
        scope=scope,
        subject=name if scope == "node" or "/" in name else f"default/{name}",
        state=cast(AlertState, state),
        labels=reader.text_map(said["labels"], "labels") if "labels" in said else {},
        annotations=(
            reader.text_map(said["annotations"], "annotations") if "annotations" in said else {}
        ),
        location=reader.location(said["rule"]),
    )


def _value(reader: YamlReader, fact: Fact, node: yaml.Node) -> Any:
    """What a fact is said to be; None if it cannot be that."""
    return _VALUES[fact.kind](reader, node, _short(fact.name))


def _number(reader: YamlReader, node: yaml.Node, what: str) -> int | None:
    text = reader.text(node, what)
    if text is None or _INTEGER.fullmatch(text):
        return None if text is None else int(text)
    reader.add_error(node, f"{what} must be a whole number, not {text!r}")
    return None


def _decimal(reader: YamlReader, node: yaml.Node, what: str) -> float | None:
    text = reader.text(node, what)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return number
    reader.add_error(node, f"{what} must be a number, not {text!r}")
    return None


def _containers(reader: YamlReader, node: yaml.Node, what: str) -> list[dict[str, Any]]:
    read = []
    for item in reader.items(node, what):
        said = reader.mapping(item, "a container", _CONTAINER_FACTS_BY_NAME)
        told = {
            name: _value(reader, _CONTAINER_FACTS_BY_NAME[name], it) for name, it in said.items()
        }
        told = {name: value for name, value in told.items() if value is not None}
        usual = baseline_container(told.get("name", "app"), told.get("state", "running"))
        read.append({**usual, **told})
    return read


_VALUES: Mapping[str, Callable[[YamlReader, yaml.Node, str], Any]] = {
    "string": YamlReader.text,
    "bool": YamlReader.boolean,
    "int": _number,
    "double": _decimal,
    "map(string, string)": YamlReader.text_map,
    "list(map(string, dyn))": _containers,
}
