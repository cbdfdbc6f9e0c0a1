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
DecodeHook = Callable[[type[Any], Any], Any]

_decoder_lock = threading.RLock()


def json_decoder(type_: type[T], hook: DecodeHook | None = None) -> "msgspec.json.Decoder[T]":
    """What reads values of this type; `hook` reads those that msgspec does not know."""
    asked: Any = type_  # a type of a type variable is not known to be hashable
    decoder: msgspec.json.Decoder[T] = _decoder(asked, hook)
    return decoder


@cache
def _decoder(type_: Any, hook: DecodeHook | None) -> "msgspec.json.Decoder[Any]":
    with _decoder_lock:
        return msgspec.json.Decoder(type_, dec_hook=hook)


def decode_json(data: bytes | str, type_: type[T]) -> T:
    """Read a value of this type. Raises msgspec.DecodeError, and ValidationError, which is one."""
    return json_decoder(type_).decode(data)


def convert_json(value: object, type_: type[T], hook: DecodeHook | None = None) -> T:
    """The same from plain JSON values. Raises msgspec.ValidationError."""
    json_decoder(type_, hook)
    return msgspec.convert(value, type_, dec_hook=hook)
