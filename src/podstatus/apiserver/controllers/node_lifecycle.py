"""The node lifecycle controller: sets NoSchedule taints according to node conditions.

Upstream: the node lifecycle controller of kube-controller-manager, v1.36.4. Not implemented:
monitoring of leases, and eviction of pods from unreachable nodes.
"""

import logging

from podstatus.apiserver.controllers.decide.node_taints import desired_taints
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.registry import Registry
from podstatus.apiserver.resources import NODES
from podstatus.apiserver.storage.store import DELETED, StorageError, Store, StoreChange
from podstatus.apiserver.strategies.base import Document
from podstatus.base.clock import Clock
from podstatus.base.wake_up import WakeUp
from podstatus.kube.encoding.codec import DecodeError, decode, from_document, to_document
from podstatus.kube.objects.node import Node
from podstatus.kube.scalars.time import Time

logger = logging.getLogger(__name__)


class NodeLifecycleController:
    """Follows changes with `on_change`; `run` updates the taints."""

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._wake_up = WakeUp[str]()
        self._dirty: set[str] = set()
        """Nodes whose taints differ from the desired ones."""
        for stored in store.objects(NODES.plural):
            self._observe_node(stored.key.name, stored.data)

    def on_change(self, resource: str, change: StoreChange) -> None:
        """Mark a changed node for reconciliation. Never blocks."""
        if resource == NODES.plural:
            self._observe_node(
                change.new.key.name, b"" if change.type == DELETED else change.new.data
            )

    async def run(self) -> None:
        """Reconcile changed nodes. Runs until cancelled."""
        while True:
            await self._wake_up.wait()
            for name in sorted(self._dirty):
                self.reconcile(name)

    def reconcile(self, name: str) -> None:
        """Write the desired taints of a node.

        Nothing is awaited between read and write, so concurrent changes are not lost. A failed
        write is retried at the next change of the node.
        """
        self._dirty.discard(name)
        target = ResourcePath(resource=NODES, name=name)
        now = Time.from_unix_nanos(self._clock.now())
        try:
            self._registry.overwrite(target, lambda node: _with_desired_taints(node, now))
        except (StatusError, StorageError) as error:
            logger.warning("cannot update the taints of the node: node=%s error=%s", name, error)

    def _observe_node(self, name: str, data: bytes) -> None:
        self._dirty.discard(name)
        if not data:
            return
        try:
            node = decode(data, Node)
        except DecodeError as error:
            logger.warning(
                "cannot decode the node, its taints are not updated: node=%s error=%s", name, error
            )
            return
        if desired_taints(node) != (node.spec.taints or ()):
            self._dirty.add(name)
            self._wake_up.set("node")


def _with_desired_taints(node: Document, now: Time) -> Document:
    """Return the node document with the desired taints."""
    taints = desired_taints(from_document(node, Node), now)
    spec = {key: value for key, value in node["spec"].items() if key != "taints"}
    if taints:
        spec["taints"] = [to_document(taint) for taint in taints]
    return node | {"spec": spec}
