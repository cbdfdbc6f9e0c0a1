"""Keeps the server's copy of every status equal to the cached one: many pods at once.

What differs from upstream, and why, is in docs/decisions/0016-parallel-sync.md; each difference
is a field of `podstatus.status.policy.Sending`.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

import msgspec

from podstatus.base.clock import Clock, Elapsed
from podstatus.kube.conditions import READY, is_condition_true
from podstatus.kube.errors import UnavailableError
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID, is_static_pod
from podstatus.status.decide.plan import (
    PodSync,
    needs_update,
    plan_full,
    resolve_all,
    resolve_api_object,
)
from podstatus.status.policy import ParallelSyncOptions
from podstatus.status.ports import PodEvents, PodLookup, PodReference
from podstatus.status.sync.foreign_writes import NO_WRITES, ForeignWriteCorrector
from podstatus.status.sync.locked_store import StatusStore
from podstatus.status.sync.outbox import OutboxWriter
from podstatus.status.sync.sequential import is_cancelled
from podstatus.status.sync.state.retry import Failure, Retry, SyncAttempt
from podstatus.status.sync.state.workqueue import Priority, SyncQueue
from podstatus.status.sync.status_sender import StatusSender

logger = logging.getLogger(__name__)

STATUS_REJECTED = "StatusRejected"
"""The reason of the event about a pod whose status the API server does not take."""


class SyncCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What is on its way, or kept from it, at one moment."""

    in_flight: int = 0
    """Pods that are being synced."""
    quarantined: int = 0
    """Pods whose status the API server rejects: it is sent again when it changes, or much later."""
    outbox: int = 0
    """Pods with a last status on the disk, until it has arrived."""


MAX_SYNCS_PER_TASK = 16
"""Pods that a task syncs one after the other, without a new task for each. Not more, as there are
clients that never wait: others must have their turn all the same."""
MIN_WAIT_SECONDS = 0.001
"""Seconds. A clock that rounds must not wake us just before somebody may go, again and again."""


