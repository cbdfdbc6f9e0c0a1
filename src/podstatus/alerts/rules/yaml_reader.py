"""Parse YAML of a known structure, and collect every error with its line and column.

An invalid value does not raise: the error is recorded, None is returned and parsing continues, so
that all errors are reported at once. A field that is absent, None, is no error.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

import yaml

from podstatus.alerts.model import Diagnostic, Location
from podstatus.alerts.rules.durations import RuleDurationError, parse_duration
from podstatus.sources.manifest.yaml_bounds import BoundsError, YamlBounds, check_bounds

MAX_LENGTH = 1 << 20
"""Characters in a rule file; 1,000 rules have about 300,000."""
_BOUNDS = YamlBounds(max_depth=20, max_nodes=200_000, max_characters=4 * MAX_LENGTH)
"""With aliases expanded. Rule files have 6 levels; 1,000 rules have about 30,000 values."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_BOOLEANS = {"true": True, "false": False}


class YamlReader:
    """Parses one YAML text and collects its errors."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.errors: list[Diagnostic] = []
        self.rule = ""
        """The rule being parsed; errors are attributed to it."""

    def root(self) -> yaml.Node | None:
        """Return the root node of the only document; None after an error."""
        if len(self._text) > MAX_LENGTH:
            self._add_error(Location(1, 1), f"the file is longer than {MAX_LENGTH} characters")
            return None
        try:
            node = self._compose()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Location(1, 1) if mark is None else Location(mark.line + 1, mark.column + 1)
            self._add_error(place, f"invalid YAML: {error.problem or error.context}")
            return None
        except BoundsError as error:
            self._add_error(Location(error.line or 1, 1), str(error))
            return None
        except (yaml.YAMLError, UnicodeError) as error:
            self._add_error(Location(1, 1), f"invalid YAML: {' '.join(str(error).split())}")
            return None
        if node is None:
            message = 'the file is empty; a rule file without rules contains "rules: []"'
            self._add_error(Location(1, 1), message)
            return None
        return node

    def _compose(self) -> yaml.Node | None:
        check_bounds(yaml.parse(self._text, Loader=_LOADER), _BOUNDS)
        return yaml.compose(self._text, Loader=_LOADER)  # type: ignore[no-any-return]

    def mapping(
        self, node: yaml.Node | None, what: str, allowed: Iterable[str] | None = None
    ) -> Mapping[str, yaml.Node]:
        """Return the values of a mapping by key; `allowed`: the allowed keys."""
        if not isinstance(node, yaml.MappingNode):
            if node is not None:
                self.add_error(node, f"{what} must be a mapping, not {_kind(node)}")
            return {}
        values: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = self.text(key, "a key")
            if name is None:
                continue
            if name in values:
                self.add_error(key, f"duplicate key {name}")
            elif allowed is not None and name not in allowed:
                self.add_error(key, f"{what} has no {name}{_did_you_mean(name, allowed)}")
            else:
                values[name] = value
        return values

    def keys(self, node: yaml.Node) -> frozenset[str]:
        """Return the keys of a mapping, to recognise the kind of file; empty for other nodes."""
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        return frozenset(str(key.value) for key, _ in pairs if isinstance(key, yaml.ScalarNode))

    def items(self, node: yaml.Node | None, what: str) -> Iterator[yaml.Node]:
        """Yield the elements of a list; nothing for null."""
        if isinstance(node, yaml.SequenceNode):
            yield from node.value
        elif node is not None and not _is_null(node):
            self.add_error(node, f"{what} must be a list, not {_kind(node)}")

    def text(self, node: yaml.Node | None, what: str) -> str | None:
        """Return a scalar as it is written, number or string."""
        if isinstance(node, yaml.ScalarNode) and not _is_null(node):
            return str(node.value)
        if node is not None:
            self.add_error(node, f"{what} must be a string, not {_kind(node)}")
        return None

    def texts(self, nodes: Mapping[str, yaml.Node], what: str) -> dict[str, str]:
        """Return the values of a mapping as strings, without invalid ones."""
        texts = {key: self.text(node, f"{what}: {key}") for key, node in nodes.items()}
        return {key: text for key, text in texts.items() if text is not None}

    def text_map(self, node: yaml.Node | None, what: str) -> dict[str, str]:
        return self.texts(self.mapping(node, what), what)

    def choice(self, node: yaml.Node | None, what: str, allowed: Iterable[str]) -> str | None:
        """Return a scalar that must be one of the allowed values."""
        text = self.text(node, what)
        if node is None or text is None or text in allowed:
            return text
        self.add_error(node, f"{what} must be {_format_choices(allowed)}, not {text!r}")
        return None

    def boolean(self, node: yaml.Node | None, what: str) -> bool | None:
        """Return a boolean: true or false."""
        plain = isinstance(node, yaml.ScalarNode) and not node.style
        value = _BOOLEANS.get(node.value) if node is not None and plain else None
        if value is None and node is not None:
            self.add_error(node, f"{what} must be true or false")
        return value

    def duration(self, node: yaml.Node | None, what: str) -> float | None:
        """Return a duration in seconds."""
        text = self.text(node, what)
        if node is None or text is None:
            return None
        try:
            return parse_duration(text)
        except RuleDurationError as error:
            self.add_error(node, f"{what}: {error}")
            return None

    def location(self, node: yaml.Node) -> Location:
        return Location(node.start_mark.line + 1, node.start_mark.column + 1)

    def location_inside(self, node: yaml.ScalarNode, inside: Location) -> Location:
        """Translate a location in a scalar's value to a location in the file.

        However it is written, the value and the file have the same characters in the same order,
        except for white space and YAML syntax.
        """
        lines = node.value.split("\n")
        offset = sum(len(line) + 1 for line in lines[: inside.line - 1]) + inside.column - 1
        at = node.start_mark.index
        if node.style in ("|", ">"):
            at = self._text.find("\n", at) + 1
        elif node.style in ("'", '"'):
            at += 1
        for character in node.value[:offset]:
            if not character.isspace():
                at = max(at, self._text.find(character, at) + 1)
        if offset < len(node.value) and not node.value[offset].isspace():
            at = max(at, self._text.find(node.value[offset], at))
        line_begins = self._text.rfind("\n", 0, at) + 1
        return Location(self._text.count("\n", 0, at) + 1, at - line_begins + 1)

    def add_error(self, node: yaml.Node, message: str) -> None:
        self._add_error(self.location(node), message)

    def _add_error(self, place: Location, message: str) -> None:
        self.errors.append(Diagnostic(location=place, message=message, rule=self.rule))


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "nothing" if _is_null(node) else f"{node.value!r}"


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"


def _format_choices(allowed: Iterable[str]) -> str:
    *others, last = allowed
    return f"{', '.join(others)} or {last}" if others else last


def _did_you_mean(name: str, allowed: Iterable[str]) -> str:
    allowed = tuple(allowed)
    near = get_close_matches(name, allowed, 1)
    return f"; did you mean {near[0]}?" if near else f"; allowed: {', '.join(allowed) or 'none'}"
