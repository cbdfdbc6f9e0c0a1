"""JSON Patch (RFC 6902), as lenient as kube-apiserver.

Differences from the RFC: negative indices count from the end, `replace` and `copy` treat an absent
object member as null, and a missing `value` is null.

Upstream: gopkg.in/evanphx/json-patch.v4, patch.go v4.13.0.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from podstatus.kube.encoding.go_json import encode_document, go_equal

Operation: TypeAlias = dict[str, Any]
JsonContainer: TypeAlias = dict[str, Any] | list[Any]

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
"""Limit on bytes added by `copy` per patch: a few operations could double a document many times."""
MAX_SHIFTED_ELEMENTS = 100_000_000
"""Limit on list elements shifted per patch, about 50 ms.

Each insertion or removal shifts all elements behind it, and a body of 3 MiB holds a list of a
million.
"""

_CONTAINER_TYPES = frozenset({dict, list})
_INDEX = re.compile("[+-]?[0-9]{1,18}")


class JsonPatchError(ValueError):
    """The patch cannot be applied to the document."""


class JsonPatchTooLargeError(JsonPatchError):
    """The patch exceeds a limit on work."""


def apply_json_patch(document: Any, operations: Sequence[Operation | None]) -> Any:
    """Return the patched document; the input is not modified. Raises JsonPatchError."""
    state = _PatchState(_deep_copy(document))
    for operation in operations:
        state.apply(operation or {})
    return state.document


class _PatchState:
    """A document being patched, with the counters of the limits."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._copied_bytes = 0
        self._shifted_elements = 0

    def apply(self, operation: Operation) -> None:
        verbs: dict[Any, Callable[[Operation], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }
        kind = operation.get("op")
        if kind not in verbs:
            raise JsonPatchError(f"unknown operation {kind!r}; use one of {', '.join(verbs)}")
        verbs[kind](operation)

    def _add(self, operation: Operation) -> None:
        self._put(_pointer(operation, "path"), _deep_copy(operation.get("value")))

    def _remove(self, operation: Operation) -> None:
        self._pop(_pointer(operation, "path"))

    def _replace(self, operation: Operation) -> None:
        path, value = _pointer(operation, "path"), _deep_copy(operation.get("value"))
        if not path:
            if not isinstance(value, dict | list):
                raise JsonPatchError("a scalar cannot replace the document")
            self.document = value
            return
        container, key = self._resolve(path)
        if isinstance(container, dict):
            container[key] = value
        else:
            container[_index(container, key)] = value

    def _move(self, operation: Operation) -> None:
        value = self._pop(_pointer(operation, "from"))
        self._put(_pointer(operation, "path"), value)

    def _copy(self, operation: Operation) -> None:
        container, key = self._resolve(_pointer(operation, "from"))
        value = _get(container, key)
        self._copied_bytes += len(encode_document({"": value}))
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise JsonPatchError(f"the copy operations add more than {MAX_COPIED_BYTES} bytes")
        self._put(_pointer(operation, "path"), _deep_copy(value))

    def _test(self, operation: Operation) -> None:
        path = _pointer(operation, "path")
        actual = _get(*self._resolve(path)) if path else self.document
        if not go_equal(actual, operation.get("value")):
            raise JsonPatchError(f"test of {path!r} failed: the value differs")

    def _put(self, path: str, value: Any) -> None:
        container, key = self._resolve(path)
        if isinstance(container, dict):
            container[key] = value
        else:
            index = _insert_index(container, key)
            self._count_shift(container, index)
            container.insert(index, value)

    def _pop(self, path: str) -> Any:
        container, key = self._resolve(path)
        if isinstance(container, list):
            index = _index(container, key)
            self._count_shift(container, index)
            return container.pop(index)
        if key not in container:
            raise JsonPatchError(f"no value at {path!r}")
        return container.pop(key)

    def _count_shift(self, elements: list[Any], index: int) -> None:
        self._shifted_elements += len(elements) - index
        if self._shifted_elements > MAX_SHIFTED_ELEMENTS:
            raise JsonPatchTooLargeError(
                "The allowed maximum of list elements shifted by a JSON patch is "
                f"{MAX_SHIFTED_ELEMENTS}"
            )

    def _resolve(self, path: str) -> tuple[JsonContainer, str]:
        """Return the container that a pointer's last part refers into, and that part."""
        # As upstream, ignore everything before the first slash.
        parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
        if not parts:
            raise JsonPatchError(f"invalid path {path!r}; a path begins with a slash")
        container = self.document
        for part in parts[:-1]:
            container = _get(container, part)
            if not isinstance(container, dict | list):
                raise JsonPatchError(f"no value at {path!r}")
        return container, parts[-1]


def _deep_copy(value: Any) -> Any:
    """Deep copy of JSON values; copy.deepcopy takes ten times as long."""
    if type(value) is dict:
        return {k: _deep_copy(v) if type(v) in _CONTAINER_TYPES else v for k, v in value.items()}
    if type(value) is list:
        return [_deep_copy(item) if type(item) in _CONTAINER_TYPES else item for item in value]
    return value


def _pointer(operation: Operation, name: str) -> str:
    pointer = operation.get(name)
    if not isinstance(pointer, str):
        raise JsonPatchError(f"an operation has no {name!r}")
    return pointer


def _get(container: JsonContainer, key: str) -> Any:
    """Return a member or element; None for an absent member."""
    return container.get(key) if isinstance(container, dict) else container[_index(container, key)]


def _index(elements: list[Any], key: str) -> int:
    return _parse_index(key, len(elements))


def _insert_index(elements: list[Any], key: str) -> int:
    """Return the index for an insertion; `-` appends."""
    return len(elements) if key == "-" else _parse_index(key, len(elements) + 1)


def _parse_index(key: str, length: int) -> int:
    if not _INDEX.fullmatch(key) or not -length <= int(key) < length:
        raise JsonPatchError(f"{key[:80]!r} is not an index of a list with {length} elements")
    return int(key) % length
