"""Index containers, their statuses and attempts by name.

A pod may have a thousand containers, so a linear search for each of them is too slow.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar


class HasName(Protocol):
    """An object with a name, which need not be unique."""

    @property
    def name(self) -> str:
        """The name of the container."""


N = TypeVar("N", bound=HasName)


def first_by_name(items: Iterable[N] | None) -> dict[str, N]:
    by_name: dict[str, N] = {}
    for item in items or ():
        if item.name not in by_name:
            by_name[item.name] = item
    return by_name


def all_by_name(items: Iterable[N] | None) -> dict[str, list[N]]:
    """Return all items of each name, in the order of the list."""
    by_name: dict[str, list[N]] = {}
    for item in items or ():
        by_name.setdefault(item.name, []).append(item)
    return by_name
