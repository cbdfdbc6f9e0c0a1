"""Keep the server's copy of every status equal to the cached one, many pods in parallel.

The differences from upstream are explained in docs/decisions/0016-parallel-sync.md; each is a field
of `podstatus.status.policy.ParallelSyncOptions`.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

from msgspec import structs

from podstatus.base.clock import monotonic_seconds
from podstatus.kube.api_errors import UnavailableError
from podstatus.kube.conditions import READY, is_condition_true
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID, is_static_pod
from podstatus.status.decide.plan import (
    PodSync,
    is_deletable,
    plan_full,
)
from podstatus.status.store import StatusStore
from podstatus.status.sync.context import SyncContext
from podstatus.status.sync.foreign_write_reporter import ForeignWriteReporter, record_event
from podstatus.status.sync.log_plan import log_plan
from podstatus.status.sync.outbox_writer import OutboxWriter
from podstatus.status.sync.sequential import is_cancelled
from podstatus.status.sync.state.pod_sync_state import ForeignWriteState, PodSyncState
from podstatus.status.sync.state.retry import Failure, Retry
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
        context: SyncContext,
        sender: StatusSender,
        statuses: StatusStore,
        queue: SyncQueue,
        *,
        outbox: OutboxWriter,
        reporter: ForeignWriteReporter,
        jitter: Callable[[], float],
    ) -> None:
        self._context = context
        self._clock = context.clock
        self._pod_manager = context.pod_manager
        self._sender = sender
        self._statuses = statuses
        self._queue = queue
        self._outbox = outbox
        self._reporter = reporter
        self._jitter = jitter
        self._pending: dict[PodUID, None] = {}
        """Pods to check in the next batch, full or not: changed, without a mirror pod so far, or
        failed in an external port."""
        self._tasks: asyncio.TaskGroup | None = None
        self._workers: set[asyncio.Task[None]] = set()
        self._outbox_task: asyncio.Task[None] | None = None
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
        return self._queue.sent_versions()

    def counts(self) -> SyncCounts:
        """Return the current numbers of pods. Thread-safe."""
        return SyncCounts(
            pods=len(self._queue) + len(self._pending),
            in_flight=self._queue.in_flight,
            quarantined=self._queue.quarantined,
            outbox=len(self._outbox),
        )

    async def sync_batch(self, *, full: bool) -> int:
        """Start to sync changed pods, with `full` also pods that differ on the API server.

        Returns the number of pods to sync; `wait_idle` waits for them.
        """
        changed, observed = self._statuses.pop_changes()
        if observed:
            self._check_foreign_writes(observed)
        self._pending.update(changed)
        now = monotonic_seconds(self._clock)
        queued = self._enqueue(tuple(self._pending), Priority.ORDINARY, now)
        # The timer handles due retries too, but only runs within `async with`.
        if due := self._queue.pop_due(now):
            queued |= self._enqueue(due, Priority.RECONCILE, now)
        self._start_ready(now)  # also if an external port fails in the plan
        if full:
            queued |= self._enqueue(self._plan_full(), Priority.RECONCILE, now)
            self._outbox.retain_only(self._statuses.uids())
            self._start_ready(now)
        if not self._queue.is_healthy:
            self._persist_blocked()
        if self._outbox.unwritten:
            self._start_outbox_writer()
        return len(queued)

    async def wait_idle(self) -> None:
        """Wait until no sync is in flight."""
        while self._workers:
            await asyncio.wait(self._workers)

    async def drain(self) -> None:
        """Try all unsent pods once more and wait for them; the caller sets the deadline.

        While the circuit breaker is open, one round of probes is sent; if all fail, give up.
        """
        self._enqueue(
            self._queue.retry_all_transient(), Priority.ORDINARY, monotonic_seconds(self._clock)
        )
        was_open = False
        while self._queue.allow_probe_now() and not was_open:
            was_open = self._queue.is_circuit_open
            self._start_ready(monotonic_seconds(self._clock))
            await self.wait_idle()
            was_open = was_open and self._queue.is_circuit_open
        await self.wait_idle()

    # Selection of pods

    def _plan_full(self) -> list[PodUID]:
        entries = self._statuses.entries()
        translations = self._pod_manager.uid_translations()
        sent = self._queue.sent_versions()
        plan = plan_full(entries, sent, translations, self._pod_manager, self._context.gates)
        log_plan(plan, entries, translations, self._pod_manager, self._context.gates)
        self._queue.retain_only(entries)
        for sync in plan.reconciles:
            self._queue.update(sync.uid, PodSyncState.resend)
        return [sync.uid for sync in plan.syncs]

    def _enqueue(self, uids: Iterable[PodUID], priority: Priority, now: float) -> set[PodUID]:
        """Add pods to the queue; return those that do not back off after a failure."""
        queued = set()
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
        logger.error(
            "cannot check whether the pod needs a sync, will retry: uid=%s", uid, exc_info=error
        )
        self._pending[uid] = None

    def _enqueue_one(self, uid: PodUID, priority: Priority, now: float) -> bool:
        sync, observed = self._resolve(uid)
        if sync is None:
            return False
        state = self._queue.state(uid, sync.api_uid)
        if state.retry is not None and state.retry.failure is Failure.GONE and observed is None:
            self._queue.retry_now(uid)
            return False  # until the watch shows it again
        if _is_urgent(sync, observed, state):
            priority = Priority.URGENT
        return self._queue.add(uid, state, sync.entry.version, priority, now)

    def _resolve(self, uid: PodUID) -> tuple[PodSync | None, Pod | None]:
        """Return the pod's status with its API object, and the watched copy of the object.

        Without a status or an API object, the former is None.
        """
        entry = self._statuses.entry(uid)
        if entry is None:
            self._queue.forget(uid)
            return None, None
        api_uid = self._pod_manager.uid_translations().pod_to_mirror.get(uid, ApiUID(uid))
        if not api_uid:
            self._pending[uid] = None  # a static pod that has no mirror pod yet
            return None, None
        pod = self._pod_manager.pod_by_uid(uid)
        if pod is not None and is_static_pod(pod):
            pod = self._pod_manager.mirror_pod_by_pod(pod)
        observed = pod if pod is not None and ApiUID(pod.uid) == api_uid else None
        return PodSync(uid, api_uid, entry), observed

    def _check_foreign_writes(self, uids: Iterable[PodUID]) -> None:
        """Check observed pods for foreign writes, and queue their correction."""
        for uid in uids:
            try:
                sync, observed = self._resolve(uid)
                if sync is not None and observed is not None:
                    self._check_foreign_write(sync, observed)
            except Exception as error:  # noqa: BLE001 - an external port
                self._requeue_after_error(uid, error)

    def _check_foreign_write(self, sync: PodSync, observed: Pod) -> None:
        now = monotonic_seconds(self._clock)
        state = self._queue.state(sync.uid, sync.api_uid)
        state, must_correct = state.observed(observed, self._context.gates, now)
        if not must_correct:
            self._queue.put(sync.uid, state)
            return
        # Have the status recomputed and sent; if it is not recomputed, resend the cached one.
        self._queue.put(sync.uid, state.resend())
        self._statuses.force_next_update(sync.uid)
        if not self._context.recompute_status(sync.uid):
            self._enqueue([sync.uid], Priority.ORDINARY, now)

    # Tasks

    def _start_ready(self, now: float) -> None:
        """Start a worker for every pod that may be synced now, and set a timer for the next one."""
        if self._tasks is None:
            return
        while (uid := self._queue.get(now)) is not None:
            task = self._tasks.create_task(self._sync_worker(uid))
            self._workers.add(task)
            task.add_done_callback(self._workers.discard)
        at = self._queue.next_wakeup(now)
        if at is not None and (self._timer is None or at < self._timer[0]):
            self._set_timer(self._tasks, at, max(at - now, MIN_WAIT_SECONDS))

    def _set_timer(self, tasks: asyncio.TaskGroup, at: float, seconds: float) -> None:
        if self._timer is not None:
            self._timer[1].cancel()
        self._timer = at, tasks.create_task(self._run_timer(at, seconds))

    async def _run_timer(self, at: float, seconds: float) -> None:
        await self._clock.wait(seconds)
        self._timer = None
        # A clock that rounds may return a time just before `at`.
        due = max(at, monotonic_seconds(self._clock))
        # Lowest priority, so that failing pods do not delay healthy ones.
        self._enqueue(self._queue.pop_due(due), Priority.RECONCILE, due)
        self._start_ready(monotonic_seconds(self._clock))

    def _persist_blocked(self) -> None:
        """Store terminations that cannot be sent now: an outage may outlast this process."""
        for uid, entry in self._statuses.entries().items():
            if self._queue.is_blocked(uid):
                self._outbox.put_if_terminated(uid, entry)

    def _start_outbox_writer(self) -> None:
        """Write the outbox in a task, without waiting for the disk."""
        is_running = self._outbox_task is not None and not self._outbox_task.done()
        if self._tasks is None or is_running or not self._outbox.is_dirty:
            return
        self._outbox_task = task = self._tasks.create_task(self._outbox.write())
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)

    async def _sync_worker(self, uid: PodUID) -> None:
        """Sync a pod, then further pods from the queue."""
        for left in reversed(range(MAX_SYNCS_PER_TASK)):
            await self._sync_one(uid)
            now = monotonic_seconds(self._clock)
            next_uid = self._queue.get(now) if left and self._tasks is not None else None
            self._start_ready(now)
            if next_uid is None:
                return
            uid = next_uid

    async def _sync_one(self, uid: PodUID) -> None:
        """Sync one pod; its errors do not affect other pods."""
        sync, needs_sync = None, False
        try:
            sync, observed = self._resolve(uid)
            if sync is not None:
                needs_sync = await self._sync(sync, observed)
        except asyncio.CancelledError:
            # Cancelled by `__aexit__`, or by a client that cancels the calling task: in that case
            # the pod must not count as in flight forever.
            self._queue.done(uid)
            self._pending[uid] = None
            raise
        except Exception as error:  # noqa: BLE001 - an external port
            self._requeue_after_error(uid, error)
        self._queue.done(uid)
        if self._outbox.unwritten:
            self._start_outbox_writer()
        if sync is not None:
            # During the sync, foreign writes cannot be distinguished from the node's own write.
            self._check_foreign_writes([uid])
            entry = self._statuses.entry(uid)
            if entry is not None and (needs_sync or entry.version != sync.entry.version):
                self._enqueue([uid], Priority.ORDINARY, monotonic_seconds(self._clock))

    async def _sync(self, sync: PodSync, observed: Pod | None) -> bool:
        """Sync the pod if it has to be sent or deleted, or is retried after a failure.

        Returns whether it was only a probe, so that the pod has to be synced now.
        """
        state = self._queue.state(sync.uid, sync.api_uid)
        is_sent = state.retry is None and state.sent_version >= sync.entry.version
        if is_sent and not is_deletable(sync, self._pod_manager):
            return False
        try:
            if sync.entry.finished and not state.is_probe:
                # Before any request: reading the managed fields may take half a minute.
                await self._store_final(sync)
            if state.is_probe:
                # Only a GET: a server that fails the patches of some pods counts as available.
                await self._sender.read(sync)
            elif state.foreign.pending:
                await self._correct_foreign_writes(sync, state.foreign, observed)
            else:
                await self._sender.sync(sync, observed)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            self._on_failure(sync, UnavailableError("the client cancelled the request"))
            return False
        except Exception as error:  # noqa: BLE001 - classified by `classify_error`
            self._on_failure(sync, error)
            return False
        if released := self._queue.succeeded(sync.uid):
            self._enqueue(released, Priority.ORDINARY, monotonic_seconds(self._clock))
        return state.is_probe

    async def _correct_foreign_writes(
        self, sync: PodSync, foreign: ForeignWriteState, observed: Pod | None
    ) -> None:
        """Send the status, and report the writers of the values that it replaces."""
        writes = await self._reporter.identify_writers(sync, foreign, observed)
        _, observed = self._resolve(sync.uid)
        pod = await self._sender.sync(sync, observed)
        if pod is not None:
            foreign = self._reporter.report(sync, foreign, writes, pod)
            self._queue.update(sync.uid, lambda state: structs.replace(state, foreign=foreign))

    async def _store_final(self, sync: PodSync) -> None:
        """Store the final status before it is first sent."""
        newest = self._statuses.entry(sync.uid)
        # A finished static pod may have come back; its final status is delivered anyway.
        final = newest if newest is not None and newest.finished else sync.entry
        self._outbox.put(sync.uid, final)
        self._start_outbox_writer()
        await self._outbox.wait_written(sync.uid)

    def _on_failure(self, sync: PodSync, error: Exception) -> None:
        now = monotonic_seconds(self._clock)
        retry, released = self._queue.failed(
            sync.uid, sync.entry.version, error, now=now, jitter=self._jitter()
        )
        if retry.at <= now:
            self._pending[sync.uid] = None  # no back-off configured: retry in the next batch
        self._statuses.count_failure(retry.failure.value)
        self._persist_blocked()
        self._start_outbox_writer()
        self._log_failure(sync, retry, error)
        self._enqueue(released, Priority.ORDINARY, now)

    def _log_failure(self, sync: PodSync, retry: Retry, error: Exception) -> None:
        match retry.failure:
            case Failure.GONE:
                logger.debug("pod does not exist on the API server: %s error=%s", sync, error)
            case Failure.REJECTED:
                logger.error(
                    "status rejected by the API server, will retry when it changes: %s error=%s",
                    sync,
                    error,
                )
                message = f"Status was rejected: {error}"
                record_event(self._context.events, sync, STATUS_REJECTED, message)
            case Failure.BROKEN:
                logger.error("cannot sync pod status, will retry: %s", sync, exc_info=error)
            case _:
                logger.warning("cannot sync pod status, will retry: %s error=%s", sync, error)


def _is_urgent(sync: PodSync, observed: Pod | None, state: PodSyncState) -> bool:
    """True for deletions and first readiness: other controllers wait for these."""
    if sync.entry.finished:
        return True
    if observed is not None and observed.metadata.deletion_timestamp is not None:
        return True
    if state.has_been_ready or not is_condition_true(sync.entry.status.conditions, READY):
        return False
    return observed is None or not is_condition_true(observed.status.conditions, READY)
