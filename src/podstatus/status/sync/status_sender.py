"""Send one pod's status: patch it, and delete the pod when it is finished.

`StatusPatcher` patches the copy that the caller passes. `StatusSender` starts from the newest known
copy instead of a GET, and retries once from a fresh one. Upstream: the second half of syncPod,
status_manager.go v1.36.4."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from podstatus.base.clock import Clock, Elapsed
from podstatus.kube.conditions import READY, is_condition_true
from podstatus.kube.errors import BusyError, ConflictError, GoneError
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID, is_mirror_pod, is_static_pod
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.describe import deletion_blocker
from podstatus.status.decide.merge import merge_pod_status, prepare_status_patch
from podstatus.status.decide.plan import PodSync, SentVersions, can_be_deleted, is_replaced_pod
from podstatus.status.pod_allocations import PodAllocations
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import (
    PodApi,
    PodDeletionSafetyProvider,
    PodLookup,
    PodStartupLatencyStateHelper,
)
from podstatus.status.store import StatusStore
from podstatus.status.sync.outbox_writer import OutboxWriter
from podstatus.status.sync.state.patch_base import KnownCopies

logger = logging.getLogger(__name__)


class StatusPatcher:
    """Patches and deletes API objects, based on a server copy that the caller passes."""

    def __init__(
        self,
        client: PodApi,
        statuses: StatusStore,
        *,
        safety: PodDeletionSafetyProvider,
        startup_latency: PodStartupLatencyStateHelper,
        allocations: PodAllocations,
        clock: Clock,
        gates: FeatureGates,
        policy: SyncPolicy,
    ) -> None:
        self._client = client
        self._statuses = statuses
        self._safety = safety
        self._startup_latency = startup_latency
        self._allocations = allocations
        self._clock = clock
        self._gates = gates
        self._policy = policy

    async def read(self, sync: PodSync) -> Pod:
        """GET the pod; another pod may have its name by now."""
        pod = await self._client.get_pod(sync.entry.namespace, sync.entry.name)
        return _require_pod(pod, "get_pod")

    async def send(self, sync: PodSync, pod: Pod) -> Pod:
        """Patch the status unless it is equal; return the pod afterwards. Raises ApiError."""
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
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("patching status: %s patch=%s", sync, patch.body.decode())
        sent = await self._client.patch_pod_status(pod.namespace, pod.name, patch.body)
        logger.info("status sent: %s version=%d", sync, sync.entry.version)
        self._startup_latency.record_status_updated(_require_pod(sent, "patch_pod_status"))
        return sent

    async def delete_if_finished(self, sync: PodSync, pod: Pod) -> None:
        """Delete the API object if it can be deleted, then the pod's state. Raises ApiError."""
        if not can_be_deleted(pod, finished=sync.entry.finished):
            if (why := deletion_blocker(pod, finished=sync.entry.finished)) is not None:
                logger.debug("pod not deleted yet: %s why=%r", sync, why)
            return
        await self._client.delete_pod(
            pod.namespace, pod.name, uid=ApiUID(pod.uid), grace_period_seconds=0
        )
        logger.info("terminated pod deleted as requested: %s", sync)
        await self._forget(sync.uid)

    async def forget_replaced_pod(self, sync: PodSync, new_uid: str) -> None:
        """Remove the cached state of a pod whose name now belongs to another pod."""
        logger.info("status dropped, another pod has its name: %s new_uid=%s", sync, new_uid)
        await self._forget(sync.uid)

    async def _forget(self, uid: PodUID) -> None:
        """Remove all state of a deleted pod. Errors of the allocation state are logged."""
        self._statuses.remove_deleted(uid)
        self._startup_latency.delete_pod_startup_state(uid)
        if not self._allocations.is_persistent:
            return
        try:
            # In a thread: disk I/O must not block the event loop.
            await asyncio.to_thread(self._allocations.remove_pod, uid)
        except Exception:
            # External port; the pod is deleted anyway.
            logger.exception("allocation of a deleted pod not removed: uid=%s", uid)


def _require_pod(pod: Pod, method: str) -> Pod:
    if not isinstance(pod, Pod):
        raise TypeError(f"{method} of the client returned a {type(pod).__name__}, not a Pod")
    return pod


