"""Size limits for YAML, checked on parser events before any object is built.

A few lines of aliases can expand to gigabytes, and deep nesting overflows a recursive reader. Each
alias counts with its expanded size.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import yaml


class YamlBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a document, with all aliases expanded."""

    max_depth: int
    """Maximum nesting of collections."""
    max_nodes: int
    """Maximum number of collections, keys and values."""
    max_characters: int = 16 << 20
    """Maximum characters of all scalars together."""


class BoundsError(ValueError):
    """A document exceeds the limits; `line` is counted from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class YamlSize(NamedTuple):
    """Size of a document, with all aliases expanded."""

    depth: int = 0
    nodes: int = 1
    characters: int = 0


class _OpenCollection:
    """A collection whose end event has not arrived."""

    def __init__(self, anchor: str | None) -> None:
        self.anchor = anchor
        self.size = YamlSize(depth=1)


def check_bounds(events: Iterable[yaml.Event], bounds: YamlBounds) -> YamlSize:
    """The size of the (last) document. Raises BoundsError, and the errors of the parser.

    Undefined aliases are ignored here; the loader that builds the document reports them.
    """
    counter = _SizeCounter(bounds)
    for event in events:
        match event:
            case yaml.DocumentStartEvent():
                counter = _SizeCounter(bounds)
            case yaml.CollectionStartEvent():
                counter.begin(event.anchor)
            case yaml.CollectionEndEvent():
                counter.end()
            case yaml.ScalarEvent():
                counter.add(YamlSize(characters=len(event.value)), event.anchor)
            case yaml.AliasEvent():
                mark = event.start_mark
                counter.add_alias(event.anchor or "", None if mark is None else mark.line + 1)
    return counter.size


class _SizeCounter:
    """Accumulates the size of one document, event by event."""

    def __init__(self, bounds: YamlBounds) -> None:
        self._bounds = bounds
        self._open = [_OpenCollection(None)]
        self._anchor_sizes: dict[str, YamlSize | None] = {}
        """Size by anchor; None while the anchored collection is still open."""
        self._has_aliases = False

    @property
    def size(self) -> YamlSize:
        """The total size; `nodes` is one too high, for the root."""
        return self._open[0].size

    def begin(self, anchor: str | None) -> None:
        # Check at the start: the parser's cost grows with every level.
        if len(self._open) > self._bounds.max_depth:
            raise BoundsError("nested too deeply")
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
            raise BoundsError("alias refers to itself", line)
        self.add(size)

    def add(self, size: YamlSize, anchor: str | None = None) -> None:
        if anchor:
            self._anchor_sizes[anchor] = size
        parent = self._open[-1]
        depth, nodes, characters = parent.size
        parent.size = YamlSize(
            max(depth, size.depth + 1), nodes + size.nodes, characters + size.characters
        )
        self._check(parent.size)

    def _check(self, size: YamlSize) -> None:
        bounds = self._bounds
        if len(self._open) + size.depth - 2 > bounds.max_depth:
            raise BoundsError("nested too deeply")
        if size.nodes > bounds.max_nodes + 1 or size.characters > bounds.max_characters:
            raise BoundsError(
                "aliases expand to too much data; write the values out"
                if self._has_aliases
                else "too many values, or values too long"
            )
