"""Decode JSON into typed values, thread-safe.

msgspec analyses a type when its first decoder is created. If another thread uses the same type
meanwhile, it reads an incomplete structure and the process dies of a segmentation fault (msgspec
0.22.0). So decoders are created here, under a lock; all other modules of this package create
decoders at import time only.
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
    """Return the decoder of this type; `hook` decodes types that msgspec does not support."""
    key: Any = type_  # a type with a type variable is not known to be hashable
    decoder: msgspec.json.Decoder[T] = _decoder(key, hook)
    return decoder


@cache
def _decoder(type_: Any, hook: DecodeHook | None) -> "msgspec.json.Decoder[Any]":
    with _decoder_lock:
        return msgspec.json.Decoder(type_, dec_hook=hook)


def decode_json(data: bytes | str, type_: type[T]) -> T:
    """Decode a value of this type. Raises msgspec.DecodeError or its subclass ValidationError."""
    return json_decoder(type_).decode(data)


def convert_json(value: object, type_: type[T], hook: DecodeHook | None = None) -> T:
    """Convert plain JSON values to this type. Raises msgspec.ValidationError."""
    json_decoder(type_, hook)
    return msgspec.convert(value, type_, dec_hook=hook)
