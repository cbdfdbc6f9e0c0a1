"""Cache of this node's Node object."""

from collections.abc import Callable

from podstatus.kube.objects.node import Node
from podstatus.node.decide.conditions import is_taken_for_dead

_MAX_DIGITS = 40
"""Longest resource version that is parsed: a uint64 has 20 digits, and int() rejects over 4300."""


class NodeCache:
    """The newest Node object; before the registration, the draft that would be registered.

    Updated from responses to this agent's requests and from a watch.
    """

    def __init__(self, draft: Node) -> None:
        self._draft = draft
        self._server_copy: Node | None = None

    @property
    def server_copy(self) -> Node | None:
        """The Node at the API server; None before the registration and after a deletion."""
        return self._server_copy

    @property
    def uid(self) -> str:
        """UID of the Node at the API server; empty if there is none."""
        return self._server_copy.metadata.uid if self._server_copy is not None else ""

    def current(self) -> Node:
        """The server's copy, or the draft if there is none."""
        return self._draft if self._server_copy is None else self._server_copy

    def set_draft(self, draft: Node) -> None:
        """Replace the Node that would be registered."""
        self._draft = draft

    def update(self, node: Node) -> None:
        """Store a Node from the API server, unless the cached one is newer."""
        if self._server_copy is not None and _is_older(node, self._server_copy):
            return
        self._server_copy = node

    def remove(self, node: Node) -> None:
        """Drop a deleted Node, unless it has been registered again under another UID."""
        if self.uid == node.metadata.uid:
            self.forget()

    def forget(self) -> None:
        """Drop the server's copy of the Node."""
        self._server_copy = None


class NodeWatch:
    """Receives the changes of this Node: updates the cache, and replies to a controller.

    A controller that did not hear the node for long, since it was stopped or cut off, has set its
    conditions to Unknown. The next regular status may be 10 s away.
    """

    def __init__(self, node_cache: NodeCache, request_sync: Callable[[], None]) -> None:
        """`request_sync` requests that the node's status is sent soon."""
        self._node_cache = node_cache
        self._request_sync = request_sync

    def update(self, node: Node) -> None:
        """Handle a new or changed Node."""
        self._node_cache.update(node)
        if is_taken_for_dead(node.status.conditions):
            self._request_sync()

    def remove(self, node: Node) -> None:
        """Handle the deletion of the Node."""
        self._node_cache.remove(node)


def _is_older(node: Node, current: Node) -> bool:
    """Whether `node` is an older version of `current`; False if a version is not a number."""
    version = _version_number(node.metadata.resource_version)
    current_version = _version_number(current.metadata.resource_version)
    if node.metadata.uid != current.metadata.uid or version is None or current_version is None:
        return False
    return version < current_version


def _version_number(version: str) -> int | None:
    is_number = version.isascii() and version.isdecimal() and len(version) <= _MAX_DIGITS
    return int(version) if is_number else None
