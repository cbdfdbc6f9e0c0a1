"""What registration and status of the node both depend on."""

from collections.abc import Callable

import msgspec

from podstatus.base.clock import Clock
from podstatus.node.decide.node_object import NodeBuilder
from podstatus.node.facts_collector import NodeFactsCollector
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import NodeApi


class NodeDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """The Node at the API server, what it is built from, and when."""

    api: NodeApi
    node_cache: NodeCache
    builder: NodeBuilder
    collector: NodeFactsCollector
    clock: Clock
    heartbeat: Callable[[], None]
    """Called while requests are retried, too."""
