"""Our own Node, as it was last seen."""

from podstatus.base.clock import Clock
from podstatus.kube.objects.node import Node

_MAX_DIGITS = 40
"""Of a resource version. A number has at most 20; Python refuses to read thousands of them."""


class OwnNode:
    """The newest Node object that is known; before there is one, the one we would register.

    Fed by whoever sees one: our own requests, and a watch.
    """

    def __init__(self, would_be: Node, *, clock: Clock) -> None:
        self._would_be = would_be
        self._clock = clock
        self._known: Node | None = None
        self._at = clock.monotonic()

    @property
    def known(self) -> Node | None:
        """The Node as the API server has it, None if it has none that we know of."""
        return self._known

    @property
    def uid(self) -> str:
        """What the API server calls it, empty if it has none that we know of."""
        return self._known.metadata.uid if self._known is not None else ""

    def current(self) -> Node:
        """The newest Node that is known, also before it is registered."""
        return self._would_be if self._known is None else self._known

    def age(self) -> float:
        """Seconds since it was last seen, or since the start."""
        return (self._clock.monotonic() - self._at) / 1e9

    def propose(self, would_be: Node) -> None:
        """Take this for the Node that we would register."""
        self._would_be = would_be

    def update(self, node: Node) -> None:
        """Take over a Node that was seen, unless a newer one is known."""
        if self._known is not None and _is_older(node, self._known):
            return
        self._known = node
        self._at = self._clock.monotonic()

    def remove(self, node: Node) -> None:
        """A Node was seen to be gone: ours, unless it has been registered anew meanwhile."""
        if self.uid == node.metadata.uid:
            self.forget()

    def forget(self) -> None:
        """The API server has none any more."""
        self._known = None


def _is_older(node: Node, known: Node) -> bool:
    """Whether it is the same Node, as it was before. Versions that are no numbers say nothing."""
    seen = _number(node.metadata.resource_version)
    newest = _number(known.metadata.resource_version)
    if node.metadata.uid != known.metadata.uid or seen is None or newest is None:
        return False
    return seen < newest


def _number(version: str) -> int | None:
    is_number = version.isascii() and version.isdecimal() and len(version) <= _MAX_DIGITS
    return int(version) if is_number else None
