"""The three steps of a pod's life: keep it running, end it, close its books.

Each step reads what the runtime knows, says what the pod's status is, and does what follows. It
may be interrupted at every await, and tried again.

Upstream: SyncPod, SyncTerminatingPod, SyncTerminatedPod, pkg/kubelet/kubelet.go v1.36.4.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec
from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.events import reasons
from podstatus.events.about import about_pod
from podstatus.events.recorder import Recorder
from podstatus.kube.cri import ContainerRunState, PodFacts
from podstatus.kube.pod import Pod, PodUID, is_terminal_phase
from podstatus.kube.pod_status import PodStatus
from podstatus.kube.restarts import is_restartable_init_container
from podstatus.kube.times import Time
from podstatus.pods.api_status import generate_api_pod_status
from podstatus.pods.deadline import DEADLINE_EXCEEDED, DEADLINE_MESSAGE
from podstatus.runtime.port import Runtime
from podstatus.runtime.relist import RuntimeView
from podstatus.status.manager import StatusManager
from podstatus.workers.actions import compute_pod_actions
from podstatus.workers.allocated import with_allocation
from podstatus.workers.containers import Containers
from podstatus.workers.life import PodLife
from podstatus.workers.pod_actions import PodActions
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.probe_book import ProbeBook

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
_ARRIVAL_SECONDS = 0.1
"""How often it is asked whether a last status has arrived; then twice as long, up to 1 s."""


class StillRunningError(Exception):
    """A runtime lists a container as running that it was told to end."""


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """What came of keeping a pod running."""

    ended: bool = False
    """Its containers add up to an end."""
    look_again: float | None = None
    """Seconds until something is to be done, though nothing may happen; None: the usual time."""
    failed: bool = False
    """Something could not be started."""


class PodSteps:
    """Does the steps for all pods; one step of a pod at a time."""

    def __init__(
        self,
        runtime: Runtime,
        view: RuntimeView,
        statuses: StatusManager,
        recorder: Recorder,
        *,
        containers: Containers,
        book: ProbeBook,
        clock: Clock,
        policy: WorkerPolicy,
        host_ips: Callable[[], Sequence[str]],
        on_init_finished: Callable[[PodUID, Time], None] = lambda *_: None,
    ) -> None:
        """`on_init_finished` is told of the ends of init containers, again and again."""
        self._runtime = runtime
        self._view = view
        self._statuses = statuses
        self._recorder = recorder
        self._containers = containers
        self._book = book
        self._clock = clock
        self._policy = policy
        self._host_ips = host_ips
        self._on_init_finished = on_init_finished
        self._granted: set[PodUID] = set()

    # Keep it running

    async def sync(self, pod: Pod) -> Synced:
        """Say what its status is, and start and stop what the spec asks for."""
        pod = await self._allocated(pod)
        facts = await self._facts(pod.uid)
        self._tell_init_ends(pod, facts)
        self._book.forget_ended(pod.uid, facts)
        status = self._tell(pod, facts)
        if is_terminal_phase(status.phase):
            return Synced(ended=True)
        actions = compute_pod_actions(
            pod,
            facts,
            now=self._now(),
            crash_loops=self._containers.crash_loops,
            verdicts=self._book.verdicts(pod.uid),
            gates=self._policy.gates,
        )
        started = await self._containers.act(pod, facts, actions)
        if not _acts(actions):
            return Synced(look_again=self._look_again(pod, status, actions))
        after = await self._facts(pod.uid)
        if not started:
            self._tell(pod, after)
        # A runtime that does nothing of what it is asked for is not asked again at once.
        is_done = started and after != facts and not _hang(actions, after)
        return Synced(look_again=0.0) if is_done else Synced(failed=True)

    def _tell_init_ends(self, pod: Pod, facts: PodFacts) -> None:
        """For who measures how long pods take to start. Those that serve others never end."""
        init = pod.spec.init_containers or ()
        names = {c.name for c in init if not is_restartable_init_container(c)}
        if not names:
            return
        for attempt in reversed(facts.containers):
            is_over = attempt.state is ContainerRunState.EXITED and attempt.finished_at
            if is_over and attempt.name in names:
                self._on_init_finished(pod.uid, attempt.finished_at)

    async def _allocated(self, pod: Pod) -> Pod:
        """The pod with what the node has granted it; the grant is on the disk before its start."""
        if pod.uid not in self._granted:
            containers = (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))
            look_up = self._statuses.container_resource_allocation
            if all(look_up(pod.uid, container.name) is None for container in containers):
                await asyncio.to_thread(self._statuses.set_pod_allocation, pod)
            self._granted.add(pod.uid)
        return with_allocation(pod, self._statuses.container_resource_allocation)

    def _look_again(self, pod: Pod, status: PodStatus, actions: PodActions) -> float | None:
        """When there is something to do: a back-off ends, or the pod's time is over."""
        due = [] if actions.look_again is None else [actions.look_again]
        began = status.start_time or (self._cached(pod) or status).start_time
        if pod.spec.active_deadline_seconds is not None and began:
            left = pod.spec.active_deadline_seconds - (self._now() - began) / _SECOND
            due.append(max(0.0, left))
        return min(due, default=None)

    # End it

    async def terminate(self, life: PodLife) -> PodStatus | None:
        """End all of its containers; its last status, which is not told yet.

        Raises StillRunningError if the runtime has not done it.
        """
        facts = await self._facts(life.uid)
        if life.pod is not None:
            self._tell(life.pod, facts, life=life)
        await self._containers.stop_pod(life.pod, life.uid, facts, life.grace_seconds)
        facts = await self._facts(life.uid)
        if running := _running(facts):
            raise StillRunningError(f"the runtime still runs {', '.join(running)} after a stop")
        if life.pod is None:
            return None
        return self._with_ending(self._status(life.pod, facts, terminal=True), life)

    # Close its books

    async def reclaim(self, uid: PodUID, has_left: Callable[[], bool]) -> None:
        """Let go of what it left on the node, once the API server has its last status.

        A pod that `has_left` has no object there whose status could arrive.
        """
        wait = _ARRIVAL_SECONDS
        while not has_left() and not self._statuses.has_arrived(uid):
            await self._clock.wait(wait)
            wait = min(1.0, 2 * wait)
        await self._runtime.remove_pod(uid)
        await self._facts(uid)

    def tell_last(self, pod: Pod, status: PodStatus) -> None:
        """Say what its containers came to."""
        self._statuses.set_pod_status(pod, status)

    def close(self, pod: Pod) -> None:
        """Say that its status will not change any more."""
        self._statuses.terminate_pod(pod)

    def forget(self, uid: PodUID) -> None:
        """Let go of what was said of a pod: it comes anew under the same UID."""
        others = self._statuses.entries().keys() - {uid}
        self._statuses.remove_orphaned_statuses(others)
        self._granted.discard(uid)

    def keep(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""
        self._granted &= uids
        self._containers.keep(uids)
        self._book.keep(uids)

    # What its status is

    def _tell(self, pod: Pod, facts: PodFacts, life: PodLife | None = None) -> PodStatus:
        status = self._status(pod, facts, terminal=False)
        if life is not None:
            status = self._with_ending(status, life)
        self._tell_deadline(pod, status)
        self._statuses.set_pod_status(pod, status)
        return status

    def _tell_deadline(self, pod: Pod, status: PodStatus) -> None:
        cached = self._cached(pod)
        if status.reason != DEADLINE_EXCEEDED or (cached and cached.reason == DEADLINE_EXCEEDED):
            return
        self._recorder.normal(about_pod(pod), reasons.DEADLINE_EXCEEDED, DEADLINE_MESSAGE)

    def _status(self, pod: Pod, facts: PodFacts, *, terminal: bool) -> PodStatus:
        return generate_api_pod_status(
            pod,
            facts,
            now=self._now(),
            old_status=self._cached(pod),
            pod_is_terminal=terminal,
            start_failures=self._containers.start_failures(pod.uid),
            prober=self._book,
            resize_conditions=self._statuses.pod_resize_conditions(pod.uid),
            host_ips=self._host_ips(),
            gates=self._policy.gates,
        )

    def _with_ending(self, status: PodStatus, life: PodLife) -> PodStatus:
        """The status with why the node has ended the pod, if it has."""
        if not life.ending.reason:
            return status
        return structs.replace(
            status, phase="Failed", reason=life.ending.reason, message=life.ending.message
        )

    async def _facts(self, uid: PodUID) -> PodFacts:
        return await self._view.refresh(uid, tell=False)

    def _cached(self, pod: Pod) -> PodStatus | None:
        return self._statuses.pod_status(pod.uid)

    def _now(self) -> Time:
        return Time.from_unix_nanos(self._clock.now())


def _acts(actions: PodActions) -> bool:
    return bool(
        actions.stop_pod or actions.stop or actions.remove or actions.start_pod or actions.start
    )


def _hang(actions: PodActions, facts: PodFacts) -> bool:
    """Whether one that was started neither runs nor has ended: it would be started without end."""
    newest = [facts.find(start.container.name) for start in actions.start]
    return any(
        attempt is not None
        and attempt.state in (ContainerRunState.CREATED, ContainerRunState.UNKNOWN)
        for attempt in newest
    )


def _running(facts: PodFacts) -> list[str]:
    return [c.id for c in facts.containers if c.state is ContainerRunState.RUNNING]
