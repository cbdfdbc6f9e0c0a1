"""How many pods each node has, and what they ask for together; kept as pods come and go."""

from collections.abc import Mapping

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.quantity import Quantity
from podstatus.observe.node_summary import add_up


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What is on a node."""

    pods: int = 0
    requested: Mapping[str, str] = {}


class NodeLoads:
    """What is on all nodes. A sum is worked out anew if a pod of that node came, went or ended."""

    def __init__(self) -> None:
        self._nodes: dict[PodUID, str] = {}
        self._requests: dict[str, dict[PodUID, Mapping[str, Quantity]]] = {}
        self._sums: dict[str, Load] = {}

    def put(self, uid: PodUID, node: str, requests: Mapping[str, Quantity] | None) -> None:
        """A pod takes this of the node; None: nothing, it is on none, or has ended."""
        known = self._requests.get(self._nodes.get(uid, ""), {}).get(uid)
        if requests is not None and self._nodes.get(uid) == node and known == requests:
            return
        self.remove(uid)
        if requests is not None:
            self._nodes[uid] = node
            self._requests.setdefault(node, {})[uid] = requests
            self._sums.pop(node, None)

    def remove(self, uid: PodUID) -> None:
        """The pod takes nothing any more."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        pods = self._requests[node]
        del pods[uid]
        if not pods:
            del self._requests[node]
        self._sums.pop(node, None)

    def of(self, node: str) -> Load:
        """What is on a node."""
        load = self._sums.get(node)
        if load is None:
            pods = self._requests.get(node, {})
            load = self._sums[node] = Load(pods=len(pods), requested=add_up(pods.values()))
        return load
