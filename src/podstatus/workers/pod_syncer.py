"""The three steps of a pod's life: keep it running, end it, close its books.

Each step reads what the runtime knows, says what the pod's status is, and does what follows. It
may be interrupted at every await, and tried again.

Upstream: SyncPod, SyncTerminatingPod, SyncTerminatedPod, pkg/kubelet/kubelet.go v1.36.4.
"""

import logging
from collections.abc import Callable, Sequence

import msgspec

from podstatus.base.clock import Clock
from podstatus.events import reasons
from podstatus.events.event import pod_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.by_name import first_by_name
from podstatus.kube.objects.pod import Pod, PodUID, is_terminal_phase
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.objects.runtime_facts import ContainerRunState, PodFacts
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.time import Time
from podstatus.pods.api_status import generate_api_pod_status
from podstatus.pods.phase import DEADLINE_EXCEEDED, DEADLINE_MESSAGE
from podstatus.runtime.pleg import RuntimeView
from podstatus.runtime.port import Runtime
from podstatus.status.manager import StatusManager
from podstatus.workers.actions.compute import compute_pod_actions
from podstatus.workers.actions.model import PodActions
from podstatus.workers.allocation.allocations import Grants
from podstatus.workers.allocation.resize_actuator import Actuation
from podstatus.workers.lifecycle.state_machine import PodLife
from podstatus.workers.lifecycle.termination_status import with_ending
from podstatus.workers.pod_executor import Containers
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.ports import NoProbing, Probing
from podstatus.workers.probe_results import ProbeBook
from podstatus.workers.resize.plan import with_in_force

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
    runs: bool = False
    """Its phase is Running."""


