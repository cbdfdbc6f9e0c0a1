"""The three sync steps of a pod: sync, terminating, terminated.

Each step reads the runtime's state of the pod, sets the pod's status and acts on the difference.
A step may be cancelled at every await and repeated.

Upstream: SyncPod, SyncTerminatingPod, SyncTerminatedPod, pkg/kubelet/kubelet.go v1.36.4.
"""

import logging
from collections.abc import Callable, Sequence

import msgspec

from podstatus.events import reasons
from podstatus.events.object_references import pod_reference
from podstatus.kube.by_name import first_by_name
from podstatus.kube.objects.pod import Pod, PodUID, is_terminal_phase
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.objects.runtime_facts import ContainerRunState, PodFacts
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.time import Time
from podstatus.pods.generate_api_status import (
    DEADLINE_EXCEEDED,
    DEADLINE_MESSAGE,
    generate_api_pod_status,
)
from podstatus.probes.workers import ProbeWorkers
from podstatus.workers.action_executor import ActionExecutor, ActionsOutcome
from podstatus.workers.actions.compute import compute_pod_actions
from podstatus.workers.actions.model import PodActions
from podstatus.workers.allocation.resize_actuator import ResizeActuator
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.lifecycle.state_machine import PodLifecycle
from podstatus.workers.lifecycle.termination_status import with_eviction
from podstatus.workers.probe_result_store import ProbeResultStore
from podstatus.workers.resize.plan import with_actuated

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
_ARRIVAL_POLL_SECONDS = 0.1
"""First interval at which `cleanup` polls for the final status; doubles up to 1 s."""


class StillRunningError(Exception):
    """The runtime still lists a container as running after it was stopped."""


