"""Parse a rule file, and report every error in its structure."""

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
    "groups": "this is a Prometheus rule file; rules are a list here, rules: […], in CEL",
    "tests": "this is a file of rule tests: use the command alerts test",
}
"""Top-level keys of other kinds of files, with a hint."""


class ParsedRules(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a rule file."""

    rules: RuleSet = RuleSet()
    """All rules with a name. Those with errors are listed, but not evaluated."""
    unnamed: tuple[Rule, ...] = ()
    """Rules whose name is missing, invalid or a duplicate: only checked for further errors."""
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    """Valid content that does not do what it seems to."""
    reader: YamlReader
    text_nodes: Mapping[tuple[str, str], yaml.ScalarNode]
    """YAML nodes of texts, by rule name and `expr` or `annotations.<name>`."""

    def location(self, rule: str, field: str, inside: Location) -> Location:
        """Translate a location in such a text to a location in the file."""
        return self.reader.location_inside(self.text_nodes[rule, field], inside)


def read_rules(text: str) -> ParsedRules:
    """Parse a rule file; errors are in the result."""
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
        fields = self._file()
        self._allowed = self._allow_actions(fields.get("allowActions"))
        dry_run = self._yaml.boolean(fields.get("dryRun"), "dryRun")
        disable = self._disable(fields.get("disable"))
        for number, node in enumerate(self._yaml.items(fields.get("rules"), "rules")):
            if number == MAX_RULES:
                self._yaml.add_error(node, f"there are more than {MAX_RULES} rules")
                break
            self._rule(node, number + 1)
        self._warn_if_empty(fields)
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
        for key, hint in _WRONG_FILE_HINTS.items():
            if key in self._yaml.keys(root):
                self._yaml.add_error(root, hint)
                return {}
        return self._yaml.mapping(root, "the file", FILE_KEYS)

    def _warn_if_empty(self, fields: Mapping[str, yaml.Node]) -> None:
        """Warn about a file without effect; generated files may be empty, so it is not an error."""
        if self._yaml.errors or self._rules or "disable" in fields:
            return
        place = self._yaml.location(fields["rules"]) if "rules" in fields else Location(1, 1)
        hint = "the file has no rules and disables none: it has no effect"
        self._warnings.append(Diagnostic(location=place, message=hint))

    def _allow_actions(self, node: yaml.Node | None) -> frozenset[str]:
        items = self._yaml.items(node, "allowActions")
        kinds = sorted(REMEDIATION_KINDS)
        allowed = [self._yaml.choice(item, "allowActions", kinds) for item in items]
        return frozenset(kind for kind in allowed if kind is not None)

    def _disable(self, node: yaml.Node | None) -> dict[str, Location]:
        items = [*self._yaml.items(node, "disable")]
        names = [(self._yaml.text(item, "disable"), item) for item in items]
        return {name: self._yaml.location(item) for name, item in names if name is not None}

    def _rule(self, node: yaml.Node, number: int) -> None:
        self._yaml.rule = self._declared_name(node)
        fields = self._yaml.mapping(node, "a rule", RULE_KEYS)
        if isinstance(node, yaml.MappingNode):
            name = self._name(node, fields.get("name"))
            # The first rule of a name is evaluated; a second one is an error.
            if name is not None:
                self._rules[name] = self._read_rule(name, node, fields)
            else:
                self._unnamed.append(self._read_rule(f"number {number}", node, fields))
        self._yaml.rule = ""

    def _declared_name(self, node: yaml.Node) -> str:
        """Return the name of a rule that may have errors; empty if it is missing or a duplicate."""
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
                node,
                f"a name consists of at most 100 letters, digits and underscores, not {name!r}",
            )
            return None
        if name in self._rules:
            line = self._rules[name].location.line
            self._yaml.add_error(node, f"duplicate rule {name}, first defined in line {line}")
            return None
        return name

    def _read_rule(self, name: str, node: yaml.Node, fields: Mapping[str, yaml.Node]) -> Rule:
        reader, get = self._yaml, fields.get
        scope = cast(Scope, reader.choice(get("scope"), "scope", SCOPES) or "pod")
        severity = reader.choice(get("severity"), "severity", SEVERITIES) or "warning"
        if "expr" not in fields:
            reader.add_error(node, f"rule {name} has no expr")
        return Rule(
            name=name,
            scope=scope,
            expression=self._expression(name, get("expr")),
            for_seconds=reader.duration(get("for"), "for") or 0.0,
            keep_firing_for_seconds=reader.duration(get("keepFiringFor"), "keepFiringFor") or 0.0,
            severity=cast(Severity, severity),
            labels=self._labels(get("labels")),
            annotations=self._annotations(name, get("annotations")),
            actions=self._actions(fields, scope),
            location=reader.location(node),
        )

    def _expression(self, name: str, node: yaml.Node | None) -> str:
        text = self._yaml.text(node, "expr")
        if text is None or not isinstance(node, yaml.ScalarNode):
            return ""
        self._text_nodes[name, "expr"] = node
        if not text.strip():
            self._yaml.add_error(node, "expr is empty")
        return text

    def _labels(self, node: yaml.Node | None) -> dict[str, str]:
        nodes = self._yaml.mapping(node, "labels")
        self._check_names(nodes, "a label")
        for name, label in nodes.items():
            if name in _RESERVED_LABELS:
                message = f"the label {name} is reserved; choose another name"
                self._yaml.add_error(label, message)
        return self._yaml.texts(nodes, "labels")

    def _annotations(self, rule: str, node: yaml.Node | None) -> dict[str, str]:
        nodes = self._yaml.mapping(node, "annotations")
        self._check_names(nodes, "an annotation")
        for name, text in nodes.items():
            if isinstance(text, yaml.ScalarNode):
                self._text_nodes[rule, f"annotations.{name}"] = text
        return self._yaml.texts(nodes, "annotations")

    def _check_names(self, nodes: Mapping[str, yaml.Node], what: str) -> None:
        for name, node in nodes.items():
            if not _NAME.fullmatch(name):
                message = f"{what} name consists of letters, digits and underscores, not {name!r}"
                self._yaml.add_error(node, message)

    def _actions(self, fields: Mapping[str, yaml.Node], scope: Scope) -> tuple[Action, ...]:
        nodes = self._yaml.items(fields.get("actions"), "actions")
        values = [read_action(self._yaml, node, scope) for node in nodes]
        actions = tuple(action for action in values if action is not None)
        for action in actions:
            if action.kind in REMEDIATION_KINDS - self._allowed:
                hint = f"{action.kind} has no effect unless it is in allowActions: [{action.kind}]"
                self._warnings.append(
                    Diagnostic(location=action.place, message=hint, rule=self._yaml.rule)
                )
        return actions
