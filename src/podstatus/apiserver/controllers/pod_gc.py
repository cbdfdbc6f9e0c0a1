"""The pod garbage collector: deletes pods that no node will ever terminate.

Upstream: pkg/controller/podgc/gc_controller.go v1.36.4.
"""

import asyncio
import logging
from functools import partial

from podstatus.apiserver.controllers.base import BATCH_SIZE, PeriodicController
from podstatus.apiserver.controllers.decide.pod_gc import (
    CHECK_SECONDS,
    PodPlace,
    is_abandoned,
    is_orphan,
    is_out_of_service,
    quarantine,
)
from podstatus.apiserver.controllers.pod_writer import PodWriter, node_of
from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.resources import NODES, PODS
from podstatus.apiserver.storage.store import StorageKey, Store, StoredObject
from podstatus.base.clock import Clock
from podstatus.kube.encoding.codec import DecodeError, decode
from podstatus.kube.objects.node import Node

logger = logging.getLogger(__name__)


class PodGarbageCollector(PeriodicController):
    """Looks at all pods once per period."""

    resources = ()
    activity = "collecting pods without a node"
    rejection = "cannot delete the pod without a node, will retry: pod"

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._missing: dict[str, int] = {}
        """Since when Nodes of pods have been missing."""
        self._pods = PodWriter(registry, clock)
        super().__init__(store, registry, clock, period_seconds=CHECK_SECONDS)

    async def check_once(self) -> bool:
        """Delete the pods that are orphaned or abandoned; return whether all writes succeeded."""
        now = self._clock.monotonic()
        nodes = {stored.key.name for stored in self._store.objects(NODES.plural)}
        pods = list(self._store.objects(PODS.plural))
        self._missing = quarantine(self._missing, map(node_of, pods), nodes, now)
        out_of_service = {
            stored.key.name
            for stored in self._store.objects(NODES.plural)
            if _is_out_of_service(stored)
        }
        succeeded = True
        for number, pod in enumerate(pods, start=1):
            place = PodPlace(node=node_of(pod), terminating=_is_terminating(pod))
            orphaned = is_orphan(place, self._missing, now)
            if orphaned or is_abandoned(place, out_of_service):
                delete = partial(self._delete, pod.key, orphaned=orphaned)
                succeeded &= self._try_write(pod.key, delete)
            if number % BATCH_SIZE == 0:
                await asyncio.sleep(0)
        return succeeded

    def _delete(self, key: StorageKey, *, orphaned: bool) -> None:
        if self._store.get(PODS.plural, key) is not None:
            self._pods.force_delete(key, orphaned=orphaned)
            logger.info("pod without a node deleted: pod=%s/%s orphaned=%s", *key, orphaned)

    def _observe(self, resource: str, key: StorageKey, data: bytes | None) -> None:
        """Nothing is recorded: a check looks at everything."""


def _is_terminating(pod: StoredObject) -> bool:
    # Most pods are not, and are not decoded.
    if b'"deletionTimestamp"' not in pod.data:
        return False
    return bool(pod.document()["metadata"].get("deletionTimestamp"))


def _is_out_of_service(node: StoredObject) -> bool:
    if b"out-of-service" not in node.data:
        return False
    try:
        return is_out_of_service(decode(node.data, Node))
    except DecodeError:
        return False
