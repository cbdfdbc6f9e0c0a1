"""The source of truth for pod status on a node.

Upstream: the Manager interface of status_manager.go v1.36.4.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from podstatus.base.clock import Clock
from podstatus.base.system_clock import SystemClock
from podstatus.base.wake_up import WakeUp
from podstatus.kube.conditions import conditions_by_kubelet
from podstatus.kube.encoding.frozen_copy import freeze, require_type
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import POD_PHASES, ApiUID, Pod, PodUID, check_pod, check_uid
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.status.decide.describe import (
    describe_containers,
    foreign_conditions,
    running_containers,
    unmodified_reason,
)
from podstatus.status.decide.readiness import with_container_readiness, with_container_startup
from podstatus.status.decide.resize import DEFERRED, INFEASIBLE, ResizeConditions
from podstatus.status.decide.update import (
    UpdateAccepted,
    UpdateOutcome,
    UpdateRejected,
    UpdateUnchanged,
)
from podstatus.status.decide.versioned_status import VersionedStatus
from podstatus.status.notify import SafeStartupLatency
from podstatus.status.pod_allocations import allocation_from_pod, requests_from_pod
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import (
    AllocatedResources,
    AllocationState,
    NoAllocationState,
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
from podstatus.status.store import StatusModifier, StatusStore
from podstatus.status.sync.build_syncer import build_syncer
from podstatus.status.sync.context import SyncContext
from podstatus.status.sync.loop import SyncLoop, Wake
from podstatus.status.sync.outbox_writer import OutboxWriter
from podstatus.status.sync.syncer import SyncCounts, Syncer

logger = logging.getLogger(__name__)

_condition_type = attrgetter("type")


class StatusManager:
    """Caches the status of each pod and keeps the API server's copy equal to it.

    Parameters:

    - `client`: the API server's pods. If None, the manager serves its cache and sends nothing.
    - `pods`: the pods that the node runs.
    - `safety`: reports whether containers of a pod may still be running.
    - `startup_latency`, `observer`: receive measurements and counts.
    - `state`: stores allocations and resize statuses; None stores nothing.
    - `clock`, `gates`, `policy`: default to the system clock, the feature gates of v1.36 and
      `SyncPolicy()` (many pods in parallel, no GET before a PATCH).
    - `events`: records rejected statuses and corrected foreign writes.
    - `outbox`: stores final statuses until the server has acknowledged them.
    - `recompute_status`: called by the sync loop when another client wrote to a pod's status
      (`pod_observed`); returns whether it will set a new status.
    - `heartbeat`: called by the sync loop at least once per period.

    `SyncPolicy.upstream()` does not use `events`, `outbox` and `recompute_status`.

    All methods are thread-safe, and cached statuses are frozen. `run()` is the sync loop for
    callers with an event loop. `start()` and `stop()` run it in a thread with its own event loop,
    so the client must not be bound to another one. Callers with their own sync loop call
    `sync_batch()` instead. Create a manager after a fork, not before.
    """

    def __init__(  # noqa: PLR0913 - optional ports by keyword: a caller passes what it has
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
        check_port(pods, PodLookup, "pods")
        check_port(safety, PodDeletionSafetyProvider, "safety")
        if startup_latency is not None:
            check_port(startup_latency, PodStartupLatencyStateHelper, "startup_latency")
        if observer is not None:
            check_port(observer, StatusObserver, "observer")
        if events is not None:
            check_port(events, PodEvents, "events")
        if outbox is not None:
            check_port(outbox, Outbox, "outbox")
        if client is not None:
            check_port(client, PodApi, "client")
        clock, gates = clock or SystemClock(), gates or FeatureGates()
        policy = policy or SyncPolicy()
        self._pods = pods
        self._gates = gates
        self._own_conditions = conditions_by_kubelet(gates)
        wake_up = WakeUp[Wake]()
        self._store = StatusStore(
            pods, observer, on_changed=partial(wake_up.set, Wake.CHANGED), clock=clock, gates=gates
        )
        self._state = NoAllocationState() if state is None else state
        check_port(self._state, AllocationState, "state")
        check_port(getattr(self._state, "allocated", None), AllocatedResources, "state.allocated")
        # The upstream policy has no outbox, and would never remove an entry.
        self._outbox = OutboxWriter(None if policy.parallel is None else outbox)
        self._is_seeded = False
        self._startup_latency = (
            None if startup_latency is None else SafeStartupLatency(startup_latency)
        )
        self._syncer: Syncer | None = None
        if client is not None:
            context = SyncContext(
                client=client,
                pod_manager=pods,
                safety=safety,
                startup_latency=self._startup_latency,
                allocations=state,
                events=events,
                recompute_status=recompute_status,
                clock=clock,
                gates=gates,
                policy=policy,
            )
            self._syncer = build_syncer(context, self._store, self._outbox)
        self._loop = SyncLoop(self._syncer, wake_up, clock, policy.full_sync_period, heartbeat)

    # Sync loop

    def run(self) -> Coroutine[Any, Any, None]:
        """Return the sync loop to await: it syncs changes, and all pods once per period.

        The manager counts as running from this call on, until `stop()`; raises RuntimeError if
        it is running already. Cancellation ends the loop immediately; unacknowledged statuses
        are sent at the next run. Errors of the clock are raised as an ExceptionGroup, errors of
        single pods are logged and retried. Raises the same errors as `start()`.
        """
        self._restore()
        return self._loop.run()

    def start(self) -> None:
        """Start the sync loop in a new thread with its own event loop.

        Restores the state first. If that fails, raises the state's error (`CheckpointError` for
        a `FileState`) and starts nothing.
        """
        self._restore()
        self._loop.start()

    def stop(self, *, drain: float = 5.0) -> None:
        """Stop the sync loop and wait for its thread. After `run()`, await the task instead.

        For at most `drain` seconds, the loop first sends unsent statuses, including those that
        failed before and held-back phases; a further `stop()` can shorten the time. Then requests
        in flight are cancelled. Unacknowledged statuses are sent at the next run. Do not call it
        from a signal handler, which may interrupt the manager itself: set a flag there, or use
        `loop.add_signal_handler`.
        """
        self._loop.stop(drain=drain)

    def reconcile(self) -> None:
        """Request a full sync now instead of at the end of the period."""
        self._loop.reconcile()

    def pod_observed(self, uid: str) -> None:
        """Notify the manager that the pod manager has a newer copy of this pod.

        Accepts the UID of a mirror pod. Writes of other clients to parts that the node owns are
        corrected immediately instead of at the next full sync. Does nothing with the upstream
        policy.
        """
        if self._syncer is not None and self._syncer.corrects_foreign_writes:
            self._store.mark_observed(self._pods.translate_pod_uid(uid))
            self._loop.wake_up()

    async def sync_batch(self, *, full: bool) -> int:
        """Run one sync: changed statuses, or with `full` a reconcile of all pods.

        Returns the number of pods to sync, including pods that wait because the server is
        unavailable, excluding pods that back off after a failure. For tests and for callers with
        their own loop; raises RuntimeError while `run()` runs, and the same errors as `start()`.
        """
        self._restore()
        return await self._loop.sync_once(full=full)

    # Statuses

    def pod_status(self, uid: str) -> PodStatus | None:
        """Return the cached status, or None. Accepts the UID of a mirror pod.

        A termination message that was cut inside a character has its remaining bytes as lone
        surrogates; `to_document` converts them to valid JSON.
        """
        entry = self._store.entry(self._pods.translate_pod_uid(uid))
        return None if entry is None else entry.status

    def latest_status(self, pod: Pod) -> PodStatus:
        """Return the cached status. If there is none, return the newer of the API server's status
        and the status that the outbox restored after a restart.
        """
        return self._store.latest_status(pod)

    def set_pod_status(self, pod: Pod, status: PodStatus) -> tuple[PodStatus, bool]:
        """Validate, normalise, timestamp and cache a status, and queue it for sending.

        Returns the cached status, and whether this call changed it. It does not if the status is
        equal, or if it is refused because it restarts a container that must stay terminated; the
        reason is logged. For a static pod, pass the static pod, not its mirror. Raises TypeError,
        ValueError or QuantityError for an invalid status, a pod without a UID, or an invalid
        quantity.
        """
        check_pod(pod)
        require_type(status, PodStatus)
        outcome: UpdateOutcome = UpdateUnchanged(())
        entry, is_repeated = self._store.find(pod, status)
        if not is_repeated:
            status = freeze(status, None if entry is None else entry.status)
            # Always resend the status of a pod that is being deleted: it may be deletable now.
            is_deleting = pod.metadata.deletion_timestamp is not None
            outcome, entry = self._store.update(pod, status, force=is_deleting)
        if not self._own_conditions.issuperset(map(_condition_type, status.conditions or ())):
            _log_foreign_conditions(pod, status, self._gates)
        if isinstance(outcome, UpdateRejected) or logger.isEnabledFor(logging.DEBUG):
            _log_outcome(pod, outcome)
        return PodStatus() if entry is None else entry.status, isinstance(outcome, UpdateAccepted)

    def set_container_readiness(self, pod_uid: str, container_id: str, *, ready: bool) -> None:
        """Set the container's readiness from a probe result, and update Ready and ContainersReady.

        Does nothing if the pod or container is unknown, or already has this readiness.
        """
        self._modify_status(
            pod_uid,
            container_id,
            lambda pod, status: with_container_readiness(pod, status, container_id, ready=ready),
        )

    def set_container_startup(self, pod_uid: str, container_id: str, *, started: bool) -> None:
        """Set the container's `started` field from a startup probe result."""
        self._modify_status(
            pod_uid,
            container_id,
            lambda _, status: with_container_startup(status, container_id, started=started),
        )

    def terminate_pod(self, pod: Pod) -> None:
        """Set the pod's final status: containers without an observed exit failed with code 137.

        The phase becomes terminal, except that a static pod keeps its phase. Once the API server
        shows the terminal phase and the pod's deletion was requested, the sync deletes the API
        object. If the status does not match the spec, it is refused and the reason is logged.
        """
        check_pod(pod)
        if (entry := self._store.entry(pod.uid)) is not None:
            _log_termination(pod, entry.status)
        _log_outcome(pod, self._store.terminate(pod))

    def remove_orphaned_statuses(self, pod_uids: Iterable[str]) -> None:
        """Remove all pods except those with these UIDs, with their resizes and allocations.

        Raises TypeError if `pod_uids` is a str or has an element that is not one.
        """
        if isinstance(pod_uids, str):
            raise TypeError(f"expected UIDs, got the str {pod_uids[:40]!r}; pass a set of UIDs")
        active = frozenset(pod_uids)
        if invalid := [uid for uid in active if not isinstance(uid, str)]:
            raise TypeError(f"expected UIDs, got a {type(invalid[0]).__name__} among them")
        self._store.retain_only(active)
        self._state.remove_orphaned_pods(active)

    def remove_status(self, uid: str) -> None:
        """Remove one pod with its resizes, allocation and startup state.

        Its versions restart at 1. Errors of the allocation state are raised after the rest has been
        removed.
        """
        check_uid(uid)
        self._store.remove(PodUID(uid))
        if self._startup_latency is not None:
            self._startup_latency.delete_pod_startup_state(PodUID(uid))
        self._state.remove_pod(PodUID(uid))

    def add_notifier(self, notifier: PodUpdateNotifier) -> None:
        """Call this notifier for every status that is cached from now on.

        A call that caches a status returns after its notification has been delivered, in the
        thread of a caller or of the sync loop. Notifications of one pod arrive in the order of
        its versions.
        """
        check_port(notifier, PodUpdateNotifier, "notifier")
        self._store.add_notifier(notifier)

    # Resize conditions

    def pod_resize_conditions(self, uid: str) -> tuple[PodCondition, ...]:
        """Return the pod's resize conditions: pending, then in progress."""
        return self._store.resize(PodUID(uid)).as_tuple()

    def set_pod_resize_pending_condition(
        self, uid: str, reason: str, message: str, observed_generation: int
    ) -> bool:
        """Set PodResizePending and return whether its reason or generation changed.

        Any reason but Infeasible becomes Deferred.
        """
        return self._store.update_resizes(
            lambda resizes, now: resizes.set_pending(
                PodUID(uid), reason, message, observed_generation, now
            )
        )

    def set_pod_resize_in_progress_condition(
        self, uid: str, reason: str, message: str, observed_generation: int
    ) -> tuple[int, bool]:
        """Set PodResizeInProgress; return its generation and whether reason or message changed.

        The generation is that of the first call since the condition was cleared.
        """
        return self._store.update_resizes(
            lambda resizes, now: resizes.set_in_progress(
                PodUID(uid), reason, message, observed_generation, now
            )
        )

    def clear_pod_resize_pending_condition(self, uid: str) -> None:
        """Remove the PodResizePending condition of this pod."""
        self._store.update_resizes(lambda resizes, _: resizes.clear_pending(PodUID(uid)))

    def clear_pod_resize_in_progress_condition(self, uid: str) -> int | None:
        """Remove PodResizeInProgress; return its generation, or None if it was not set."""
        return self._store.update_resizes(lambda resizes, _: resizes.clear_in_progress(PodUID(uid)))

    def backfill_pod_resize_conditions(self, pods: Iterable[Pod]) -> None:
        """Copy the resize conditions from the pods' statuses, after a restart."""
        restored = tuple(pods)
        for pod in restored:
            check_pod(pod)
        self._store.update_resizes(lambda resizes, now: resizes.backfill(restored, now))

    def is_pod_resize_deferred(self, uid: str) -> bool:
        """Whether a resize of this pod waits for free resources."""
        return self._pending_reason(uid) == DEFERRED

    def is_pod_resize_infeasible(self, uid: str) -> bool:
        """Whether a resize of this pod is impossible on this node."""
        return self._pending_reason(uid) == INFEASIBLE

    # Allocations

    def container_resource_allocation(
        self, pod_uid: str, container: str
    ) -> ResourceRequirements | None:
        """Return the container's allocated resources, also after a restart; None if unknown."""
        return self._state.allocated.container_resources(PodUID(pod_uid), container)

    def set_pod_allocation(self, pod: Pod) -> None:
        """Record the resources in the pod's spec as allocated.

        A `FileState` has written them to disk when this returns; if it raises, nothing changed.
        In the format of v1.28 these are the requests of regular containers. Without a `state`,
        does nothing.
        """
        check_pod(pod)
        select = requests_from_pod if self._state.stores_requests_only else allocation_from_pod
        self._state.allocated.set_pod_resource_info(pod.uid, freeze(select(pod)))

    def pod_resize_status(self, pod_uid: str) -> str | None:
        """Return the pod's last resize status, also after a restart; None if it has none."""
        return self._state.resize_status(PodUID(pod_uid))

    def set_pod_resize_status(self, pod_uid: str, status: str) -> None:
        """Store the pod's resize status; "" removes it. Raises TypeError if it is not a str.

        Upstream: SetPodResizeStatus, status_manager.go v1.28.0.
        """
        check_uid(pod_uid)
        if not isinstance(status, str):
            raise TypeError(f"expected a resize status, got {type(status).__name__}; pass a str")
        self._state.set_resize_status(PodUID(pod_uid), status)

    # Inspection

    def entries(self) -> Mapping[PodUID, VersionedStatus]:
        """Return a snapshot of all cached statuses with their versions."""
        return self._store.entries()

    def resizes(self) -> Mapping[PodUID, ResizeConditions]:
        """Return a snapshot of the resize conditions of all pods."""
        return self._store.resizes()

    def sent_versions(self) -> Mapping[ApiUID, int]:
        """Return the last acknowledged version of each pod, by API UID."""
        return {} if self._syncer is None else self._syncer.sent_versions()

    def sync_counts(self) -> SyncCounts:
        """Return the number of pods in flight, rejected and in the outbox.

        All are 0 with the upstream policy.
        """
        return SyncCounts() if self._syncer is None else self._syncer.counts()

    def is_acknowledged(self, uid: str) -> bool:
        """Whether the API server has acknowledged all updates of this pod.

        A held-back phase counts as acknowledged with the rest of its status.
        """
        entry = self._store.entry(PodUID(uid))
        return entry is None or not entry.unsent

    def pop_changes(self) -> bool:
        """Whether a status changed since the last sync or the last call of this method.

        For callers with their own loop: if true, call `sync_batch(full=False)`. Raises
        RuntimeError while `run()` runs.
        """
        return self._loop.pop_changes()

    # Internals

    def _restore(self) -> None:
        """Restore the allocation state, and once also the outbox."""
        self._state.restore()
        if not self._is_seeded:
            self._is_seeded = True
            self._store.seed(self._outbox.load())

    def _modify_status(self, pod_uid: str, container_id: str, modifier: StatusModifier) -> None:
        modified = self._store.modify(PodUID(pod_uid), modifier)
        if modified is not None:
            _log_outcome(*modified)
        elif logger.isEnabledFor(logging.DEBUG):
            self._log_unmodified(PodUID(pod_uid), container_id)

    def _log_unmodified(self, uid: PodUID, container_id: str) -> None:
        pod, entry = self._pods.pod_by_uid(uid), self._store.entry(uid)
        why = unmodified_reason(
            None if entry is None else entry.status, container_id, has_pod=pod is not None
        )
        known = pod or entry
        logger.debug(
            "probe result ignored: pod=%s uid=%s container=%s reason=%r",
            "" if known is None else f"{known.namespace}/{known.name}",
            uid,
            container_id,
            why,
        )

    def _pending_reason(self, uid: str) -> str | None:
        pending = self._store.resize(PodUID(uid)).pending
        return None if pending is None else pending.reason