class StatusSender:
    """Syncs pods and records the versions that the server has acknowledged."""

    def __init__(
        self,
        patcher: StatusPatcher,
        statuses: StatusStore,
        *,
        pod_manager: PodLookup,
        outbox: OutboxWriter,
        elapsed: Elapsed,
        read_first: bool,
    ) -> None:
        self._patcher = patcher
        self._statuses = statuses
        self._pod_manager = pod_manager
        self._outbox = outbox
        self._elapsed = elapsed
        self._read_first = read_first
        self._copies = KnownCopies()
        self._sent: dict[ApiUID, int] = {}
        self._acknowledged_ready: set[ApiUID] = set()

    @property
    def sent(self) -> SentVersions:
        """The live map of acknowledged versions by API UID."""
        return self._sent

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """Return a snapshot of the acknowledged versions by API UID."""
        return dict(self._sent)

    def has_been_ready(self, uid: ApiUID) -> bool:
        """Whether the server has ever acknowledged Ready=True for this pod."""
        return uid in self._acknowledged_ready

    def reset_sent(self, uids: Iterable[ApiUID]) -> None:
        """Reset the acknowledged versions, so these pods are sent again."""
        for uid in uids:
            self._sent.pop(uid, None)

    def retain_only(self, uids: set[ApiUID]) -> None:
        """Remove the state of all API objects except these."""
        self._copies.retain_only(uids)
        self._acknowledged_ready &= uids

    async def sync(
        self, sync: PodSync, observed: Pod | None, on_read: Callable[[], None], *, force_read: bool
    ) -> Pod | None:
        """Send the status, and delete the pod if it can be deleted. Raises ApiError.

        The caller has stored a final status in the outbox before. Returns the server's copy
        after the sync; None if another pod has the name by now.

        `observed` is the watched copy; with `force_read`, a GET is sent in any case. `on_read` is
        called after a successful GET, whatever the outcome of the patch."""
        base = None if force_read else self._patch_base(sync, observed)
        try:
            pod = await self._send(sync, base, on_read)
            if pod is not None:
                self._record_acknowledged(sync, pod)
                await self._finish_delivery(sync, pod)
        except GoneError:
            self._copies.forget(sync.api_uid)
            await self._outbox.drop(sync.uid)
            raise
        except ConflictError:
            # Also from a delete: the object was replaced, whatever the watch shows.
            self._copies.forget(sync.api_uid)
            raise
        return pod

    async def _finish_delivery(self, sync: PodSync, pod: Pod) -> None:
        """Remove the outbox entry, and delete the pod if it can be deleted."""
        if pod.status.phase == sync.entry.status.phase:  # otherwise it is held back and follows
            await self._outbox.acknowledged(sync.uid, sync.entry, self._statuses.entry)
        await self._patcher.delete_if_finished(sync, pod)

    def _patch_base(self, sync: PodSync, observed: Pod | None) -> Pod | None:
        """Return the copy to base the patch on; None if a GET is needed."""
        if self._read_first:
            return None
        return self._copies.patch_base(sync.api_uid, observed, self._elapsed.seconds())

    async def _send(
        self, sync: PodSync, base: Pod | None, on_read: Callable[[], None]
    ) -> Pod | None:
        """Return the pod after the patch; None if another pod has the name by now."""
        if base is None:
            return await self._read_and_patch(sync, on_read)
        try:
            return await self._patch(sync, base)
        except ConflictError:
            # The object was replaced: read the current one.
            self._copies.forget(sync.api_uid)
            return await self._read_and_patch(sync, on_read)

    async def _read_and_patch(self, sync: PodSync, on_read: Callable[[], None]) -> Pod | None:
        base = await self._patcher.read(sync)
        on_read()
        translated = self._pod_manager.translate_pod_uid(base.uid)
        if is_replaced_pod(translated, sync.uid):
            if self._is_unobserved_mirror(sync, base):
                raise ConflictError("the mirror pod was replaced, and the watch lags behind")
            await self._patcher.forget_replaced_pod(sync, translated)
            await self._outbox.drop(sync.uid)
            return None
        self._copies.response_received(base, self._elapsed.seconds())
        return await self._patch(sync, base)

    def _is_unobserved_mirror(self, sync: PodSync, mirror: Pod) -> bool:
        """Whether the mirror pod was recreated, and the watch has not shown it yet.

        Dropping the status then would delay it until the next sync of the static pod, a minute
        later.
        """
        pod = self._pod_manager.pod_by_uid(sync.uid)
        return pod is not None and is_static_pod(pod) and is_mirror_pod(mirror)

    async def _patch(self, sync: PodSync, base: Pod) -> Pod:
        uid = ApiUID(base.uid)  # may differ from `sync.api_uid` if the mirror pod was recreated
        self._copies.patch_started(uid)
        try:
            pod = await self._patcher.send(sync, base)
        except BusyError:
            self._copies.patch_not_applied(uid)
            raise
        if pod is base:
            self._copies.patch_not_applied(uid)  # the status was equal, no patch was sent
        else:
            self._copies.response_received(pod, self._elapsed.seconds())
        return pod

    def _record_acknowledged(self, sync: PodSync, pod: Pod) -> None:
        uid = ApiUID(pod.uid)
        self._sent[uid] = sync.entry.version
        if is_condition_true(pod.status.conditions, READY):
            self._acknowledged_ready.add(uid)
        self._statuses.acknowledge(sync.uid, sync.entry)
