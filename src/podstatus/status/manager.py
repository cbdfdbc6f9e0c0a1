"""The source of truth for pod status on a node.

Upstream: the Manager interface of status_manager.go v1.36.4.
"""

import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from msgspec import structs

from podstatus.base.aio import SystemClock
from podstatus.base.clock import Clock
from podstatus.kube.encoding.frozen_copy import freeze, require_type
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID, check_pod, check_uid
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.allocation import PodAllocations
from podstatus.status.decide.newer_status import newer_status
from podstatus.status.decide.readiness import with_container_readiness, with_container_startup
from podstatus.status.decide.resize import DEFERRED, INFEASIBLE, ResizeConditions
from podstatus.status.decide.update import (
    UpdateAccepted,
    UpdateOutcome,
    UpdateRejected,
    UpdateUnchanged,
)
from podstatus.status.notify import (
    CallbackQueue,
    DeferredObserver,
    Notifiers,
    SafeStartupLatency,
)
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import (
    AllocationState,
    NoPodEvents,
    NoStartupLatency,
    NoStatusObserver,
    Outbox,
    PodApi,
    PodDeletionSafetyProvider,
    PodEvents,
    PodLookup,
    PodStartupLatencyStateHelper,
    PodUpdateNotifier,
    StatusObserver,
    check_port,
)
from podstatus.status.resize_store import ResizeStore
from podstatus.status.status_updates import StatusModifier, StatusUpdater
from podstatus.status.store import StatusCache, VersionedStatus
from podstatus.status.sync.build_syncer import build_syncer
from podstatus.status.sync.locked_store import StatusStore
from podstatus.status.sync.loop import SyncLoop
from podstatus.status.sync.outbox import OutboxWriter
from podstatus.status.sync.parallel import ParallelSyncer, SyncCounts
from podstatus.status.sync.sequential import SequentialSyncer

logger = logging.getLogger(__name__)


