"""Do for the containers of a pod what was decided: stop, forget, start, and tell about it.

Upstream: SyncPod and killContainer, pkg/kubelet/kuberuntime v1.36.4.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from podstatus.base.aio import boottime_ns
from podstatus.base.clock import Clock
from podstatus.events import reasons
from podstatus.events.event import container_reference, pod_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.event import ObjectReference
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.time import Time
from podstatus.pods.container_status import StartFailure
from podstatus.runtime.port import CannotStartError, Runtime
from podstatus.workers.actions.crash_loop_backoff import CrashLoops
from podstatus.workers.actions.model import ContainerKind, PodActions, StartContainer, StopContainer
from podstatus.workers.actions.termination_order import container_grace, grace_left, stop_order
from podstatus.workers.allocation.resize_actuator import Actuation
from podstatus.workers.hooks import Hooks
from podstatus.workers.ports import NoObserver, WorkObserver

logger = logging.getLogger(__name__)

IMAGE_FAILURES = ("ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName")
RUN_CONTAINER_ERROR = "RunContainerError"
POST_START_HOOK_ERROR = "PostStartHookError"
_SECOND = 1_000_000_000


class Containers:
    """Starts and stops containers, and remembers who could not be started and who crashes."""

    def __init__(
        self,
        runtime: Runtime,
        recorder: EventRecorder,
        *,
        crash_loops: CrashLoops,
        clock: Clock,
        hooks: Hooks | None = None,
        on_init_started: Callable[[PodUID, Time], None] = lambda *_: None,
        actuation: Actuation | None = None,
        observer: WorkObserver | None = None,
        monotonic: Callable[[], int] = boottime_ns,
    ) -> None:
        """Without `hooks`, those that ask by HTTP fail; without `actuation` nothing is resized.

        `on_init_started` is told of init containers that run to their end, not of sidecars.
        `monotonic`: nanoseconds of a clock that nobody sets, for what is left of a grace.
        """
        self._runtime = runtime
        self._recorder = recorder
        self._clock = clock
        self._monotonic = monotonic
        self._crash_loops = crash_loops
        self._hooks = hooks or Hooks(runtime, recorder, clock=clock)
        self._on_init_started = on_init_started
        self._actuation = actuation
        self._observer = observer or NoObserver()
        self._failures: dict[PodUID, dict[str, StartFailure]] = {}

    @property
    def crash_loops(self) -> CrashLoops:
        """Which containers have to wait before they are started again."""
        return self._crash_loops

    def start_failures(self, uid: PodUID) -> Mapping[str, StartFailure]:
        """By container, what came of the latest try to start it, if it failed."""
        return self._failures.get(uid, {})

    def keep(self, uids: set[PodUID]) -> None:
        """Forget all pods but these."""
        for uid in self._failures.keys() - uids:
            del self._failures[uid]
        for uid in {uid for uid, _ in self._crash_loops.waits} - uids:
            self._crash_loops = self._crash_loops.forget(uid)

    async def act(self, pod: Pod, facts: PodFacts, actions: PodActions) -> bool:
        """Do what was decided; whether all that was to be started was."""
        self._tell_who_waits(pod, actions.waiting)
        if actions.start_pod and facts.sandboxes:
            self._recorder.normal(
                pod_reference(pod),
                reasons.SANDBOX_CHANGED,
                "Pod sandbox changed, it will be killed and re-created.",
            )
        if actions.stop_pod:
            await self.stop_pod(pod, pod.uid, facts, container_grace(pod))
        await self._stop_some(pod, actions.stop)
        for attempt in actions.remove:
            await self._runtime.remove_container(pod.uid, attempt.id)
        if not await self._start_pod(pod, needed=actions.start_pod):
            return False
        resized = actions.resize is None or await self._resize(pod, actions.resize)
        return await self._start_all(pod, actions.start) and resized

    async def stop_pod(
        self, pod: Pod | None, uid: PodUID, facts: PodFacts, grace_seconds: float
    ) -> None:
        """End all containers of a pod, sidecars last, and then its sandbox.

        All preStop hooks begin at once, also those of sidecars, and take from the grace.
        """
        began, waves = self._monotonic(), stop_order(pod, facts)
        attempts = [attempt for wave in waves for attempt in wave]
        for attempt in attempts:
            self._tell_end(pod, attempt)
        async with asyncio.TaskGroup() as tasks:
            hooks = {
                a.id: tasks.create_task(self._hooks.pre_stop(pod, a, grace_seconds))
                for a in attempts
            }
            for wave in waves:
                async with asyncio.TaskGroup() as ends:
                    for a in wave:
                        ends.create_task(self._end(uid, a, hooks[a.id], grace_seconds, began))
        await self._runtime.stop_pod(uid)

    def _tell_end(self, pod: Pod | None, attempt: ContainerFacts) -> None:
        if pod is not None:
            about = container_reference(pod, attempt.name)
            self._recorder.normal(about, reasons.KILLING, f"Stopping container {attempt.name}")

    async def _stop_some(self, pod: Pod, stops: Sequence[StopContainer]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for stop in stops:
                tasks.create_task(self._stop(pod, stop))

    async def _stop(self, pod: Pod, stop: StopContainer) -> None:
        attempt, began = stop.container, self._monotonic()
        self._recorder.normal(container_reference(pod, attempt.name), reasons.KILLING, stop.message)
        grace = container_grace(pod, stop.grace_seconds)
        hook = self._hooks.pre_stop(pod, attempt, grace)
        await self._end(pod.uid, attempt, hook, grace, began)

    async def _end(
        self,
        uid: PodUID,
        attempt: ContainerFacts,
        hook: Awaitable[None],
        grace: float,
        began: int,
    ) -> None:
        """End a container after its hook, with what is left of the grace."""
        await hook
        left = grace_left(grace, (self._monotonic() - began) / _SECOND)
        await self._runtime.stop_container(uid, attempt.id, grace_seconds=left)

    async def _start_pod(self, pod: Pod, *, needed: bool) -> bool:
        if not needed:
            return True
        try:
            await self._runtime.start_pod(pod)
        except CannotStartError as error:
            self._tell_no_pod(pod, error)
            return False
        return True

    def _tell_no_pod(self, pod: Pod, error: CannotStartError) -> None:
        reason, message = reasons.FAILED_CREATE_POD_SANDBOX, "Failed to create pod sandbox: "
        if error.reason == reasons.FAILED_MOUNT:
            reason, message = error.reason, ""
        self._recorder.warn(pod_reference(pod), reason, f"{message}{error.message}")

    async def _resize(self, pod: Pod, containers: Mapping[str, str]) -> bool:
        return self._actuation is None or await self._actuation.resize(pod, containers)

    async def _start_all(self, pod: Pod, starts: Sequence[StartContainer]) -> bool:
        """Start one after the other; only an init container that cannot start holds others up."""
        all_started = True
        for start in starts:
            started = await self._start(pod, start)
            all_started &= started
            if not started and _holds_up(start):
                break
        return all_started

    async def _start(self, pod: Pod, start: StartContainer) -> bool:
        container, about = start.container, container_reference(pod, start.container.name)
        loops = self._crash_loops
        self._crash_loops = loops.started(pod.uid, container.name, start.last_exit, self._now())
        if self._actuation is not None:
            await self._actuation.starting(pod, container)
        self._observer.container_starts(_type(start))
        try:
            made = await self._runtime.start_container(
                pod, container, restart_count=start.restart_count
            )
        except CannotStartError as error:
            failure = StartFailure(reason=error.reason, message=error.message)
            self._failures.setdefault(pod.uid, {})[container.name] = failure
            self._tell_failure(about, container, error)
            self._observer.container_did_not_start(_type(start), error.reason)
            return False
        if _holds_up(start):
            self._on_init_started(pod.uid, self._now())
        self._failures.get(pod.uid, {}).pop(container.name, None)
        self._tell_made(about, container)
        self._recorder.normal(about, reasons.STARTED, "Container started")
        if why := await self._hooks.post_start(pod, container, made):
            await self._undo(pod, container, made, why)
        return not why

    async def _undo(self, pod: Pod, container: Container, made: str, why: str) -> None:
        """Stop what was started, because its postStart hook failed."""
        failure = StartFailure(reason=POST_START_HOOK_ERROR, message=why)
        self._failures.setdefault(pod.uid, {})[container.name] = failure
        attempt = ContainerFacts(name=container.name, state=ContainerRunState.RUNNING, id=made)
        await self._stop(
            pod, StopContainer(container=attempt, message=reasons.FAILED_POST_START_HOOK)
        )

    def _tell_made(self, about: ObjectReference, container: Container) -> None:
        self._tell_pulled(about, container)
        self._recorder.normal(about, reasons.CREATED, "Container created")

    def _tell_pulled(self, about: ObjectReference, container: Container) -> None:
        self._recorder.normal(
            about,
            reasons.PULLED,
            f'Container image "{container.image}" already present on machine and can be accessed '
            "by the pod",
        )

    def _tell_failure(
        self, about: ObjectReference, container: Container, error: CannotStartError
    ) -> None:
        """Say how far it came: its image, the container itself, its first process."""
        if error.reason in IMAGE_FAILURES:
            self._recorder.warn(about, error.reason, error.message)
            self._recorder.warn(about, reasons.FAILED, f"Error: {error.reason}")
            return
        if error.reason == RUN_CONTAINER_ERROR:
            self._tell_made(about, container)
        else:
            self._tell_pulled(about, container)
        self._recorder.warn(about, reasons.FAILED, f"Error: {error.message or error.reason}")

    def _tell_who_waits(self, pod: Pod, waiting: Mapping[str, StartFailure]) -> None:
        for name, failure in waiting.items():
            self._failures.setdefault(pod.uid, {})[name] = failure
            self._recorder.warn(
                container_reference(pod, name),
                reasons.BACK_OFF,
                f"Back-off restarting failed container {name} in pod "
                f"{pod.name}_{pod.namespace}({pod.uid})",
            )

    def _now(self) -> Time:
        return Time.from_unix_nanos(self._clock.now())


def _holds_up(start: StartContainer) -> bool:
    return start.kind is ContainerKind.INIT and not is_restartable_init_container(start.container)


def _type(start: StartContainer) -> str:
    """As metrics name it."""
    return "init_container" if start.kind is ContainerKind.INIT else "container"
