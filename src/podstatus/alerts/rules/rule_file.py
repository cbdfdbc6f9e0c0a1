"""Read a file of rules: what it says, and everything that is wrong with its form."""

import re
from collections.abc import Mapping
from typing import cast

import msgspec
import yaml

from podstatus.alerts.model import Action, Diagnostic, Location, Rule, RuleSet, Scope, Severity
from podstatus.alerts.rules.action_kinds import REMEDIATION_KINDS
from podstatus.alerts.rules.action_reader import read_action
from podstatus.alerts.rules.yaml_reader import YamlReader

SCOPES = ("pod", "node")
SEVERITIES = ("info", "warning", "critical")
FILE_KEYS = ("allowActions", "dryRun", "disable", "rules")
RULE_KEYS = (
    "name", "scope", "expr", "for", "keepFiringFor", "severity", "labels", "annotations", "actions"
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_RESERVED_LABELS = frozenset(("alertname", "severity", "node", "namespace", "pod"))
MAX_RULES = 1_000
_WRONG_FILE_HINTS = {
    "groups": "these are rules of Prometheus; ours are a list, rules: […], and ask in CEL",
    "tests": "these are tests of rules: podstatus alerts test plays them",
}
"""What a file is that has such a key."""


class ParsedRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says."""

    rules: RuleSet = RuleSet()
    """Also those with mistakes, if they have a name: they are shown, not asked."""
    unnamed: tuple[Rule, ...] = ()
    """Those whose name is missing, wrong or taken: only what else is wrong with them counts."""
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    """What is right, but will not do what it seems to."""
    reader: YamlReader
    text_nodes: Mapping[tuple[str, str], yaml.ScalarNode]
    """By the name of a rule, and `expr` or the name of an annotation: where its text is."""

    def location(self, rule: str, field: str, inside: Location) -> Location:
        """Where in the file something stands that is at this place of such a text."""
        return self.reader.location_inside(self.text_nodes[rule, field], inside)


def read_rules(text: str) -> ParsedRules:
    """Read a file of rules."""
    return _RuleFileParser(text).read()


class _RuleFileParser:
    def __init__(self, text: str) -> None:
        self._yaml = YamlReader(text)
        self._warnings: list[Diagnostic] = []
        self._text_nodes: dict[tuple[str, str], yaml.ScalarNode] = {}
        self._rules: dict[str, Rule] = {}
        self._unnamed: list[Rule] = []
        self._allowed: frozenset[str] = frozenset()

    def read(self) -> ParsedRules:
        said = self._file()
        self._allowed = self._allow_actions(said.get("allowActions"))
        dry_run = self._yaml.boolean(said["dryRun"], "dryRun") if "dryRun" in said else None
        disable = self._disable(said.get("disable"))
        for number, node in enumerate(self._yaml.items(said.get("rules"), "rules")):
            if number == MAX_RULES:
                self._yaml.add_error(node, f"there are more than {MAX_RULES} rules")
                break
            self._rule(node, number + 1)
        self._warn_if_empty(said)
        return ParsedRules(
            rules=RuleSet(
                rules=tuple(self._rules.values()),
                allow_actions=self._allowed,
                dry_run=dry_run is not False,
                disable=disable,
            ),
            unnamed=tuple(self._unnamed),
            errors=tuple(self._yaml.errors),
            warnings=tuple(self._warnings),
            reader=self._yaml,
            text_nodes=self._text_nodes,
        )

    def _file(self) -> Mapping[str, yaml.Node]:
        root = self._yaml.root()
        if root is None:
            return {}
        for key, told in _WRONG_FILE_HINTS.items():
            if key in self._yaml.keys(root):
                self._yaml.add_error(root, told)
                return {}
        return self._yaml.mapping(root, "the file", FILE_KEYS)

    def _warn_if_empty(self, said: Mapping[str, yaml.Node]) -> None:
        """A file may have no rules, say as a program wrote it; but who wrote it meant some."""
        if self._yaml.errors or self._rules or "disable" in said:
            return
        place = self._yaml.location(said["rules"]) if "rules" in said else Location(1, 1)
        hint = "there are no rules in it, and it disables none: it does nothing"
        self._warnings.append(Diagnostic(location=place, message=hint))

    def _allow_actions(self, node: yaml.Node | None) -> frozenset[str]:
        items = self._yaml.items(node, "allowActions")
        known = sorted(REMEDIATION_KINDS)
        read = [self._yaml.choice(item, "what is allowed", known) for item in items]
        return frozenset(kind for kind in read if kind is not None)

    def _disable(self, node: yaml.Node | None) -> dict[str, Location]:
        items = [*self._yaml.items(node, "disable")]
        read = [(self._yaml.text(item, "what is disabled"), item) for item in items]
        return {name: self._yaml.location(item) for name, item in read if name is not None}

    def _rule(self, node: yaml.Node, number: int) -> None:
        self._yaml.rule = self._declared_name(node)
        said = self._yaml.mapping(node, "a rule", RULE_KEYS)
        if isinstance(node, yaml.MappingNode):
            name = self._name(node, said.get("name"))
            # One of the same name keeps its place: the second is not asked, and named as a mistake.
            if name is not None:
                self._rules[name] = self._read_rule(name, node, said)
            else:
                self._unnamed.append(self._read_rule(f"number {number}", node, said))
        self._yaml.rule = ""

    def _declared_name(self, node: yaml.Node) -> str:
        """The name of a rule of which not all may be right."""
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        names = [str(value.value) for key, value in pairs if key.value == "name"]
        return names[0] if names and names[0] not in self._rules else ""

    def _name(self, rule: yaml.Node, node: yaml.Node | None) -> str | None:
        if node is None:
            self._yaml.add_error(rule, "the rule has no name")
            return None
        name = self._yaml.text(node, "name")
        if name is None:
            return None
        if not _NAME.fullmatch(name):
            self._yaml.add_error(
                node, f"a name has letters, digits and underscores, 100 at most, not {name!r}"
            )
            return None
        if name in self._rules:
            line = self._rules[name].location.line
            self._yaml.add_error(node, f"there is a rule {name} already, in line {line}")
            return None
        return name

    def _read_rule(self, name: str, node: yaml.Node, said: Mapping[str, yaml.Node]) -> Rule:
        reader = self._yaml
        scope, severity = self._scope(said), self._severity(said)
        if "expr" not in said:
            reader.add_error(node, f"rule {name} has no expr")
        return Rule(
            name=name,
            scope=scope,
            expression=self._expression(name, said.get("expr")),
            for_seconds=self._duration(said, "for"),
            keep_firing_for_seconds=self._duration(said, "keepFiringFor"),
            severity=severity,
            labels=self._labels(said),
            annotations=self._annotations(name, said),
            actions=self._actions(said, scope),
            location=reader.location(node),
            expression_location=self._expression_location(name, node),
        )

    def _scope(self, said: Mapping[str, yaml.Node]) -> Scope:
        read = self._yaml.choice(said["scope"], "scope", SCOPES) if "scope" in said else None
        return cast(Scope, read or "pod")

    def _severity(self, said: Mapping[str, yaml.Node]) -> Severity:
        node = said.get("severity")
        read = None if node is None else self._yaml.choice(node, "severity", SEVERITIES)
        return cast(Severity, read or "warning")

    def _expression(self, name: str, node: yaml.Node | None) -> str:
        text = None if node is None else self._yaml.text(node, "expr")
        if text is None or not isinstance(node, yaml.ScalarNode):
            return ""
        self._text_nodes[name, "expr"] = node
        if not text.strip():
            self._yaml.add_error(node, "expr is empty")
        return text

    def _expression_location(self, name: str, rule: yaml.Node) -> Location:
        node = self._text_nodes.get((name, "expr"))
        if node is None:
            return self._yaml.location(rule)
        return self._yaml.location_inside(node, Location(1, 1))

    def _duration(self, said: Mapping[str, yaml.Node], key: str) -> float:
        return (self._yaml.duration(said[key], key) if key in said else None) or 0.0

    def _labels(self, said: Mapping[str, yaml.Node]) -> dict[str, str]:
        if "labels" not in said:
            return {}
        nodes = self._yaml.mapping(said["labels"], "labels")
        for name, node in nodes.items():
            if not _NAME.fullmatch(name):
                self._yaml.add_error(
                    node, f"a label has letters, digits and underscores, not {name!r}"
                )
            elif name in _RESERVED_LABELS:
                self._yaml.add_error(node, f"the label {name} is set by us; choose another name")
        return self._text_values(nodes, "labels")

    def _annotations(self, rule: str, said: Mapping[str, yaml.Node]) -> dict[str, str]:
        if "annotations" not in said:
            return {}
        nodes = self._yaml.mapping(said["annotations"], "annotations")
        for name, node in nodes.items():
            if not _NAME.fullmatch(name):
                note = f"an annotation has letters, digits and underscores, not {name!r}"
                self._yaml.add_error(node, note)
            if isinstance(node, yaml.ScalarNode):
                self._text_nodes[rule, f"annotations.{name}"] = node
        return self._text_values(nodes, "annotations")

    def _text_values(self, nodes: Mapping[str, yaml.Node], what: str) -> dict[str, str]:
        read = {name: self._yaml.text(node, f"{what}: {name}") for name, node in nodes.items()}
        return {name: text for name, text in read.items() if text is not None}

    def _actions(self, said: Mapping[str, yaml.Node], scope: Scope) -> tuple[Action, ...]:
        nodes = self._yaml.items(said.get("actions"), "actions")
        read = [read_action(self._yaml, node, scope) for node in nodes]
        actions = tuple(action for action in read if action is not None)
        for action in actions:
            if action.kind in REMEDIATION_KINDS - self._allowed:
                hint = f"{action.kind} is not done unless allowActions has it: [{action.kind}]"
                self._warnings.append(
                    Diagnostic(location=action.place, message=hint, rule=self._yaml.rule)
                )
        return actions
