"""Execute `PodActions` through the runtime: stop, remove and start containers; record events.

Upstream: SyncPod and killContainer, pkg/kubelet/kuberuntime v1.36.4.
"""

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from podstatus.events import reasons
from podstatus.events.object_references import container_reference, pod_reference
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.event import ObjectReference
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.time import Time
from podstatus.pods.container_status import StartFailure
from podstatus.runtime.port import CannotStartError, DescribesImages
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.actions.model import ContainerKind, PodActions, StartContainer, StopContainer
from podstatus.workers.actions.termination_order import (
    container_grace,
    remaining_grace,
    termination_order,
)
from podstatus.workers.allocation.resize_actuator import ResizeActuator
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.lifecycle_hooks import HookRunner

logger = logging.getLogger(__name__)

IMAGE_ERROR_REASONS = ("ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName")
RUN_CONTAINER_ERROR = "RunContainerError"
POST_START_HOOK_ERROR = "PostStartHookError"
_SECOND = 1_000_000_000


class ActionsOutcome(enum.Enum):
    """How the execution of `PodActions` ended."""

    DONE = "done"
    FAILED = "failed"
    RETRY_SOON = "retry soon"
    """Failed for a cause that may pass within a moment (`CannotStartError.retry_soon`)."""


class ActionExecutor:
    """Starts and stops containers; tracks failed starts and crash-loop back-offs."""

    def __init__(
        self,
        dependencies: WorkerDependencies,
        *,
        crash_loop_backoff: CrashLoopBackoff,
        hooks: HookRunner,
        on_init_started: Callable[[PodUID, Time], None],
        actuator: ResizeActuator,
    ) -> None:
        """`on_init_started` is called for init containers that run to completion, not sidecars."""
        self._runtime = dependencies.runtime
        self._recorder = dependencies.recorder
        self._clock = dependencies.clock
        self._crash_loop_backoff = crash_loop_backoff
        self._hooks = hooks
        self._on_init_started = on_init_started
        self._actuator = actuator
        self._metrics = dependencies.metrics
        self._start_failures: dict[PodUID, dict[str, StartFailure]] = {}

    @property
    def crash_loop_backoff(self) -> CrashLoopBackoff:
        """Restart back-offs of all containers."""
        return self._crash_loop_backoff

    def record_exits(self, uid: PodUID, facts: PodFacts) -> None:
        """Record the newest exit of each container: its restart back-off counts from there."""
        exits = {
            attempt.name: attempt.finished_at
            for attempt in reversed(facts.containers)
            if attempt.state is ContainerRunState.EXITED
        }
        self._crash_loop_backoff = self._crash_loop_backoff.exited(
            uid, exits, self._now(), self._clock.monotonic()
        )

    def start_failures(self, uid: PodUID) -> Mapping[str, StartFailure]:
        """Containers whose latest start failed, by name."""
        return self._start_failures.get(uid, {})

    def retain_only(self, uids: set[PodUID]) -> None:
        """Drop the state of all pods except these."""
        for uid in self._start_failures.keys() - uids:
            del self._start_failures[uid]
        for uid in {uid for uid, _ in self._crash_loop_backoff.entries} - uids:
            self._crash_loop_backoff = self._crash_loop_backoff.without_pod(uid)

    async def apply(self, pod: Pod, facts: PodFacts, actions: PodActions) -> ActionsOutcome:
        """Execute the actions. DONE only if every start and resize succeeded."""
        self._record_backoffs(pod, actions.waiting)
        if actions.start_pod and facts.sandboxes:
            self._recorder.normal(
                pod_reference(pod),
                reasons.SANDBOX_CHANGED,
                "Pod sandbox changed, it will be killed and re-created.",
            )
        if actions.stop_pod:
            await self.stop_pod(pod, pod.uid, facts, container_grace(pod))
        await self._stop_containers(pod, actions.stop)
        for attempt in actions.remove:
            await self._runtime.remove_container(pod.uid, attempt.id)
        outcome = await self._start_pod(pod, needed=actions.start_pod)
        if outcome is not ActionsOutcome.DONE:
            return outcome
        resized = actions.resize is None or await self._actuator.resize(pod, actions.resize)
        outcome = await self._start_all(pod, actions.start)
        return outcome if resized or outcome is not ActionsOutcome.DONE else ActionsOutcome.FAILED

    async def stop_pod(
        self, pod: Pod | None, uid: PodUID, facts: PodFacts, grace_seconds: float
    ) -> None:
        """Stop all containers of a pod, sidecars last, then its sandbox.

        All preStop hooks start at once, also those of sidecars, and count against the grace period.
        """
        started_at, batches = self._clock.monotonic(), termination_order(pod, facts)
        attempts = [attempt for batch in batches for attempt in batch]
        for attempt in attempts:
            self._record_killing(pod, attempt)
        async with asyncio.TaskGroup() as tasks:
            hooks = {
                a.id: tasks.create_task(self._hooks.pre_stop(pod, a, grace_seconds))
                for a in attempts
            }
            for batch in batches:
                async with asyncio.TaskGroup() as ends:
                    for a in batch:
                        ends.create_task(
                            self._stop_after_hook(uid, a, hooks[a.id], grace_seconds, started_at)
                        )
        await self._runtime.stop_pod(uid)

    def _record_killing(self, pod: Pod | None, attempt: ContainerFacts) -> None:
        if pod is not None:
            about = container_reference(pod, attempt.name)
            self._recorder.normal(about, reasons.KILLING, f"Stopping container {attempt.name}")

    async def _stop_containers(self, pod: Pod, stops: Sequence[StopContainer]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for stop in stops:
                tasks.create_task(self._stop(pod, stop))

    async def _stop(self, pod: Pod, stop: StopContainer) -> None:
        attempt, started_at = stop.container, self._clock.monotonic()
        self._recorder.normal(container_reference(pod, attempt.name), reasons.KILLING, stop.message)
        grace = container_grace(pod, stop.grace_seconds)
        hook = self._hooks.pre_stop(pod, attempt, grace)
        await self._stop_after_hook(pod.uid, attempt, hook, grace, started_at)

    async def _stop_after_hook(
        self,
        uid: PodUID,
        attempt: ContainerFacts,
        hook: Awaitable[None],
        grace: float,
        started_at: int,
    ) -> None:
        """Stop a container after its hook, with the remaining grace period."""
        await hook
        left = remaining_grace(grace, (self._clock.monotonic() - started_at) / _SECOND)
        await self._runtime.stop_container(uid, attempt.id, grace_seconds=left)

    async def _start_pod(self, pod: Pod, *, needed: bool) -> ActionsOutcome:
        if not needed:
            return ActionsOutcome.DONE
        try:
            await self._runtime.start_pod(pod)
        except CannotStartError as error:
            self._record_sandbox_failure(pod, error)
            return _failure_outcome(error)
        return ActionsOutcome.DONE

    def _record_sandbox_failure(self, pod: Pod, error: CannotStartError) -> None:
        reason, message = reasons.FAILED_CREATE_POD_SANDBOX, "Failed to create pod sandbox: "
        if error.reason == reasons.FAILED_MOUNT:
            reason, message = error.reason, ""
        self._recorder.warn(pod_reference(pod), reason, f"{message}{error.message}")

    async def _start_all(self, pod: Pod, starts: Sequence[StartContainer]) -> ActionsOutcome:
        """Start in order; only a failed init container prevents the starts after it."""
        outcomes: set[ActionsOutcome] = set()
        for start in starts:
            outcome = await self._start(pod, start)
            outcomes.add(outcome)
            if outcome is not ActionsOutcome.DONE and _blocks_next(start):
                break
        for worst in (ActionsOutcome.RETRY_SOON, ActionsOutcome.FAILED):
            if worst in outcomes:
                return worst
        return ActionsOutcome.DONE

    async def _start(self, pod: Pod, start: StartContainer) -> ActionsOutcome:
        container, about = start.container, container_reference(pod, start.container.name)
        backoff = self._crash_loop_backoff
        self._crash_loop_backoff = backoff.started(
            pod.uid, container.name, start.last_exit, self._now(), self._clock.monotonic()
        )
        await self._actuator.before_start(pod, container)
        self._metrics.started_containers.inc(_container_type(start))
        try:
            container_id = await self._runtime.start_container(
                pod, container, restart_count=start.restart_count
            )
        except CannotStartError as error:
            failure = StartFailure(reason=error.reason, message=error.message)
            self._start_failures.setdefault(pod.uid, {})[container.name] = failure
            self._record_start_failure(about, container, error)
            self._metrics.failed_container_starts.inc(_container_type(start), error.reason)
            return _failure_outcome(error)
        if _blocks_next(start):
            self._on_init_started(pod.uid, self._now())
        self._start_failures.get(pod.uid, {}).pop(container.name, None)
        self._record_created(about, container)
        self._recorder.normal(about, reasons.STARTED, "Container started")
        if error_message := await self._hooks.post_start(pod, container, container_id):
            await self._stop_after_failed_hook(pod, container, container_id, error_message)
            return ActionsOutcome.FAILED
        return ActionsOutcome.DONE

    async def _stop_after_failed_hook(
        self, pod: Pod, container: Container, container_id: str, message: str
    ) -> None:
        """Stop a container whose postStart hook failed."""
        failure = StartFailure(reason=POST_START_HOOK_ERROR, message=message)
        self._start_failures.setdefault(pod.uid, {})[container.name] = failure
        attempt = ContainerFacts(
            name=container.name, state=ContainerRunState.RUNNING, id=container_id
        )
        await self._stop(
            pod, StopContainer(container=attempt, message=reasons.FAILED_POST_START_HOOK)
        )

    def _record_created(self, about: ObjectReference, container: Container) -> None:
        self._record_pulled(about, container)
        self._recorder.normal(about, reasons.CREATED, "Container created")

    def _record_pulled(self, about: ObjectReference, container: Container) -> None:
        message = (
            f'Container image "{container.image}" already present on machine and can be accessed '
            "by the pod"
        )
        if isinstance(self._runtime, DescribesImages):
            message = self._runtime.image_message(container.image)
        self._recorder.normal(about, reasons.PULLED, message)

    def _record_start_failure(
        self, about: ObjectReference, container: Container, error: CannotStartError
    ) -> None:
        """Record the events up to the failed step: image, container, process."""
        if error.reason in IMAGE_ERROR_REASONS:
            self._recorder.warn(about, error.reason, error.message)
            self._recorder.warn(about, reasons.FAILED, f"Error: {error.reason}")
            return
        if error.reason == RUN_CONTAINER_ERROR:
            self._record_created(about, container)
        else:
            self._record_pulled(about, container)
        self._recorder.warn(about, reasons.FAILED, f"Error: {error.message or error.reason}")

    def _record_backoffs(self, pod: Pod, waiting: Mapping[str, StartFailure]) -> None:
        for name, failure in waiting.items():
            self._start_failures.setdefault(pod.uid, {})[name] = failure
            self._recorder.warn(
                container_reference(pod, name),
                reasons.BACK_OFF,
                f"Back-off restarting failed container {name} in pod "
                f"{pod.name}_{pod.namespace}({pod.uid})",
            )

    def _now(self) -> Time:
        return Time.from_unix_nanos(self._clock.now())


def _failure_outcome(error: CannotStartError) -> ActionsOutcome:
    return ActionsOutcome.RETRY_SOON if error.retry_soon else ActionsOutcome.FAILED


def _blocks_next(start: StartContainer) -> bool:
    return start.kind is ContainerKind.INIT and not is_restartable_init_container(start.container)


def _container_type(start: StartContainer) -> str:
    """Value of the metrics label `container_type`."""
    return "init_container" if start.kind is ContainerKind.INIT else "container"
