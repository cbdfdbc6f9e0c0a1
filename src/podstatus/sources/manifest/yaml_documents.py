"""YAML and JSON as plain JSON values, read as kubectl and the kubelet read them.

Upstream: sigs.k8s.io/yaml, and apimachinery v0.36.4, pkg/util/yaml/decoder.go. So dates and
sexagesimal numbers are texts, and keys that are no texts become some.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import msgspec
import yaml

from podstatus.sources.manifest.yaml_bounds import BoundsError, YamlBounds, check_bounds

_SEPARATOR = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
# Possessive: a text of comments that is no document after all is not tried again line by line.
_EMPTY = re.compile(r"(?:[ \t\r]*+(?:[#%].*)?(?:\n|$)|\.\.\.[ \t\r]*+(?:\n|$))*+")
_TAG = "tag:yaml.org,2002:"
MAX_VALUES = 250_000
"""Of a text, with all aliases written out: 2 s of reading. A thousand containers with 50 fields
each have 100,000; more is an attack, or a mistake."""
_MAX_CHARACTERS = 16 << 20
"""Of all scalars of a text, in the same way."""
_MAX_DEPTH = 100
"""Levels of a document; those of a pod are some 12."""
_MAX_INT_CHARACTERS = 4300
"""As Python's own limit for decimal numbers; the numbers of Go have 20 digits."""
_MAX_KEY_CHARACTERS = 200
"""Characters of a key that are repeated in a message."""


class DocumentError(ValueError):
    """A document cannot be read; the message says where and why."""


class DecodeBudget:
    """How much the documents of one text may still be, together. For one thread."""

    def __init__(self, max_values: int = MAX_VALUES) -> None:
        self._max_values = max_values
        self._values = max_values
        self._characters = _MAX_CHARACTERS
        # A collection has two events, and each document four more.
        self._events = 3 * max_values

    def count_events(self, events: Iterable[yaml.Event]) -> Iterator[yaml.Event]:
        """The same events. Raises DocumentError after too many, those of bad documents included."""
        for event in events:
            self._events -= 1
            if self._events < 0:
                raise self._exceeded()
            yield event

    def bounds(self) -> YamlBounds:
        """Of the next document."""
        return YamlBounds(
            max_depth=_MAX_DEPTH, max_nodes=self._values, max_characters=self._characters
        )

    def spend(self, *, values: int, characters: int) -> None:
        """Count a document. Raises DocumentError if it is too much."""
        if values > self._values:
            raise self._exceeded()
        self._values -= values
        self._characters -= characters

    def _exceeded(self) -> DocumentError:
        return DocumentError(f"the text has more than {self._max_values:,} values")


class ManifestDocument(msgspec.Struct, frozen=True):
    """One document of a text."""

    text: str
    line: int
    """How many lines of the text come before it."""


def split_documents(text: str) -> list[ManifestDocument]:
    """The documents between lines that begin with `---`, without empty ones.

    They are split before they are read, so that a mistake in one does not hide the others.
    """
    marks = [match.start() for match in _SEPARATOR.finditer(text)]
    documents, line, counted = [], 0, 0
    for begin, end in zip([0, *(mark + 3 for mark in marks)], [*marks, len(text)], strict=True):
        if not _EMPTY.fullmatch(text, begin, end):
            line, counted = line + text.count("\n", counted, begin), begin
            documents.append(ManifestDocument(text[begin:end], line))
    return documents


def read_document(document: ManifestDocument, budget: DecodeBudget | None = None) -> Any:
    """The value of one document, which is taken from the budget. Raises DocumentError."""
    budget = budget or DecodeBudget()
    try:
        if not document.text.lstrip().startswith("{"):
            return _read_yaml(document, budget)
        return _read_json(document, budget)
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None


def _read_json(document: ManifestDocument, budget: DecodeBudget) -> Any:
    # Before it is read, so commas in texts count, too: nothing that is meant has so many.
    budget.spend(values=document.text.count(",") + 1, characters=0)
    try:
        return json.loads(
            document.text, object_pairs_hook=_unique_object, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        # What begins like JSON may be YAML all the same.
        try:
            return _read_yaml(document, budget)
        except DocumentError:
            line = document.line + error.lineno
            raise DocumentError(f"line {line}: {error.msg[0].lower()}{error.msg[1:]}") from None
    except ValueError as error:
        if isinstance(error, DocumentError):
            raise
        raise DocumentError("it has a number that is too long") from None


def _unique_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) < len(members):
        seen: set[str] = set()
        for name, _ in members:
            if name in seen:
                raise DocumentError(f'key "{name[:_MAX_KEY_CHARACTERS]}" already set in map')
            seen.add(name)
    return made


