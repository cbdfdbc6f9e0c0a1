"""Rule tests: changes of pods and nodes over time, and the alerts they are expected to cause.

Reads a file of rule tests and reports every error with its location. Times are nanoseconds after
the start of the test.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
import yaml

from podstatus.alerts.model import (
    AlertState,
    Diagnostic,
    Location,
    Scope,
    Subject,
    sort_diagnostics,
)
from podstatus.alerts.rules.fact_variables import (
    CONTAINER_FACTS,
    FACTS,
    Fact,
    container_facts,
    node_facts,
    pod_facts,
    sync_facts,
)
from podstatus.alerts.rules.yaml_reader import YamlReader
from podstatus.kube.objects.pod import PodUID
from podstatus.node.decide.measured_usage import WINDOWS
from podstatus.observe.ports import Freshness, NodeSummary, SyncState
from podstatus.observe.summary.container_state import (
    RUNNING,
    TERMINATED,
    ContainerStateSummary,
)
from podstatus.observe.summary.node_load import LoadAverage, NodeLoad, ResourceLoad
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary

DEFAULT_NODE = "node"
"""Node of the pods that name none."""
_POD_CONDITIONS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


class ExpectedAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert that must exist."""

    rule: str
    scope: Scope
    subject: str
    """`namespace/name` of a pod, or the name of a node."""
    state: AlertState
    labels: Mapping[str, str] = {}
    """The labels to compare; the alert may have others. The same holds for annotations."""
    annotations: Mapping[str, str] = {}
    location: Location = Location(1, 1)


class RuleTestStep(msgspec.Struct, frozen=True, kw_only=True):
    """Changes at a point in time, and the alerts expected then."""

    at: int
    changes: tuple[tuple[Subject, Mapping[str, Any] | None], ...] = ()
    """Subjects with the facts that change, by full name; None: the subject is removed."""
    expect: tuple[ExpectedAlert, ...] | None = None
    """All active alerts and those resolved since the last `expect`; None: not compared."""
    location: Location = Location(1, 1)


class RuleTest(msgspec.Struct, frozen=True, kw_only=True):
    """One rule test of a file."""

    name: str
    only: frozenset[str] = frozenset()
    """The rules to test; empty: all."""
    history: str = ""
    """The history file to replay, instead of scripted changes."""
    history_location: Location = Location(1, 1)
    steps: tuple[RuleTestStep, ...] = ()
    location: Location = Location(1, 1)


class RuleTestFile(msgspec.Struct, frozen=True, kw_only=True):
    rules: tuple[str, ...] = ()
    """Paths of rule files."""
    tests: tuple[RuleTest, ...] = ()


def format_subject(scope: Scope, name: str) -> str:
    """Format for tables: `pod/default/web`, `node/node`."""
    return f"{scope}/{name}"


_LOW_LOAD = ResourceLoad(
    used_fraction=0.1,
    requested_fraction=0.1,
    averages={"5m": LoadAverage(used=0.0, used_fraction=0.1, covered_seconds=WINDOWS["5m"])},
)


def baseline_facts(subject: Subject) -> dict[str, Any]:
    """Return the facts of a healthy subject."""
    return _baseline_pod(subject) if subject.scope == "pod" else _baseline_node(subject.name)


def baseline_container(name: str, state: str) -> dict[str, Any]:
    """Return the facts of a container in a state, with defaults for the rest."""
    is_running = state == RUNNING
    summary = ContainerStateSummary(state=state)
    if state == TERMINATED:
        summary = ContainerStateSummary(state=state, reason="Completed", exit_code=0)
    return container_facts(
        ContainerSummary(
            name=name,
            state=summary,
            ready=is_running,
            started=is_running,
            created=state in (RUNNING, TERMINATED),
        )
    )


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
        containers=(
            ContainerSummary(
                name="app",
                state=ContainerStateSummary(state=RUNNING),
                ready=True,
                started=True,
                created=True,
            ),
        ),
    )
    return pod_facts(pod, 0)