class StatusManager:
    """Caches the status of each pod and keeps the API server's copy equal to it.

    `client` is the API server's pods, or None: then the manager serves its cache and sends
    nothing. `pods` is what the node is to run, `safety` knows whether something of a pod may
    still be running. `startup_latency` and `observer` are told what happens, `state` remembers
    allocations and resize statuses (without it nothing does), `clock` is the machine's unless
    given, `gates` are those of v1.36, `policy` is `SyncPolicy()`: many pods at once, without
    reading first. `events` is told of statuses that the server rejects and of foreign writes that
    were corrected, and `outbox` keeps last statuses until they have arrived. `redecide` is asked
    by the sync loop to set the status of a pod anew, because somebody else wrote to it
    (`pod_shown`); it says whether it will. Upstream's policy has use for none of the three.
    `heartbeat` is called by the sync loop, once per period at least.

    All methods may be called from any thread. A cached status is a frozen value. `run()` is
    the sync loop for those who have an event loop; `start()` and `stop()` run it in a thread
    and an event loop of its own, so a client must not be tied to another one. Who calls
    `sync_batch()` has a loop of their own instead. Make a manager after a fork, not before.
    """

    def __init__(
        self,
        client: PodApi | None,
        pods: PodLookup,
        safety: PodDeletionSafetyProvider,
        *,
        startup_latency: PodStartupLatencyStateHelper | None = None,
        observer: StatusObserver | None = None,
        events: PodEvents | None = None,
        outbox: Outbox | None = None,
        state: AllocationState | None = None,
        clock: Clock | None = None,
        gates: FeatureGates | None = None,
        policy: SyncPolicy | None = None,
        recompute_status: Callable[[PodUID], bool] = lambda _: False,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self._pods = pods
        startup_latency = NoStartupLatency() if startup_latency is None else startup_latency
        guarded = SafeStartupLatency(startup_latency)
        self._clock = clock or SystemClock()
        gates = gates or FeatureGates()
        policy = policy or SyncPolicy()
        self._lock = threading.Lock()
        self._cache = StatusCache()
        self._callbacks = CallbackQueue()
        self._notifiers = Notifiers(self._callbacks)
        observer = NoStatusObserver() if observer is None else observer
        queued = DeferredObserver(observer, self._callbacks)
        self._resizes = ResizeStore(queued)
        self._allocations = PodAllocations(state)
        self._updater = StatusUpdater(
            self._cache,
            pods,
            observer=queued,
            notifiers=self._notifiers,
            clock=self._clock,
            gates=gates,
        )
        self._store = StatusStore(
            self._lock,
            self._cache,
            self._resizes,
            allocations=self._allocations,
            startup_latency=guarded,
            observer=queued,
            callbacks=self._callbacks,
            clock=self._clock,
        )
        # Upstream keeps none, and would never take anything out.
        self._outbox = OutboxWriter(None if policy.parallel is None else outbox)
        self._is_seeded = False
        self._syncer: SequentialSyncer | ParallelSyncer | None = None
        check_port(pods, PodLookup, "pods")
        check_port(safety, PodDeletionSafetyProvider, "safety")
        check_port(startup_latency, PodStartupLatencyStateHelper, "startup_latency")
        check_port(observer, StatusObserver, "observer")
        if events is not None:
            check_port(events, PodEvents, "events")
        if outbox is not None:
            check_port(outbox, Outbox, "outbox")
        if client is not None:
            check_port(client, PodApi, "client")
            self._syncer = build_syncer(
                client,
                self._store,
                pod_manager=pods,
                safety=safety,
                startup_latency=guarded,
                events=NoPodEvents() if events is None else events,
                recompute_status=recompute_status,
                outbox=self._outbox,
                clock=self._clock,
                gates=gates,
                policy=policy,
            )
        self._loop = SyncLoop(self._syncer, self._clock, policy.full_sync_period, heartbeat)

    # The loop

    def run(self) -> Coroutine[Any, Any, None]:
        """Sync when a status changed, and everything once per period, until `stop()`.

        To be awaited; the manager counts as running from this call on, and raises
        RuntimeError if it does already. Cancelling it ends it at once; what was not
        acknowledged is sent when it runs again. What a broken clock raises comes out as an
        ExceptionGroup; what goes wrong with a pod does not come out. Raises what `start()` does.
        """
        self._restore()
        return self._loop.run()

    def start(self) -> None:
        """Run the sync loop in a thread and an event loop of its own.

        First the state is restored; if that cannot be, its error comes out (`CheckpointError`
        of a `FileState`) and nothing runs.
        """
        self._restore()
        self._loop.start()

    def stop(self, *, drain: float = 5.0) -> None:
        """End the sync loop. Waits for its thread; of `run()`, await the task yourself.

        First the loop sends what is left, also what failed before and a phase that was held
        back, for at most `drain` seconds; a further `stop()` can shorten that. Then a call
        that is under way is cancelled. What was not acknowledged stays unsent and is sent
        when the loop runs again. Not for signal handlers, which may interrupt the manager
        itself: set a flag there, or use `loop.add_signal_handler`.
        """
        self._loop.stop(drain=drain)

    def reconcile(self) -> None:
        """Have everything compared with the API server now, not only when the period is over."""
        self._loop.reconcile()

    def pod_observed(self, uid: str) -> None:
        """Say that the directory has a newer copy of this pod; the UID of a mirror pod will do.

        If others wrote to what the node owns, that is corrected at once, not only when the period
        is over. With upstream's policy it is not.
        """
        if isinstance(self._syncer, ParallelSyncer):
            self._store.mark_observed(self._pods.translate_pod_uid(uid))
            self._loop.wake_up()

    async def sync_batch(self, *, full: bool) -> int:
        """One round of the loop: what changed, or with `full` a reconcile of everything.

        Returns how many pods were to be synced: those that wait for an absent server count too,
        those that wait after a failure do not. For tests and for those who have their own loop;
        not while `run()` runs. Raises what `start()` does.
        """
        self._restore()
        return await self._loop.sync_once(full=full)

    # Statuses

    def pod_status(self, uid: str) -> PodStatus | None:
        """The cached status of this pod; the UID of a mirror pod will do.

        A termination message that was cut inside a character holds the rest of its bytes as
        lone surrogates; `to_document` prints them as JSON can carry them.
        """
        with self._lock:
            entry = self._cache.get(self._pods.translate_pod_uid(uid))
        return None if entry is None else entry.status

    def latest_status(self, pod: Pod) -> PodStatus:
        """The cached status of this pod; if it has none, what the API server shows of it, or what
        an earlier life of the node could not deliver, whichever is newer.
        """
        with self._lock:
            entry = self._cache.get(pod.uid)
            remembered = self._cache.restored(pod.uid)
        return newer_status(remembered, pod.status) if entry is None else entry.status

    def set_pod_status(self, pod: Pod, status: PodStatus) -> tuple[PodStatus, bool]:
        """Validate, normalise, stamp and cache a status, and have it sent.

        Returns the status that is cached now, and whether it is a new one. It is not when
        nothing changed, and not when the status is refused because a container in it runs
        again that must stay ended; the log tells why. For a static pod give the static pod,
        not its mirror. Raises TypeError, ValueError or QuantityError for what is no status,
        a pod without UID, or an unreadable quantity.
        """
        check_pod(pod)
        require_type(status, PodStatus)
        status = structs.replace(freeze(status), observed_generation=pod.metadata.generation)
        # A pod that is being deleted is always sent again: it may be time to delete it.
        deleting = pod.metadata.deletion_timestamp is not None
        with self._lock:
            outcome = self._updater.update(pod, status, force=deleting, finished=False)
            entry = self._cache.get(pod.uid)
        self._report(pod, outcome)
        return PodStatus() if entry is None else entry.status, isinstance(outcome, UpdateAccepted)

    def set_container_readiness(self, pod_uid: str, container_id: str, *, ready: bool) -> None:
        """Take a readiness probe's verdict: the container, then Ready and ContainersReady."""
        self._modify_status(
            pod_uid,
            container_id,
            lambda pod, status: with_container_readiness(pod, status, container_id, ready=ready),
        )

    def set_container_startup(self, pod_uid: str, container_id: str, *, started: bool) -> None:
        """Take a startup probe's verdict."""
        self._modify_status(
            pod_uid,
            container_id,
            lambda _, status: with_container_startup(status, container_id, started=started),
        )

    def terminate_pod(self, pod: Pod) -> None:
        """Close the books on a pod: containers whose end nobody saw have failed with 137.

        The phase becomes terminal, except that a static pod keeps its own. The pod is
        finished then: once the API server shows its terminal phase and somebody asked for
        its deletion, it is deleted there. Refused, with a line in the log, if the status
        does not fit the spec.
        """
        check_pod(pod)
        with self._lock:
            outcome = self._updater.terminate(pod)
        self._report(pod, outcome)

    def remove_orphaned_statuses(self, pod_uids: Iterable[str]) -> None:
        """Forget the pods whose UIDs are not among these, with their resizes and allocations."""
        if isinstance(pod_uids, str):
            raise TypeError(f"expected UIDs, got the text {pod_uids[:40]!r}; put it into a set")
        kept = frozenset(pod_uids)
        if odd := [uid for uid in kept if not isinstance(uid, str)]:
            raise TypeError(f"expected UIDs, got a {type(odd[0]).__name__} among them")
        with self._lock:
            for uid in [uid for uid in self._cache if uid not in kept]:
                self._cache.remove(uid)
                self._resizes.remove(uid)
        self._callbacks.flush()
        self._allocations.remove_orphaned_pods(kept)

    def remove_status(self, uid: str) -> None:
        """Forget one pod, with its resizes and its allocation: it begins anew under its UID.

        Raises whatever the state of allocations does; the status is forgotten then, too.
        """
        check_uid(uid)
        with self._lock:
            self._cache.remove(PodUID(uid))
            self._resizes.remove(PodUID(uid))
        self._callbacks.flush()
        self._allocations.remove_pod(PodUID(uid))

    def add_notifier(self, notifier: PodUpdateNotifier) -> None:
        """Tell this one about every status that is cached from now on.

        When a call that caches a status returns, its notification has been delivered. It
        comes in the thread of a caller or of the sync loop, and for each pod in the order of
        the versions.
        """
        check_port(notifier, PodUpdateNotifier, "notifier")
        with self._lock:
            self._notifiers.add(notifier)

    # Resize conditions

    def pod_resize_conditions(self, uid: str) -> tuple[PodCondition, ...]:
        """The resize conditions of this pod: pending, then in progress."""
        with self._lock:
            return self._resizes.get(PodUID(uid)).as_tuple()

    def set_pod_resize_pending_condition(
        self, uid: str, reason: str, message: str, observed_generation: int
    ) -> bool:
        """Say that a resize waits; whether reason or generation changed.

        Any reason but Infeasible becomes Deferred.
        """
        with self._lock:
            changed = self._resizes.set_pending(
                PodUID(uid), reason, message, observed_generation, self._now()
            )
        self._callbacks.flush()
        return changed

    def set_pod_resize_in_progress_condition(
        self, uid: str, reason: str, message: str, observed_generation: int
    ) -> tuple[int, bool]:
        """Say that a resize is under way; its generation and whether anything changed.

        The generation is that of the first call since the condition was cleared.
        """
        with self._lock:
            outcome = self._resizes.set_in_progress(
                PodUID(uid), reason, message, observed_generation, self._now()
            )
        self._callbacks.flush()
        return outcome

    def clear_pod_resize_pending_condition(self, uid: str) -> None:
        """Say that no resize waits."""
        with self._lock:
            self._resizes.clear_pending(PodUID(uid))
        self._callbacks.flush()

    def clear_pod_resize_in_progress_condition(self, uid: str) -> int | None:
        """Say that no resize is under way; the generation of the one that was."""
        with self._lock:
            generation = self._resizes.clear_in_progress(PodUID(uid))
        self._callbacks.flush()
        return generation

    def backfill_pod_resize_conditions(self, pods: Iterable[Pod]) -> None:
        """Take over the resize conditions that the pods' statuses have, after a restart."""
        known = tuple(pods)
        for pod in known:
            check_pod(pod)
        with self._lock:
            self._resizes.backfill(known, self._now())
        self._callbacks.flush()

    def is_pod_resize_deferred(self, uid: str) -> bool:
        """Whether a resize of this pod waits for room."""
        return self._pending_reason(uid) == DEFERRED

    def is_pod_resize_infeasible(self, uid: str) -> bool:
        """Whether a resize of this pod can never be done on this node."""
        return self._pending_reason(uid) == INFEASIBLE

    # Allocations

    def container_resource_allocation(
        self, pod_uid: str, container: str
    ) -> ResourceRequirements | None:
        """What the node has granted to this container, also before a restart."""
        return self._allocations.container_resources(pod_uid, container)

    def set_pod_allocation(self, pod: Pod) -> None:
        """Remember that the node has granted the pod what its spec asks for.

        When this returns, a `FileState` has it on the disk; if it cannot, nothing changed.
        Without a state nothing is remembered.
        """
        check_pod(pod)
        self._allocations.set_pod(pod)

    def pod_resize_status(self, pod_uid: str) -> str | None:
        """The last word on the resize of this pod, also before a restart."""
        return self._allocations.resize_status(pod_uid)

    def set_pod_resize_status(self, pod_uid: str, status: str) -> None:
        """Remember the last word on the resize of this pod; an empty one is none."""
        self._allocations.set_resize_status(pod_uid, status)

    # Looking in

    def entries(self) -> Mapping[PodUID, VersionedStatus]:
        """All cached statuses with their versions, at one moment."""
        return self._store.entries()

    def resizes(self) -> Mapping[PodUID, ResizeConditions]:
        """The resize conditions of all pods, at one moment."""
        with self._lock:
            return self._resizes.all()

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """The last version that the API server acknowledged, by the UID of its object."""
        return {} if self._syncer is None else self._syncer.sent_versions()

    def sync_counts(self) -> SyncCounts:
        """How many pods are under way, rejected, in the outbox. Upstream's policy knows of none."""
        syncer = self._syncer
        return syncer.counts() if isinstance(syncer, ParallelSyncer) else SyncCounts()

    def is_acknowledged(self, uid: str) -> bool:
        """Whether the API server has acknowledged all that was said of this pod.

        A phase that was held back counts as acknowledged with the rest of its status.
        """
        with self._lock:
            entry = self._cache.get(PodUID(uid))
        return entry is None or not entry.unsent

    def pop_changes(self) -> bool:
        """Whether a status changed since the loop, or the last call of this, looked.

        For those who have their own loop: when it is true, `sync_batch(full=False)` is due.
        Not while `run()` runs.
        """
        return self._loop.pop_changes()

    # Inside

    def _restore(self) -> None:
        """Bring back what is remembered, once."""
        self._allocations.restore()
        if not self._is_seeded:
            self._is_seeded = True
            self._store.seed(self._outbox.load())

    def _modify_status(self, pod_uid: str, container_id: str, change: StatusModifier) -> None:
        with self._lock:
            changed = self._updater.modify(PodUID(pod_uid), change)
        if changed is None:
            logger.debug(
                "probe has no news, or its pod or container is not known: uid=%s container=%s",
                pod_uid,
                container_id,
            )
        else:
            self._report(*changed)

    def _report(self, pod: Pod, outcome: UpdateOutcome) -> None:
        """Say what was decided. Called without the lock."""
        match outcome:
            case UpdateRejected(why):
                logger.error(
                    "status refused: pod=%s/%s uid=%s why=%s", *pod.full_name, pod.uid, why
                )
            case UpdateUnchanged(terminations):
                if logger.isEnabledFor(logging.DEBUG):
                    logger.debug("status unchanged: pod=%s/%s uid=%s", *pod.full_name, pod.uid)
                if terminations:
                    self._callbacks.flush()
            case UpdateAccepted():
                self._loop.wake_up()
                self._callbacks.flush()

    def _pending_reason(self, uid: str) -> str | None:
        with self._lock:
            pending = self._resizes.get(PodUID(uid)).pending
        return None if pending is None else pending.reason

    def _now(self) -> Time:
        return Time.from_unix_nanos(self._clock.now())
