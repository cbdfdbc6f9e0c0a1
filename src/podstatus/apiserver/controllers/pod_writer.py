"""Writes of the controllers to pods of nodes that are silent, tainted or gone."""

from collections.abc import Callable
from functools import partial

from podstatus.apiserver.controllers.decide.pod_status import (
    DELETION_BY_TAINT_MANAGER,
    mark_disruption,
    mark_failed,
    mark_not_ready,
)
from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resources import PODS
from podstatus.apiserver.storage.store import StorageKey, StoredObject
from podstatus.apiserver.strategies.base import Document
from podstatus.base.clock import Clock
from podstatus.kube.objects.cluster import DeleteOptions
from podstatus.kube.scalars.time import Time

_MANAGER = "kube-controller-manager"
"""The field manager, by which agents report a foreign write."""


def node_of(pod: StoredObject) -> str:
    """Return the node that a pod is bound to, without decoding the pod; empty if there is none."""
    return pod.fields.get("spec.nodeName", "")


def pod_reference(key: StorageKey) -> Document:
    """Return the reference of a pod in an event."""
    return {"kind": "Pod", "apiVersion": "v1", "namespace": key.namespace, "name": key.name}


class PodWriter:
    """Each method raises StatusError, StorageError."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    def mark_not_ready(self, key: StorageKey) -> Document | None:
        """Set Ready=False; return the pod, None if it was not Ready before."""
        before = self._registry.get(_target(key)).document()
        now = self._now()
        if mark_not_ready(before, now) is before:
            return None
        return self._patch(key, lambda pod: mark_not_ready(pod, now))

    def evict(self, key: StorageKey) -> None:
        """Delete the pod gracefully, because of a taint; it has the condition DisruptionTarget."""
        self._patch(key, partial(mark_disruption, why=DELETION_BY_TAINT_MANAGER, now=self._now()))
        self._registry.delete(_target(key), DeleteOptions())

    def force_delete(self, key: StorageKey, *, orphaned: bool) -> None:
        """Remove the pod, which no node runs, after it was marked as Failed."""
        self._patch(key, partial(mark_failed, now=self._now(), orphaned=orphaned))
        self._registry.delete(_target(key), DeleteOptions(grace_period_seconds=0))

    def _patch(self, key: StorageKey, change: Callable[[Document], Document]) -> Document:
        return self._registry.patch(_target(key, "status"), change, manager=_MANAGER)

    def _now(self) -> Time:
        return Time.from_unix_nanos(self._clock.now())


def _target(key: StorageKey, subresource: str = "") -> ResourcePath:
    return ResourcePath(
        resource=PODS, namespace=key.namespace, name=key.name, subresource=subresource
    )
