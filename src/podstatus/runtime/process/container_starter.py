"""Starts pods and containers: creates their files, lets a shim run them, waits for the result.

Idempotent: after a cancellation, the next call continues from the state it finds.
"""

import asyncio
import uuid

from podstatus.base.clock import Clock
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.cpu_and_memory_limits import pod_limits
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.launch_preparer import ContainerPreparer
from podstatus.runtime.process.records.launch import LogLimits, launch_record
from podstatus.runtime.process.records.models import PodRecord
from podstatus.runtime.process.shim_control import ShimControl, last_error
from podstatus.runtime.process.state.pod_state import START_ERROR, ContainerAttempt, PodState

_SANDBOX_ERROR, _RUN_ERROR = "CreatePodSandboxError", "RunContainerError"


class Starter:
    """Starts pods and container attempts."""

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
        """Create the pod's folder and volumes, and start a shim. Raises CannotStartError."""
        records = self._shim_control.records
        records.create_pod_dir(pod.uid)
        # Before the sandbox becomes visible: that is a change and triggers another sync at once,
        # and a failing preparation would be retried in a busy loop.
        await self._preparer.prepare_pod(pod)
        record = self._next_record(pod, previous)
        records.write_pod(record)
        self._shim_control.pods.set_sandbox(record)
        await asyncio.to_thread(records.fsync, records.pod_folder(pod.uid).record)
        self._shim_control.limits.create_pod(pod)
        await self._start_shim(record)

    def _next_record(self, pod: Pod, previous: PodState | None) -> PodRecord:
        # A sandbox that never became ready (a volume was missing, say) does not count.
        attempt_number = (
            0 if previous is None else previous.record.sandbox_attempt + previous.was_ready
        )
        return PodRecord(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            sandbox_id=uuid.uuid4().hex,
            sandbox_attempt=attempt_number,
            created_at=self._clock.now(),
            host_network=pod.spec.host_network,
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
            error_line = last_error(folder) or "its log is empty"
            raise CannotStartError(_SANDBOX_ERROR, f"the shim did not start: {error_line}")

    async def start_container(
        self, pod: Pod, container: Container, state: PodState, *, restart_count: int
    ) -> ContainerAttempt:
        """Let the shim start an attempt, or return the existing one.

        Raises CannotStartError.
        """
        # An attempt that a previous agent began is continued; a new one would be a duplicate.
        attempt = state.find_unsettled(container.name)
        attempt = attempt or state.find_attempt(container.name, restart_count)
        if attempt is None:
            attempt = await self._create_attempt(pod, container, state, restart_count)
        attempt = await self._shim_control.wait_settled(pod.uid, attempt)
        await self._fsync(pod, attempt)
        if attempt.is_lost:
            if not self._shim_control.pods.was_started(pod.uid, attempt):
                # The shim died before it took the request: the attempt never ran, so it does not
                # count.
                await self._shim_control.remove(pod.uid, attempt.launch.id)
            raise CannotStartError(
                _RUN_ERROR, "the pod's shim or this container's monitor has ended"
            )
        if attempt.exit is not None and attempt.exit.reason == START_ERROR:
            raise CannotStartError(_RUN_ERROR, attempt.exit.message)
        return attempt

    async def _create_attempt(
        self, pod: Pod, container: Container, state: PodState, restart_count: int
    ) -> ContainerAttempt:
        """Create an attempt; once its launch record is written, later calls find it."""
        id, created_at = uuid.uuid4().hex, state.next_created_at(self._clock.now())
        records, limits = self._shim_control.records, self._shim_control.limits
        folder = records.create_container_dir(pod.uid, id)
        try:
            command = await self._preparer.prepare_container(pod, container, folder)
            launch = launch_record(
                container,
                command,
                limits.create(pod, container, id),
                self._log_limits,
                id=id,
                restart_count=restart_count,
                sandbox_id=state.record.sandbox_id,
                created_at=created_at,
            )
            records.write_launch(folder, launch)
        except BaseException:
            limits.cgroups.remove(pod.uid, id)
            records.remove(folder.path)
            raise
        return self._shim_control.pods.add(pod.uid, launch)

    async def _fsync(self, pod: Pod, attempt: ContainerAttempt) -> None:
        """Flush the launch record, which identifies the exit, so that it survives a power loss."""
        records = self._shim_control.records
        folder = records.pod_folder(pod.uid).container(attempt.launch.id)
        await asyncio.to_thread(records.fsync, folder.launch)
