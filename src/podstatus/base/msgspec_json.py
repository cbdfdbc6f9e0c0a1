"""Read JSON into typed values, from any thread.

How a type is read is worked out by msgspec when somebody first asks for it. Another thread that
asks for the same type meanwhile would find it half made, and the whole process ends by a
segmentation fault (msgspec 0.22.0). So it is made here under a lock, before it is used; nothing
else in this package makes a decoder but when it is imported.
"""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
Hook = Callable[[type[Any], Any], Any]

_making = threading.RLock()


def json_decoder(kind: type[T], hook: Hook | None = None) -> "msgspec.json.Decoder[T]":
    """What reads values of this type; `hook` reads those that msgspec does not know."""
    asked: Any = kind  # a type of a type variable is not known to be hashable
    decoder: msgspec.json.Decoder[T] = _decoder(asked, hook)
    return decoder


@cache
def _decoder(kind: Any, hook: Hook | None) -> "msgspec.json.Decoder[Any]":
    with _making:
        return msgspec.json.Decoder(kind, dec_hook=hook)


def read_json(data: bytes | str, kind: type[T]) -> T:
    """Read a value of this type. Raises msgspec.DecodeError, and ValidationError, which is one."""
    return json_decoder(kind).decode(data)


def read_value(value: object, kind: type[T], hook: Hook | None = None) -> T:
    """The same from plain JSON values. Raises msgspec.ValidationError."""
    json_decoder(kind, hook)
    return msgspec.convert(value, kind, dec_hook=hook)
