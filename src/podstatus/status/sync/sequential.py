"""Keeps the server's copy of every status equal to the cached one, as upstream does.

Upstream: syncBatch, syncPod, status_manager.go v1.36.4.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Self

from podstatus.kube.errors import ApiError, GoneError
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import ApiUID
from podstatus.kube.patch import PatchError
from podstatus.status.decide.plan import (
    PodSync,
    can_be_deleted,
    is_replaced_pod,
    plan_changes,
    plan_full,
)
from podstatus.status.ports import PodLookup
from podstatus.status.sync.locked_store import StatusStore
from podstatus.status.sync.status_sender import StatusPatcher

logger = logging.getLogger(__name__)


class SequentialSyncer:
    """Syncs one pod after another, in batches. Used by one task at a time."""

    def __init__(
        self,
        patcher: StatusPatcher,
        statuses: StatusStore,
        *,
        pod_manager: PodLookup,
        gates: FeatureGates,
    ) -> None:
        self._patcher = patcher
        self._statuses = statuses
        self._pod_manager = pod_manager
        self._gates = gates
        self._sent: dict[ApiUID, int] = {}

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """The last version that the API server acknowledged, by API UID."""
        return dict(self._sent)

    async def sync_batch(self, *, full: bool) -> int:
        """Sync what changed, or with `full` also what the API shows differently.

        Returns for how many pods a sync was tried.
        """
        entries = self._statuses.entries()
        translations = self._pod_manager.uid_translations()
        if full:
            plan = plan_full(entries, self._sent, translations, self._pod_manager, self._gates)
        else:
            plan = plan_changes(entries, self._sent, translations)
        for uid in plan.forget:
            self._sent.pop(uid, None)
        for sync in plan.syncs:
            await self._sync_safely(sync)
        return len(plan.syncs)

    async def wait_idle(self) -> None:
        """Wait for what is under way: nothing is, between two batches."""

    async def drain(self) -> None:
        """Nothing keeps pods waiting: whatever failed is tried again with the next batch."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is left behind."""

    async def _sync_safely(self, sync: PodSync) -> None:
        """Sync one pod; whatever goes wrong with it, the others go on."""
        try:
            await self._sync_pod(sync)
        except GoneError as error:
            logger.debug("pod is not on the server: %s error=%s", sync, error)
        except (ApiError, PatchError) as error:
            logger.warning("pod not synced, will retry: %s error=%s", sync, error)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            logger.warning("pod not synced, will retry: %s error=the client gave up", sync)
        except Exception:
            logger.exception("pod not synced, will retry: %s", sync)

    async def _sync_pod(self, sync: PodSync) -> None:
        entry = sync.entry
        pod = await self._patcher.read(sync)
        translated = self._pod_manager.translate_pod_uid(pod.uid)
        if is_replaced_pod(translated, sync.uid):
            await self._patcher.forget_replaced_pod(sync, translated)
            return
        pod = await self._patcher.send(sync, pod)
        self._sent[ApiUID(pod.uid)] = entry.version
        self._statuses.acknowledge(sync.uid, entry)
        if not can_be_deleted(pod, finished=entry.finished):
            return
        try:
            await self._patcher.delete(sync, pod)
        except ApiError as error:
            logger.warning("pod not deleted, full sync will retry: %s error=%s", sync, error)


def is_cancelled() -> bool:
    """Whether it is this task that is to end, and not one that the client waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