def _baseline_node(name: str) -> dict[str, Any]:
    node = NodeSummary(
        name=name,
        ready=True,
        reason="KubeletReady",
        conditions={"Ready": "True", **dict.fromkeys(_PRESSURES, "False")},
        capacity={"cpu": "4", "memory": "8Gi"},
        load=NodeLoad(
            cpu=_LOW_LOAD, memory=_LOW_LOAD, disk=_LOW_LOAD, inodes=_LOW_LOAD, pids=_LOW_LOAD
        ),
        pods=1,
        lease_age_seconds=1.0,
    )
    return {**node_facts(node, Freshness()), **sync_facts(SyncState(), Freshness())}


_SECOND = 1_000_000_000
_REMOVED = "gone"
_STATES = ("pending", "firing", "resolved")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_CONTAINER_FACTS_BY_NAME = {fact.name: fact for fact in CONTAINER_FACTS}


def read_rule_tests(text: str) -> tuple[RuleTestFile, tuple[Diagnostic, ...]]:
    """Parse a rule test file; return its content and its errors."""
    reader = YamlReader(text)
    root = reader.root()
    if root is not None and _is_rule_file(reader, root):
        reader.add_error(root, "this is a rule file, not a test file: use the command alerts check")
        return RuleTestFile(), sort_diagnostics(reader.errors)
    fields = {} if root is None else reader.mapping(root, "the file", ("rules", "tests"))
    files = [
        reader.text(item, "a file of rules") for item in reader.items(fields.get("rules"), "rules")
    ]
    tests = [_read_test(reader, node) for node in reader.items(fields.get("tests"), "tests")]
    if root is not None and not tests and not reader.errors:
        reader.add_error(root, "the file has no tests: tests: […]")
    parsed = RuleTestFile(
        rules=tuple(file for file in files if file is not None), tests=tuple(tests)
    )
    return parsed, sort_diagnostics(reader.errors)


def _is_rule_file(reader: YamlReader, root: yaml.Node) -> bool:
    """True if the file has rules where the names of rule files are expected."""
    if not isinstance(root, yaml.MappingNode) or "tests" in reader.keys(root):
        return False
    rules = [node for key, node in root.value if key.value == "rules"]
    items = [item for node in rules if isinstance(node, yaml.SequenceNode) for item in node.value]
    return any(isinstance(item, yaml.MappingNode) for item in items)


def _read_test(reader: YamlReader, node: yaml.Node) -> RuleTest:
    fields = reader.mapping(node, "a test", ("name", "only", "history", "steps"))
    name = reader.text(fields.get("name"), "name")
    if fields and "name" not in fields:
        reader.add_error(node, "the test has no name")
    if fields and "steps" not in fields:
        reader.add_error(node, "the test has no steps")
    only = [reader.text(item, "a rule") for item in reader.items(fields.get("only"), "only")]
    history = reader.text(fields.get("history"), "history")
    steps = _Steps(reader, plays_history=history is not None)
    for item in reader.items(fields.get("steps"), "steps"):
        steps.read(item)
    return RuleTest(
        name=name or "?",
        only=frozenset(rule for rule in only if rule is not None),
        history=history or "",
        history_location=reader.location(fields.get("history", node)),
        steps=tuple(steps.steps),
        location=reader.location(node),
    )


