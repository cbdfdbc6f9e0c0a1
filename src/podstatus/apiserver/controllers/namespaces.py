"""The namespace controller: empties terminating namespaces, then removes them.

Upstream: the namespace controller of kube-controller-manager, v1.36.4.
"""

import logging

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.registry import Registry
from podstatus.apiserver.resources import NAMESPACES, RESOURCES
from podstatus.apiserver.storage.store import DELETED, StorageError, StorageKey, Store, StoreChange
from podstatus.apiserver.strategies.base import DeleteOptions
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.wake_up import WakeUp

logger = logging.getLogger(__name__)

_NAMESPACED_RESOURCES = [resource for resource in RESOURCES if resource.namespaced]
_RETRY_SECONDS = 1.0
"""Delay before a failed write is retried."""


class NamespaceController:
    """Follows changes with `on_change`; `run` deletes the content of terminating namespaces."""

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._wake_up = WakeUp[str]()
        self._failure_log = FailureLog(
            logger, "deleting the content of namespaces", expected=StorageError
        )
        self._terminating: set[str] = set()
        for stored in store.objects(NAMESPACES.plural):
            self._observe_namespace(stored.key.name, stored.data)

    def on_change(self, resource: str, change: StoreChange) -> None:
        """Record terminating namespaces and deletions inside of them. Never blocks."""
        if resource == NAMESPACES.plural:
            self._observe_namespace(
                change.new.key.name, b"" if change.type == DELETED else change.new.data
            )
        elif change.type == DELETED and change.new.key.namespace in self._terminating:
            self._wake_up.set("emptier")

    async def run(self) -> None:
        """Reconcile when a namespace is terminating or loses an object. Runs until cancelled."""
        while True:
            await self._wake_up.wait()
            if self.reconcile_all():
                self._failure_log.recovered()
            else:
                # Nothing signals that the disk has space again, so poll.
                await self._clock.wait(_RETRY_SECONDS)
                self._wake_up.set("again")

    def reconcile_all(self) -> bool:
        """Reconcile all terminating namespaces; return whether all writes succeeded."""
        succeeded = True
        for name in sorted(self._terminating):
            try:
                self.reconcile(name)
            except StatusError as error:
                logger.warning(
                    "cannot delete the content of the namespace, will retry: namespace=%s error=%s",
                    name,
                    error,
                )
            except StorageError as error:
                self._failure_log.failed(error)
                succeeded = False
        return succeeded

    def reconcile(self, namespace: str) -> None:
        """Delete the objects of a namespace; remove the namespace once it is empty."""
        remaining = 0
        for resource in _NAMESPACED_RESOURCES:
            for stored in list(self._store.objects(resource.plural, namespace)):
                target = ResourcePath(resource=resource, namespace=namespace, name=stored.key.name)
                _, removed = self._registry.delete(target, DeleteOptions())
                remaining += not removed
        if not remaining:
            self._registry.remove(ResourcePath(resource=NAMESPACES, name=namespace))
            logger.info("namespace removed: namespace=%s", namespace)

    def _observe_namespace(self, name: str, data: bytes) -> None:
        stored = self._store.get(NAMESPACES.plural, StorageKey("", name)) if data else None
        if stored is not None and stored.document()["metadata"].get("deletionTimestamp"):
            self._terminating.add(name)
            self._wake_up.set("leaving")
        else:
            self._terminating.discard(name)
