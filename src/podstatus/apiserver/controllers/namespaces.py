"""Empty the namespaces that are to go, and remove them when nothing is left in them.

Upstream: the namespace controller of kube-controller-manager, v1.36.4.
"""

import logging

from podstatus.apiserver.http.errors import Problem
from podstatus.apiserver.http.router import Target
from podstatus.apiserver.registry import Registry
from podstatus.apiserver.resources import NAMESPACES, RESOURCES
from podstatus.apiserver.storage.store import DELETED, Change, Key, Store, StoreError
from podstatus.apiserver.strategies.base import DeleteOptions
from podstatus.base.aio import WakeUp
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog

logger = logging.getLogger(__name__)

_INSIDE = [resource for resource in RESOURCES if resource.namespaced]
_RETRY_SECONDS = 1.0
"""After which what could not be written is tried again."""


class NamespaceCleaner:
    """Told of every change by `notice`; `run` does the cleaning."""

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._wake = WakeUp[str]()
        self._trouble = FailureLog(logger, "emptying namespaces", expected=StoreError)
        self._leaving: set[str] = set()
        for stored in store.objects(NAMESPACES.plural):
            self._see(stored.key.name, stored.data)

    def notice(self, resource: str, change: Change) -> None:
        """Take account of a change, whoever made it."""
        if resource == NAMESPACES.plural:
            self._see(change.new.key.name, b"" if change.type == DELETED else change.new.data)
        elif change.type == DELETED and change.new.key.namespace in self._leaving:
            self._wake.set("emptier")

    async def run(self) -> None:
        """Clean up whenever a namespace is to go, or something in one has gone."""
        while True:
            await self._wake.wait()
            if self.clean_all():
                self._trouble.recovered()
            else:
                # A disk that has room again wakes nobody.
                await self._clock.wait(_RETRY_SECONDS)
                self._wake.set("again")

    def clean_all(self) -> bool:
        """Clean up all that are to go; whether that could be written."""
        is_written = True
        for name in sorted(self._leaving):
            try:
                self.clean(name)
            except Problem as error:
                logger.warning("namespace not emptied: namespace=%s error=%s", name, error)
            except StoreError as error:
                self._trouble.failed(error)
                is_written = False
        return is_written

    def clean(self, namespace: str) -> None:
        """Delete what is in a namespace, and itself if nothing is."""
        left = 0
        for resource in _INSIDE:
            for stored in list(self._store.objects(resource.plural, namespace)):
                target = Target(resource=resource, namespace=namespace, name=stored.key.name)
                _, gone = self._registry.delete(target, DeleteOptions())
                left += not gone
        if not left:
            self._registry.remove(Target(resource=NAMESPACES, name=namespace))
            logger.info("namespace removed: namespace=%s", namespace)

    def _see(self, name: str, data: bytes) -> None:
        stored = self._store.get(NAMESPACES.plural, Key("", name)) if data else None
        if stored is not None and stored.document()["metadata"].get("deletionTimestamp"):
            self._leaving.add(name)
            self._wake.set("leaving")
        else:
            self._leaving.discard(name)