class PodSteps:
    """Does the steps for all pods; one step of a pod at a time."""

    def __init__(
        self,
        runtime: Runtime,
        view: RuntimeView,
        statuses: StatusManager,
        recorder: EventRecorder,
        *,
        containers: Containers,
        book: ProbeBook,
        clock: Clock,
        policy: WorkerPolicy,
        host_ips: Callable[[], Sequence[str]],
        probes: Probing | None = None,
        on_init_finished: Callable[[PodUID, Time], None] = lambda *_: None,
        actuation: Actuation | None = None,
    ) -> None:
        """`on_init_finished` is told of the ends of init containers, again and again.

        `actuation`: the one of `containers`; without it grants are forgotten with the agent.
        """
        self._runtime = runtime
        self._view = view
        self._statuses = statuses
        self._recorder = recorder
        self._containers = containers
        self._book = book
        self._clock = clock
        self._policy = policy
        self._host_ips = host_ips
        self._probes = probes or NoProbing()
        self._on_init_finished = on_init_finished
        self._actuation = actuation or Actuation(runtime, Grants(), statuses, recorder)
        self._grants = self._actuation.grants

    # Keep it running

    async def sync(self, pod: Pod) -> Synced:
        """Say what its status is, and start and stop what the spec asks for."""
        # A pod has its grant on the disk before anything of it is started.
        await self._grants.settle(pod)
        facts = await self._facts(pod.uid)
        pod = self._grants.settled(pod)
        resize = self._actuation.look(pod, facts)
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
            resize=resize,
        )
        started = await self._containers.act(pod, facts, actions)
        if not _acts(actions):
            look_again = self._look_again(pod, status, actions)
            return Synced(look_again=look_again, runs=status.phase == "Running")
        after = await self._facts(pod.uid)
        if not started:
            self._tell(pod, after)
        # A runtime that does nothing of what it is asked for is not asked again at once; one that
        # has resized need not show it.
        is_changed = after != facts or actions.resize is not None
        is_done = started and is_changed and not _hang(actions, after)
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
            status = self._status(life.pod, facts, terminal=False)
            status = with_ending(status, life.ending, life.pod, self._cached(life.pod))
            self._tell_status(life.pod, status, ending=True)
        await self._containers.stop_pod(life.pod, life.uid, facts, life.grace_seconds)
        facts = await self._facts(life.uid)
        if running := _running(facts):
            raise StillRunningError(f"the runtime still runs {', '.join(running)} after a stop")
        self._probes.end(life.uid)
        if life.pod is None:
            return None
        return self._status(life.pod, facts, terminal=True)

    # Close its books

    async def reclaim(self, uid: PodUID, has_left: Callable[[], bool]) -> None:
        """Let go of what it left on the node, once the API server has its last status.

        A pod that `has_left` has no object there whose status could arrive.
        """
        wait = _ARRIVAL_SECONDS
        while not has_left() and not self._statuses.is_acknowledged(uid):
            await self._clock.wait(wait)
            wait = min(1.0, 2 * wait)
        await self._runtime.remove_pod(uid)
        await self._facts(uid)

    def tell_last(self, pod: Pod, status: PodStatus) -> None:
        """Say what its containers came to."""
        self._statuses.set_pod_status(pod, status)

    def tell_again(self, pod: Pod) -> None:
        """Say once more what its containers came to, of a pod that is deleted.

        If it was deleted only after that had been said, its phase may have been held back: then
        it counts as arrived and is not there.
        """
        if (known := self._cached(pod)) is not None:
            self._statuses.set_pod_status(pod, known)

    def close(self, pod: Pod) -> None:
        """Say that its status will not change any more."""
        self._statuses.terminate_pod(pod)

    def forget(self, uid: PodUID) -> None:
        """Let go of what was said of a pod: it comes anew under the same UID."""
        try:
            self._statuses.remove_status(uid)
        except Exception as error:  # noqa: BLE001 - a state of somebody else's
            # It comes back as it was, so what was granted is right.
            logger.warning("allocation of a pod that returns is kept: uid=%s error=%s", uid, error)

    def keep(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""
        self._grants.keep(uids)
        self._actuation.keep(uids)
        self._containers.keep(uids)
        self._book.keep(uids)
        self._probes.keep(uids)

    # What its status is

    def _tell(self, pod: Pod, facts: PodFacts) -> PodStatus:
        return self._tell_status(pod, self._status(pod, facts, terminal=False), ending=False)

    def _tell_status(self, pod: Pod, status: PodStatus, *, ending: bool) -> PodStatus:
        self._tell_deadline(pod, status)
        self._statuses.set_pod_status(pod, status)
        self._probes.watch(pod, status, ending=ending)
        return status

    def _tell_deadline(self, pod: Pod, status: PodStatus) -> None:
        cached = self._cached(pod)
        if status.reason != DEADLINE_EXCEEDED or (cached and cached.reason == DEADLINE_EXCEEDED):
            return
        self._recorder.normal(pod_reference(pod), reasons.DEADLINE_EXCEEDED, DEADLINE_MESSAGE)

    def _status(self, pod: Pod, facts: PodFacts, *, terminal: bool) -> PodStatus:
        return generate_api_pod_status(
            self._grants.settled(pod),
            with_in_force(facts, self._grants.in_force(pod.uid)),
            now=self._now(),
            old_status=self._statuses.latest_status(pod),
            pod_is_terminal=terminal,
            start_failures=self._containers.start_failures(pod.uid),
            prober=self._book,
            resize_conditions=self._statuses.pod_resize_conditions(pod.uid),
            host_ips=self._host_ips(),
            gates=self._policy.gates,
        )

    async def _facts(self, uid: PodUID) -> PodFacts:
        return await self._view.refresh(uid, tell=False)

    def _cached(self, pod: Pod) -> PodStatus | None:
        return self._statuses.pod_status(pod.uid)

    def _now(self) -> Time:
        return Time.from_unix_nanos(self._clock.now())


def _acts(actions: PodActions) -> bool:
    return bool(
        actions.stop_pod
        or actions.stop
        or actions.remove
        or actions.start_pod
        or actions.resize is not None
        or actions.start
    )


def _hang(actions: PodActions, facts: PodFacts) -> bool:
    """Whether one that was started neither runs nor has ended: it would be started without end."""
    by_name = first_by_name(facts.containers)
    newest = [by_name.get(start.container.name) for start in actions.start]
    return any(
        attempt is not None
        and attempt.state in (ContainerRunState.CREATED, ContainerRunState.UNKNOWN)
        for attempt in newest
    )


def _running(facts: PodFacts) -> list[str]:
    return [c.id for c in facts.containers if c.state is ContainerRunState.RUNNING]
