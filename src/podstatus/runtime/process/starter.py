"""Start pods and containers: make what they need, have a shim run it, wait until it does.

Whoever is cancelled asks again, and finds how far it came.
"""

import asyncio
import uuid

from podstatus.base.clock import Clock
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.preparer import Preparer
from podstatus.runtime.process.records.launch import AttemptIdentity, LogLimits, make_launch
from podstatus.runtime.process.records.models import PodRecord
from podstatus.runtime.process.shim_control import Machinery, last_complaint
from podstatus.runtime.process.state.pod_state import START_ERROR, Attempt, PodState
from podstatus.runtime.resource_limits import pod_limits

_NO_SANDBOX, _NOT_RUN = "CreatePodSandboxError", "RunContainerError"


class Starter:
    """Starts pods and attempts at their containers."""

    def __init__(
        self, machinery: Machinery, preparer: Preparer, *, clock: Clock, log_limits: LogLimits
    ) -> None:
        self._machinery = machinery
        self._preparer = preparer
        self._clock = clock
        self._log_limits = log_limits

    async def start_pod(self, pod: Pod, known: PodState | None) -> None:
        """Make a folder with the pod's volumes, and start a shim. Raises CannotStartError."""
        shelf = self._machinery.shelf
        shelf.make_folder(pod.uid)
        # Before anybody is told of a sandbox: a change makes the pod be looked at again at once,
        # and what cannot be prepared would be tried without end.
        await self._preparer.prepare_pod(pod)
        record = self._next_record(pod, known)
        shelf.write_pod(record)
        self._machinery.book.begin(record)
        await asyncio.to_thread(shelf.force, shelf.folder(pod.uid).record)
        self._machinery.limits.make_pod(pod)
        await self._start_shim(record)

    def _next_record(self, pod: Pod, known: PodState | None) -> PodRecord:
        # One that never came up, for want of a volume say, was none.
        before = 0 if known is None else known.record.sandbox_attempt + known.was_ready
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
        folder = self._machinery.shelf.folder(record.uid)
        try:
            self._machinery.shims.start(folder, record.sandbox_id)
        except OSError as error:
            raise CannotStartError(_NO_SANDBOX, f"the shim cannot be started: {error}") from error
        if not await self._machinery.came_up(record):
            told = last_complaint(folder) or "it says nothing"
            raise CannotStartError(_NO_SANDBOX, f"the shim did not come up: {told}")

    async def start_container(
        self, pod: Pod, container: Container, state: PodState, *, restart_count: int
    ) -> Attempt:
        """Have the shim start an attempt; the one that is there already, if there is.

        Raises CannotStartError.
        """
        # What an agent before this one began is not begun again: there would be two of it.
        attempt = state.find_begun(container.name)
        attempt = attempt or state.find_attempt(container.name, restart_count)
        if attempt is None:
            attempt = await self._make(pod, container, state, restart_count)
        attempt = await self._machinery.settled(pod.uid, attempt)
        await self._force(pod, attempt)
        if attempt.is_lost:
            if not self._machinery.book.has_begun(pod.uid, attempt):
                # Asked of a shim that was about to die: it never ran, so it does not count.
                await self._machinery.remove(pod.uid, attempt.launch.id)
            raise CannotStartError(_NOT_RUN, "the pod's shim has ended, or what it had for this")
        if attempt.exit is not None and attempt.exit.reason == START_ERROR:
            raise CannotStartError(_NOT_RUN, attempt.exit.message)
        return attempt

    async def _make(
        self, pod: Pod, container: Container, state: PodState, restart_count: int
    ) -> Attempt:
        """Make an attempt; from then on whoever asks again finds it."""
        identity = AttemptIdentity(
            id=uuid.uuid4().hex,
            restart_count=restart_count,
            sandbox_id=state.record.sandbox_id,
            created_at=state.next_moment(self._clock.now()),
        )
        shelf, limits = self._machinery.shelf, self._machinery.limits
        place = shelf.make_place(pod.uid, identity.id)
        try:
            command = await self._preparer.prepare_container(pod, container, place)
            cgroup = limits.make(pod, container, identity.id)
            launch = make_launch(container, identity, command, cgroup, self._log_limits)
            shelf.write_launch(place, launch)
        except BaseException:
            limits.remove(pod.uid, identity.id)
            shelf.remove(place.path)
            raise
        return self._machinery.book.add(pod.uid, launch)

    async def _force(self, pod: Pod, attempt: Attempt) -> None:
        """Have what tells an exit from another one on the disk, for after a loss of power."""
        shelf = self._machinery.shelf
        place = shelf.folder(pod.uid).container(attempt.launch.id)
        await asyncio.to_thread(shelf.force, place.launch)
