"""Keep the server's copy of every status equal to the cached one, as upstream does.

Upstream: syncBatch, syncPod, status_manager.go v1.36.4.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Self

from podstatus.kube.api_errors import ApiError, GoneError
from podstatus.kube.objects.pod import ApiUID
from podstatus.kube.patch import PatchError
from podstatus.status.decide.plan import (
    PodSync,
    is_replaced_pod,
    plan_changes,
    plan_full,
)
from podstatus.status.store import StatusStore
from podstatus.status.sync.context import SyncContext
from podstatus.status.sync.log_plan import log_plan
from podstatus.status.sync.status_sender import StatusPatcher
from podstatus.status.sync.syncer import SyncCounts

logger = logging.getLogger(__name__)


class SequentialSyncer:
    """Syncs one pod after another, in batches. For one task at a time."""

    corrects_foreign_writes = False

    def __init__(self, patcher: StatusPatcher, statuses: StatusStore, context: SyncContext) -> None:
        self._patcher = patcher
        self._statuses = statuses
        self._pod_manager = context.pod_manager
        self._gates = context.gates
        self._sent: dict[ApiUID, int] = {}

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """Return the last acknowledged version of each pod, by API UID."""
        return dict(self._sent)

    def counts(self) -> SyncCounts:
        """Return zeros: no pod is in flight, rejected or in the outbox between two batches."""
        return SyncCounts()

    async def sync_batch(self, *, full: bool) -> int:
        """Sync changed pods, with `full` also pods that differ on the API server.

        Returns the number of attempted syncs.
        """
        entries = self._statuses.entries()
        translations = self._pod_manager.uid_translations()
        if full:
            plan = plan_full(entries, self._sent, translations, self._pod_manager, self._gates)
            log_plan(plan, entries, translations, self._pod_manager, self._gates)
        else:
            plan = plan_changes(entries, self._sent, translations)
        for uid in plan.forget:
            self._sent.pop(uid, None)
        for sync in plan.syncs:
            await self._sync_safely(sync)
        return len(plan.syncs)

    async def wait_idle(self) -> None:
        """Return immediately: no sync is in flight between two batches."""

    async def drain(self) -> None:
        """Do nothing: failed pods are retried with the next batch anyway."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing: there are no tasks."""

    async def _sync_safely(self, sync: PodSync) -> None:
        """Sync one pod; its errors are logged and do not affect other pods."""
        try:
            await self._sync_pod(sync)
        except GoneError as error:
            logger.debug("pod does not exist on the API server: %s error=%s", sync, error)
        except (ApiError, PatchError) as error:
            logger.warning("cannot sync pod status, will retry: %s error=%s", sync, error)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            logger.warning(
                "cannot sync pod status, will retry: %s error=%s",
                sync,
                "the client cancelled the request",
            )
        except Exception:
            logger.exception("cannot sync pod status, will retry: %s", sync)

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
        try:
            await self._patcher.delete_if_finished(sync, pod)
        except ApiError as error:
            logger.warning(
                "cannot delete pod, the next full sync will retry: %s error=%s", sync, error
            )


def is_cancelled() -> bool:
    """Whether this task is being cancelled, and not one that the client awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
