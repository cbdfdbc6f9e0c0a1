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
from podstatus.runtime.pleg import RuntimeView
from podstatus.runtime.port import RuntimePod
from podstatus.workers.lifecycle.pod_registry import Lives
from podstatus.workers.lifecycle.state_machine import (
    Ending,
    PodLife,
    Stage,
    begun,
    books_closed,
    completed,
    is_over,
    killed,
    orphaned,
    removed,
    stopped,
    updated,
)
from podstatus.workers.pod_syncer import PodSteps
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.ports import NoObserver, WorkObserver

logger = logging.getLogger(__name__)


class PodWorkers:
    """Takes every pod through its life. For one event loop; what it is told never waits."""

    def __init__(
        self,
        lives: Lives,
        steps: PodSteps,
        view: RuntimeView,
        recorder: EventRecorder,
        *,
        clock: Clock,
        policy: WorkerPolicy,
        on_finished: Callable[[PodLife], None] = lambda _: None,
        random: Callable[[], float] = chance.random,
        observer: WorkObserver | None = None,
    ) -> None:
        self._lives = lives
        self._steps = steps
        self._view = view
        self._recorder = recorder
        self._clock = clock
        self._policy = policy
        self._on_finished = on_finished
        self._random = random
        self._observer = observer or NoObserver()
        self._tasks: asyncio.TaskGroup | None = None
        self._bells: dict[PodUID, asyncio.Event] = {}
        """Of those pods that have a worker."""
        self._syncing: dict[PodUID, asyncio.Timeout] = {}
        """The steps that are given up when the pod is to end."""
        self._asked: dict[PodUID, str] = {}
        """What a source asked of those pods whose next step is the first since: as upstream."""
        self._seen: dict[PodUID, Elapsed] = {}
        """Since when those pods are known that have not run yet."""

    async def run(self) -> None:
        """Work until cancelled. Containers run on then."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for life in self._lives.all():
                    self._set_to_work(life)
                try:
                    await asyncio.Event().wait()
                finally:
                    # What is told while workers end is for whoever works next.
                    self._tasks = None
        finally:
            self._bells.clear()

    # What is told

    def update(self, pod: Pod) -> None:
        """A source has this pod, or has it anew, or has it otherwise."""
        life = self._lives.get(pod.uid)
        self._asked[pod.uid] = "create" if life is None else "update"
        if life is None:
            if pod.status.phase != "Running":
                self._seen[pod.uid] = Elapsed(self._clock)
            self._become(begun(pod, quiet=self._is_quiet(pod.uid)))
        else:
            self._become(updated(life, pod))

    def remove(self, uid: PodUID) -> None:
        """No source has this pod any more."""
        if (life := self._lives.get(uid)) is not None:
            self._become(removed(life))

    def kill(self, uid: PodUID, ending: Ending, grace_seconds: int | None = None) -> None:
        """The node wants this pod to end."""
        if (life := self._lives.get(uid)) is not None:
            self._become(killed(life, ending, grace_seconds))

    def end_orphan(self, orphan: RuntimePod) -> None:
        """The runtime has something of a pod that nobody asks for."""
        if self._lives.get(orphan.uid) is None:
            self._observer.orphan_found()
            self._become(orphaned(orphan.uid, orphan.namespace, orphan.name))

    def wake(self, uid: PodUID) -> None:
        """Something has happened to this pod: look at it."""
        if (bell := self._bells.get(uid)) is not None:
            bell.set()

    # The work

    def _become(self, life: PodLife) -> None:
        before = self._lives.get(life.uid)
        self._lives.put(life)
        if life.stage is not Stage.SYNC:
            self._give_up_sync(life.uid)
        if before is None or before.stage is not life.stage:
            logger.info(
                "pod has a new stage: stage=%s pod=%s/%s uid=%s",
                life.stage.value,
                life.namespace,
                life.name,
                life.uid,
            )
        self._set_to_work(life)

    def _give_up_sync(self, uid: PodUID) -> None:
        """Start nothing more of a pod that is to end.

        A stop that is under way goes on, though: a shorter grace does not change it, as the kubelet
        was recorded (SURPRISES, tour 6).
        """
        scope = self._syncing.get(uid)
        # One that is being given up already may take its time for it.
        if scope is not None and scope.when() is None:
            scope.reschedule(asyncio.get_running_loop().time())

    def _set_to_work(self, life: PodLife) -> None:
        if life.uid in self._bells:
            self._bells[life.uid].set()
        elif self._tasks is not None and (life.stage is not Stage.FINISHED or is_over(life)):
            self._bells[life.uid] = asyncio.Event()
            self._tasks.create_task(self._work(life.uid), name=f"pod {life.namespace}/{life.name}")

    async def _work(self, uid: PodUID) -> None:
        """Take the steps that are to be taken; it ends when there is none."""
        bell = self._bells[uid]
        try:
            while (life := self._lives.get(uid)) is not None:
                bell.clear()
                if life.stage is Stage.FINISHED:
                    break
                rest = await self._take_step(life)
                if self._tasks is None:
                    return  # several failures at once can hide that it was cancelled
                await wait_event_or_timeout(bell, self._clock, rest)
        finally:
            self._bells.pop(uid, None)
        if life is not None:
            self._finished(life)

    def _finished(self, life: PodLife) -> None:
        self._on_finished(life)
        self._asked.pop(life.uid, None)
        self._seen.pop(life.uid, None)
        if is_over(life):
            self._lives.forget(life.uid)
            if life.returns is not None:
                if life.pod is not None:  # what is said of an orphan is that it was rejected
                    self._steps.forget(life.uid)
                self._observer.pod_returned(static=is_static_pod(life.returns))
                self.update(life.returns)
        self._wake_namesakes(life)

    def _wake_namesakes(self, life: PodLife) -> None:
        for other in self._lives.all():
            if (other.namespace, other.name) == (life.namespace, life.name):
                self.wake(other.uid)

    async def _take_step(self, life: PodLife) -> float:
        """Take one step; how many seconds to rest before the next, unless something happens."""
        elapsed, operation = Elapsed(self._clock), self._operation(life)
        try:
            match life.stage:
                case Stage.SYNC:
                    return await self._sync(life)
                case Stage.TERMINATING:
                    await self._terminate(life)
                case Stage.TERMINATED:
                    await self._close(life)
        except Exception as error:  # noqa: BLE001 - whatever a runtime raises, the pod is tried again
            return self._failed(life, error)
        finally:
            self._observer.pod_step(operation, elapsed.seconds())
        return 0.0

    def _operation(self, life: PodLife) -> str:
        """What the next step is, in the words of the kubelet's metrics."""
        asked = self._asked.pop(life.uid, "sync")
        if asked == "create" and (seen := self._seen.get(life.uid)) is not None:
            self._observer.worker_starts(seen.seconds())
        if life.stage is Stage.SYNC:
            return asked
        return "kill" if life.stage is Stage.TERMINATING else "terminated"

    async def _sync(self, life: PodLife) -> float:
        if life.pod is None or self._lives.waits_for_namesake(life):
            return self._spread(self._policy.sync_frequency)
        scope = self._syncing[life.uid] = asyncio.timeout(None)
        try:
            async with scope:
                synced = await self._steps.sync(life.pod)
        except TimeoutError:
            if scope.expired():
                return 0.0
            raise
        finally:
            del self._syncing[life.uid]
        if synced.runs and (seen := self._seen.pop(life.uid, None)) is not None:
            self._observer.pod_runs(seen.seconds())
        if synced.ended and (now := self._lives.get(life.uid)) is not None:
            self._become(completed(now))
            return 0.0
        usual = self._policy.retry_after if synced.failed else self._policy.sync_frequency
        due = self._spread(usual)
        return due if synced.look_again is None else min(due, synced.look_again)

    async def _terminate(self, life: PodLife) -> None:
        status = await self._steps.terminate(life)
        if (now := self._lives.get(life.uid)) is None:
            return
        # Nothing is sent before both are done: the phase is not held back once more.
        if now.pod is not None and status is not None:
            self._steps.tell_last(now.pod, status)
        self._become(stopped(now))

    async def _close(self, life: PodLife) -> None:
        # What is kept for now is found without an owner once the pod has left, and removed.
        if life.gone or (life.deleted and not self._policy.keep_terminated_pod_volumes):
            if life.pod is not None and not life.closed:
                self._steps.tell_again(life.pod)
            await self._steps.reclaim(life.uid, lambda: self._has_left(life.uid))
        if (now := self._lives.get(life.uid)) is None:
            return
        if now.pod is not None:
            self._steps.close(now.pod)
        self._become(books_closed(now, reclaimed=life.deleted))

    def _has_left(self, uid: PodUID) -> bool:
        life = self._lives.get(uid)
        return life is None or life.gone

    def _failed(self, life: PodLife, error: Exception) -> float:
        logger.warning(
            "pod could not be looked after, trying again: pod=%s/%s uid=%s stage=%s why=%s",
            life.namespace,
            life.name,
            life.uid,
            life.stage.value,
            _told(error),
        )
        if life.pod is not None:
            reason = reasons.FAILED_SYNC
            message = f"error determining status: {_told(error)}"
            if life.stage is Stage.TERMINATING:
                reason, message = reasons.FAILED_KILL_POD, f"error killing pod: {_told(error)}"
            self._recorder.warn(pod_reference(life.pod), reason, message)
        return self._spread(self._policy.retry_after)

    def _is_quiet(self, uid: PodUID) -> bool:
        known = self._view.find(uid)
        return self._view.has_listed and (known is None or not _runs(known.facts))

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + self._policy.jitter * self._random())


def _runs(facts: PodFacts) -> bool:
    """Upstream: isPodStatusCacheTerminal, pod_workers.go v1.36.4."""
    return any(c.state is ContainerRunState.RUNNING for c in facts.containers) or any(
        s.state is SandboxState.READY for s in facts.sandboxes
    )


def _told(error: BaseException) -> str:
    """What went wrong, also of several things at once."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
