"""One node, told to who wants to know how it is now."""

from typing import Protocol

from podstatus.client.reflector import Reflector
from podstatus.client.replica import Added, Change, Removed, Updated
from podstatus.client.resources import NODES
from podstatus.client.source import Source
from podstatus.kube.objects.node import Node


class NodeWatcher(Protocol):
    """Who wants to see a node: `podstatus.node.own_node.OwnNode` does."""

    def update(self, node: Node) -> None:
        """It is new or has changed."""

    def remove(self, node: Node) -> None:
        """It is gone."""


def node_reflector(source: Source, name: str, watcher: NodeWatcher) -> Reflector[Node]:
    """A reflector of one node that tells this one; `run()` it."""

    def tell(change: Change[Node]) -> None:
        match change:
            case Added(new) | Updated(_, new):
                watcher.update(new)
            case Removed(last):
                watcher.remove(last)

    return Reflector(source, NODES, Node, tell, field_selector=f"metadata.name={name}")