class SyncResult(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one call of `sync_pod`."""

    is_terminal: bool = False
    """The pod has reached a terminal phase."""
    requeue_after: float | None = None
    """Seconds until the next sync is due without any event; None: the default interval."""
    failed: bool = False
    """A container or the sandbox could not be started."""
    retry_soon: bool = False
    """It failed for a cause that may pass within a moment."""
    is_running: bool = False
    """The pod's phase is Running."""


class PodSyncer:
    """Runs the sync steps of all pods. Callers run at most one step of a pod at a time."""

    def __init__(
        self,
        dependencies: WorkerDependencies,
        *,
        executor: ActionExecutor,
        actuator: ResizeActuator,
        probe_results: ProbeResultStore,
        probe_workers: ProbeWorkers | None,
        host_ips: Callable[[], Sequence[str]],
        on_init_finished: Callable[[PodUID, Time], None],
    ) -> None:
        """`on_init_finished` is called with each init container's exit time at every sync.

        `actuator`: must be the one of `executor`. `probe_workers`: None if the runtime probes its
        containers itself.
        """
        self._runtime = dependencies.runtime
        self._pleg = dependencies.pleg
        self._statuses = dependencies.statuses
        self._recorder = dependencies.recorder
        self._clock = dependencies.clock
        self._policy = dependencies.policy
        self._executor = executor
        self._actuator = actuator
        self._allocations = actuator.allocations
        self._probe_results = probe_results
        self._probe_workers = probe_workers
        self._host_ips = host_ips
        self._on_init_finished = on_init_finished

    # Sync

    async def sync_pod(self, pod: Pod) -> SyncResult:
        """Set the pod's status, and start and stop containers as the spec requires."""
        # The allocation is on disk before any container of the pod starts.
        await self._allocations.persist(pod)
        facts = await self._facts(pod.uid)
        pod = self._allocations.persisted(pod)
        resize = self._actuator.reconcile(pod, facts)
        self._report_init_exits(pod, facts)
        self._executor.record_exits(pod.uid, facts)
        self._probe_results.forget_exited(pod.uid, facts)
        status = self._update_status(pod, facts)
        if is_terminal_phase(status.phase):
            return SyncResult(is_terminal=True)
        actions = compute_pod_actions(
            pod,
            facts,
            monotonic=self._clock.monotonic(),
            crash_loop_backoff=self._executor.crash_loop_backoff,
            verdicts=self._probe_results.verdicts(pod.uid),
            gates=self._policy.gates,
            resize=resize,
        )
        outcome = await self._executor.apply(pod, facts, actions)
        if not _has_actions(actions):
            requeue_after = self._requeue_after(pod, status, actions)
            return SyncResult(requeue_after=requeue_after, is_running=status.phase == "Running")
        after = await self._facts(pod.uid)
        if outcome is not ActionsOutcome.DONE:
            self._update_status(pod, after)
            retry_soon = outcome is ActionsOutcome.RETRY_SOON
            return SyncResult(failed=True, retry_soon=retry_soon)
        # Back off if the runtime acted on nothing. A resize is no such case: runtimes need not
        # report it.
        is_changed = after != facts or actions.resize is not None
        is_done = is_changed and not _are_stuck(actions, after)
        return SyncResult(requeue_after=0.0) if is_done else SyncResult(failed=True)

    def _report_init_exits(self, pod: Pod, facts: PodFacts) -> None:
        """Report init container exits for the pod startup latency; sidecars never exit."""
        init = pod.spec.init_containers or ()
        names = {c.name for c in init if not is_restartable_init_container(c)}
        if not names:
            return
        for attempt in reversed(facts.containers):
            is_over = attempt.state is ContainerRunState.EXITED and attempt.finished_at
            if is_over and attempt.name in names:
                self._on_init_finished(pod.uid, attempt.finished_at)

    def _requeue_after(self, pod: Pod, status: PodStatus, actions: PodActions) -> float | None:
        """Seconds until a back-off or the active deadline ends, whichever is first."""
        due = [] if actions.requeue_after is None else [actions.requeue_after]
        began = status.start_time or (self._cached_status(pod) or status).start_time
        if pod.spec.active_deadline_seconds is not None and began:
            left = pod.spec.active_deadline_seconds - (self._now() - began) / _SECOND
            due.append(max(0.0, left))
        return min(due, default=None)

    # Terminating

    async def sync_terminating_pod(self, lifecycle: PodLifecycle) -> PodStatus | None:
        """Stop all containers of the pod. Return its final status, which is not set yet.

        Raises StillRunningError if the runtime still lists a running container.
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
        if running := [c.id for c in facts.containers if c.state is ContainerRunState.RUNNING]:
            raise StillRunningError(f"the runtime still runs {', '.join(running)} after a stop")
        if self._probe_workers is not None:
            self._probe_workers.remove_pod(lifecycle.uid)
        if lifecycle.pod is None:
            return None
        return self._generate_status(lifecycle.pod, facts, terminal=True)

    # Terminated

    async def cleanup(self, uid: PodUID, is_status_dispensable: Callable[[], bool]) -> None:
        """Remove the pod's sandbox, records and files once the API server has its final status.

        Does not wait if `is_status_dispensable()`.
        """
        wait = _ARRIVAL_POLL_SECONDS
        while not is_status_dispensable() and not self._statuses.is_acknowledged(uid):
            await self._clock.wait(wait)
            wait = min(1.0, 2 * wait)
        await self._runtime.remove_pod(uid)
        await self._facts(uid)

    def resend_final_status(self, pod: Pod) -> None:
        """Set the cached status of a deleted pod again, so that it is sent once more.

        If the pod was deleted after its final status was set, the terminal phase may have been held
        back from a patch that was acknowledged nevertheless.
        """
        if (status := self._cached_status(pod)) is not None:
            self._statuses.set_pod_status(pod, status)

    def forget_status(self, uid: PodUID) -> None:
        """Drop the status of a pod that is recreated under the same UID."""
        try:
            self._statuses.remove_status(uid)
        except Exception as error:  # noqa: BLE001 - the allocation store may raise anything
            # Harmless: the pod returns unchanged, so the old allocation fits it.
            logger.warning(
                "cannot remove the allocation of a recreated pod: uid=%s error=%s", uid, error
            )

    def retain_only(self, uids: set[PodUID]) -> None:
        """Drop the state of all pods except these."""
        self._allocations.retain_only(uids)
        self._actuator.retain_only(uids)
        self._executor.retain_only(uids)
        self._probe_results.retain_only(uids)
        if self._probe_workers is not None:
            self._probe_workers.retain_only(uids)

    # Status

    def _update_status(self, pod: Pod, facts: PodFacts) -> PodStatus:
        return self._set_status(
            pod, self._generate_status(pod, facts, terminal=False), terminating=False
        )

    def _set_status(self, pod: Pod, status: PodStatus, *, terminating: bool) -> PodStatus:
        self._record_deadline(pod, status)
        self._statuses.set_pod_status(pod, status)
        if self._probe_workers is not None:
            self._probe_workers.update_pod(pod, status, terminating=terminating)
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
    """Whether a started container is neither running nor exited; retry it with a back-off."""
    by_name = first_by_name(facts.containers)
    newest = [by_name.get(start.container.name) for start in actions.start]
    return any(
        attempt is not None
        and attempt.state in (ContainerRunState.CREATED, ContainerRunState.UNKNOWN)
        for attempt in newest
    )
