"""The namespace controller: empties terminating namespaces, then removes them.

Upstream: the namespace controller of kube-controller-manager, v1.36.4.
"""

import logging

import msgspec

from podstatus.apiserver.controllers.base import Controller
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resources import NAMESPACES, RESOURCES
from podstatus.apiserver.storage.store import StorageKey
from podstatus.kube.objects.cluster import DeleteOptions

logger = logging.getLogger(__name__)

_NAMESPACED_RESOURCES = [resource for resource in RESOURCES if resource.namespaced]


class NamespaceController(Controller):
    """Deletes the content of terminating namespaces, which are pending."""

    resources = (NAMESPACES.plural,)
    activity = "deleting the content of namespaces"
    rejection = "cannot delete the content of the namespace, will retry: namespace"

    def _reconcile(self, key: StorageKey) -> None:
        """Delete the objects of a namespace; remove the namespace once it is empty."""
        namespace, remaining = key.name, 0
        for resource in _NAMESPACED_RESOURCES:
            for stored in list(self._store.objects(resource.plural, namespace)):
                target = ResourcePath(resource=resource, namespace=namespace, name=stored.key.name)
                _, removed = self._registry.delete(target, DeleteOptions())
                remaining += not removed
        if not remaining:
            self._registry.remove(ResourcePath(resource=NAMESPACES, name=namespace))
            logger.info("namespace removed: namespace=%s", namespace)

    def _observe(self, resource: str, key: StorageKey, data: bytes | None) -> None:
        if resource == NAMESPACES.plural:
            self._pending.pop(key, None)
            if data and msgspec.json.decode(data)["metadata"].get("deletionTimestamp"):
                self._pending[key] = None
                self._wake_up.set("namespace")
        elif data is None and StorageKey("", key.namespace) in self._pending:
            self._wake_up.set("object")
