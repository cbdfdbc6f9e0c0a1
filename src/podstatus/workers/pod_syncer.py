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
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import Runtime
from podstatus.status.manager import StatusManager
from podstatus.workers.actions.compute import compute_pod_actions
from podstatus.workers.actions.model import PodActions
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.allocation.resize_actuator import ResizeActuator
from podstatus.workers.lifecycle.state_machine import PodLifecycle
from podstatus.workers.lifecycle.termination_status import with_eviction
from podstatus.workers.pod_executor import PodExecutor
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.ports import NoopProbeManager, ProbeManager
from podstatus.workers.probe_results import ProbeResultStore
from podstatus.workers.resize.plan import with_actuated

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
_ARRIVAL_POLL_SECONDS = 0.1
"""How often it is asked whether a last status has arrived; then twice as long, up to 1 s."""


class StillRunningError(Exception):
    """A runtime lists a container as running that it was told to end."""


class SyncResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of keeping a pod running."""

    is_terminal: bool = False
    """Its containers add up to an end."""
    requeue_after: float | None = None
    """Seconds until something is to be done, though nothing may happen; None: the usual time."""
    failed: bool = False
    """Something could not be started."""
    is_running: bool = False
    """Its phase is Running."""


class PodSyncer:
    """Does the steps for all pods; one step of a pod at a time."""

    def __init__(
        self,
        runtime: Runtime,
        pleg: Pleg,
        statuses: StatusManager,
        recorder: EventRecorder,
        *,
        executor: PodExecutor,
        probe_results: ProbeResultStore,
        clock: Clock,
        policy: WorkerPolicy,
        host_ips: Callable[[], Sequence[str]],
        probe_manager: ProbeManager | None = None,
        on_init_finished: Callable[[PodUID, Time], None] = lambda *_: None,
        actuator: ResizeActuator | None = None,
    ) -> None:
        """`on_init_finished` is told of the ends of init containers, again and again.

        `actuator`: the one of `executor`; without it grants are forgotten with the agent.
        """
        self._runtime = runtime
        self._pleg = pleg
        self._statuses = statuses
        self._recorder = recorder
        self._executor = executor
        self._probe_results = probe_results
        self._clock = clock
        self._policy = policy
        self._host_ips = host_ips
        self._probe_manager = probe_manager or NoopProbeManager()
        self._on_init_finished = on_init_finished
        self._actuator = actuator or ResizeActuator(
            runtime, AllocationManager(), statuses, recorder
        )
        self._allocations = self._actuator.allocations

    # Keep it running

    async def sync_pod(self, pod: Pod) -> SyncResult:
        """Say what its status is, and start and stop what the spec asks for."""
        # A pod has its grant on the disk before anything of it is started.
        await self._allocations.persist(pod)
        facts = await self._facts(pod.uid)
        pod = self._allocations.persisted(pod)
        resize = self._actuator.reconcile(pod, facts)
        self._report_init_exits(pod, facts)
        self._probe_results.forget_exited(pod.uid, facts)
        status = self._update_status(pod, facts)
        if is_terminal_phase(status.phase):
            return SyncResult(is_terminal=True)
        actions = compute_pod_actions(
            pod,
            facts,
            now=self._now(),
            crash_loop_backoff=self._executor.crash_loop_backoff,
            verdicts=self._probe_results.verdicts(pod.uid),
            gates=self._policy.gates,
            resize=resize,
        )
        started = await self._executor.apply(pod, facts, actions)
        if not _has_actions(actions):
            look_again = self._requeue_after(pod, status, actions)
            return SyncResult(requeue_after=look_again, is_running=status.phase == "Running")
        after = await self._facts(pod.uid)
        if not started:
            self._update_status(pod, after)
        # A runtime that does nothing of what it is asked for is not asked again at once; one that
        # has resized need not show it.
        is_changed = after != facts or actions.resize is not None
        is_done = started and is_changed and not _are_stuck(actions, after)
        return SyncResult(requeue_after=0.0) if is_done else SyncResult(failed=True)

    def _report_init_exits(self, pod: Pod, facts: PodFacts) -> None:
        """For who measures how long pods take to start. Those that serve others never end."""
        init = pod.spec.init_containers or ()
        names = {c.name for c in init if not is_restartable_init_container(c)}
        if not names:
            return
        for attempt in reversed(facts.containers):
            is_over = attempt.state is ContainerRunState.EXITED and attempt.finished_at
            if is_over and attempt.name in names:
                self._on_init_finished(pod.uid, attempt.finished_at)

    def _requeue_after(self, pod: Pod, status: PodStatus, actions: PodActions) -> float | None:
        """When there is something to do: a back-off ends, or the pod's time is over."""
        due = [] if actions.requeue_after is None else [actions.requeue_after]
        began = status.start_time or (self._cached_status(pod) or status).start_time
        if pod.spec.active_deadline_seconds is not None and began:
            left = pod.spec.active_deadline_seconds - (self._now() - began) / _SECOND
            due.append(max(0.0, left))
        return min(due, default=None)

    # End it

    async def sync_terminating_pod(self, lifecycle: PodLifecycle) -> PodStatus | None:
        """End all of its containers; its last status, which is not told yet.

        Raises StillRunningError if the runtime has not done it.
        """
        facts = await self._facts(lifecycle.uid)
        if lifecycle.pod is not None:
            status = self._generate_status(lifecycle.pod, facts, terminal=False)
            status = with_eviction(
                status, lifecycle.eviction, lifecycle.pod, self._cached_status(lifecycle.pod)
            )
            self._set_status(lifecycle.pod, status, terminating=True)
        await self._executor.stop_pod(lifecycle.pod, lifecycle.uid, facts, lifecycle.grace_seconds)
        facts = await self._facts(lifecycle.uid)
        if running := _running_ids(facts):
            raise StillRunningError(f"the runtime still runs {', '.join(running)} after a stop")
        self._probe_manager.remove_pod(lifecycle.uid)
        if lifecycle.pod is None:
            return None
        return self._generate_status(lifecycle.pod, facts, terminal=True)

    # Close its books

    async def cleanup(self, uid: PodUID, is_source_removed: Callable[[], bool]) -> None:
        """Let go of what it left on the node, once the API server has its last status.

        A pod that `is_source_removed` has no object there whose status could arrive.
        """
        wait = _ARRIVAL_POLL_SECONDS
        while not is_source_removed() and not self._statuses.is_acknowledged(uid):
            await self._clock.wait(wait)
            wait = min(1.0, 2 * wait)
        await self._runtime.remove_pod(uid)
        await self._facts(uid)

    def set_final_status(self, pod: Pod, status: PodStatus) -> None:
        """Say what its containers came to."""
        self._statuses.set_pod_status(pod, status)

    def resend_final_status(self, pod: Pod) -> None:
        """Say once more what its containers came to, of a pod that is deleted.

        If it was deleted only after that had been said, its phase may have been held back: then
        it counts as arrived and is not there.
        """
        if (known := self._cached_status(pod)) is not None:
            self._statuses.set_pod_status(pod, known)

    def sync_terminated_pod(self, pod: Pod) -> None:
        """Say that its status will not change any more."""
        self._statuses.terminate_pod(pod)

    def forget_status(self, uid: PodUID) -> None:
        """Let go of what was said of a pod: it comes anew under the same UID."""
        try:
            self._statuses.remove_status(uid)
        except Exception as error:  # noqa: BLE001 - a state of somebody else's
            # It comes back as it was, so what was granted is right.
            logger.warning("allocation of a pod that returns is kept: uid=%s error=%s", uid, error)

    def retain_only(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""
        self._allocations.retain_only(uids)
        self._actuator.retain_only(uids)
        self._executor.retain_only(uids)
        self._probe_results.retain_only(uids)
        self._probe_manager.retain_only(uids)

    # What its status is

    def _update_status(self, pod: Pod, facts: PodFacts) -> PodStatus:
        return self._set_status(
            pod, self._generate_status(pod, facts, terminal=False), terminating=False
        )

    def _set_status(self, pod: Pod, status: PodStatus, *, terminating: bool) -> PodStatus:
        self._record_deadline(pod, status)
        self._statuses.set_pod_status(pod, status)
        self._probe_manager.update_pod(pod, status, terminating=terminating)
        return status

    def _record_deadline(self, pod: Pod, status: PodStatus) -> None:
        cached = self._cached_status(pod)
        if status.reason != DEADLINE_EXCEEDED or (cached and cached.reason == DEADLINE_EXCEEDED):
            return
        self._recorder.normal(pod_reference(pod), reasons.DEADLINE_EXCEEDED, DEADLINE_MESSAGE)

    def _generate_status(self, pod: Pod, facts: PodFacts, *, terminal: bool) -> PodStatus:
        return generate_api_pod_status(
            self._allocations.persisted(pod),
            with_actuated(facts, self._allocations.actuated(pod.uid)),
            now=self._now(),
            old_status=self._statuses.latest_status(pod),
            pod_is_terminal=terminal,
            start_failures=self._executor.start_failures(pod.uid),
            prober=self._probe_results,
            resize_conditions=self._statuses.pod_resize_conditions(pod.uid),
            host_ips=self._host_ips(),
            gates=self._policy.gates,
        )

    async def _facts(self, uid: PodUID) -> PodFacts:
        return await self._pleg.refresh(uid, notify=False)

    def _cached_status(self, pod: Pod) -> PodStatus | None:
        return self._statuses.pod_status(pod.uid)

    def _now(self) -> Time:
        return Time.from_unix_nanos(self._clock.now())


def _has_actions(actions: PodActions) -> bool:
    return bool(
        actions.stop_pod
        or actions.stop
        or actions.remove
        or actions.start_pod
        or actions.resize is not None
        or actions.start
    )


def _are_stuck(actions: PodActions, facts: PodFacts) -> bool:
    """Whether one that was started neither runs nor has ended: it would be started without end."""
    by_name = first_by_name(facts.containers)
    newest = [by_name.get(start.container.name) for start in actions.start]
    return any(
        attempt is not None
        and attempt.state in (ContainerRunState.CREATED, ContainerRunState.UNKNOWN)
        for attempt in newest
    )


def _running_ids(facts: PodFacts) -> list[str]:
    return [c.id for c in facts.containers if c.state is ContainerRunState.RUNNING]
