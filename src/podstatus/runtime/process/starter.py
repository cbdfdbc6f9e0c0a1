"""Start pods and containers: make what they need, have a shim run it, wait until it does.

Whoever is cancelled asks again, and finds how far it came.
"""

import asyncio
import uuid

from podstatus.base.clock import Clock
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.preparer import ContainerPreparer
from podstatus.runtime.process.records.launch import AttemptIdentity, LogLimits, launch_record
from podstatus.runtime.process.records.models import PodRecord
from podstatus.runtime.process.shim_control import ShimControl, last_error
from podstatus.runtime.process.state.pod_state import START_ERROR, ContainerAttempt, PodState
from podstatus.runtime.resource_limits import pod_limits

_SANDBOX_ERROR, _RUN_ERROR = "CreatePodSandboxError", "RunContainerError"


class Starter:
    """Starts pods and attempts at their containers."""

    def __init__(
        self,
        shim_control: ShimControl,
        preparer: ContainerPreparer,
        *,
        clock: Clock,
        log_limits: LogLimits,
    ) -> None:
        self._shim_control = shim_control
        self._preparer = preparer
        self._clock = clock
        self._log_limits = log_limits

    async def start_pod(self, pod: Pod, previous: PodState | None) -> None:
        """Make a folder with the pod's volumes, and start a shim. Raises CannotStartError."""
        shelf = self._shim_control.records
        shelf.create_pod_dir(pod.uid)
        # Before anybody is told of a sandbox: a change makes the pod be looked at again at once,
        # and what cannot be prepared would be tried without end.
        await self._preparer.prepare_pod(pod)
        record = self._next_record(pod, previous)
        shelf.write_pod(record)
        self._shim_control.pods.set_sandbox(record)
        await asyncio.to_thread(shelf.fsync, shelf.pod_folder(pod.uid).record)
        self._shim_control.limits.create_pod(pod)
        await self._start_shim(record)

    def _next_record(self, pod: Pod, previous: PodState | None) -> PodRecord:
        # One that never came up, for want of a volume say, was none.
        before = 0 if previous is None else previous.record.sandbox_attempt + previous.was_ready
        return PodRecord(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            sandbox_id=uuid.uuid4().hex,
            sandbox_attempt=before,
            created_at=self._clock.now(),
            limits=pod_limits(pod),
        )

    async def _start_shim(self, record: PodRecord) -> None:
        folder = self._shim_control.records.pod_folder(record.uid)
        try:
            self._shim_control.shims.start(folder, record.sandbox_id)
        except OSError as error:
            raise CannotStartError(
                _SANDBOX_ERROR, f"the shim cannot be started: {error}"
            ) from error
        if not await self._shim_control.wait_ready(record):
            told = last_error(folder) or "it says nothing"
            raise CannotStartError(_SANDBOX_ERROR, f"the shim did not come up: {told}")

    async def start_container(
        self, pod: Pod, container: Container, state: PodState, *, restart_count: int
    ) -> ContainerAttempt:
        """Have the shim start an attempt; the one that is there already, if there is.

        Raises CannotStartError.
        """
        # What an agent before this one began is not begun again: there would be two of it.
        attempt = state.find_unsettled(container.name)
        attempt = attempt or state.find_attempt(container.name, restart_count)
        if attempt is None:
            attempt = await self._create_attempt(pod, container, state, restart_count)
        attempt = await self._shim_control.wait_settled(pod.uid, attempt)
        await self._fsync(pod, attempt)
        if attempt.is_lost:
            if not self._shim_control.pods.was_started(pod.uid, attempt):
                # Asked of a shim that was about to die: it never ran, so it does not count.
                await self._shim_control.remove(pod.uid, attempt.launch.id)
            raise CannotStartError(_RUN_ERROR, "the pod's shim has ended, or what it had for this")
        if attempt.exit is not None and attempt.exit.reason == START_ERROR:
            raise CannotStartError(_RUN_ERROR, attempt.exit.message)
        return attempt

    async def _create_attempt(
        self, pod: Pod, container: Container, state: PodState, restart_count: int
    ) -> ContainerAttempt:
        """Make an attempt; from then on whoever asks again finds it."""
        identity = AttemptIdentity(
            id=uuid.uuid4().hex,
            restart_count=restart_count,
            sandbox_id=state.record.sandbox_id,
            created_at=state.next_created_at(self._clock.now()),
        )
        shelf, limits = self._shim_control.records, self._shim_control.limits
        place = shelf.create_container_dir(pod.uid, identity.id)
        try:
            command = await self._preparer.prepare_container(pod, container, place)
            cgroup = limits.create(pod, container, identity.id)
            launch = launch_record(container, identity, command, cgroup, self._log_limits)
            shelf.write_launch(place, launch)
        except BaseException:
            limits.remove(pod.uid, identity.id)
            shelf.remove(place.path)
            raise
        return self._shim_control.pods.add(pod.uid, launch)

    async def _fsync(self, pod: Pod, attempt: ContainerAttempt) -> None:
        """Have what tells an exit from another one on the disk, for after a loss of power."""
        shelf = self._shim_control.records
        place = shelf.pod_folder(pod.uid).container(attempt.launch.id)
        await asyncio.to_thread(shelf.fsync, place.launch)
