"""Keeps the server's copy of every status equal to the cached one.

Upstream: syncBatch, syncPod, status_manager.go v1.36.4.
"""

import asyncio
import logging
from collections.abc import Mapping

from podstatus.base.clock import Clock
from podstatus.kube.errors import ApiError, GoneError
from podstatus.kube.features import FeatureGates
from podstatus.kube.patch import PatchError
from podstatus.kube.pod import ApiUID, Pod
from podstatus.kube.times import Time
from podstatus.status.merge import merge_pod_status
from podstatus.status.patch import prepare_status_patch
from podstatus.status.plan import PodSync, can_be_deleted, is_another_pod, plan_changes, plan_full
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import DeletionSafety, Directory, PodApi, StartupLatency
from podstatus.status.synced import SyncedStatuses

logger = logging.getLogger(__name__)


class Syncer:
    """Sends statuses to the API server. Used by one task at a time."""

    def __init__(
        self,
        client: PodApi,
        statuses: SyncedStatuses,
        *,
        directory: Directory,
        safety: DeletionSafety,
        startup_latency: StartupLatency,
        clock: Clock,
        gates: FeatureGates,
        policy: SyncPolicy,
    ) -> None:
        self._client = client
        self._statuses = statuses
        self._directory = directory
        self._safety = safety
        self._startup_latency = startup_latency
        self._clock = clock
        self._gates = gates
        self._policy = policy
        self._sent: dict[ApiUID, int] = {}

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """The last version that the API server acknowledged, by API UID."""
        return dict(self._sent)

    async def sync_batch(self, *, full: bool) -> int:
        """Sync what changed, or with `full` also what the API shows differently.

        Returns for how many pods a sync was tried.
        """
        entries = self._statuses.entries()
        translations = self._directory.uid_translations()
        if full:
            plan = plan_full(entries, self._sent, translations, self._directory, self._gates)
        else:
            plan = plan_changes(entries, self._sent, translations)
        for uid in plan.forget:
            self._sent.pop(uid, None)
        for sync in plan.syncs:
            await self._sync_guarded(sync)
        return len(plan.syncs)

    async def _sync_guarded(self, sync: PodSync) -> None:
        """Sync one pod; whatever goes wrong with it, the others go on."""
        where = f"pod={sync.entry.namespace}/{sync.entry.name} uid={sync.uid}"
        try:
            await self._sync_pod(sync, where)
        except GoneError as error:
            logger.debug("pod is not on the server: %s error=%s", where, error)
        except (ApiError, PatchError) as error:
            logger.warning("pod not synced, will retry: %s error=%s", where, error)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            logger.warning("pod not synced, will retry: %s error=the client gave up", where)
        except Exception:
            logger.exception("pod not synced, will retry: %s", where)

    async def _sync_pod(self, sync: PodSync, where: str) -> None:
        entry = sync.entry
        pod = await self._client.get_pod(entry.namespace, entry.name)
        translated = self._directory.translate_pod_uid(_checked(pod, "get_pod").uid)
        if is_another_pod(translated, sync.uid):
            logger.info("status dropped, its name is another pod's: %s now=%s", where, translated)
            await self._statuses.delete_pod_status(sync.uid)
            return
        pod = await self._send(sync, pod, where)
        self._sent[ApiUID(pod.uid)] = entry.version
        self._statuses.acknowledge(sync.uid, entry)
        if can_be_deleted(pod, finished=entry.finished):
            await self._delete(sync, pod, where)

    async def _send(self, sync: PodSync, pod: Pod, where: str) -> Pod:
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
            logger.debug("status is up to date: %s version=%d", where, sync.entry.version)
            return pod
        sent = await self._client.patch_pod_status(pod.namespace, pod.name, patch.body)
        logger.info("status sent: %s version=%d", where, sync.entry.version)
        self._startup_latency.record_status_updated(_checked(sent, "patch_pod_status"))
        return sent

    async def _delete(self, sync: PodSync, pod: Pod, where: str) -> None:
        try:
            await self._client.delete_pod(
                pod.namespace, pod.name, uid=ApiUID(pod.uid), grace_period_seconds=0
            )
        except ApiError as error:
            logger.warning("pod not deleted, full sync will retry: %s error=%s", where, error)
            return
        logger.info("pod deleted, it had ended and was asked to go: %s", where)
        await self._statuses.delete_pod_status(sync.uid)


def _checked(pod: Pod, method: str) -> Pod:
    if not isinstance(pod, Pod):
        raise TypeError(f"{method} of the client returned {type(pod).__name__}, expected a Pod")
    return pod


def _is_cancelled() -> bool:
    """Whether it is this task that is to end, and not one that the client waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
