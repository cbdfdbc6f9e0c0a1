"""Sync one pod without asking first, from the newest copy known; if that was wrong, once more."""

from collections.abc import Iterable, Mapping

from podstatus.kube.errors import ConflictError, GoneError
from podstatus.kube.pod import ApiUID, Pod
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
        read_first: bool,
    ) -> None:
        self._sender = sender
        self._statuses = statuses
        self._directory = directory
        self._undelivered = undelivered
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
        """Forget all pods but these."""
        self._bases.keep(known)
        self._been_ready &= known

    async def sync(self, sync: PodSync, shown: Pod | None, *, ask: bool) -> None:
        """Send what there is to send, and delete the pod if it may go. Raises ApiError.

        `shown` is what the watch shows; with `ask` the server is asked all the same.
        """
        await self._undelivered.keep(sync)
        try:
            await self._sync(sync, shown, ask=ask or self._read_first)
        except GoneError:
            self._bases.forget(sync.api_uid)
            await self._undelivered.drop(sync)
            raise

    async def _sync(self, sync: PodSync, shown: Pod | None, *, ask: bool) -> None:
        base = None if ask else self._bases.newest(sync.api_uid, shown)
        try:
            pod = await self._send(sync, base)
        except ConflictError:
            # Not the object we think it is, or not any more: see what is there.
            self._bases.forget(sync.api_uid)
            pod = await self._send(sync, None)
        if pod is None:
            return
        self._acknowledged(sync, pod)
        await self._undelivered.drop(sync)
        if can_be_deleted(pod, finished=sync.entry.finished):
            await self._sender.delete(sync, pod)

    async def _send(self, sync: PodSync, base: Pod | None) -> Pod | None:
        """The pod afterwards; None if its name is another pod's by now."""
        if base is None:
            base = await self._sender.read(sync)
            translated = self._directory.translate_pod_uid(base.uid)
            if is_another_pod(translated, sync.uid):
                await self._sender.drop(sync, translated)
                await self._undelivered.drop(sync)
                return None
        return await self._sender.send(sync, base)

    def _acknowledged(self, sync: PodSync, pod: Pod) -> None:
        uid = ApiUID(pod.uid)
        self._bases.answered(pod)
        self._sent[uid] = sync.entry.version
        if is_condition_true(pod.status.conditions, READY):
            self._been_ready.add(uid)
        self._statuses.acknowledge(sync.uid, sync.entry)
