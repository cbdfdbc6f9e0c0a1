"""Reduce objects to the part that a caller needs.

    Reflector(client, ObjectSelection(PODS), Transform(Pod, Summary.of), handler)

A decoded pod takes ten times the memory of a typical summary. With a transform, each decoded object
is freed before the next one is decoded.
"""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from podstatus.client.informer.managed_fields import decode_cached, decode_uncached
from podstatus.kube.encoding.wire_struct import Wire

T = TypeVar("T")
W = TypeVar("W", bound=Wire)


class Transform(Generic[T]):
    """Decodes objects of a kind and keeps only the result of `make`.

    The result must have the object's `metadata`: name, namespace, UID and resource version.
    """

    def __init__(self, kind: type[W], make: Callable[[W], T]) -> None:
        self.kind: type[Wire] = kind
        self._make = cast(Callable[[Wire], T], make)

    def read(self, data: bytes) -> T:
        """Decode and transform an object. Raises DecodeError."""
        return self._make(decode_uncached(data, self.kind))


def decode_and_transform(data: bytes, kind: type[T] | Transform[T]) -> T:
    """Decode an object without managed fields, or transform it. Raises DecodeError."""
    if isinstance(kind, Transform):
        return kind.read(data)
    # A kind is a Wire with metadata; Python has no intersection types.
    return cast(T, decode_cached(data, cast(type[Wire], kind)))