def _refuse_constant(text: str) -> NoReturn:
    raise DocumentError(f"{text} is no number of JSON")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Resolves plain scalars as Go's YAML does."""

    def construct_bounded_int(self, node: yaml.ScalarNode) -> int:
        """A whole number. `!!int 1:1:1…` would be one to base 60, at quadratic cost."""
        if len(node.value) > _MAX_INT_CHARACTERS or ":" in node.value:
            raise DocumentError("it has a number that is too long")
        return int(self.construct_yaml_int(node))


_Loader.add_constructor(f"{_TAG}int", _Loader.construct_bounded_int)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    ours = {f"{_TAG}{kind}" for kind in ("timestamp", "int", "float")}
    resolvers = {
        first: [(tag, form) for tag, form in known if tag not in ours]
        for first, known in _Loader.yaml_implicit_resolvers.items()
    }
    whole = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|0[0-7_]*|[1-9][0-9_]*)$")
    fraction = re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    )
    for first in "-+.0123456789":
        resolvers.setdefault(first, [])
        resolvers[first] += [(f"{_TAG}int", whole), (f"{_TAG}float", fraction)]
    return resolvers


_Loader.yaml_implicit_resolvers = _resolvers()


def _read_yaml(document: ManifestDocument, budget: DecodeBudget) -> Any:
    try:
        events = budget.count_events(yaml.parse(document.text, Loader=_Loader))
        size = check_bounds(events, budget.bounds())
        budget.spend(values=size.nodes - 1, characters=size.characters)
        loader = _Loader(document.text)
        try:
            node = loader.get_single_node()
            _check_keys(node, document.line)
            return _to_json(loader.construct_document(node))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise DocumentError(_describe_yaml_error(error, document)) from None
    except (LookupError, AttributeError):  # PyYAML does not look before it leaps
        raise DocumentError("it has a value that is not what its tag says") from None
    except BoundsError as error:
        line = "" if error.line is None else f"line {document.line + error.line}: "
        raise DocumentError(f"{line}{error}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        if isinstance(error, DocumentError):
            raise
        why = " ".join(str(error).split())
        raise DocumentError(f"it is neither YAML nor JSON: {why}") from None


def _check_keys(root: yaml.Node, before: int) -> None:
    """Refuse keys that are given twice."""
    seen, waiting = {id(root)}, [root]
    while waiting:
        for node in _child_nodes(waiting.pop(), before):
            # Through an alias a node is met many times.
            if not isinstance(node, yaml.ScalarNode) and id(node) not in seen:
                seen.add(id(node))
                waiting.append(node)


def _child_nodes(node: yaml.Node, before: int) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.ScalarNode):
        return ()
    if not isinstance(node, yaml.MappingNode):
        return list(node.value)
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
            if key.value in seen:
                line = _line(key, before)
                shown = key.value[:_MAX_KEY_CHARACTERS]
                raise DocumentError(f'line {line}: key "{shown}" already set in map')
            seen.add(key.value)
    return [part for pair in node.value for part in pair]


def _line(node: yaml.Node, before: int) -> int:
    return before + int(node.start_mark.line) + 1


def _to_json(value: Any) -> Any:
    """The value as JSON has it. Raises DocumentError."""
    if isinstance(value, dict):
        return {_key(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and value - value == 0:
        # 1e3 is a number of seconds as good as 1000.
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    raise DocumentError(f"it has a value that JSON does not have: {value!r}")


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool | int | float) or key is None:
        return json.dumps(key)
    raise DocumentError(f"it has a key that is no text: {key!r}")


def _describe_yaml_error(error: yaml.MarkedYAMLError, document: ManifestDocument) -> str:
    mark = error.problem_mark or error.context_mark
    why = error.problem or "it is neither YAML nor JSON"
    if mark is None:
        return why
    lines = document.text.splitlines()[mark.line : mark.line + 1]
    if lines and "\t" in lines[0]:
        why = "there is a tab; use spaces"
    return f"line {document.line + mark.line + 1}: {why}"
