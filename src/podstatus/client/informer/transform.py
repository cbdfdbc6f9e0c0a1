"""What is kept of the objects of a kind, if not all of it.

    Reflector(client, PODS, Digest(Pod, Summary.of), handler)

A pod that was decoded takes ten times the memory of what most people want to know of it. With a
digest it is gone again before the next one is decoded.
"""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from podstatus.client.informer.managed_fields import decode_cached, decode_uncached
from podstatus.kube.encoding.wire import Wire

T = TypeVar("T")
W = TypeVar("W", bound=Wire)


class Transform(Generic[T]):
    """Objects of a kind, of each of which as much is kept as `make` makes of it.

    What it makes has `metadata` with a name, a namespace, a UID and a resource version: those of
    the object.
    """

    def __init__(self, kind: type[W], make: Callable[[W], T]) -> None:
        self.kind: type[Wire] = kind
        self._make = cast(Callable[[Wire], T], make)

    def read(self, data: bytes) -> T:
        """What is kept of an object. Raises DecodeError."""
        return self._make(decode_uncached(data, self.kind))


def decode_and_transform(data: bytes, kind: type[T] | Transform[T]) -> T:
    """What is kept of an object: all but its managed fields, or a digest. Raises DecodeError."""
    if isinstance(kind, Transform):
        return kind.read(data)
    # A kind is a Wire that has metadata; Python cannot spell "both".
    return cast(T, decode_cached(data, cast(type[Wire], kind)))
