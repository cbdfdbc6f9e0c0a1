"""Sets NoSchedule taints according to node conditions.

Upstream: doNodeProcessingPassWorker, pkg/controller/nodelifecycle/node_lifecycle_controller.go
v1.36.4, whose other half is `controllers.node_monitor`.
"""

import logging
from collections.abc import Callable

from podstatus.apiserver.controllers.base import Controller
from podstatus.apiserver.controllers.decide.node_taints import desired_taints
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resources import NODES
from podstatus.apiserver.storage.store import StorageKey
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.encoding.codec import DecodeError, decode, from_document, to_document
from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.scalars.time import Time

logger = logging.getLogger(__name__)


class NodeLifecycleController(Controller):
    """Updates the taints of nodes; those with other taints than desired are pending."""

    resources = (NODES.plural,)
    activity = "updating the taints of nodes"
    rejection = "cannot update the taints of the node: node"

    def _reconcile(self, key: StorageKey) -> None:
        """Write the desired taints of a node.

        Nothing is awaited between read and write, so concurrent changes are not lost.
        """
        target = ResourcePath(resource=NODES, name=key.name)
        now = Time.from_unix_nanos(self._clock.now())
        self._registry.overwrite(target, lambda node: _with_desired_taints(node, now))

    def _observe(self, resource: str, key: StorageKey, data: bytes | None) -> None:
        if resource != NODES.plural:
            return
        self._pending.pop(key, None)
        if data is None:
            return
        try:
            node = decode(data, Node)
        except DecodeError as error:
            logger.warning(
                "cannot decode the node, its taints are not updated: node=%s error=%s",
                key.name,
                error,
            )
            return
        if desired_taints(node) != (node.spec.taints or ()):
            self._pending[key] = None
            self._wake_up.set("node")


def with_taints(
    node: Document, change: Callable[[tuple[Taint, ...]], tuple[Taint, ...]]
) -> Document:
    """Return the Node with changed taints; the field is dropped if none is left."""
    return _set_taints(node, change(from_document(node, Node).spec.taints or ()))


def _with_desired_taints(node: Document, now: Time) -> Document:
    return _set_taints(node, desired_taints(from_document(node, Node), now))


def _set_taints(node: Document, taints: tuple[Taint, ...]) -> Document:
    spec = {key: value for key, value in node["spec"].items() if key != "taints"}
    if taints:
        spec["taints"] = [to_document(taint) for taint in taints]
    return node | {"spec": spec}
