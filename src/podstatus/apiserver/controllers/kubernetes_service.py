"""Publishes this server as the Service `kubernetes` in the namespace `default`.

There is no proxy for cluster IPs, and pods share the network of the machine. So the cluster IP is
an address at which this server really listens, and the port is its own; upstream allocates both
from the Service range, with port 443 (docs/decisions/0050-services-of-the-embedded-server.md).

Upstream: pkg/controlplane/controller/kubernetesservice v1.36.4.
"""

import ipaddress
from typing import Final

import msgspec

from podstatus.apiserver.controllers.base import Controller
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resources import SERVICES
from podstatus.apiserver.storage.store import StorageKey
from podstatus.apiserver.strategies.base import Document

_KEY: Final = StorageKey("default", "kubernetes")
_LABELS: Final = {"component": "apiserver", "provider": "kubernetes"}


class KubernetesServiceController(Controller):
    """Creates the Service, and restores it after it was changed or deleted."""

    resources = (SERVICES.plural,)
    activity = "publishing the service kubernetes"
    rejection = "cannot publish the service of the API server, will retry: service"

    _spec: Document | None = None
    """The fields that this controller owns; None if there is no address to publish."""

    def publish(self, host: str, port: int) -> None:
        """Publish the address at which the server listens, before the first request."""
        address = reachable_address(host)
        if not address:
            return
        ports = [{"name": "https", "protocol": "TCP", "port": port, "targetPort": port}]
        self._spec = {"clusterIP": address, "clusterIPs": [address], "ports": ports}
        self._wake(_KEY)
        self._try_reconcile(_KEY)

    def _reconcile(self, key: StorageKey) -> None:
        stored = self._store.get(SERVICES.plural, key)
        data = None if stored is None else stored.data
        if self._spec is not None and not _has_spec(data, self._spec):
            self._write(key, self._spec, exists=stored is not None)
        self._pending.pop(key, None)

    def _write(self, key: StorageKey, spec: Document, *, exists: bool) -> None:
        target = ResourcePath(resource=SERVICES, namespace=key.namespace, name=key.name)
        if exists:
            # The cluster IP of a Service cannot be changed, and its port may be another one today.
            self._registry.remove(target)
        metadata = {"name": key.name, "namespace": key.namespace, "labels": _LABELS}
        document = {"kind": SERVICES.kind, "apiVersion": "v1", "metadata": metadata}
        self._registry.create(target, document | {"spec": spec})

    def _observe(self, resource: str, key: StorageKey, data: bytes | None) -> None:
        if resource != SERVICES.plural:
            return
        if key == _KEY and self._spec is not None and not _has_spec(data, self._spec):
            self._wake(key)

    def _wake(self, key: StorageKey) -> None:
        self._pending[key] = None
        self._wake_up.set("changed")


def reachable_address(host: str) -> str:
    """Return the IP address for clients of this machine; empty for a host name."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return ""
    if not address.is_unspecified:
        return str(address)
    return "127.0.0.1" if address.version == 4 else "::1"


def _has_spec(data: bytes | None, expected: Document) -> bool:
    if data is None:
        return False
    spec = msgspec.json.decode(data).get("spec") or {}
    return all(spec.get(key) == value for key, value in expected.items())
