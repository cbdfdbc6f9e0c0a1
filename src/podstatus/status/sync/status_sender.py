"""Send one pod's status: patch it, and delete the pod when it is finished.

`StatusPatcher` patches the copy it is given. `StatusSender` starts from the newest known copy
instead of a GET, and retries once from a fresh one. Upstream: the second half of syncPod,
status_manager.go v1.36.4."""

import logging
from collections.abc import Callable, Iterable, Mapping

from podstatus.base.clock import Clock, Elapsed
from podstatus.kube.conditions import READY, is_condition_true
from podstatus.kube.errors import BusyError, ConflictError, GoneError
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import ApiUID, Pod, is_mirror_pod, is_static_pod
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.merge import merge_pod_status, prepare_status_patch
from podstatus.status.decide.plan import PodSync, SentVersions, can_be_deleted, is_replaced_pod
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import (
    PodApi,
    PodDeletionSafetyProvider,
    PodLookup,
    PodStartupLatencyStateHelper,
)
from podstatus.status.sync.locked_store import StatusStore
from podstatus.status.sync.outbox import OutboxWriter
from podstatus.status.sync.state.patch_base import KnownCopies

logger = logging.getLogger(__name__)


class StatusPatcher:
    """Sends the status of one pod at a time, given a copy of what the server has."""

    def __init__(
        self,
        client: PodApi,
        statuses: StatusStore,
        *,
        safety: PodDeletionSafetyProvider,
        startup_latency: PodStartupLatencyStateHelper,
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
        return _require_pod(pod, "get_pod")

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
        self._startup_latency.record_status_updated(_require_pod(sent, "patch_pod_status"))
        return sent

    async def delete(self, sync: PodSync, pod: Pod) -> None:
        """Delete the pod, with all that is known of it. Raises ApiError."""
        await self._client.delete_pod(
            pod.namespace, pod.name, uid=ApiUID(pod.uid), grace_period_seconds=0
        )
        logger.info("pod deleted, it had ended and was asked to go: %s", sync)
        await self._statuses.delete_pod_status(sync.uid)

    async def forget_replaced_pod(self, sync: PodSync, now: str) -> None:
        """Forget a status whose pod's name is another pod's by now."""
        logger.info("status dropped, its name is another pod's: %s now=%s", sync, now)
        await self._statuses.delete_pod_status(sync.uid)


def _require_pod(pod: Pod, method: str) -> Pod:
    if not isinstance(pod, Pod):
        raise TypeError(f"{method} of the client returned {type(pod).__name__}, expected a Pod")
    return pod


class StatusSender:
    """Syncs pods, and remembers what the server has acknowledged of each."""

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
        """The last version that the server acknowledged, by API UID."""
        return self._sent

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """The same, at this moment."""
        return dict(self._sent)

    def has_been_ready(self, uid: ApiUID) -> bool:
        """Whether the server has ever acknowledged that this pod is ready."""
        return uid in self._acknowledged_ready

    def reset_sent(self, uids: Iterable[ApiUID]) -> None:
        """Let what was acknowledged of these count no more."""
        for uid in uids:
            self._sent.pop(uid, None)

    def retain_only(self, uids: set[ApiUID]) -> None:
        """Forget all objects but these."""
        self._copies.retain_only(uids)
        self._acknowledged_ready &= uids

    async def sync(
        self, sync: PodSync, observed: Pod | None, on_read: Callable[[], None], *, force_read: bool
    ) -> Pod | None:
        """Send what there is to send, and delete the pod if it may go. Raises ApiError.

        A last status is in the outbox by then: who calls this sees to it, before all else.
        Returns the pod as the server has it then; None if its name is another pod's by now.

        `observed` is what the watch shows; with `force_read` the server is asked first all the
        same. `on_read` is called when a read came back, whatever becomes of the patch then."""
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
            # A delete may meet it too: the object is another one, whatever the watch shows.
            self._copies.forget(sync.api_uid)
            raise
        return pod

    async def _finish_delivery(self, sync: PodSync, pod: Pod) -> None:
        """Let go of what is not needed any more: what the outbox kept, and the pod itself."""
        if pod.status.phase == sync.entry.status.phase:  # or it was held back, and is to follow
            await self._outbox.acknowledged(sync.uid, sync.entry, self._statuses.entry)
        if can_be_deleted(pod, finished=sync.entry.finished):
            await self._patcher.delete(sync, pod)

    def _patch_base(self, sync: PodSync, observed: Pod | None) -> Pod | None:
        """The copy to start from; None if the server has to be asked."""
        if self._read_first:
            return None
        return self._copies.patch_base(sync.api_uid, observed, self._elapsed.seconds())

    async def _send(
        self, sync: PodSync, base: Pod | None, on_read: Callable[[], None]
    ) -> Pod | None:
        """The pod afterwards; None if its name is another pod's by now."""
        if base is None:
            return await self._read_and_patch(sync, on_read)
        try:
            return await self._patch(sync, base)
        except ConflictError:
            # Not the object we think it is, or not any more: see what is there.
            self._copies.forget(sync.api_uid)
            return await self._read_and_patch(sync, on_read)

    async def _read_and_patch(self, sync: PodSync, on_read: Callable[[], None]) -> Pod | None:
        base = await self._patcher.read(sync)
        on_read()
        translated = self._pod_manager.translate_pod_uid(base.uid)
        if is_replaced_pod(translated, sync.uid):
            if self._is_unobserved_mirror(sync, base):
                raise ConflictError("its mirror pod was replaced by one that the watch is to show")
            await self._patcher.forget_replaced_pod(sync, translated)
            await self._outbox.drop(sync.uid)
            return None
        self._copies.response_received(base, self._elapsed.seconds())
        return await self._patch(sync, base)

    def _is_unobserved_mirror(self, sync: PodSync, mirror: Pod) -> bool:
        """Whether a mirror pod was made anew, and nobody knows yet whose it is.

        To drop the status then would leave it to the next look at the static pod, a minute later.
        """
        pod = self._pod_manager.pod_by_uid(sync.uid)
        return pod is not None and is_static_pod(pod) and is_mirror_pod(mirror)

    async def _patch(self, sync: PodSync, base: Pod) -> Pod:
        uid = ApiUID(base.uid)  # by now perhaps of another mirror pod than we set out for
        self._copies.patch_started(uid)
        try:
            pod = await self._patcher.send(sync, base)
        except BusyError:
            self._copies.patch_not_applied(uid)
            raise
        if pod is base:
            self._copies.patch_not_applied(uid)  # there was nothing to send
        else:
            self._copies.response_received(pod, self._elapsed.seconds())
        return pod

    def _record_acknowledged(self, sync: PodSync, pod: Pod) -> None:
        uid = ApiUID(pod.uid)
        self._sent[uid] = sync.entry.version
        if is_condition_true(pod.status.conditions, READY):
            self._acknowledged_ready.add(uid)
        self._statuses.acknowledge(sync.uid, sync.entry)
