"""Containers, their statuses and attempts by name.

A pod may have a thousand containers, so nothing may look for each of them in a list of all.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar


class HasName(Protocol):
    """What has a name that may not be the only one of its kind."""

    @property
    def name(self) -> str:
        """Of a container."""


N = TypeVar("N", bound=HasName)


def first_by_name(listed: Iterable[N] | None) -> dict[str, N]:
    """By each name the first in the list."""
    found: dict[str, N] = {}
    for item in listed or ():
        if item.name not in found:
            found[item.name] = item
    return found


def all_by_name(listed: Iterable[N] | None) -> dict[str, list[N]]:
    """By each name all, in the order of the list."""
    found: dict[str, list[N]] = {}
    for item in listed or ():
        found.setdefault(item.name, []).append(item)
    return found
