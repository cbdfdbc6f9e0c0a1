"""Keeps the server's copy of every status equal to the cached one.

Upstream: syncBatch, syncPod, status_manager.go v1.36.4.
"""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from podstatus.base.clock import Clock
from podstatus.kube.errors import ApiError, GoneError
from podstatus.kube.features import FeatureGates
from podstatus.kube.patch import PatchError
from podstatus.kube.pod import ApiUID, Pod, PodUID
from podstatus.kube.pod_status import PodStatus
from podstatus.kube.times import Time
from podstatus.status.cache import VersionedStatus
from podstatus.status.merge import merge_pod_status
from podstatus.status.patch import prepare_status_patch
from podstatus.status.plan import PodSync, can_be_deleted, plan_changes, plan_full
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import DeletionSafety, PodApi, PodDirectory, StartupLatency

logger = logging.getLogger(__name__)


class Statuses(NamedTuple):
    """What the sync reads and writes of the cache; each call is one moment."""

    entries: Callable[[], Mapping[PodUID, VersionedStatus]]
    restamp: Callable[[PodUID, VersionedStatus, PodStatus], None]
    """Put a status that differs in times only into the entry, if it is still this one."""
    delete_pod_status: Callable[[PodUID], None]


class Syncer:
    """Sends statuses to the API server. Used by one task at a time."""

    def __init__(
        self,
        client: PodApi,
        statuses: Statuses,
        directory: PodDirectory,
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
        where = {"namespace": sync.entry.namespace, "pod": sync.entry.name, "uid": sync.uid}
        try:
            await self._sync_pod(sync)
        except GoneError as error:
            logger.debug("pod is not on the server", extra={**where, "error": str(error)})
        except (ApiError, PatchError) as error:
            logger.warning("status not synced, will retry", extra={**where, "error": str(error)})
        except Exception:
            # A port of somebody else's is broken for this pod; the others go on.
            logger.exception("status not synced, a port failed", extra=where)

    async def _sync_pod(self, sync: PodSync) -> None:
        entry = sync.entry
        pod = await self._client.get_pod(entry.namespace, entry.name)
        translated = self._directory.translate_pod_uid(pod.uid)
        if translated and translated != sync.uid:
            # Somebody deleted the pod and made another of the same name.
            self._statuses.delete_pod_status(sync.uid)
            return
        pod = await self._send(sync, pod)
        self._sent[ApiUID(pod.uid)] = entry.version
        if can_be_deleted(pod, finished=entry.finished):
            await self._client.delete_pod(
                pod.namespace, pod.name, uid=ApiUID(pod.uid), grace_period_seconds=0
            )
            self._statuses.delete_pod_status(sync.uid)

    async def _send(self, sync: PodSync, pod: Pod) -> Pod:
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
            return pod
        pod = await self._client.patch_pod_status(pod.namespace, pod.name, patch.body)
        self._startup_latency.record_status_updated(pod)
        return pod
