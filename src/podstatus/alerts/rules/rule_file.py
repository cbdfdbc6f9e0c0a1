"""Read a file of rules: what it says, and everything that is wrong with its form."""

import re
from collections.abc import Mapping
from typing import cast

import msgspec
import yaml

from podstatus.alerts.model import Action, Mistake, Place, Rule, RuleSet, Scope, Severity
from podstatus.alerts.rules.action_kinds import CHANGING
from podstatus.alerts.rules.action_reader import read_action
from podstatus.alerts.rules.yaml_reader import YamlReader

SCOPES = ("pod", "node")
SEVERITIES = ("info", "warning", "critical")
FILE_KEYS = ("allowActions", "dryRun", "disable", "rules")
RULE_KEYS = (
    "name", "scope", "expr", "for", "keepFiringFor", "severity", "labels", "annotations", "actions"
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_OURS = frozenset(("alertname", "severity", "node", "namespace", "pod"))
MOST_RULES = 1_000
_OTHER_FILES = {
    "groups": "these are rules of Prometheus; ours are a list, rules: […], and ask in CEL",
    "tests": "these are tests of rules: podstatus alerts test plays them",
}
"""What a file is that has such a key."""


class ReadRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says."""

    rules: RuleSet = RuleSet()
    """Also those with mistakes, if they have a name: they are shown, not asked."""
    nameless: tuple[Rule, ...] = ()
    """Those whose name is missing, wrong or taken: only what else is wrong with them counts."""
    mistakes: tuple[Mistake, ...] = ()
    hints: tuple[Mistake, ...] = ()
    """What is right, but will not do what it seems to."""
    reader: YamlReader
    texts: Mapping[tuple[str, str], yaml.ScalarNode]
    """By the name of a rule, and `expr` or the name of an annotation: where its text is."""

    def place(self, rule: str, field: str, inside: Place) -> Place:
        """Where in the file something stands that is at this place of such a text."""
        return self.reader.place_inside(self.texts[rule, field], inside)


def read_rules(text: str) -> ReadRules:
    """Read a file of rules."""
    return _Reading(text).read()


class _Reading:
    def __init__(self, text: str) -> None:
        self._yaml = YamlReader(text)
        self._hints: list[Mistake] = []
        self._texts: dict[tuple[str, str], yaml.ScalarNode] = {}
        self._rules: dict[str, Rule] = {}
        self._nameless: list[Rule] = []
        self._allowed: frozenset[str] = frozenset()

    def read(self) -> ReadRules:
        said = self._file()
        self._allowed = self._allow_actions(said.get("allowActions"))
        dry_run = self._yaml.boolean(said["dryRun"], "dryRun") if "dryRun" in said else None
        disable = self._disable(said.get("disable"))
        for number, node in enumerate(self._yaml.items(said.get("rules"), "rules")):
            if number == MOST_RULES:
                self._yaml.note(node, f"there are more than {MOST_RULES} rules")
                break
            self._rule(node, number + 1)
        self._look_for_nothing(said)
        return ReadRules(
            rules=RuleSet(
                rules=tuple(self._rules.values()),
                allow_actions=self._allowed,
                dry_run=dry_run is not False,
                disable=disable,
            ),
            nameless=tuple(self._nameless),
            mistakes=tuple(self._yaml.mistakes),
            hints=tuple(self._hints),
            reader=self._yaml,
            texts=self._texts,
        )

    def _file(self) -> Mapping[str, yaml.Node]:
        root = self._yaml.root()
        if root is None:
            return {}
        for key, told in _OTHER_FILES.items():
            if key in self._yaml.keys(root):
                self._yaml.note(root, told)
                return {}
        return self._yaml.mapping(root, "the file", FILE_KEYS)

    def _look_for_nothing(self, said: Mapping[str, yaml.Node]) -> None:
        """A file may have no rules, say as a program wrote it; but who wrote it meant some."""
        if self._yaml.mistakes or self._rules or "disable" in said:
            return
        place = self._yaml.place(said["rules"]) if "rules" in said else Place(1, 1)
        hint = "there are no rules in it, and it disables none: it does nothing"
        self._hints.append(Mistake(place=place, message=hint))

    def _allow_actions(self, node: yaml.Node | None) -> frozenset[str]:
        items = self._yaml.items(node, "allowActions")
        known = sorted(CHANGING)
        read = [self._yaml.choice(item, "what is allowed", known) for item in items]
        return frozenset(kind for kind in read if kind is not None)

    def _disable(self, node: yaml.Node | None) -> dict[str, Place]:
        items = [*self._yaml.items(node, "disable")]
        read = [(self._yaml.text(item, "what is disabled"), item) for item in items]
        return {name: self._yaml.place(item) for name, item in read if name is not None}

    def _rule(self, node: yaml.Node, number: int) -> None:
        self._yaml.rule = self._name_of(node)
        said = self._yaml.mapping(node, "a rule", RULE_KEYS)
        if isinstance(node, yaml.MappingNode):
            name = self._name(node, said.get("name"))
            # One of the same name keeps its place: the second is not asked, and named as a mistake.
            if name is not None:
                self._rules[name] = self._read_rule(name, node, said)
            else:
                self._nameless.append(self._read_rule(f"number {number}", node, said))
        self._yaml.rule = ""

    def _name_of(self, node: yaml.Node) -> str:
        """The name of a rule of which not all may be right."""
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        names = [str(value.value) for key, value in pairs if key.value == "name"]
        return names[0] if names and names[0] not in self._rules else ""

    def _name(self, rule: yaml.Node, node: yaml.Node | None) -> str | None:
        if node is None:
            self._yaml.note(rule, "the rule has no name")
            return None
        name = self._yaml.text(node, "name")
        if name is None:
            return None
        if not _NAME.fullmatch(name):
            self._yaml.note(
                node, f"a name has letters, digits and underscores, 100 at most, not {name!r}"
            )
            return None
        if name in self._rules:
            line = self._rules[name].place.line
            self._yaml.note(node, f"there is a rule {name} already, in line {line}")
            return None
        return name

    def _read_rule(self, name: str, node: yaml.Node, said: Mapping[str, yaml.Node]) -> Rule:
        reader = self._yaml
        scope, severity = self._scope(said), self._severity(said)
        if "expr" not in said:
            reader.note(node, f"rule {name} has no expr")
        return Rule(
            name=name,
            scope=scope,
            expression=self._expression(name, said.get("expr")),
            for_seconds=self._span(said, "for"),
            keep_firing_for_seconds=self._span(said, "keepFiringFor"),
            severity=severity,
            labels=self._labels(said),
            annotations=self._annotations(name, said),
            actions=self._actions(said, scope),
            place=reader.place(node),
            expression_place=self._expression_place(name, node),
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
        self._texts[name, "expr"] = node
        if not text.strip():
            self._yaml.note(node, "expr is empty")
        return text

    def _expression_place(self, name: str, rule: yaml.Node) -> Place:
        node = self._texts.get((name, "expr"))
        if node is None:
            return self._yaml.place(rule)
        return self._yaml.place_inside(node, Place(1, 1))

    def _span(self, said: Mapping[str, yaml.Node], key: str) -> float:
        return (self._yaml.span(said[key], key) if key in said else None) or 0.0

    def _labels(self, said: Mapping[str, yaml.Node]) -> dict[str, str]:
        if "labels" not in said:
            return {}
        nodes = self._yaml.mapping(said["labels"], "labels")
        for name, node in nodes.items():
            if not _NAME.fullmatch(name):
                self._yaml.note(node, f"a label has letters, digits and underscores, not {name!r}")
            elif name in _OURS:
                self._yaml.note(node, f"the label {name} is set by us; choose another name")
        return self._texts_of(nodes, "labels")

    def _annotations(self, rule: str, said: Mapping[str, yaml.Node]) -> dict[str, str]:
        if "annotations" not in said:
            return {}
        nodes = self._yaml.mapping(said["annotations"], "annotations")
        for name, node in nodes.items():
            if not _NAME.fullmatch(name):
                note = f"an annotation has letters, digits and underscores, not {name!r}"
                self._yaml.note(node, note)
            if isinstance(node, yaml.ScalarNode):
                self._texts[rule, f"annotations.{name}"] = node
        return self._texts_of(nodes, "annotations")

    def _texts_of(self, nodes: Mapping[str, yaml.Node], what: str) -> dict[str, str]:
        read = {name: self._yaml.text(node, f"{what}: {name}") for name, node in nodes.items()}
        return {name: text for name, text in read.items() if text is not None}

    def _actions(self, said: Mapping[str, yaml.Node], scope: Scope) -> tuple[Action, ...]:
        nodes = self._yaml.items(said.get("actions"), "actions")
        read = [read_action(self._yaml, node, scope) for node in nodes]
        actions = tuple(action for action in read if action is not None)
        for action in actions:
            if action.kind in CHANGING - self._allowed:
                hint = f"{action.kind} is not done unless allowActions has it: [{action.kind}]"
                self._hints.append(Mistake(place=action.place, message=hint, rule=self._yaml.rule))
        return actions
