"""YAML and JSON as plain JSON values, read as kubectl and the kubelet read them.

Upstream: sigs.k8s.io/yaml, and apimachinery v0.36.4, pkg/util/yaml/decoder.go. So dates and
sexagesimal numbers are texts, and keys that are no texts become some.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

import msgspec
import yaml

from podstatus.sources.yaml_bounds import BoundsError, YamlBounds, check_bounds

_SEPARATOR = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
_EMPTY = re.compile(r"(?:[ \t\r]*(?:[#%].*)?(?:\n|$)|\.\.\.[ \t\r]*(?:\n|$))*")
_TAG = "tag:yaml.org,2002:"
_BOUNDS = YamlBounds(max_depth=100, max_nodes=1_000_000)
"""The levels of a pod are some 12; more values than these are an attack, or a mistake."""


class DocumentError(ValueError):
    """A document cannot be read; the message says where and why."""


class Written(msgspec.Struct, frozen=True):
    """One document of a text."""

    text: str
    line: int
    """How many lines of the text come before it."""


def split_documents(text: str) -> list[Written]:
    """The documents between lines that begin with `---`, without empty ones.

    They are split before they are read, so that a mistake in one does not hide the others.
    """
    marks = [match.start() for match in _SEPARATOR.finditer(text)]
    documents, line, counted = [], 0, 0
    for begin, end in zip([0, *(mark + 3 for mark in marks)], [*marks, len(text)], strict=True):
        if not _EMPTY.fullmatch(text, begin, end):
            line, counted = line + text.count("\n", counted, begin), begin
            documents.append(Written(text[begin:end], line))
    return documents


def read_document(written: Written) -> Any:
    """The value of one document. Raises DocumentError."""
    try:
        if not written.text.lstrip().startswith("{"):
            return _read_yaml(written)
        return _read_json(written)
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None


def _read_json(written: Written) -> Any:
    try:
        return json.loads(written.text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        # What begins like JSON may be YAML all the same.
        try:
            return _read_yaml(written)
        except DocumentError:
            line = written.line + error.lineno
            raise DocumentError(f"line {line}: {error.msg[0].lower()}{error.msg[1:]}") from None
    except ValueError as error:
        if isinstance(error, DocumentError):
            raise
        raise DocumentError("it has a number that is too long") from None


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise DocumentError(f'key "{twice}" already set in map')
    return made


def _refuse_constant(text: str) -> NoReturn:
    raise DocumentError(f"{text} is no number of JSON")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Resolves plain scalars as Go's YAML does."""


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


def _read_yaml(written: Written) -> Any:
    try:
        check_bounds(yaml.parse(written.text, Loader=_Loader), _BOUNDS)
        loader = _Loader(written.text)
        try:
            node = loader.get_single_node()
            _check_keys(node, written.line)
            return _plain(loader.construct_document(node))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise DocumentError(_told(error, written)) from None
    except (LookupError, AttributeError):  # PyYAML does not look before it leaps
        raise DocumentError("it has a value that is not what its tag says") from None
    except BoundsError as error:
        line = "" if error.line is None else f"line {written.line + error.line}: "
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
        for node in _below(waiting.pop(), before):
            # Through an alias a node is met many times.
            if not isinstance(node, yaml.ScalarNode) and id(node) not in seen:
                seen.add(id(node))
                waiting.append(node)


def _below(node: yaml.Node, before: int) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.ScalarNode):
        return ()
    if not isinstance(node, yaml.MappingNode):
        return list(node.value)
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
            if key.value in seen:
                line = _line(key, before)
                raise DocumentError(f'line {line}: key "{key.value}" already set in map')
            seen.add(key.value)
    return [part for pair in node.value for part in pair]


def _line(node: yaml.Node, before: int) -> int:
    return before + int(node.start_mark.line) + 1


def _plain(value: Any) -> Any:
    """The value as JSON has it. Raises DocumentError."""
    if isinstance(value, dict):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
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


def _told(error: yaml.MarkedYAMLError, written: Written) -> str:
    mark = error.problem_mark or error.context_mark
    why = error.problem or "it is neither YAML nor JSON"
    if mark is None:
        return why
    lines = written.text.splitlines()[mark.line : mark.line + 1]
    if lines and "\t" in lines[0]:
        why = "there is a tab; use spaces"
    return f"line {written.line + mark.line + 1}: {why}"