class ParallelSyncer:
    """Syncs pods as they change. Its tasks live within `async with`, in one loop."""

    def __init__(
        self,
        sender: StatusSender,
        statuses: StatusStore,
        *,
        pod_manager: PodLookup,
        events: PodEvents,
        foreign_writes: ForeignWriteCorrector,
        recompute_status: Callable[[PodUID], bool],
        outbox: OutboxWriter,
        clock: Clock,
        elapsed: Elapsed,
        gates: FeatureGates,
        options: ParallelSyncOptions,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._sender = sender
        self._statuses = statuses
        self._pod_manager = pod_manager
        self._events = events
        self._foreign_writes = foreign_writes
        self._recompute_status = recompute_status
        self._outbox = outbox
        self._clock = clock
        self._elapsed = elapsed
        self._gates = gates
        self._jitter = jitter
        self._queue = SyncQueue(options)
        self._pending: dict[PodUID, None] = {}
        """Pods to look at with the next batch, whatever it is about: they changed, have no mirror
        pod yet, or something was in the way."""
        self._tasks: asyncio.TaskGroup | None = None
        self._workers: set[asyncio.Task[None]] = set()
        self._outbox_gc: asyncio.Task[None] | None = None
        self._persist_task: asyncio.Task[None] | None = None
        self._timer: tuple[float, asyncio.Task[None]] | None = None

    async def __aenter__(self) -> Self:
        self._tasks = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what is under way; what was not acknowledged is sent the next time."""
        tasks, self._tasks = self._tasks, None
        for task in self._workers:
            task.cancel()
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        try:
            if tasks is not None:
                await tasks.__aexit__(kind, error, trace)
        finally:
            # Not left to the tasks: one that was cancelled before its first step never runs.
            self._pending.update(dict.fromkeys(self._queue.clear_in_flight()))

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """The last version that the API server acknowledged, by API UID."""
        return self._sender.sent_versions()

    def counts(self) -> SyncCounts:
        """What is on its way, or kept from it."""
        return SyncCounts(
            in_flight=self._queue.in_flight,
            quarantined=self._queue.quarantined,
            outbox=len(self._outbox),
        )

    async def sync_batch(self, *, full: bool) -> int:
        """Begin to sync what changed, or with `full` also what the API shows differently.

        Returns how many pods are to be synced; `rest` waits for them.
        """
        self._check_foreign_writes(self._statuses.pop_observed())
        self._pending.update(dict.fromkeys(self._statuses.pop_changed()))
        wanted = self._enqueue(tuple(self._pending), Priority.ORDINARY)
        # An alarm tells of them too, but lives only as long as `async with`.
        wanted |= self._enqueue(self._queue.pop_due(self._elapsed.seconds()), Priority.RECONCILE)
        self._start_ready()
        if full:
            wanted |= self._enqueue(self._plan_full(), Priority.RECONCILE)
            self._start_ready()
            self._start_outbox_gc()
        self._persist_blocked()
        return len(wanted)

    async def wait_idle(self) -> None:
        """Wait until nothing is under way."""
        while self._workers:
            await asyncio.wait(self._workers)

    async def drain(self) -> None:
        """Give everybody a last chance, and wait for that; who calls this sets the deadline.

        While the server is away a few look for it, once: if nobody finds it, that is that.
        """
        self._enqueue(self._queue.retry_all_transient(), Priority.ORDINARY)
        was_away = False
        while self._queue.allow_probe_now() and not was_away:
            was_away = self._queue.is_circuit_open
            self._start_ready()
            await self.wait_idle()
            was_away = was_away and self._queue.is_circuit_open
        await self.wait_idle()

    # Who goes next

    def _plan_full(self) -> list[PodUID]:
        entries = self._statuses.entries()
        translations = self._pod_manager.uid_translations()
        plan = plan_full(entries, self._sender.sent, translations, self._pod_manager, self._gates)
        self._sender.reset_sent(plan.forget)
        known = {sync.api_uid for sync in resolve_all(entries, translations)}
        self._sender.retain_only(known)
        self._foreign_writes.retain_only(known)
        self._queue.retain_only(entries)
        return [sync.uid for sync in plan.syncs]

    def _enqueue(
        self, uids: Iterable[PodUID], priority: Priority, now: float | None = None
    ) -> set[PodUID]:
        """Have pods synced when their turn comes; those that may."""
        now, wanted = self._elapsed.seconds() if now is None else now, set()
        for uid in uids:
            self._pending.pop(uid, None)
            try:
                if self._enqueue_one(uid, priority, now):
                    wanted.add(uid)
            except Exception as error:  # noqa: BLE001 - a port of somebody else's
                self._requeue_after_error(uid, error)
        return wanted

    def _requeue_after_error(self, uid: PodUID, error: Exception) -> None:
        """Somebody else's code is broken; the next batch looks again."""
        logger.error("pod not looked at, will retry: uid=%s", uid, exc_info=error)
        self._pending[uid] = None

    def _enqueue_one(self, uid: PodUID, priority: Priority, now: float) -> bool:
        sync = self._resolve(uid)
        if sync is None:
            return False
        shown, retry = self._watched_pod(sync), self._queue.retry(uid)
        if retry is not None and retry.attempt.api_uid != sync.api_uid:
            self._queue.forget(uid)  # it was another mirror pod that failed
        elif retry is not None and retry.failure is Failure.GONE and shown is None:
            self._queue.retry_now(uid)
            return False  # until the watch shows it again
        priority = Priority.URGENT if self._is_urgent(sync, shown) else priority
        return self._queue.add(uid, sync.entry.version, priority, now)

    def _resolve(self, uid: PodUID) -> PodSync | None:
        """What to send of a pod, and to which object; None if there is nothing, or no object."""
        entry = self._statuses.entry(uid)
        if entry is None:
            self._queue.forget(uid)
            return None
        sync = resolve_api_object(uid, entry, self._pod_manager.uid_translations())
        if sync is None:
            self._pending[uid] = None  # a static pod that has no mirror pod yet
        return sync

    def _watched_pod(self, sync: PodSync) -> Pod | None:
        """What the watch shows of the object."""
        pod = self._pod_manager.pod_by_uid(sync.uid)
        if pod is not None and is_static_pod(pod):
            pod = self._pod_manager.mirror_pod_by_pod(pod)
        return pod if pod is not None and ApiUID(pod.uid) == sync.api_uid else None

    def _check_foreign_writes(self, uids: Iterable[PodUID]) -> None:
        """See whether others wrote what is ours, and have it corrected."""
        for uid in uids:
            try:
                sync = self._resolve(uid)
            except Exception as error:  # noqa: BLE001 - a port of somebody else's
                self._requeue_after_error(uid, error)
            else:
                if sync is not None:
                    self._check_foreign_write(sync)

    def _check_foreign_write(self, sync: PodSync) -> None:
        try:
            shown = self._watched_pod(sync)
            if shown is not None and self._foreign_writes.observe(shown):
                self._force_resend(sync)
        except Exception as error:  # noqa: BLE001 - a port of somebody else's
            self._requeue_after_error(sync.uid, error)

    def _force_resend(self, sync: PodSync) -> None:
        """Have a status sent that is made from what is so, not from what was said last."""
        self._sender.reset_sent([sync.api_uid])
        self._statuses.force_next_update(sync.uid)
        if not self._recompute_status(sync.uid):
            self._enqueue([sync.uid], Priority.ORDINARY)

    def _is_urgent(self, sync: PodSync, observed: Pod | None) -> bool:
        """Whether somebody waits for it: it is to go, or ready for the first time."""
        if sync.entry.finished:
            return True
        if observed is not None and observed.metadata.deletion_timestamp is not None:
            return True
        if not is_condition_true(sync.entry.status.conditions, READY):
            return False
        seen = observed is not None and is_condition_true(observed.status.conditions, READY)
        return not seen and not self._sender.has_been_ready(sync.api_uid)

    # What is under way

    def _start_ready(self, *, return_first: bool = False) -> PodUID | None:
        """Let those go who may, and look again when somebody else may.

        Returns the first of them, if the caller sees to that one.
        """
        if self._tasks is None:
            return None
        now = self._elapsed.seconds()
        one = self._queue.get(now) if return_first else None
        while (uid := self._queue.get(now)) is not None:
            self._spawn_worker(self._tasks, uid)
        at = self._queue.next_wakeup(now)
        if at is not None and (self._timer is None or at < self._timer[0]):
            self._set_timer(self._tasks, at, max(at - now, MIN_WAIT_SECONDS))
        return one

    def _spawn_worker(self, tasks: asyncio.TaskGroup, uid: PodUID) -> None:
        task = tasks.create_task(self._sync_worker(uid))
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)

    def _set_timer(self, tasks: asyncio.TaskGroup, at: float, seconds: float) -> None:
        if self._timer is not None:
            self._timer[1].cancel()
        self._timer = at, tasks.create_task(self._run_timer(at, seconds))

    async def _run_timer(self, at: float, seconds: float) -> None:
        await self._clock.wait(seconds)
        self._timer = None
        # A clock that rounds may show a moment just before `at`.
        now = max(at, self._elapsed.seconds())
        # Last, so that those who fail all the time do not stand before those who do not.
        self._enqueue(self._queue.pop_due(now), Priority.RECONCILE, now)
        self._start_ready()

    def _start_outbox_gc(self) -> None:
        """Let the outbox go of what it need not keep, without waiting for its disk."""
        if self._tasks is None or self._outbox_gc in self._workers:
            return
        tidy = self._outbox.retain_only(self._statuses.uids())
        self._outbox_gc = task = self._tasks.create_task(tidy)
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)

    def _persist_blocked(self) -> None:
        """Have on the disk what cannot be sent now: an outage may last longer than we do."""
        if self._tasks is None or self._persist_task in self._workers or self._queue.is_healthy:
            return
        waiting = self._outbox.blocked(self._statuses.entries())
        waiting = [uid for uid in waiting if self._queue.is_blocked(uid)]
        if not waiting:
            return
        keep = self._outbox.store_all(waiting, self._statuses.entry)
        self._persist_task = task = self._tasks.create_task(keep)
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)

    async def _sync_worker(self, uid: PodUID) -> None:
        """Sync a pod, then whoever is next."""
        for _ in range(MAX_SYNCS_PER_TASK):
            await self._sync_one(uid)
            following = self._start_ready(return_first=True)
            if following is None:
                return
            uid = following
        if self._tasks is not None:
            self._spawn_worker(self._tasks, uid)

    async def _sync_one(self, uid: PodUID) -> None:
        """Sync one pod; whatever goes wrong with it, the others go on."""
        sync = None
        try:
            sync = self._resolve(uid)
            if sync is not None and self._needs_sync(sync):
                await self._sync(sync)
        except asyncio.CancelledError:
            # By us at the end, or by a client that cancels the task it was called in: then it must
            # not count as under way for ever.
            self._queue.done(uid)
            self._pending[uid] = None
            raise
        except Exception as error:  # noqa: BLE001 - a port of somebody else's
            self._requeue_after_error(uid, error)
        self._queue.done(uid)
        if sync is not None:
            self._after_sync(sync)

    def _needs_sync(self, sync: PodSync) -> bool:
        """Whether there is anything to send or to delete, or was when it failed."""
        if self._queue.retry(sync.uid) is not None:
            return True
        return needs_update(sync, self._sender.sent, self._pod_manager)

    def _after_sync(self, sync: PodSync) -> None:
        """See what happened to a pod that was under way."""
        # What the watch showed meanwhile could have been ours.
        self._check_foreign_write(sync)
        entry = self._statuses.entry(sync.uid)
        if entry is None:
            self._queue.forget(sync.uid)
        elif entry.version != sync.entry.version:
            self._enqueue([sync.uid], Priority.ORDINARY)

    async def _sync(self, sync: PodSync) -> None:
        try:
            await self._sync_and_report(sync)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            self._on_failure(sync, UnavailableError("the client gave up"))
        except Exception as error:  # noqa: BLE001 - told apart by its kind
            self._on_failure(sync, error)
        else:
            released = self._queue.succeeded(sync.uid)
            if released:
                self._enqueue(released, Priority.ORDINARY)

    async def _sync_and_report(self, sync: PodSync) -> None:
        # First of all: a server may take half a minute to say who else wrote.
        if sync.entry.finished:
            await self._outbox.store(sync.uid, sync.entry, self._statuses.entry)
        # One that looks for the server reads first: a server that fails only the patches of
        # some pods is found all the same, and does not keep the others waiting.
        is_probe = self._queue.is_probe(sync.uid)
        self._foreign_writes.patch_started(sync.api_uid)
        shown, named = self._watched_pod(sync), NO_WRITES
        if self._foreign_writes.has_pending(sync.api_uid):
            named = await self._foreign_writes.identify_writers(
                sync, shown, query_server=not is_probe
            )
            shown = self._watched_pod(sync)
        try:
            pod = await self._sender.sync(
                sync, shown, lambda: self._on_response(sync.uid), force_read=is_probe
            )
        except BaseException:
            self._foreign_writes.defer(sync.api_uid, named)
            raise
        if pod is not None:
            self._foreign_writes.patch_applied(pod)
            self._foreign_writes.report(sync, named, pod)

    def _on_response(self, uid: PodUID) -> None:
        self._enqueue(self._queue.server_responded(uid), Priority.ORDINARY)
        self._start_ready()

    def _on_failure(self, sync: PodSync, error: Exception) -> None:
        now = self._elapsed.seconds()
        attempt = SyncAttempt(sync.api_uid, sync.entry.version)
        retry, released = self._queue.failed(
            sync.uid, attempt, error, now=now, jitter=self._jitter()
        )
        if retry.at <= now:
            self._pending[sync.uid] = None  # no waits are wanted: with the next batch, then
        self._statuses.count_failure(retry.failure.value)
        self._persist_blocked()
        self._log_failure(sync, retry, error)
        self._enqueue(released, Priority.ORDINARY)

    def _log_failure(self, sync: PodSync, retry: Retry, error: Exception) -> None:
        match retry.failure:
            case Failure.GONE:
                logger.debug("pod is not on the server: %s error=%s", sync, error)
            case Failure.REJECTED:
                logger.error("status rejected, kept until it changes: %s error=%s", sync, error)
                self._warn(sync, f"Status was rejected: {error}")
            case Failure.BROKEN:
                logger.error("pod not synced, will retry: %s", sync, exc_info=error)
            case _:
                logger.warning("pod not synced, will retry: %s error=%s", sync, error)

    def _warn(self, sync: PodSync, message: str) -> None:
        reference = PodReference(sync.entry.namespace, sync.entry.name, sync.api_uid)
        try:
            self._events.warn(reference, STATUS_REJECTED, message)
        except Exception:
            logger.exception("event not recorded: %s", sync)
