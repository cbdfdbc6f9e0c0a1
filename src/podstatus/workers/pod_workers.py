"""One worker task per pod with pending work; it runs the sync steps of the pod's lifecycle.

Upstream: podWorkers, pkg/kubelet/pod_workers.go v1.36.4.
"""

import asyncio
import logging
import random as chance
from collections.abc import Callable

from podstatus.base.backoff import Backoff
from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.events import reasons
from podstatus.events.object_references import pod_reference
from podstatus.kube.objects.pod import Pod, PodUID, is_static_pod
from podstatus.kube.objects.runtime_facts import ContainerRunState, PodFacts, SandboxState
from podstatus.runtime.port import RuntimePod
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.lifecycle.state_machine import (
    Eviction,
    PodLifecycle,
    PodWorkerState,
    RequestedEviction,
    admitted,
    completed,
    evicted,
    finalized,
    is_forgettable,
    orphaned,
    reclaimed,
    removed,
    terminated,
    updated,
)
from podstatus.workers.pod_syncer import PodSyncer

logger = logging.getLogger(__name__)


class PodWorkers:
    """Drives every pod through its lifecycle.

    Not thread-safe: call from the event loop. Notification methods never block.
    """

    def __init__(
        self,
        dependencies: WorkerDependencies,
        syncer: PodSyncer,
        *,
        on_finished: Callable[[PodLifecycle], None],
        find_eviction: Callable[[PodUID], RequestedEviction | None] = lambda _: None,
        random: Callable[[], float] = chance.random,
    ) -> None:
        """`find_eviction` returns the recorded eviction of a pod, also that of a previous agent."""
        self._registry = dependencies.registry
        self._pleg = dependencies.pleg
        self._statuses = dependencies.statuses
        self._recorder = dependencies.recorder
        self._clock = dependencies.clock
        self._policy = dependencies.policy
        self._metrics = dependencies.metrics
        self._syncer = syncer
        self._on_finished = on_finished
        self._find_eviction = find_eviction
        self._random = random
        self._tasks: asyncio.TaskGroup | None = None
        self._wakeups: dict[PodUID, asyncio.Event] = {}
        """Wake-up event of each pod that has a worker task."""
        self._sync_scopes: dict[PodUID, asyncio.Timeout] = {}
        """Running `sync_pod` calls, cancelled when the pod starts to terminate."""
        self._update_type: dict[PodUID, str] = {}
        """Metrics label of the next sync, "create" or "update", as upstream; used once."""
        self._first_seen: dict[PodUID, int] = {}
        """Time since a pod was first seen, for pods that have not reached phase Running."""
        self._soon_retries: dict[PodUID, Backoff] = {}
        """Back-offs of pods whose last sync failed for a cause that may pass within a moment."""

    async def run(self) -> None:
        """Run the workers until cancelled. Containers keep running afterwards."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for lifecycle in self._registry.all():
                    self._ensure_worker(lifecycle)
                try:
                    await asyncio.Event().wait()
                finally:
                    # Notifications that arrive during the shutdown start no new worker.
                    self._tasks = None
        finally:
            self._wakeups.clear()

    # Notifications

    def update(self, pod: Pod) -> None:
        """Add a pod that a source delivers, or apply its new version."""
        lifecycle = self._registry.get(pod.uid)
        self._update_type[pod.uid] = "create" if lifecycle is None else "update"
        if lifecycle is None:
            if pod.status.phase != "Running":
                self._first_seen[pod.uid] = self._clock.monotonic()
            requested = self._find_eviction(pod.uid)
            self._transition(admitted(pod, idle=self._is_idle(pod.uid), requested=requested))
        else:
            self._transition(updated(lifecycle, pod))

    def remove(self, uid: PodUID) -> None:
        """Terminate a pod that no source delivers any more."""
        if (lifecycle := self._registry.get(uid)) is not None:
            self._transition(removed(lifecycle))

    def has_eviction(self, uid: PodUID) -> bool:
        """Return whether an eviction of the pod is recorded, so that `update` completes it."""
        return self._find_eviction(uid) is not None

    def kill(self, uid: PodUID, eviction: Eviction, grace_seconds: int | None = None) -> None:
        """Terminate a pod on behalf of the node; `eviction` is reported in its status."""
        if (lifecycle := self._registry.get(uid)) is not None:
            self._transition(evicted(lifecycle, eviction, grace_seconds))

    def reclaim(self, uid: PodUID) -> None:
        """Remove the sandbox and files of a finished pod, as soon as its final status is safe."""
        if (lifecycle := self._registry.get(uid)) is not None:
            self._transition(reclaimed(lifecycle))

    def terminate_orphan(self, orphan: RuntimePod) -> None:
        """Terminate a pod that only the runtime knows."""
        if self._registry.get(orphan.uid) is None:
            self._metrics.orphans.inc()
            self._transition(orphaned(orphan.uid, orphan.namespace, orphan.name))

    def wake(self, uid: PodUID) -> None:
        """Sync this pod as soon as its current step is done."""
        if (wakeup := self._wakeups.get(uid)) is not None:
            wakeup.set()

    # Workers

    def _transition(self, lifecycle: PodLifecycle) -> None:
        before = self._registry.get(lifecycle.uid)
        self._registry.put(lifecycle)
        if lifecycle.state is not PodWorkerState.SYNC:
            self._cancel_sync(lifecycle.uid)
        if before is None or before.state is not lifecycle.state:
            logger.info(
                "pod worker state changed: state=%s pod=%s/%s uid=%s",
                lifecycle.state.value,
                lifecycle.namespace,
                lifecycle.name,
                lifecycle.uid,
            )
        self._ensure_worker(lifecycle)

    def _cancel_sync(self, uid: PodUID) -> None:
        """Cancel a running `sync_pod`, so that no further container starts.

        A container stop in progress continues: a shorter grace period does not change it, as in the
        recordings of the kubelet (SURPRISES, tour 6).
        """
        scope = self._sync_scopes.get(uid)
        # Cancel only once: the cancelled step may need time to unwind.
        if scope is not None and scope.when() is None:
            scope.reschedule(asyncio.get_running_loop().time())

    def _ensure_worker(self, lifecycle: PodLifecycle) -> None:
        if lifecycle.uid in self._wakeups:
            self._wakeups[lifecycle.uid].set()
        elif self._tasks is not None and (
            lifecycle.state is not PodWorkerState.FINISHED or is_forgettable(lifecycle)
        ):
            self._wakeups[lifecycle.uid] = asyncio.Event()
            self._tasks.create_task(
                self._run_worker(lifecycle.uid), name=f"pod {lifecycle.namespace}/{lifecycle.name}"
            )

    async def _run_worker(self, uid: PodUID) -> None:
        """Run sync steps until the pod is finished."""
        wakeup = self._wakeups[uid]
        try:
            while (lifecycle := self._registry.get(uid)) is not None:
                wakeup.clear()
                if lifecycle.state is PodWorkerState.FINISHED:
                    break
                delay = await self._sync_once(lifecycle)
                if self._tasks is None:
                    return  # an exception group can swallow the cancellation
                await wait_event_or_timeout(wakeup, self._clock, delay)
        finally:
            self._wakeups.pop(uid, None)
        if lifecycle is not None:
            self._complete(lifecycle)

    def _complete(self, lifecycle: PodLifecycle) -> None:
        self._on_finished(lifecycle)
        self._update_type.pop(lifecycle.uid, None)
        self._first_seen.pop(lifecycle.uid, None)
        self._soon_retries.pop(lifecycle.uid, None)
        if is_forgettable(lifecycle):
            self._registry.forget(lifecycle.uid)
            if lifecycle.recreated_as is not None:
                if lifecycle.pod is not None:  # an orphan's status is the rejection: keep it
                    self._syncer.forget_status(lifecycle.uid)
                is_static = is_static_pod(lifecycle.recreated_as)
                self._metrics.recreated_pods.inc("true" if is_static else "")
                self.update(lifecycle.recreated_as)
        self._wake_same_name(lifecycle)

    def _wake_same_name(self, lifecycle: PodLifecycle) -> None:
        for other in self._registry.all():
            if (other.namespace, other.name) == (lifecycle.namespace, lifecycle.name):
                self.wake(other.uid)

    async def _sync_once(self, lifecycle: PodLifecycle) -> float:
        """Run one step. Return the seconds to wait for a wake-up before the next one."""
        began, operation = self._clock.monotonic(), self._operation(lifecycle)
        try:
            match lifecycle.state:
                case PodWorkerState.SYNC:
                    return await self._sync(lifecycle)
                case PodWorkerState.TERMINATING:
                    await self._terminate(lifecycle)
                case PodWorkerState.TERMINATED:
                    await self._finalize(lifecycle)
        except Exception as error:  # noqa: BLE001 - a runtime may raise anything; retry
            return self._record_failure(lifecycle, error)
        finally:
            self._metrics.sync_durations.observe(self._seconds_since(began), operation)
        return 0.0

    def _operation(self, lifecycle: PodLifecycle) -> str:
        """Value of the kubelet's `operation_type` label for the next step."""
        update_type = self._update_type.pop(lifecycle.uid, "sync")
        if update_type == "create" and (seen := self._first_seen.get(lifecycle.uid)) is not None:
            self._metrics.worker_starts.observe(self._seconds_since(seen))
        if lifecycle.state is PodWorkerState.SYNC:
            return update_type
        return "kill" if lifecycle.state is PodWorkerState.TERMINATING else "terminated"

    def _seconds_since(self, began: int) -> float:
        return (self._clock.monotonic() - began) / 1e9

    async def _sync(self, lifecycle: PodLifecycle) -> float:
        if lifecycle.pod is None or self._registry.waits_for_static_pod(lifecycle):
            return self._with_jitter(self._policy.sync_frequency)
        scope = self._sync_scopes[lifecycle.uid] = asyncio.timeout(None)
        try:
            async with scope:
                synced = await self._syncer.sync_pod(lifecycle.pod)
        except TimeoutError:
            if scope.expired():
                return 0.0
            raise
        finally:
            del self._sync_scopes[lifecycle.uid]
        if synced.is_running and (seen := self._first_seen.pop(lifecycle.uid, None)) is not None:
            self._metrics.pod_starts.observe(self._seconds_since(seen))
        if synced.is_terminal and (current := self._registry.get(lifecycle.uid)) is not None:
            self._transition(completed(current))
            return 0.0
        if synced.retry_soon:
            return self._with_jitter(self._next_soon_retry(lifecycle.uid))
        self._soon_retries.pop(lifecycle.uid, None)
        interval = self._policy.retry_after if synced.failed else self._policy.sync_frequency
        due = self._with_jitter(interval)
        return due if synced.requeue_after is None else min(due, synced.requeue_after)

    async def _terminate(self, lifecycle: PodLifecycle) -> None:
        status = await self._syncer.sync_terminating_pod(lifecycle)
        if (current := self._registry.get(lifecycle.uid)) is None:
            return
        # Set the status and the state without awaiting in between, so that the sync sends nothing
        # until both are set; otherwise it would hold back the terminal phase once more.
        if current.pod is not None and status is not None:
            self._statuses.set_pod_status(current.pod, status)
        self._transition(terminated(current))

    async def _finalize(self, lifecycle: PodLifecycle) -> None:
        # Files that are kept for now are removed as an orphan's once the pod has left its source.
        if self._needs_cleanup(lifecycle):
            if lifecycle.pod is not None and not lifecycle.finalized:
                self._syncer.resend_final_status(lifecycle.pod)
            await self._syncer.cleanup(
                lifecycle.uid, lambda: self._is_status_dispensable(lifecycle.uid)
            )
        if (current := self._registry.get(lifecycle.uid)) is None:
            return
        if current.pod is not None:
            self._statuses.terminate_pod(current.pod)
        cleaned_up = lifecycle.deleted or lifecycle.reclaimed
        self._transition(finalized(current, cleaned_up=cleaned_up))

    def _needs_cleanup(self, lifecycle: PodLifecycle) -> bool:
        return (
            lifecycle.source_removed
            or lifecycle.reclaimed
            or (lifecycle.deleted and not self._policy.keep_terminated_pod_volumes)
        )

    def _is_status_dispensable(self, uid: PodUID) -> bool:
        """Whether the cleanup need not wait until the API server has the final status.

        It has no object to update, or the record of the eviction survives a restart.
        """
        lifecycle = self._registry.get(uid)
        if lifecycle is None or lifecycle.source_removed:
            return True
        return lifecycle.reclaimed and self.has_eviction(uid)

    def _record_failure(self, lifecycle: PodLifecycle, error: Exception) -> float:
        logger.warning(
            "pod sync failed, will retry: pod=%s/%s uid=%s state=%s error=%s",
            lifecycle.namespace,
            lifecycle.name,
            lifecycle.uid,
            lifecycle.state.value,
            _describe_error(error),
        )
        if lifecycle.pod is not None:
            reason = reasons.FAILED_SYNC
            message = f"error determining status: {_describe_error(error)}"
            if lifecycle.state is PodWorkerState.TERMINATING:
                reason, message = (
                    reasons.FAILED_KILL_POD,
                    f"error killing pod: {_describe_error(error)}",
                )
            self._recorder.warn(pod_reference(lifecycle.pod), reason, message)
        return self._with_jitter(self._policy.retry_after)

    def _is_idle(self, uid: PodUID) -> bool:
        runtime_pod = self._pleg.find(uid)
        return self._pleg.has_listed and (
            runtime_pod is None or not _has_running(runtime_pod.facts)
        )

    def _next_soon_retry(self, uid: PodUID) -> float:
        """Return the next delay of a pod that waits for something that may come in a moment."""
        initial, maximum = self._policy.retry_soon_after, self._policy.retry_after
        first = Backoff(initial_seconds=min(initial, maximum), max_seconds=maximum)
        backoff = self._soon_retries[uid] = self._soon_retries.get(uid, first).failed()
        return backoff.delay(0.0)

    def _with_jitter(self, seconds: float) -> float:
        return seconds * (1 + self._policy.jitter * self._random())


def _has_running(facts: PodFacts) -> bool:
    """Upstream: isPodStatusCacheTerminal, pod_workers.go v1.36.4."""
    return any(c.state is ContainerRunState.RUNNING for c in facts.containers) or any(
        s.state is SandboxState.READY for s in facts.sandboxes
    )


def _describe_error(error: BaseException) -> str:
    """Message of the error, or of the first one in an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
