"""Send one pod's status: patch it, and delete the pod when it is finished.

`StatusPatcher` patches the copy that the caller passes. `StatusSender` starts from the newest known
copy instead of a GET, and retries once from a fresh one. Upstream: the second half of syncPod,
status_manager.go v1.36.4."""

import asyncio
import logging

from podstatus.base.clock import monotonic_seconds
from podstatus.kube.api_errors import BusyError, ConflictError, GoneError
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID, is_mirror_pod, is_static_pod
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.describe import deletion_blocker
from podstatus.status.decide.merge import merge_pod_status, prepare_status_patch
from podstatus.status.decide.plan import PodSync, can_be_deleted, is_replaced_pod
from podstatus.status.policy import ParallelSyncOptions
from podstatus.status.store import StatusStore
from podstatus.status.sync.context import SyncContext
from podstatus.status.sync.outbox_writer import OutboxWriter
from podstatus.status.sync.state.pod_sync_state import PodSyncState
from podstatus.status.sync.state.workqueue import SyncQueue

logger = logging.getLogger(__name__)


class StatusPatcher:
    """Patches and deletes API objects, based on a server copy that the caller passes."""

    def __init__(self, context: SyncContext, statuses: StatusStore) -> None:
        self._context = context
        self._client = context.client
        self._statuses = statuses

    async def read(self, sync: PodSync) -> Pod:
        """GET the pod; another pod may have its name by now."""
        pod = await self._client.get_pod(sync.entry.namespace, sync.entry.name)
        return _require_pod(pod, "get_pod")

    async def send(self, sync: PodSync, pod: Pod, *, if_unchanged: bool = False) -> Pod:
        """Patch the status unless it is equal; return the pod afterwards. Raises ApiError.

        `if_unchanged`: raise ConflictError if the server's pod is not this one any more.
        """
        merged = merge_pod_status(
            pod,
            pod.status,
            sync.entry.status,
            could_have_running_containers=self._context.safety.could_have_running_containers(pod),
            now=Time.from_unix_nanos(self._context.clock.now()),
            gates=self._context.gates,
        )
        if merged.restamped is not None and self._context.policy.restamp_cached_disruption:
            self._statuses.restamp(sync.uid, sync.entry, merged.restamped)
        version = pod.metadata.resource_version if if_unchanged else ""
        patch = prepare_status_patch(pod.uid, pod.status, merged.status, resource_version=version)
        if patch.unchanged:
            logger.debug("status is up to date: %s version=%d", sync, sync.entry.version)
            return pod
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("patching status: %s patch=%s", sync, patch.body.decode())
        sent = await self._client.patch_pod_status(pod.namespace, pod.name, patch.body)
        logger.info("pod status sent: %s status_version=%d", sync, sync.entry.version)
        _require_pod(sent, "patch_pod_status")
        if self._context.startup_latency is not None:
            self._context.startup_latency.record_status_updated(sent)
        return sent

    async def delete_if_finished(self, sync: PodSync, pod: Pod) -> None:
        """Delete the API object if it can be deleted, then the pod's state. Raises ApiError."""
        if not can_be_deleted(pod, finished=sync.entry.finished):
            if (why := deletion_blocker(pod, finished=sync.entry.finished)) is not None:
                logger.debug("pod is not deleted yet: %s reason=%r", sync, why)
            return
        await self._client.delete_pod(
            pod.namespace, pod.name, uid=ApiUID(pod.uid), grace_period_seconds=0
        )
        logger.info("terminated pod deleted from the API server: %s", sync)
        await self._forget(sync.uid)

    async def forget_replaced_pod(self, sync: PodSync, new_uid: str) -> None:
        """Remove the cached state of a pod whose name now belongs to another pod."""
        logger.info("status dropped, another pod has the same name: %s new_uid=%s", sync, new_uid)
        await self._forget(sync.uid)

    async def _forget(self, uid: PodUID) -> None:
        """Remove all state of a deleted pod. Errors of the allocation state are logged."""
        self._statuses.remove_deleted(uid)
        if self._context.startup_latency is not None:
            self._context.startup_latency.delete_pod_startup_state(uid)
        if self._context.allocations is None:
            return
        try:
            # In a thread: disk I/O must not block the event loop.
            await asyncio.to_thread(self._context.allocations.remove_pod, uid)
        except Exception:
            # External port; the pod is deleted anyway.
            logger.exception("cannot remove the allocation of a deleted pod: uid=%s", uid)


def _require_pod(pod: Pod, method: str) -> Pod:
    if not isinstance(pod, Pod):
        raise TypeError(f"{method} of the client returned a {type(pod).__name__}, not a Pod")
    return pod