class _Steps:
    """Parses the steps of a test in order."""

    def __init__(self, reader: YamlReader, *, plays_history: bool) -> None:
        self._yaml = reader
        self._keys = ("at", "expect") if plays_history else ("at", "pods", "nodes", "expect")
        self.steps: list[RuleTestStep] = []

    def read(self, node: yaml.Node) -> None:
        fields = self._yaml.mapping(node, "a step", self._keys)
        self.steps.append(
            RuleTestStep(
                at=self._at(node, fields.get("at")),
                changes=(
                    *self._changes(fields, "pods", "pod"),
                    *self._changes(fields, "nodes", "node"),
                ),
                expect=self._expect(fields.get("expect")),
                location=self._yaml.location(node),
            )
        )

    def _at(self, step: yaml.Node, node: yaml.Node | None) -> int:
        before = self.steps[-1].at if self.steps else 0
        if node is None:
            self._yaml.add_error(step, "the step has no time; add at: 0s, or later")
            return before
        seconds = self._yaml.duration(node, "at")
        at = before if seconds is None else round(seconds * _SECOND)
        if at < before:
            self._yaml.add_error(node, "the step is earlier than the one above it")
        return max(at, before)

    def _changes(
        self, fields: Mapping[str, yaml.Node], key: str, scope: Scope
    ) -> list[tuple[Subject, Mapping[str, Any] | None]]:
        subjects = self._yaml.mapping(fields.get(key), key)
        return [
            (parse_subject(scope, name), self._facts(node, scope))
            for name, node in subjects.items()
        ]

    def _facts(self, node: yaml.Node, scope: Scope) -> Mapping[str, Any] | None:
        if isinstance(node, yaml.ScalarNode) and node.value == _REMOVED:
            return None
        facts = {_short(fact.name): fact for fact in FACTS[scope]}
        fields = self._yaml.mapping(node, f"a {scope}, or `gone`,", facts)
        values = {
            facts[name].name: _value(self._yaml, facts[name], it) for name, it in fields.items()
        }
        return {name: value for name, value in values.items() if value is not None}

    def _expect(self, node: yaml.Node | None) -> tuple[ExpectedAlert, ...] | None:
        if node is None:
            return None
        alerts = [_read_expected(self._yaml, item) for item in self._yaml.items(node, "expect")]
        return tuple(it for it in alerts if it is not None)


def parse_subject(scope: Scope, name: str) -> Subject:
    """Return the subject of a name; the pod `web` is `default/web`."""
    if scope == "node":
        return Subject(scope="node", name=name, node=name)
    namespace, _, rest = name.rpartition("/")
    namespace = namespace or "default"
    uid = PodUID(f"{namespace}/{rest}")
    return Subject(scope="pod", name=rest, namespace=namespace, uid=uid, node=DEFAULT_NODE)


def _short(name: str) -> str:
    """Return the name of a fact without its scope; sync facts keep theirs."""
    scope, _, rest = name.partition(".")
    return name if scope == "sync" else rest


def _read_expected(reader: YamlReader, node: yaml.Node) -> ExpectedAlert | None:
    keys = ("rule", "pod", "node", "state", "labels", "annotations")
    fields = reader.mapping(node, "an alert", keys)
    if not fields:
        return None
    if "rule" not in fields or ("pod" in fields) == ("node" in fields):
        reader.add_error(node, "an alert needs a rule, and either a pod or a node")
        return None
    scope: Scope = "pod" if "pod" in fields else "node"
    rule, name = reader.text(fields["rule"], "rule"), reader.text(fields[scope], scope)
    state = reader.choice(fields["state"], "state", _STATES) if "state" in fields else "firing"
    if rule is None or name is None or state is None:
        return None
    return ExpectedAlert(
        rule=rule,
        scope=scope,
        subject=name if scope == "node" or "/" in name else f"default/{name}",
        state=cast(AlertState, state),
        labels=reader.text_map(fields.get("labels"), "labels"),
        annotations=reader.text_map(fields.get("annotations"), "annotations"),
        location=reader.location(fields["rule"]),
    )


def _value(reader: YamlReader, fact: Fact, node: yaml.Node) -> Any:
    """Parse the value of a fact; None if it is invalid."""
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
    containers = []
    for item in reader.items(node, what):
        fields = reader.mapping(item, "a container", _CONTAINER_FACTS_BY_NAME)
        values = {
            name: _value(reader, _CONTAINER_FACTS_BY_NAME[name], it) for name, it in fields.items()
        }
        facts = {name: value for name, value in values.items() if value is not None}
        baseline = baseline_container(facts.get("name", "app"), facts.get("state", "running"))
        containers.append({**baseline, **facts})
    return containers


_VALUES: Mapping[str, Callable[[YamlReader, yaml.Node, str], Any]] = {
    "string": YamlReader.text,
    "bool": YamlReader.boolean,
    "int": _number,
    "double": _decimal,
    "map(string, string)": YamlReader.text_map,
    "list(map(string, dyn))": _containers,
}
