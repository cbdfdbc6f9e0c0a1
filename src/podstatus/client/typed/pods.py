"""The status manager's port `PodApi` over HTTP, and a reflector for the pods of a node."""

from typing import Protocol

import msgspec

from podstatus.client.api_client import ApiClient
from podstatus.client.informer.list_watch_calls import ListerWatcher, ObjectSelection
from podstatus.client.informer.managed_fields import decode_cached
from podstatus.client.informer.object_store import change_handler
from podstatus.client.informer.reflector import Reflector
from podstatus.client.rest.resources import PODS
from podstatus.client.typed.codec import decode_response
from podstatus.kube.api_errors import RejectedError
from podstatus.kube.encoding.codec import decode
from podstatus.kube.objects.meta import ManagedFieldsEntry
from podstatus.kube.objects.pod import ApiUID, Pod


class HttpPodApi:
    """Reads, patches and deletes pods; returns them without managed fields. Raises ApiError."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return _read_pod(await self._client.get(PODS, name, namespace=namespace), namespace, name)

    async def managed_fields(
        self, namespace: str, name: str, *, uid: ApiUID
    ) -> tuple[ManagedFieldsEntry, ...]:
        body = await self._client.get(PODS, name, namespace=namespace)
        metadata = decode_response(body, Pod, decode).metadata
        return metadata.managed_fields or () if metadata.uid == uid else ()

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        body = await self._client.patch(
            PODS, name, patch, namespace=namespace, subresource="status"
        )
        return _read_pod(body, namespace, name)

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int | None
    ) -> None:
        """Delete the pod if it still has this UID; a grace period of None uses the pod's own."""
        options: dict[str, object] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
        }
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        body = msgspec.json.encode(options)
        await self._client.delete(PODS, name, namespace=namespace, options=body)


def _read_pod(body: bytes, namespace: str, name: str) -> Pod:
    """Decode the requested pod; reject another one, which only a broken server returns."""
    pod = decode_response(body, Pod, decode_cached)
    if pod.full_name != (namespace, name) or not pod.uid:
        raise RejectedError(f"the response is not the pod {namespace}/{name}")
    return pod


class PodWatcher(Protocol):
    """Receives the changes of a node's pods, as `podstatus.PodManager` does."""

    def update_pod(self, pod: Pod) -> None:
        """Handle a new or changed pod."""

    def remove_pod(self, pod: Pod) -> None:
        """Handle the deletion of a pod."""


def pod_reflector(source: ListerWatcher, node: str, watcher: PodWatcher) -> Reflector[Pod]:
    """Return a reflector for the pods of a node that notifies `watcher`; the caller runs it."""
    selection = ObjectSelection(PODS, field_selector=f"spec.nodeName={node}")
    return Reflector(source, selection, Pod, change_handler(watcher.update_pod, watcher.remove_pod))
