"""Read YAML and JSON as plain JSON values, with the rules of kubectl and the kubelet.

Upstream: sigs.k8s.io/yaml, and apimachinery v0.36.4, pkg/util/yaml/decoder.go: dates and
sexagesimal numbers are strings, and other keys are converted to strings.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import msgspec
import yaml

from podstatus.sources.manifest.yaml_bounds import BoundsError, YamlBounds, check_bounds

_SEPARATOR = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
# Possessive quantifiers, to prevent quadratic backtracking over comment lines.
_EMPTY = re.compile(r"(?:[ \t\r]*+(?:[#%].*)?(?:\n|$)|\.\.\.[ \t\r]*+(?:\n|$))*+")
_TAG = "tag:yaml.org,2002:"
MAX_VALUES = 250_000
"""Limit per manifest, with all aliases expanded: about 2 s of decoding. A thousand containers with
50 fields each have 100,000 values; more is an attack or an error."""
_MAX_CHARACTERS = 16 << 20
"""Limit for all scalars of a manifest, with all aliases expanded."""
_MAX_DEPTH = 100
"""Maximum nesting; a pod has about 12 levels."""
_MAX_INT_CHARACTERS = 4300
"""Python's own limit for decimal numbers; Go's integers have at most 20 digits."""
_MAX_KEY_CHARACTERS = 200
"""Characters of a key that are quoted in a message."""


class DocumentError(ValueError):
    """A document cannot be read; the message has line and cause."""


class DecodeBudget:
    """Remaining size limits for all documents of one manifest. Not thread-safe."""

    def __init__(self, max_values: int = MAX_VALUES) -> None:
        self._max_values = max_values
        self._values = max_values
        self._characters = _MAX_CHARACTERS
        # A collection has two events, a document four.
        self._events = 3 * max_values

    def count_events(self, events: Iterable[yaml.Event]) -> Iterator[yaml.Event]:
        """Pass events through. Raises DocumentError after too many, invalid documents included."""
        for event in events:
            self._events -= 1
            if self._events < 0:
                raise self._exceeded()
            yield event

    def bounds(self) -> YamlBounds:
        """The limits of the next document."""
        return YamlBounds(
            max_depth=_MAX_DEPTH, max_nodes=self._values, max_characters=self._characters
        )

    def spend(self, *, values: int, characters: int) -> None:
        """Subtract a document. Raises DocumentError if it exceeds the limit."""
        if values > self._values:
            raise self._exceeded()
        self._values -= values
        self._characters -= characters

    def _exceeded(self) -> DocumentError:
        return DocumentError(f"the manifest has more than {self._max_values:,} values")


class ManifestDocument(msgspec.Struct, frozen=True):
    """One document of a manifest."""

    text: str
    line: int
    """Number of lines before the document."""


def split_documents(text: str) -> list[ManifestDocument]:
    """The documents between lines that begin with `---`, without empty ones.

    Split before parsing, so that an error in one document does not hide the others.
    """
    marks = [match.start() for match in _SEPARATOR.finditer(text)]
    documents, line, counted = [], 0, 0
    for begin, end in zip([0, *(mark + 3 for mark in marks)], [*marks, len(text)], strict=True):
        if not _EMPTY.fullmatch(text, begin, end):
            line, counted = line + text.count("\n", counted, begin), begin
            documents.append(ManifestDocument(text[begin:end], line))
    return documents


def read_document(document: ManifestDocument, budget: DecodeBudget | None = None) -> Any:
    """Decode one document; its size counts against `budget`. Raises DocumentError."""
    budget = budget or DecodeBudget()
    try:
        if not document.text.lstrip().startswith("{"):
            return _read_yaml(document, budget)
        return _read_json(document, budget)
    except RecursionError:
        raise DocumentError("nested too deeply") from None


def _read_json(document: ManifestDocument, budget: DecodeBudget) -> Any:
    # Count commas before decoding, also those in strings: no real manifest has so many.
    budget.spend(values=document.text.count(",") + 1, characters=0)
    try:
        return json.loads(
            document.text, object_pairs_hook=_unique_object, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        # YAML flow style looks like JSON at the start.
        try:
            return _read_yaml(document, budget)
        except DocumentError:
            line = document.line + error.lineno
            raise DocumentError(f"line {line}: {error.msg[0].lower()}{error.msg[1:]}") from None
    except ValueError as error:
        if isinstance(error, DocumentError):
            raise
        raise DocumentError("a number is too long") from None


def _unique_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(members)
    if len(result) < len(members):
        seen: set[str] = set()
        for name, _ in members:
            if name in seen:
                raise DocumentError(f'key "{name[:_MAX_KEY_CHARACTERS]}" already set in map')
            seen.add(name)
    return result


def _refuse_constant(text: str) -> NoReturn:
    raise DocumentError(f"{text} is not a JSON number")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Resolves plain scalars as Go's YAML does."""

    def construct_bounded_int(self, node: yaml.ScalarNode) -> int:
        """An integer. Rejects `!!int 1:1:1…` (base 60), which has quadratic cost."""
        if len(node.value) > _MAX_INT_CHARACTERS or ":" in node.value:
            raise DocumentError("a number is too long")
        return int(self.construct_yaml_int(node))


_Loader.add_constructor(f"{_TAG}int", _Loader.construct_bounded_int)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    replaced = {f"{_TAG}{kind}" for kind in ("timestamp", "int", "float")}
    resolvers = {
        first: [(tag, form) for tag, form in forms if tag not in replaced]
        for first, forms in _Loader.yaml_implicit_resolvers.items()
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
    except (LookupError, AttributeError):  # raised by PyYAML for some invalid tagged values
        raise DocumentError("a value does not match its tag") from None
    except BoundsError as error:
        line = "" if error.line is None else f"line {document.line + error.line}: "
        raise DocumentError(f"{line}{error}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        if isinstance(error, DocumentError):
            raise
        message = " ".join(str(error).split())
        raise DocumentError(f"neither YAML nor JSON: {message}") from None


def _check_keys(root: yaml.Node, before: int) -> None:
    seen, waiting = {id(root)}, [root]
    while waiting:
        for node in _child_nodes(waiting.pop(), before):
            # Aliases make a node reachable several times.
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
                name = key.value[:_MAX_KEY_CHARACTERS]
                raise DocumentError(f'line {line}: key "{name}" already set in map')
            seen.add(key.value)
    return [part for pair in node.value for part in pair]


def _line(node: yaml.Node, before: int) -> int:
    return before + int(node.start_mark.line) + 1


def _to_json(value: Any) -> Any:
    """The value with JSON types only. Raises DocumentError."""
    if isinstance(value, dict):
        return {_key(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and value - value == 0:
        # Accept 1e3 for an integer field.
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    raise DocumentError(f"a value cannot be represented in JSON: {value!r}")


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool | int | float) or key is None:
        return json.dumps(key)
    raise DocumentError(f"a key is not a string: {key!r}")


def _describe_yaml_error(error: yaml.MarkedYAMLError, document: ManifestDocument) -> str:
    mark = error.problem_mark or error.context_mark
    message = error.problem or "neither YAML nor JSON"
    if mark is None:
        return message
    lines = document.text.splitlines()[mark.line : mark.line + 1]
    if lines and "\t" in lines[0]:
        message = "tab character; use spaces"
    return f"line {document.line + mark.line + 1}: {message}"
