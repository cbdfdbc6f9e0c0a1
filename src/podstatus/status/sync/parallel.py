"""Keep the server's copy of every status equal to the cached one, many pods in parallel.

The differences from upstream are explained in docs/decisions/0016-parallel-sync.md; each is a field
of `podstatus.status.policy.ParallelSyncOptions`.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

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
from podstatus.status.store import StatusStore
from podstatus.status.sync.foreign_write_corrector import NO_WRITES, ForeignWriteCorrector
from podstatus.status.sync.log_plan import log_plan
from podstatus.status.sync.outbox_writer import OutboxWriter
from podstatus.status.sync.sequential import is_cancelled
from podstatus.status.sync.state.retry import Failure, Retry, SyncAttempt
from podstatus.status.sync.state.workqueue import Priority, SyncQueue
from podstatus.status.sync.status_sender import StatusSender
from podstatus.status.sync.syncer import SyncCounts

logger = logging.getLogger(__name__)

STATUS_REJECTED = "StatusRejected"
"""Reason of the event about a status that the API server rejects."""
MAX_SYNCS_PER_TASK = 16
"""Pods that one task syncs in a row, which saves a task per pod. Limited because a client may never
yield to the event loop: then other tasks would starve."""
MIN_WAIT_SECONDS = 0.001
"""A clock that rounds must not cause a busy loop of wake-ups just before a pod is due."""


class ParallelSyncer:
    """Syncs pods as they change. Its tasks run within `async with`, in one event loop."""

    corrects_foreign_writes = True

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
        """Pods to check in the next batch, full or not: changed, without a mirror pod so far, or
        failed in an external port."""
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
        """Cancel the syncs in flight; unacknowledged statuses are sent in the next run."""
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
            # Not done by the tasks: one that is cancelled before its first step never runs.
            self._pending.update(dict.fromkeys(self._queue.clear_in_flight()))

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """Return the last acknowledged version of each pod, by API UID."""
        return self._sender.sent_versions()

    def counts(self) -> SyncCounts:
        """Return the current numbers of pods. Thread-safe."""
        return SyncCounts(
            in_flight=self._queue.in_flight,
            quarantined=self._queue.quarantined,
            outbox=len(self._outbox),
        )

    async def sync_batch(self, *, full: bool) -> int:
        """Start to sync changed pods, with `full` also pods that differ on the API server.

        Returns the number of pods to sync; `wait_idle` waits for them.
        """
        self._check_foreign_writes(self._statuses.pop_observed())
        self._pending.update(dict.fromkeys(self._statuses.pop_changed()))
        queued = self._enqueue(tuple(self._pending), Priority.ORDINARY)
        # The timer handles due retries too, but only runs within `async with`.
        queued |= self._enqueue(self._queue.pop_due(self._elapsed.seconds()), Priority.RECONCILE)
        self._start_ready()
        if full:
            queued |= self._enqueue(self._plan_full(), Priority.RECONCILE)
            self._start_ready()
            self._start_outbox_gc()
        self._persist_blocked()
        return len(queued)

    async def wait_idle(self) -> None:
        """Wait until no sync is in flight."""
        while self._workers:
            await asyncio.wait(self._workers)

    async def drain(self) -> None:
        """Try all unsent pods once more and wait for them; the caller sets the deadline.

        While the circuit breaker is open, one round of probes is sent; if all fail, give up.
        """
        self._enqueue(self._queue.retry_all_transient(), Priority.ORDINARY)
        was_open = False
        while self._queue.allow_probe_now() and not was_open:
            was_open = self._queue.is_circuit_open
            self._start_ready()
            await self.wait_idle()
            was_open = was_open and self._queue.is_circuit_open
        await self.wait_idle()

    # Selection of pods

    def _plan_full(self) -> list[PodUID]:
        entries = self._statuses.entries()
        translations = self._pod_manager.uid_translations()
        plan = plan_full(entries, self._sender.sent, translations, self._pod_manager, self._gates)
        log_plan(plan, entries, translations, self._pod_manager, self._gates)
        self._sender.reset_sent(plan.forget)
        api_uids = {sync.api_uid for sync in resolve_all(entries, translations)}
        self._sender.retain_only(api_uids)
        self._foreign_writes.retain_only(api_uids)
        self._queue.retain_only(entries)
        return [sync.uid for sync in plan.syncs]

    def _enqueue(
        self, uids: Iterable[PodUID], priority: Priority, now: float | None = None
    ) -> set[PodUID]:
        """Add pods to the queue; return those that do not back off after a failure."""
        now, queued = self._elapsed.seconds() if now is None else now, set()
        for uid in uids:
            self._pending.pop(uid, None)
            try:
                if self._enqueue_one(uid, priority, now):
                    queued.add(uid)
            except Exception as error:  # noqa: BLE001 - an external port
                self._requeue_after_error(uid, error)
        return queued

    def _requeue_after_error(self, uid: PodUID, error: Exception) -> None:
        """Check the pod again in the next batch: an external port failed."""
        logger.error("pod not checked, will retry: uid=%s", uid, exc_info=error)
        self._pending[uid] = None

    def _enqueue_one(self, uid: PodUID, priority: Priority, now: float) -> bool:
        sync = self._resolve(uid)
        if sync is None:
            return False
        observed, retry = self._watched_pod(sync), self._queue.retry(uid)
        if retry is not None and retry.attempt.api_uid != sync.api_uid:
            self._queue.forget(uid)  # the failure was of another mirror pod
        elif retry is not None and retry.failure is Failure.GONE and observed is None:
            self._queue.retry_now(uid)
            return False  # until the watch shows it again
        priority = Priority.URGENT if self._is_urgent(sync, observed) else priority
        return self._queue.add(uid, sync.entry.version, priority, now)

    def _resolve(self, uid: PodUID) -> PodSync | None:
        """Return the pod's status and API object; None if either is missing."""
        entry = self._statuses.entry(uid)
        if entry is None:
            self._queue.forget(uid)
            return None
        sync = resolve_api_object(uid, entry, self._pod_manager.uid_translations())
        if sync is None:
            self._pending[uid] = None  # a static pod that has no mirror pod yet
        return sync

    def _watched_pod(self, sync: PodSync) -> Pod | None:
        """Return the watched copy of the API object, or None."""
        pod = self._pod_manager.pod_by_uid(sync.uid)
        if pod is not None and is_static_pod(pod):
            pod = self._pod_manager.mirror_pod_by_pod(pod)
        return pod if pod is not None and ApiUID(pod.uid) == sync.api_uid else None

    def _check_foreign_writes(self, uids: Iterable[PodUID]) -> None:
        """Check observed pods for foreign writes, and queue their correction."""
        for uid in uids:
            try:
                sync = self._resolve(uid)
            except Exception as error:  # noqa: BLE001 - an external port
                self._requeue_after_error(uid, error)
            else:
                if sync is not None:
                    self._check_foreign_write(sync)

    def _check_foreign_write(self, sync: PodSync) -> None:
        try:
            observed = self._watched_pod(sync)
            if observed is not None and self._foreign_writes.observe(observed):
                self._force_resend(sync)
        except Exception as error:  # noqa: BLE001 - an external port
            self._requeue_after_error(sync.uid, error)

    def _force_resend(self, sync: PodSync) -> None:
        """Have the status recomputed and sent; if it is not recomputed, resend the cached one."""
        self._sender.reset_sent([sync.api_uid])
        self._statuses.force_next_update(sync.uid)
        if not self._recompute_status(sync.uid):
            self._enqueue([sync.uid], Priority.ORDINARY)

    def _is_urgent(self, sync: PodSync, observed: Pod | None) -> bool:
        """True for deletions and first readiness: other controllers wait for these."""
        if sync.entry.finished:
            return True
        if observed is not None and observed.metadata.deletion_timestamp is not None:
            return True
        if not is_condition_true(sync.entry.status.conditions, READY):
            return False
        was_ready = observed is not None and is_condition_true(observed.status.conditions, READY)
        return not was_ready and not self._sender.has_been_ready(sync.api_uid)

    # Tasks

    def _start_ready(self, *, return_first: bool = False) -> PodUID | None:
        """Start a worker for every pod that may be synced now, and set a timer for the next one.

        With `return_first`, return the first pod for the caller to sync instead.
        """
        if self._tasks is None:
            return None
        now = self._elapsed.seconds()
        first = self._queue.get(now) if return_first else None
        while (uid := self._queue.get(now)) is not None:
            self._spawn_worker(self._tasks, uid)
        at = self._queue.next_wakeup(now)
        if at is not None and (self._timer is None or at < self._timer[0]):
            self._set_timer(self._tasks, at, max(at - now, MIN_WAIT_SECONDS))
        return first

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
        # A clock that rounds may return a time just before `at`.
        now = max(at, self._elapsed.seconds())
        # Lowest priority, so that failing pods do not delay healthy ones.
        self._enqueue(self._queue.pop_due(now), Priority.RECONCILE, now)
        self._start_ready()

    def _start_outbox_gc(self) -> None:
        """Remove obsolete outbox entries in a task, without waiting for the disk."""
        if self._tasks is None or self._outbox_gc in self._workers:
            return
        removal = self._outbox.retain_only(self._statuses.uids())
        self._outbox_gc = task = self._tasks.create_task(removal)
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)

    def _persist_blocked(self) -> None:
        """Store terminations that cannot be sent now: an outage may outlast this process."""
        if self._tasks is None or self._persist_task in self._workers or self._queue.is_healthy:
            return
        blocked = self._outbox.blocked(self._statuses.entries())
        blocked = [uid for uid in blocked if self._queue.is_blocked(uid)]
        if not blocked:
            return
        store = self._outbox.store_all(blocked, self._statuses.entry)
        self._persist_task = task = self._tasks.create_task(store)
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)

    async def _sync_worker(self, uid: PodUID) -> None:
        """Sync a pod, then further pods from the queue."""
        for _ in range(MAX_SYNCS_PER_TASK):
            await self._sync_one(uid)
            next_uid = self._start_ready(return_first=True)
            if next_uid is None:
                return
            uid = next_uid
        if self._tasks is not None:
            self._spawn_worker(self._tasks, uid)

    async def _sync_one(self, uid: PodUID) -> None:
        """Sync one pod; its errors do not affect other pods."""
        sync = None
        try:
            sync = self._resolve(uid)
            if sync is not None and self._needs_sync(sync):
                await self._sync(sync)
        except asyncio.CancelledError:
            # Cancelled by `__aexit__`, or by a client that cancels the calling task: in that case
            # the pod must not count as in flight forever.
            self._queue.done(uid)
            self._pending[uid] = None
            raise
        except Exception as error:  # noqa: BLE001 - an external port
            self._requeue_after_error(uid, error)
        self._queue.done(uid)
        if sync is not None:
            self._after_sync(sync)

    def _needs_sync(self, sync: PodSync) -> bool:
        """Whether the pod has to be sent or deleted, or is retried after a failure."""
        if self._queue.retry(sync.uid) is not None:
            return True
        return needs_update(sync, self._sender.sent, self._pod_manager)

    def _after_sync(self, sync: PodSync) -> None:
        """Check for foreign writes and newer versions that arrived during the sync."""
        # During the sync they cannot be distinguished from the node's own write.
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
            self._on_failure(sync, UnavailableError("the client cancelled the request"))
        except Exception as error:  # noqa: BLE001 - classified by `classify_error`
            self._on_failure(sync, error)
        else:
            released = self._queue.succeeded(sync.uid)
            if released:
                self._enqueue(released, Priority.ORDINARY)

    async def _sync_and_report(self, sync: PodSync) -> None:
        # Before any request: reading the managed fields may take half a minute.
        if sync.entry.finished:
            await self._outbox.store(sync.uid, sync.entry, self._statuses.entry)
        # A probe reads first: then a server that only fails the patches of some pods is detected
        # as available and does not block the other pods.
        is_probe = self._queue.is_probe(sync.uid)
        self._foreign_writes.patch_started(sync.api_uid)
        observed, writes = self._watched_pod(sync), NO_WRITES
        if self._foreign_writes.has_pending(sync.api_uid):
            writes = await self._foreign_writes.identify_writers(
                sync, observed, query_server=not is_probe
            )
            observed = self._watched_pod(sync)
        try:
            pod = await self._sender.sync(
                sync, observed, lambda: self._on_response(sync.uid), force_read=is_probe
            )
        except BaseException:
            self._foreign_writes.defer(sync.api_uid, writes)
            raise
        if pod is not None:
            self._foreign_writes.patch_applied(pod)
            self._foreign_writes.report(sync, writes, pod)

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
            self._pending[sync.uid] = None  # no back-off configured: retry in the next batch
        self._statuses.count_failure(retry.failure.value)
        self._persist_blocked()
        self._log_failure(sync, retry, error)
        self._enqueue(released, Priority.ORDINARY)

    def _log_failure(self, sync: PodSync, retry: Retry, error: Exception) -> None:
        match retry.failure:
            case Failure.GONE:
                logger.debug("pod is not on the server: %s error=%s", sync, error)
            case Failure.REJECTED:
                logger.error("status rejected, resent when it changes: %s error=%s", sync, error)
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
