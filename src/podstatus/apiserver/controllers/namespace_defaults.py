"""The objects that every namespace has: ServiceAccount `default`, ConfigMap `kube-root-ca.crt`.

Upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go and
pkg/controller/certificates/rootcacertpublisher/publisher.go of kube-controller-manager v1.36.4.
"""

from typing import Any

import msgspec

from podstatus.apiserver.controllers.base import Controller
from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, ResourceInfo
from podstatus.apiserver.service_accounts.mount import ROOT_CA_CONFIG_MAP
from podstatus.apiserver.service_accounts.token_request import DEFAULT_ACCOUNT
from podstatus.apiserver.storage.store import StorageKey, Store
from podstatus.apiserver.strategies.base import Document
from podstatus.base.clock import Clock

_NAMES = {SERVICE_ACCOUNTS.plural: DEFAULT_ACCOUNT, CONFIG_MAPS.plural: ROOT_CA_CONFIG_MAP}


class NamespaceDefaultsController(Controller):
    """Creates the objects, and restores them after they were changed or deleted."""

    resources = (NAMESPACES.plural,)
    activity = "creating the default objects of namespaces"
    rejection = "cannot create the default objects of the namespace, will retry: namespace"

    def __init__(self, store: Store, registry: Registry, clock: Clock, authority: bytes) -> None:
        """`authority` is the CA certificate (PEM) of this server."""
        self._ca_data = {"ca.crt": authority.decode()}
        super().__init__(store, registry, clock)

    def _reconcile(self, key: StorageKey) -> None:
        namespace = self._store.get(NAMESPACES.plural, key)
        if namespace is not None and not _is_terminating(namespace.data):
            self._ensure(SERVICE_ACCOUNTS, key.name, {})
            self._ensure(CONFIG_MAPS, key.name, {"data": self._ca_data})
        self._pending.pop(key, None)

    def _ensure(self, resource: ResourceInfo, namespace: str, content: Document) -> None:
        name = _NAMES[resource.plural]
        target = ResourcePath(resource=resource, namespace=namespace, name=name)
        stored = self._store.get(resource.plural, StorageKey(namespace, name))
        if stored is None:
            document = {"kind": resource.kind, "apiVersion": "v1", "metadata": {"name": name}}
            self._registry.create(target, document | content)
        elif any(stored.document().get(field) != value for field, value in content.items()):
            self._registry.replace(target, stored.document() | content)

    def _observe(self, resource: str, key: StorageKey, data: bytes | None) -> None:
        if resource == NAMESPACES.plural:
            if data is not None:
                self._wake(key)
        elif key.name == _NAMES.get(resource):
            self._wake(StorageKey("", key.namespace))

    def _wake(self, namespace: StorageKey) -> None:
        self._pending[namespace] = None
        self._wake_up.set("changed")


def _is_terminating(data: bytes) -> bool:
    document: dict[str, Any] = msgspec.json.decode(data)
    return bool(document["metadata"].get("deletionTimestamp"))