def _log_outcome(pod: Pod, outcome: UpdateOutcome) -> None:
    match outcome:
        case UpdateRejected(reason):
            logger.error(
                "status refused: pod=%s/%s uid=%s reason=%s", *pod.full_name, pod.uid, reason
            )
        case UpdateUnchanged():
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug("status unchanged: pod=%s/%s uid=%s", *pod.full_name, pod.uid)
        case UpdateAccepted(status=status):
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug(
                    "status cached: pod=%s/%s uid=%s phase=%s containers=%r",
                    *pod.full_name,
                    pod.uid,
                    status.phase,
                    describe_containers(status),
                )


def _log_foreign_conditions(pod: Pod, status: PodStatus, gates: FeatureGates) -> None:
    """Log a programmer error: the status has conditions that it must not set."""
    if foreign := foreign_conditions(pod, status, gates):
        logger.error(
            "status sets conditions that other components own, they are not sent: pod=%s/%s "
            "uid=%s conditions=%s",
            *pod.full_name,
            pod.uid,
            ",".join(foreign),
        )


def _log_termination(pod: Pod, status: PodStatus) -> None:
    """Log programmer errors: the caller said that no container of the pod runs."""
    if running := running_containers(status):
        logger.error(
            "terminated pod has running containers in its status, this is a programmer error: "
            "pod=%s/%s uid=%s containers=%s",
            *pod.full_name,
            pod.uid,
            ",".join(running),
        )
    if status.phase not in POD_PHASES:
        logger.error(
            "terminated pod has an unknown phase, this is a programmer error: "
            "pod=%s/%s uid=%s phase=%r",
            *pod.full_name,
            pod.uid,
            status.phase,
        )
