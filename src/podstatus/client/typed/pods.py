"""The status manager's port `PodApi` over HTTP, and a reflector for the pods of a node."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from podstatus.client.api_client import ApiClient
from podstatus.client.informer.listwatch import ListerWatcher
from podstatus.client.informer.managed_fields import decode_cached
from podstatus.client.informer.reflector import Reflector
from podstatus.client.informer.store import Added, ObjectChange, Removed, Updated
from podstatus.client.rest.resources import PODS
from podstatus.kube.encoding.codec import DecodeError, decode
from podstatus.kube.errors import RejectedError
from podstatus.kube.objects.meta import ManagedFieldsEntry
from podstatus.kube.objects.pod import ApiUID, Pod


class HttpPodApi:
    """Pods over HTTP, decoded, without their managed fields."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Read one pod."""
        return _decode_response(
            await self._client.get(PODS, name, namespace=namespace), namespace, name
        )

    async def managed_fields(
        self, namespace: str, name: str, *, uid: ApiUID
    ) -> tuple[ManagedFieldsEntry, ...]:
        """Who manages which fields of a pod; nothing if it is another one by now."""
        body = await self._client.get(PODS, name, namespace=namespace)
        try:
            metadata = decode(body, Pod).metadata
        except DecodeError as error:
            raise RejectedError(f"the server's answer cannot be read: {error}") from error
        return metadata.managed_fields or () if metadata.uid == uid else ()

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        """Apply a strategic merge patch to the `status` subresource; the pod afterwards."""
        answer = await self._client.patch(
            PODS, name, patch, namespace=namespace, subresource="status"
        )
        return _decode_response(answer, namespace, name)

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int | None
    ) -> None:
        """Delete the pod, if it still is the one with this UID; None: with its own grace."""
        options: dict[str, object] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
        }
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        body = msgspec.json.encode(options)
        await self._client.delete(PODS, name, namespace=namespace, options=body)


def _decode_response(body: bytes, namespace: str, name: str) -> Pod:
    """The pod that was asked for. A server that answers with another one is broken."""
    try:
        pod = decode_cached(body, Pod)
    except DecodeError as error:
        raise RejectedError(f"the server's answer cannot be read: {error}") from error
    if pod.full_name != (namespace, name) or not pod.uid:
        raise RejectedError(f"the server's answer is not the pod {namespace}/{name}")
    return pod


class PodWatcher(Protocol):
    """Who wants to see the pods of a node: `podstatus.PodDirectory` does."""

    def update_pod(self, pod: Pod) -> None:
        """A pod is new or has changed."""

    def remove_pod(self, pod: Pod) -> None:
        """A pod is gone."""


def pod_reflector(source: ListerWatcher, node: str, watcher: PodWatcher) -> Reflector[Pod]:
    """A reflector of the pods of a node that tells this one; `run()` it."""
    return Reflector(
        source, PODS, Pod, pod_event_handler(watcher), field_selector=f"spec.nodeName={node}"
    )


def pod_event_handler(watcher: PodWatcher) -> Callable[[ObjectChange[Pod]], None]:
    """A handler for changes of pods."""

    def tell(change: ObjectChange[Pod]) -> None:
        match change:
            case Added(new) | Updated(_, new):
                watcher.update_pod(new)
            case Removed(last):
                watcher.remove_pod(last)

    return tell
