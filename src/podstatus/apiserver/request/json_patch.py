"""JSON patches (RFC 6902), as lenient as kube-apiserver is with them.

Other than the RFC: negative indices count from the end, `replace` and `copy` take what is
absent from an object for null, a value that is left out is null.

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
"""Bytes that the copies of one patch may add: a few operations can double a document often."""
MAX_SHIFTED_ELEMENTS = 100_000_000
"""Elements of lists that the operations of one patch may shift: 50 ms. Each insertion or removal
shifts all elements behind it, and a body of 3 MiB holds a list of a million."""

_CONTAINER_TYPES = frozenset({dict, list})
_INDEX = re.compile("[+-]?[0-9]{1,18}")


class JsonPatchError(ValueError):
    """The patch does not fit the document."""


class JsonPatchTooLargeError(JsonPatchError):
    """The patch asks for more work than a patch may."""


def apply_json_patch(document: Any, operations: Sequence[Operation | None]) -> Any:
    """The document that the operations make, one after the other. Raises JsonPatchError."""
    patching = _PatchState(_deep_copy(document))
    for operation in operations:
        patching.apply(operation or {})
    return patching.document


class _PatchState:
    """A document under way."""

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
            raise JsonPatchError(f"{kind!r} is no operation; there are {', '.join(verbs)}")
        verbs[kind](operation)

    def _add(self, operation: Operation) -> None:
        self._put(_pointer(operation, "path"), _deep_copy(operation.get("value")))

    def _remove(self, operation: Operation) -> None:
        self._pop(_pointer(operation, "path"))

    def _replace(self, operation: Operation) -> None:
        path, value = _pointer(operation, "path"), _deep_copy(operation.get("value"))
        if not path:
            if not isinstance(value, dict | list):
                raise JsonPatchError("the document cannot be replaced by a scalar")
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
            raise JsonPatchError(f"the patch copies more than {MAX_COPIED_BYTES} bytes")
        self._put(_pointer(operation, "path"), _deep_copy(value))

    def _test(self, operation: Operation) -> None:
        path = _pointer(operation, "path")
        found = _get(*self._resolve(path)) if path else self.document
        if not go_equal(found, operation.get("value")):
            raise JsonPatchError(f"test of {path!r} failed: the value is another one")

    def _put(self, path: str, value: Any) -> None:
        container, key = self._resolve(path)
        if isinstance(container, dict):
            container[key] = value
        else:
            place = _insert_index(container, key)
            self._count_shift(container, place)
            container.insert(place, value)

    def _pop(self, path: str) -> Any:
        container, key = self._resolve(path)
        if isinstance(container, list):
            index = _index(container, key)
            self._count_shift(container, index)
            return container.pop(index)
        if key not in container:
            raise JsonPatchError(f"there is nothing at {path!r}")
        return container.pop(key)

    def _count_shift(self, elements: list[Any], index: int) -> None:
        self._shifted_elements += len(elements) - index
        if self._shifted_elements > MAX_SHIFTED_ELEMENTS:
            raise JsonPatchTooLargeError(
                "The allowed maximum of list elements shifted by a JSON patch is "
                f"{MAX_SHIFTED_ELEMENTS}"
            )

    def _resolve(self, path: str) -> tuple[JsonContainer, str]:
        """What the last part of a pointer is to be looked up in, and that part."""
        # Whatever comes before the first slash is passed over.
        parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
        if not parts:
            raise JsonPatchError(f"{path!r} leads nowhere; a path begins with a slash")
        found = self.document
        for part in parts[:-1]:
            found = _get(found, part)
            if not isinstance(found, dict | list):
                raise JsonPatchError(f"there is nothing at {path!r}")
        return found, parts[-1]


def _deep_copy(value: Any) -> Any:
    """Nothing of it shared; copy.deepcopy takes ten times as long."""
    if type(value) is dict:
        return {k: _deep_copy(v) if type(v) in _CONTAINER_TYPES else v for k, v in value.items()}
    if type(value) is list:
        return [_deep_copy(item) if type(item) in _CONTAINER_TYPES else item for item in value]
    return value


def _pointer(operation: Operation, name: str) -> str:
    pointer = operation.get(name)
    if not isinstance(pointer, str):
        raise JsonPatchError(f"an operation lacks {name!r}")
    return pointer


def _get(container: JsonContainer, key: str) -> Any:
    """What is there; None for what is absent from an object."""
    return container.get(key) if isinstance(container, dict) else container[_index(container, key)]


def _index(elements: list[Any], key: str) -> int:
    return _parse_index(key, len(elements))


def _insert_index(elements: list[Any], key: str) -> int:
    """Where an element is to be inserted."""
    return len(elements) if key == "-" else _parse_index(key, len(elements) + 1)


def _parse_index(key: str, length: int) -> int:
    if not _INDEX.fullmatch(key) or not -length <= int(key) < length:
        raise JsonPatchError(f"{key[:80]!r} is no index of a list with {length} places")
    return int(key) % length
