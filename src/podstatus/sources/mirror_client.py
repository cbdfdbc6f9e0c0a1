"""Create and delete mirror pods at the API server.

Upstream: basicMirrorClient, pkg/kubelet/pod/mirror_client.go v1.36.4.
"""

import logging
from enum import Enum

from podstatus.client import PODS, ApiClient, HttpPodApi
from podstatus.kube.api_errors import ConflictError, GoneError, RejectedError
from podstatus.kube.objects.pod import ApiUID, Pod, is_mirror_pod
from podstatus.sources.decide.mirror_plan import is_current_mirror, mirror_body

logger = logging.getLogger(__name__)


class MirrorCreation(Enum):
    """Outcome of creating a mirror pod."""

    CREATED = "done"
    EXISTS = "there"
    """It exists already: the watch lags behind."""


class MirrorClient:
    """Creates and deletes mirror pods of one node. Raises errors of `kube.api_errors`."""

    def __init__(self, client: ApiClient, node_name: str) -> None:
        self._client = client
        self._pods = HttpPodApi(client)
        self._node_name = node_name

    async def create(self, pod: Pod, node_uid: str) -> MirrorCreation:
        """Create the mirror pod of a static pod; replace an outdated one.

        Raises RejectedError if another pod has this name.
        """
        try:
            await self._post(pod, node_uid)
        except ConflictError:
            existing = await self._find(pod)
            if existing is not None and is_current_mirror(existing, pod):
                return MirrorCreation.EXISTS
            if existing is not None:
                self._check_owned(existing)
                await self.delete(existing)
            await self._post(pod, node_uid)
        logger.info("mirror pod created: pod=%s/%s", *pod.full_name)
        return MirrorCreation.CREATED

    async def delete(self, mirror: Pod) -> None:
        """Delete a mirror pod without a grace period, if its UID still matches."""
        uid = ApiUID(mirror.uid)
        try:
            await self._pods.delete_pod(*mirror.full_name, uid=uid, grace_period_seconds=0)
        except (GoneError, ConflictError):
            return  # already gone, or replaced by another pod
        logger.info("mirror pod deleted: pod=%s/%s uid=%s", *mirror.full_name, uid)

    async def _post(self, pod: Pod, node_uid: str) -> None:
        body = mirror_body(pod, self._node_name, node_uid)
        await self._client.create(PODS, body, namespace=pod.namespace)

    async def _find(self, pod: Pod) -> Pod | None:
        try:
            return await self._pods.get_pod(*pod.full_name)
        except GoneError:
            return None

    def _check_owned(self, existing: Pod) -> None:
        if not is_mirror_pod(existing) or existing.spec.node_name != self._node_name:
            raise RejectedError(
                f"pod {'/'.join(existing.full_name)} exists and is not a mirror pod of this node; "
                "delete it, or rename the static pod"
            )