class StatusSender:
    """Sends statuses from the newest known copies, and records what the server acknowledges."""

    def __init__(
        self,
        context: SyncContext,
        patcher: StatusPatcher,
        statuses: StatusStore,
        queue: SyncQueue,
        outbox: OutboxWriter,
        options: ParallelSyncOptions,
    ) -> None:
        self._clock = context.clock
        self._pod_manager = context.pod_manager
        self._patcher = patcher
        self._statuses = statuses
        self._queue = queue
        self._outbox = outbox
        self._options = options

    async def sync(self, sync: PodSync, observed: Pod | None) -> Pod | None:
        """Send the status, and delete the pod if it can be deleted. Raises ApiError.

        The caller has stored a final status in the outbox before. `observed` is the watched copy.
        Returns the server's copy after the sync; None if another pod has the name by now.
        """
        try:
            pod = await self._send(sync, observed)
            if pod is not None:
                self._record_acknowledged(sync, pod)
                await self._patcher.delete_if_finished(sync, pod)
        except GoneError:
            self._forget_object(sync)
            raise
        except ConflictError:
            # Also from a delete: the object was replaced, whatever the watch shows.
            self._queue.update(sync.uid, PodSyncState.object_replaced)
            raise
        return pod

    def _forget_object(self, sync: PodSync) -> None:
        self._queue.update(sync.uid, PodSyncState.object_replaced)
        self._outbox.drop(sync.uid)

    async def read(self, sync: PodSync) -> Pod | None:
        """GET the pod for the next patch; None if another pod has the name by now."""
        try:
            pod = await self._patcher.read(sync)
        except GoneError:
            self._forget_object(sync)
            raise
        translated = self._pod_manager.translate_pod_uid(pod.uid)
        if is_replaced_pod(translated, sync.uid):
            if self._is_unobserved_mirror(sync, pod):
                raise ConflictError("the mirror pod was replaced, and the watch lags behind")
            await self._patcher.forget_replaced_pod(sync, translated)
            self._outbox.drop(sync.uid)
            return None
        state = self._queue.state(sync.uid, ApiUID(pod.uid))
        self._queue.put(sync.uid, state.read(pod, monotonic_seconds(self._clock)))
        return pod

    async def _send(self, sync: PodSync, observed: Pod | None) -> Pod | None:
        """Return the pod after the patch; None if another pod has the name by now."""
        state = self._queue.state(sync.uid, sync.api_uid)
        base = None
        if not self._options.read_first:
            base = state.patch_base(observed, monotonic_seconds(self._clock))
        if base is None and state.may_land_late:
            base = await self.read(sync)
            if base is None:
                return None
            state = self._queue.state(sync.uid, ApiUID(base.uid))
        if base is not None:
            try:
                return await self._patch(sync, base, state)
            except ConflictError:
                # The object was replaced, or an earlier patch was applied late: read it.
                self._queue.update(sync.uid, PodSyncState.object_replaced)
        base = await self.read(sync)
        if base is None:
            return None
        # The UID differs from `sync.api_uid` if the mirror pod was recreated.
        return await self._patch(sync, base, self._queue.state(sync.uid, ApiUID(base.uid)))

    async def _patch(self, sync: PodSync, base: Pod, state: PodSyncState) -> Pod:
        self._queue.put(sync.uid, state.patch_started())
        if_unchanged = state.may_land_late and self._options.precondition_after_timeout
        try:
            return await self._patcher.send(sync, base, if_unchanged=if_unchanged)
        except BusyError:
            late = state.may_land_late
            self._queue.update(sync.uid, lambda now: now.patch_not_applied(may_land_late=late))
            raise

    def _record_acknowledged(self, sync: PodSync, pod: Pod) -> None:
        state = self._queue.state(sync.uid, ApiUID(pod.uid))
        state = state.acknowledged(pod, sync.entry.version, monotonic_seconds(self._clock))
        self._queue.put(sync.uid, state)
        newest = self._statuses.acknowledge(sync.uid, sync.entry)
        is_held_back = pod.status.phase != sync.entry.status.phase
        if sync.uid in self._outbox.versions and not is_held_back:
            self._outbox.acknowledge(sync.uid, sync.entry.version, newest)

    def _is_unobserved_mirror(self, sync: PodSync, mirror: Pod) -> bool:
        """Whether the mirror pod was recreated, and the watch has not shown it yet.

        Dropping the status then would delay it until the next sync of the static pod, a minute
        later.
        """
        pod = self._pod_manager.pod_by_uid(sync.uid)
        return pod is not None and is_static_pod(pod) and is_mirror_pod(mirror)
