"""How much YAML may stand for, found out before anything of it is built up.

A few lines of aliases can stand for gigabytes, and deep nesting ends a reader that recurses. The
events of a parser show both: each alias counts as what it would be, written out.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import yaml


class YamlBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a document may be, with all aliases written out."""

    max_depth: int
    """Levels of collections."""
    max_nodes: int
    """Collections, keys and values."""
    max_characters: int = 16 << 20
    """Of all scalars."""


class BoundsError(ValueError):
    """A document stands for too much; the message says why, `line` where, counted from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class YamlSize(NamedTuple):
    """What a document is, with all aliases written out."""

    depth: int = 0
    nodes: int = 1
    characters: int = 0


class _OpenCollection:
    """A collection whose end has not come."""

    def __init__(self, anchor: str | None) -> None:
        self.anchor = anchor
        self.size = YamlSize(depth=1)


def check_bounds(events: Iterable[yaml.Event], bounds: YamlBounds) -> YamlSize:
    """How much the (last) document is. Raises BoundsError, and what the parser raises.

    An alias of nothing is left to the loader that builds the document.
    """
    counted = _SizeCounter(bounds)
    for event in events:
        match event:
            case yaml.DocumentStartEvent():
                counted = _SizeCounter(bounds)
            case yaml.CollectionStartEvent():
                counted.begin(event.anchor)
            case yaml.CollectionEndEvent():
                counted.end()
            case yaml.ScalarEvent():
                counted.add(YamlSize(characters=len(event.value)), event.anchor)
            case yaml.AliasEvent():
                mark = event.start_mark
                counted.add_alias(event.anchor or "", None if mark is None else mark.line + 1)
    return counted.size


class _SizeCounter:
    """What one document stands for, up to an event."""

    def __init__(self, bounds: YamlBounds) -> None:
        self._bounds = bounds
        self._open = [_OpenCollection(None)]
        self._anchor_sizes: dict[str, YamlSize | None] = {}
        """None while the end of what has the anchor has not come."""
        self._has_aliases = False

    @property
    def size(self) -> YamlSize:
        """All of it; one node more than there are."""
        return self._open[0].size

    def begin(self, anchor: str | None) -> None:
        # Before its end is seen: a parser needs ever longer for each level.
        if len(self._open) > self._bounds.max_depth:
            raise BoundsError("it is nested too deeply")
        if anchor:
            self._anchor_sizes[anchor] = None
        self._open.append(_OpenCollection(anchor))

    def end(self) -> None:
        closed = self._open.pop()
        self.add(closed.size, closed.anchor)

    def add_alias(self, anchor: str, line: int | None) -> None:
        if anchor not in self._anchor_sizes:
            return
        size, self._has_aliases = self._anchor_sizes[anchor], True
        if size is None:
            raise BoundsError("the alias stands for itself", line)
        self.add(size)

    def add(self, size: YamlSize, anchor: str | None = None) -> None:
        if anchor:
            self._anchor_sizes[anchor] = size
        above = self._open[-1]
        depth, nodes, characters = above.size
        above.size = YamlSize(
            max(depth, size.depth + 1), nodes + size.nodes, characters + size.characters
        )
        self._check(above.size)

    def _check(self, size: YamlSize) -> None:
        bounds = self._bounds
        if len(self._open) + size.depth - 2 > bounds.max_depth:
            raise BoundsError("it is nested too deeply")
        if size.nodes > bounds.max_nodes + 1 or size.characters > bounds.max_characters:
            raise BoundsError(
                "its aliases stand for too much; write it out"
                if self._has_aliases
                else "it has too many values, or too long ones"
            )
