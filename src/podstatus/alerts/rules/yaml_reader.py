"""Read YAML of a known form, and note each mistake with its line and column.

Nothing here raises for what is wrong with a value: it is noted, None is returned, and reading
goes on, so that all mistakes are told at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

import yaml

from podstatus.alerts.model import Diagnostic, Location
from podstatus.alerts.rules.durations import RuleDurationError, parse_duration
from podstatus.sources.manifest.yaml_bounds import BoundsError, YamlBounds, check_bounds

MAX_LENGTH = 1 << 20
"""Characters of a file of rules; 1,000 rules have some 300,000."""
_BOUNDS = YamlBounds(max_depth=20, max_nodes=200_000, max_characters=4 * MAX_LENGTH)
"""With aliases written out. The levels of rules are 6; 1,000 rules have some 30,000 values."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_BOOLEANS = {"true": True, "false": False}


class YamlReader:
    """Reads one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.errors: list[Diagnostic] = []
        self.rule = ""
        """The rule that is being read; what is noted belongs to it."""

    def root(self) -> yaml.Node | None:
        """The only document of the text."""
        if len(self._text) > MAX_LENGTH:
            self._add_error(Location(1, 1), f"it is longer than {MAX_LENGTH} characters")
            return None
        try:
            found = self._compose()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Location(1, 1) if mark is None else Location(mark.line + 1, mark.column + 1)
            self._add_error(place, f"this is no YAML: {error.problem or error.context}")
            return None
        except BoundsError as error:
            self._add_error(Location(error.line or 1, 1), str(error))
            return None
        except (yaml.YAMLError, UnicodeError) as error:
            self._add_error(Location(1, 1), f"this is no YAML: {' '.join(str(error).split())}")
            return None
        if found is None:
            self._add_error(Location(1, 1), "it is empty; a list of rules is expected: rules: []")
            return None
        return found

    def _compose(self) -> yaml.Node | None:
        check_bounds(yaml.parse(self._text, Loader=_LOADER), _BOUNDS)
        return yaml.compose(self._text, Loader=_LOADER)  # type: ignore[no-any-return]

    def mapping(
        self, node: yaml.Node, what: str, known: Iterable[str] | None = None
    ) -> Mapping[str, yaml.Node]:
        """The values of a mapping by their keys, which are among those known, if that is said."""
        if not isinstance(node, yaml.MappingNode):
            self.add_error(node, f"{what} must be a mapping, not {_kind(node)}")
            return {}
        read: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = self.text(key, "a key")
            if name is None:
                continue
            if name in read:
                self.add_error(key, f"{name} is said twice")
            elif known is not None and name not in known:
                self.add_error(key, f"{what} has no {name}{_did_you_mean(name, known)}")
            else:
                read[name] = value
        return read

    def keys(self, node: yaml.Node) -> frozenset[str]:
        """The keys of a mapping, whatever they are: what kind of file this may be."""
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        return frozenset(str(key.value) for key, _ in pairs if isinstance(key, yaml.ScalarNode))

    def items(self, node: yaml.Node | None, what: str) -> Iterator[yaml.Node]:
        """The elements of a list; of nothing there are none."""
        if isinstance(node, yaml.SequenceNode):
            yield from node.value
        elif node is not None and not _is_null(node):
            self.add_error(node, f"{what} must be a list, not {_kind(node)}")

    def text(self, node: yaml.Node, what: str) -> str | None:
        """A scalar as it is written, be it a number or a text."""
        if isinstance(node, yaml.ScalarNode) and not _is_null(node):
            return str(node.value)
        self.add_error(node, f"{what} must be a text, not {_kind(node)}")
        return None

    def text_map(self, node: yaml.Node, what: str) -> dict[str, str]:
        """A mapping from texts to texts."""
        read = {}
        for key, value in self.mapping(node, what).items():
            text = self.text(value, f"{what}: {key}")
            if text is not None:
                read[key] = text
        return read

    def choice(self, node: yaml.Node, what: str, known: Iterable[str]) -> str | None:
        """One of some words."""
        text = self.text(node, what)
        if text is None or text in known:
            return text
        self.add_error(node, f"{what} must be {_format_choices(known)}, not {text!r}")
        return None

    def boolean(self, node: yaml.Node, what: str) -> bool | None:
        """true or false."""
        plain = isinstance(node, yaml.ScalarNode) and not node.style
        found = _BOOLEANS.get(node.value) if plain else None
        if found is None:
            self.add_error(node, f"{what} must be true or false")
        return found

    def duration(self, node: yaml.Node, what: str) -> float | None:
        """A length of time, in seconds."""
        text = self.text(node, what)
        try:
            return None if text is None else parse_duration(text)
        except RuleDurationError as error:
            self.add_error(node, f"{what}: {error}")
            return None

    def location(self, node: yaml.Node) -> Location:
        """Where a node begins."""
        return Location(node.start_mark.line + 1, node.start_mark.column + 1)

    def location_inside(self, node: yaml.ScalarNode, inside: Location) -> Location:
        """Where in the file something stands that is at this place of a scalar's value.

        However it is written, the value and the file have the same characters in the same order,
        but for white space and what YAML itself puts in.
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
        """Something is wrong here."""
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


def _format_choices(known: Iterable[str]) -> str:
    *others, last = known
    return f"{', '.join(others)} or {last}" if others else last


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    known = tuple(known)
    near = get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else f", but {', '.join(known) or 'nothing'}"
