"""Decodes the items of lists, and those that were in the previous list only once."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from podstatus.runtime.cri.api.codec import CODEC, CriMessage

T = TypeVar("T", bound=CriMessage)


class ListCache(Generic[T]):
    """The items of the last list by their bytes. As large as that list."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._items: dict[bytes, T] = {}

    def decode(self, items: Iterable[bytes]) -> tuple[T, ...]:
        """Return the items; equal ones of the previous list are the same objects.

        Raises MalformedMessageError.
        """
        self._items = {
            item: self._items.get(item) or CODEC.decode(item, self._kind) for item in items
        }
        return tuple(self._items.values())
