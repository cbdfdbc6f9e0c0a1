"""Stop containers and pods: ask, wait, kill; and come back when nothing runs any more."""

import asyncio
import signal

from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.records.models import PodRecord
from podstatus.runtime.process.shim_control import ShimControl
from podstatus.runtime.process.state.pod_state import ContainerAttempt, container_id
from podstatus.runtime.process.state.process_identity import send_signal

_KILL_TIMEOUT_SECONDS = 30.0
"""After which something that was killed should have ended; if not, the caller tries again."""
_SHIM_TIMEOUT_SECONDS = 10.0
"""For a shim to kill what its pod runs; then it is killed itself."""
_MAX_GRACE_SECONDS = 1e9
"""Seconds, some 30 years: what is called infinite ends, too."""


class Stopper:
    """Stops containers and pods. For one event loop."""

    def __init__(self, shim_control: ShimControl) -> None:
        self._shim_control = shim_control
        self._signalled: set[str] = set()
        """The attempts that were sent their stop signal."""

    async def stop_container(
        self, uid: PodUID, attempt: ContainerAttempt, grace_seconds: float
    ) -> None:
        """Send the stop signal, after the grace SIGKILL; come back when all of it has ended."""
        attempt = await self._shim_control.wait_settled(uid, attempt)
        self._send_stop_signal(attempt)
        grace = min(max(0.0, grace_seconds), _MAX_GRACE_SECONDS)
        if await self._wait_ended(uid, attempt, grace):
            return
        _kill(attempt)
        if not await self._wait_ended(uid, attempt, _KILL_TIMEOUT_SECONDS):
            shown = container_id(attempt.launch.id)
            raise RuntimeDownError(f"container {shown} was killed and has not ended")

    def _send_stop_signal(self, attempt: ContainerAttempt) -> None:
        """Send the stop signal, once: a handler should not run again for each who asks."""
        if attempt.started is not None and attempt.launch.id not in self._signalled:
            self._signalled.add(attempt.launch.id)
            send_signal(attempt.started.process, attempt.launch.stop_signal)

    async def _wait_ended(self, uid: PodUID, attempt: ContainerAttempt, seconds: float) -> bool:
        id = attempt.launch.id
        return await self._shim_control.wait_until(
            uid, lambda: self._shim_control.has_ended(uid, id), seconds
        )

    async def stop_pod(self, uid: PodUID) -> None:
        """Have the shim kill what runs, and end; kill what is left of one that was killed."""
        machinery, book = self._shim_control, self._shim_control.pods
        state = book.find(uid)
        if state is None:
            return
        record = structs.replace(state.record, stopped=True)
        if record != state.record:
            self._record_stopped(record, is_there=state.is_ready)
        await machinery.wait_ready(state.record)
        await self._terminate_shim(uid)
        for attempt in state.attempts:
            _kill(attempt)
        machinery.shims.reap()
        book.set_stopped(record)
        if not await machinery.wait_until(uid, lambda: self._all_ended(uid), _KILL_TIMEOUT_SECONDS):
            raise RuntimeDownError(f"pod {uid} was killed and has not ended")
        await self._kill_strays(uid)

    def _record_stopped(self, record: PodRecord, *, is_there: bool) -> None:
        """Say that a sandbox is not wanted any more, for a shim that is still to come up."""
        try:
            self._shim_control.records.write_pod(record)
        except RuntimeDownError:
            # A full disk must not keep pods from ending: that may be what makes room.
            if not is_there:
                raise

    async def _kill_strays(self, uid: PodUID) -> None:
        """Who was killed together with all who looked after it may have left daemons behind."""
        state = self._shim_control.pods.find(uid)
        for attempt in state.attempts if state is not None else ():
            if attempt.is_lost:
                await asyncio.to_thread(self._shim_control.limits.kill, uid, attempt.launch.id)

    async def _terminate_shim(self, uid: PodUID) -> None:
        machinery = self._shim_control
        for number, seconds in (
            (signal.SIGTERM, _SHIM_TIMEOUT_SECONDS),
            (signal.SIGKILL, _KILL_TIMEOUT_SECONDS),
        ):
            if not machinery.signal_shim(uid, number):
                return
            if await machinery.wait_until(uid, lambda: machinery.pods.shim(uid) is None, seconds):
                return
        raise RuntimeDownError(f"the shim of pod {uid} was killed and has not ended")

    def _all_ended(self, uid: PodUID) -> bool:
        book = self._shim_control.pods
        book.poll_attempts(uid)
        state = book.find(uid)
        return state is None or all(attempt.has_ended for attempt in state.attempts)

    def forget(self, id: str) -> None:
        """An attempt was removed."""
        self._signalled.discard(id)


def _kill(attempt: ContainerAttempt) -> None:
    if attempt.started is not None:
        send_signal(attempt.started.process, signal.SIGKILL)
