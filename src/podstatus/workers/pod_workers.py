"""One worker per pod that has something to do: it takes the steps of the pod's life.

Upstream: podWorkers, pkg/kubelet/pod_workers.go v1.36.4.
"""

import asyncio
import logging
import random as chance
from collections.abc import Callable

from podstatus.base.aio import wait_event_or_timeout
from podstatus.base.clock import Clock, Elapsed
from podstatus.events import reasons
from podstatus.events.event import pod_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import Pod, PodUID, is_static_pod
from podstatus.kube.objects.runtime_facts import ContainerRunState, PodFacts, SandboxState
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import RuntimePod
from podstatus.workers.lifecycle.pod_registry import PodRegistry
from podstatus.workers.lifecycle.state_machine import (
    Eviction,
    PodLifecycle,
    PodWorkerState,
    admitted,
    completed,
    evicted,
    finalized,
    is_forgettable,
    orphaned,
    removed,
    terminated,
    updated,
)
from podstatus.workers.pod_syncer import PodSyncer
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.ports import NoopWorkObserver, WorkObserver

logger = logging.getLogger(__name__)


class PodWorkers:
    """Takes every pod through its life. For one event loop; what it is told never waits."""

    def __init__(
        self,
        registry: PodRegistry,
        syncer: PodSyncer,
        pleg: Pleg,
        recorder: EventRecorder,
        *,
        clock: Clock,
        policy: WorkerPolicy,
        on_finished: Callable[[PodLifecycle], None] = lambda _: None,
        random: Callable[[], float] = chance.random,
        observer: WorkObserver | None = None,
    ) -> None:
        self._registry = registry
        self._syncer = syncer
        self._pleg = pleg
        self._recorder = recorder
        self._clock = clock
        self._policy = policy
        self._on_finished = on_finished
        self._random = random
        self._observer = observer or NoopWorkObserver()
        self._tasks: asyncio.TaskGroup | None = None
        self._wakeups: dict[PodUID, asyncio.Event] = {}
        """Of those pods that have a worker."""
        self._sync_scopes: dict[PodUID, asyncio.Timeout] = {}
        """The steps that are given up when the pod is to end."""
        self._update_type: dict[PodUID, str] = {}
        """What a source asked of those pods whose next step is the first since: as upstream."""
        self._first_seen: dict[PodUID, Elapsed] = {}
        """Since when those pods are known that have not run yet."""

    async def run(self) -> None:
        """Work until cancelled. Containers run on then."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for life in self._registry.all():
                    self._ensure_worker(life)
                try:
                    await asyncio.Event().wait()
                finally:
                    # What is told while workers end is for whoever works next.
                    self._tasks = None
        finally:
            self._wakeups.clear()

    # What is told

    def update(self, pod: Pod) -> None:
        """A source has this pod, or has it anew, or has it otherwise."""
        life = self._registry.get(pod.uid)
        self._update_type[pod.uid] = "create" if life is None else "update"
        if life is None:
            if pod.status.phase != "Running":
                self._first_seen[pod.uid] = Elapsed(self._clock)
            self._transition(admitted(pod, idle=self._is_idle(pod.uid)))
        else:
            self._transition(updated(life, pod))

    def remove(self, uid: PodUID) -> None:
        """No source has this pod any more."""
        if (life := self._registry.get(uid)) is not None:
            self._transition(removed(life))

    def kill(self, uid: PodUID, eviction: Eviction, grace_seconds: int | None = None) -> None:
        """The node wants this pod to end."""
        if (life := self._registry.get(uid)) is not None:
            self._transition(evicted(life, eviction, grace_seconds))

    def terminate_orphan(self, orphan: RuntimePod) -> None:
        """The runtime has something of a pod that nobody asks for."""
        if self._registry.get(orphan.uid) is None:
            self._observer.orphan_found()
            self._transition(orphaned(orphan.uid, orphan.namespace, orphan.name))

    def wake(self, uid: PodUID) -> None:
        """Something has happened to this pod: look at it."""
        if (bell := self._wakeups.get(uid)) is not None:
            bell.set()

    # The work

    def _transition(self, lifecycle: PodLifecycle) -> None:
        before = self._registry.get(lifecycle.uid)
        self._registry.put(lifecycle)
        if lifecycle.state is not PodWorkerState.SYNC:
            self._cancel_sync(lifecycle.uid)
        if before is None or before.state is not lifecycle.state:
            logger.info(
                "pod has a new stage: stage=%s pod=%s/%s uid=%s",
                lifecycle.state.value,
                lifecycle.namespace,
                lifecycle.name,
                lifecycle.uid,
            )
        self._ensure_worker(lifecycle)

    def _cancel_sync(self, uid: PodUID) -> None:
        """Start nothing more of a pod that is to end.

        A stop that is under way goes on, though: a shorter grace does not change it, as the kubelet
        was recorded (SURPRISES, tour 6).
        """
        scope = self._sync_scopes.get(uid)
        # One that is being given up already may take its time for it.
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
        """Take the steps that are to be taken; it ends when there is none."""
        bell = self._wakeups[uid]
        try:
            while (life := self._registry.get(uid)) is not None:
                bell.clear()
                if life.state is PodWorkerState.FINISHED:
                    break
                rest = await self._sync_once(life)
                if self._tasks is None:
                    return  # several failures at once can hide that it was cancelled
                await wait_event_or_timeout(bell, self._clock, rest)
        finally:
            self._wakeups.pop(uid, None)
        if life is not None:
            self._complete(life)

    def _complete(self, lifecycle: PodLifecycle) -> None:
        self._on_finished(lifecycle)
        self._update_type.pop(lifecycle.uid, None)
        self._first_seen.pop(lifecycle.uid, None)
        if is_forgettable(lifecycle):
            self._registry.forget(lifecycle.uid)
            if lifecycle.recreated_as is not None:
                if lifecycle.pod is not None:  # what is said of an orphan is that it was rejected
                    self._syncer.forget_status(lifecycle.uid)
                self._observer.pod_recreated(static=is_static_pod(lifecycle.recreated_as))
                self.update(lifecycle.recreated_as)
        self._wake_same_name(lifecycle)

    def _wake_same_name(self, lifecycle: PodLifecycle) -> None:
        for other in self._registry.all():
            if (other.namespace, other.name) == (lifecycle.namespace, lifecycle.name):
                self.wake(other.uid)

    async def _sync_once(self, lifecycle: PodLifecycle) -> float:
        """Take one step; how many seconds to rest before the next, unless something happens."""
        elapsed, operation = Elapsed(self._clock), self._operation(lifecycle)
        try:
            match lifecycle.state:
                case PodWorkerState.SYNC:
                    return await self._sync(lifecycle)
                case PodWorkerState.TERMINATING:
                    await self._terminate(lifecycle)
                case PodWorkerState.TERMINATED:
                    await self._finalize(lifecycle)
        except Exception as error:  # noqa: BLE001 - whatever a runtime raises, the pod is tried again
            return self._record_failure(lifecycle, error)
        finally:
            self._observer.pod_sync_finished(operation, elapsed.seconds())
        return 0.0

    def _operation(self, lifecycle: PodLifecycle) -> str:
        """What the next step is, in the words of the kubelet's metrics."""
        asked = self._update_type.pop(lifecycle.uid, "sync")
        if asked == "create" and (seen := self._first_seen.get(lifecycle.uid)) is not None:
            self._observer.worker_started(seen.seconds())
        if lifecycle.state is PodWorkerState.SYNC:
            return asked
        return "kill" if lifecycle.state is PodWorkerState.TERMINATING else "terminated"

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
            self._observer.pod_running(seen.seconds())
        if synced.is_terminal and (now := self._registry.get(lifecycle.uid)) is not None:
            self._transition(completed(now))
            return 0.0
        usual = self._policy.retry_after if synced.failed else self._policy.sync_frequency
        due = self._with_jitter(usual)
        return due if synced.requeue_after is None else min(due, synced.requeue_after)

    async def _terminate(self, lifecycle: PodLifecycle) -> None:
        status = await self._syncer.sync_terminating_pod(lifecycle)
        if (now := self._registry.get(lifecycle.uid)) is None:
            return
        # Nothing is sent before both are done: the phase is not held back once more.
        if now.pod is not None and status is not None:
            self._syncer.set_final_status(now.pod, status)
        self._transition(terminated(now))

    async def _finalize(self, lifecycle: PodLifecycle) -> None:
        # What is kept for now is found without an owner once the pod has left, and removed.
        if lifecycle.source_removed or (
            lifecycle.deleted and not self._policy.keep_terminated_pod_volumes
        ):
            if lifecycle.pod is not None and not lifecycle.finalized:
                self._syncer.resend_final_status(lifecycle.pod)
            await self._syncer.cleanup(
                lifecycle.uid, lambda: self._is_source_removed(lifecycle.uid)
            )
        if (now := self._registry.get(lifecycle.uid)) is None:
            return
        if now.pod is not None:
            self._syncer.sync_terminated_pod(now.pod)
        self._transition(finalized(now, cleaned_up=lifecycle.deleted))

    def _is_source_removed(self, uid: PodUID) -> bool:
        life = self._registry.get(uid)
        return life is None or life.source_removed

    def _record_failure(self, lifecycle: PodLifecycle, error: Exception) -> float:
        logger.warning(
            "pod could not be looked after, trying again: pod=%s/%s uid=%s stage=%s why=%s",
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
        known = self._pleg.find(uid)
        return self._pleg.has_listed and (known is None or not _has_running(known.facts))

    def _with_jitter(self, seconds: float) -> float:
        return seconds * (1 + self._policy.jitter * self._random())


def _has_running(facts: PodFacts) -> bool:
    """Upstream: isPodStatusCacheTerminal, pod_workers.go v1.36.4."""
    return any(c.state is ContainerRunState.RUNNING for c in facts.containers) or any(
        s.state is SandboxState.READY for s in facts.sandboxes
    )


def _describe_error(error: BaseException) -> str:
    """What went wrong, also of several things at once."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
