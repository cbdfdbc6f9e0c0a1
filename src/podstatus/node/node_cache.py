"""Our own Node, as it was last seen."""

from podstatus.base.clock import Clock
from podstatus.kube.objects.node import Node

_MAX_DIGITS = 40
"""Of a resource version. A number has at most 20; Python refuses to read thousands of them."""


class NodeCache:
    """The newest Node object that is known; before there is one, the one we would register.

    Fed by whoever sees one: our own requests, and a watch.
    """

    def __init__(self, draft: Node, *, clock: Clock) -> None:
        self._draft = draft
        self._clock = clock
        self._server_copy: Node | None = None
        self._updated_at = clock.monotonic()

    @property
    def server_copy(self) -> Node | None:
        """The Node as the API server has it, None if it has none that we know of."""
        return self._server_copy

    @property
    def uid(self) -> str:
        """What the API server calls it, empty if it has none that we know of."""
        return self._server_copy.metadata.uid if self._server_copy is not None else ""

    def current(self) -> Node:
        """The newest Node that is known, also before it is registered."""
        return self._draft if self._server_copy is None else self._server_copy

    def age(self) -> float:
        """Seconds since it was last seen, or since the start."""
        return (self._clock.monotonic() - self._updated_at) / 1e9

    def set_draft(self, draft: Node) -> None:
        """Take this for the Node that we would register."""
        self._draft = draft

    def update(self, node: Node) -> None:
        """Take over a Node that was seen, unless a newer one is known."""
        if self._server_copy is not None and _is_older(node, self._server_copy):
            return
        self._server_copy = node
        self._updated_at = self._clock.monotonic()

    def remove(self, node: Node) -> None:
        """A Node was seen to be gone: ours, unless it has been registered anew meanwhile."""
        if self.uid == node.metadata.uid:
            self.forget()

    def forget(self) -> None:
        """The API server has none any more."""
        self._server_copy = None


def _is_older(node: Node, current: Node) -> bool:
    """Whether it is the same Node, as it was before. Versions that are no numbers say nothing."""
    seen = _version_number(node.metadata.resource_version)
    newest = _version_number(current.metadata.resource_version)
    if node.metadata.uid != current.metadata.uid or seen is None or newest is None:
        return False
    return seen < newest


def _version_number(version: str) -> int | None:
    is_number = version.isascii() and version.isdecimal() and len(version) <= _MAX_DIGITS
    return int(version) if is_number else None
