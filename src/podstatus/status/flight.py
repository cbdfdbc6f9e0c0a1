"""Sync one pod without asking first, from the newest copy known; if that was wrong, once more."""

from collections.abc import Callable, Iterable, Mapping

from podstatus.base.clock import Elapsed
from podstatus.kube.errors import BusyError, ConflictError, GoneError
from podstatus.kube.objects.pod import ApiUID, Pod, is_mirror_pod, is_static_pod
from podstatus.status.bases import Bases
from podstatus.status.conditions import READY, is_condition_true
from podstatus.status.plan import PodSync, Sent, can_be_deleted, is_another_pod
from podstatus.status.ports import Directory
from podstatus.status.send import Sender
from podstatus.status.synced import SyncedStatuses
from podstatus.status.undelivered import UndeliveredStatuses


class Flight:
    """Syncs pods, and remembers what the server has acknowledged of each."""

    def __init__(
        self,
        sender: Sender,
        statuses: SyncedStatuses,
        *,
        directory: Directory,
        undelivered: UndeliveredStatuses,
        elapsed: Elapsed,
        read_first: bool,
    ) -> None:
        self._sender = sender
        self._statuses = statuses
        self._directory = directory
        self._undelivered = undelivered
        self._elapsed = elapsed
        self._read_first = read_first
        self._bases = Bases()
        self._sent: dict[ApiUID, int] = {}
        self._been_ready: set[ApiUID] = set()

    @property
    def sent(self) -> Sent:
        """The last version that the server acknowledged, by API UID."""
        return self._sent

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """The same, at this moment."""
        return dict(self._sent)

    def has_been_ready(self, uid: ApiUID) -> bool:
        """Whether the server has ever acknowledged that this pod is ready."""
        return uid in self._been_ready

    def send_again(self, uids: Iterable[ApiUID]) -> None:
        """Let what was acknowledged of these count no more."""
        for uid in uids:
            self._sent.pop(uid, None)

    def keep(self, known: set[ApiUID]) -> None:
        """Forget all objects but these."""
        self._bases.keep(known)
        self._been_ready &= known

    async def sync(
        self, sync: PodSync, shown: Pod | None, answered: Callable[[], None], *, ask: bool
    ) -> Pod | None:
        """Send what there is to send, and delete the pod if it may go. Raises ApiError.

        A last status is in the outbox by then: who calls this sees to it, before all else.
        Returns the pod as the server has it then; None if its name is another pod's by now.

        `shown` is what the watch shows; with `ask` the server is asked first all the same.
        `answered` is called when a read came back, whatever becomes of the patch then.
        """
        base = None if ask else self._base(sync, shown)
        try:
            pod = await self._send(sync, base, answered)
            if pod is not None:
                self._acknowledged(sync, pod)
                await self._arrived(sync, pod)
        except GoneError:
            self._bases.forget(sync.api_uid)
            await self._undelivered.drop(sync.uid)
            raise
        except ConflictError:
            # A delete may meet it too: the object is another one, whatever the watch shows.
            self._bases.forget(sync.api_uid)
            raise
        return pod

    async def _arrived(self, sync: PodSync, pod: Pod) -> None:
        """Let go of what is not needed any more: what the outbox kept, and the pod itself."""
        if pod.status.phase == sync.entry.status.phase:  # or it was held back, and is to follow
            await self._undelivered.arrived(sync.uid, sync.entry, self._statuses.entry)
        if can_be_deleted(pod, finished=sync.entry.finished):
            await self._sender.delete(sync, pod)

    def _base(self, sync: PodSync, shown: Pod | None) -> Pod | None:
        """The copy to start from; None if the server has to be asked."""
        if self._read_first:
            return None
        return self._bases.newest(sync.api_uid, shown, self._elapsed.seconds())

    async def _send(
        self, sync: PodSync, base: Pod | None, answered: Callable[[], None]
    ) -> Pod | None:
        """The pod afterwards; None if its name is another pod's by now."""
        if base is None:
            return await self._read_and_patch(sync, answered)
        try:
            return await self._patch(sync, base)
        except ConflictError:
            # Not the object we think it is, or not any more: see what is there.
            self._bases.forget(sync.api_uid)
            return await self._read_and_patch(sync, answered)

    async def _read_and_patch(self, sync: PodSync, answered: Callable[[], None]) -> Pod | None:
        base = await self._sender.read(sync)
        answered()
        translated = self._directory.translate_pod_uid(base.uid)
        if is_another_pod(translated, sync.uid):
            if self._is_unseen_mirror(sync, base):
                raise ConflictError("its mirror pod was replaced by one that the watch is to show")
            await self._sender.drop(sync, translated)
            await self._undelivered.drop(sync.uid)
            return None
        self._bases.answered(base, self._elapsed.seconds())
        return await self._patch(sync, base)

    def _is_unseen_mirror(self, sync: PodSync, found: Pod) -> bool:
        """Whether a mirror pod was made anew, and nobody knows yet whose it is.

        To drop the status then would leave it to the next look at the static pod, a minute later.
        """
        pod = self._directory.pod_by_uid(sync.uid)
        return pod is not None and is_static_pod(pod) and is_mirror_pod(found)

    async def _patch(self, sync: PodSync, base: Pod) -> Pod:
        uid = ApiUID(base.uid)  # by now perhaps of another mirror pod than we set out for
        self._bases.sending(uid)
        try:
            pod = await self._sender.send(sync, base)
        except BusyError:
            self._bases.not_taken(uid)
            raise
        if pod is base:
            self._bases.not_taken(uid)  # there was nothing to send
        else:
            self._bases.answered(pod, self._elapsed.seconds())
        return pod

    def _acknowledged(self, sync: PodSync, pod: Pod) -> None:
        uid = ApiUID(pod.uid)
        self._sent[uid] = sync.entry.version
        if is_condition_true(pod.status.conditions, READY):
            self._been_ready.add(uid)
        self._statuses.acknowledge(sync.uid, sync.entry)
