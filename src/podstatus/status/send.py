"""What is said to the API server about one pod: a patch, and in the end a delete.

Upstream: the second half of syncPod, status_manager.go v1.36.4.
"""

import logging

from podstatus.base.clock import Clock
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import ApiUID, Pod
from podstatus.kube.scalars.time import Time
from podstatus.status.merge import merge_pod_status
from podstatus.status.patch import prepare_status_patch
from podstatus.status.plan import PodSync
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import DeletionSafety, PodApi, StartupLatency
from podstatus.status.synced import SyncedStatuses

logger = logging.getLogger(__name__)


class Sender:
    """Sends the status of one pod at a time, given a copy of what the server has."""

    def __init__(
        self,
        client: PodApi,
        statuses: SyncedStatuses,
        *,
        safety: DeletionSafety,
        startup_latency: StartupLatency,
        clock: Clock,
        gates: FeatureGates,
        policy: SyncPolicy,
    ) -> None:
        self._client = client
        self._statuses = statuses
        self._safety = safety
        self._startup_latency = startup_latency
        self._clock = clock
        self._gates = gates
        self._policy = policy

    async def read(self, sync: PodSync) -> Pod:
        """The server's copy of the pod, or of another one that has its name by now."""
        pod = await self._client.get_pod(sync.entry.namespace, sync.entry.name)
        return _checked(pod, "get_pod")

    async def send(self, sync: PodSync, pod: Pod) -> Pod:
        """Patch the server's copy unless it is right already; the pod afterwards."""
        merged = merge_pod_status(
            pod,
            pod.status,
            sync.entry.status,
            could_have_running_containers=self._safety.could_have_running_containers(pod),
            now=Time.from_unix_nanos(self._clock.now()),
            gates=self._gates,
        )
        if merged.restamped is not None and self._policy.restamp_cached_disruption:
            self._statuses.restamp(sync.uid, sync.entry, merged.restamped)
        patch = prepare_status_patch(pod.uid, pod.status, merged.status)
        if patch.unchanged:
            logger.debug("status is up to date: %s version=%d", sync, sync.entry.version)
            return pod
        sent = await self._client.patch_pod_status(pod.namespace, pod.name, patch.body)
        logger.info("status sent: %s version=%d", sync, sync.entry.version)
        self._startup_latency.record_status_updated(_checked(sent, "patch_pod_status"))
        return sent

    async def delete(self, sync: PodSync, pod: Pod) -> None:
        """Delete the pod, with all that is known of it. Raises ApiError."""
        await self._client.delete_pod(
            pod.namespace, pod.name, uid=ApiUID(pod.uid), grace_period_seconds=0
        )
        logger.info("pod deleted, it had ended and was asked to go: %s", sync)
        await self._statuses.delete_pod_status(sync.uid)

    async def drop(self, sync: PodSync, now: str) -> None:
        """Forget a status whose pod's name is another pod's by now."""
        logger.info("status dropped, its name is another pod's: %s now=%s", sync, now)
        await self._statuses.delete_pod_status(sync.uid)


def _checked(pod: Pod, method: str) -> Pod:
    if not isinstance(pod, Pod):
        raise TypeError(f"{method} of the client returned {type(pod).__name__}, expected a Pod")
    return pod
