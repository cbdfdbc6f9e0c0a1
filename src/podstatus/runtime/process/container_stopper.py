"""Stops containers and pods: signal, wait, kill; returns when no process runs any more."""

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
"""Time for a killed container to end; after that the caller has to retry."""
_SHIM_TIMEOUT_SECONDS = 10.0
"""Time for a shim to kill its pod's containers; after that the shim is killed."""
_MAX_GRACE_SECONDS = 1e9
"""About 30 years: an "infinite" grace period ends, too."""


class Stopper:
    """Stops containers and pods. Not thread-safe: for one event loop."""

    def __init__(self, shim_control: ShimControl) -> None:
        self._shim_control = shim_control
        self._signalled: set[str] = set()
        """Attempts whose stop signal was sent."""

    async def stop_container(
        self, uid: PodUID, attempt: ContainerAttempt, grace_seconds: float
    ) -> None:
        """Send the stop signal, SIGKILL after the grace period; return when all processes ended."""
        attempt = await self._shim_control.wait_settled(uid, attempt)
        self._send_stop_signal(attempt)
        grace = min(max(0.0, grace_seconds), _MAX_GRACE_SECONDS)
        if await self._wait_ended(uid, attempt, grace):
            return
        _kill(attempt)
        if not await self._wait_ended(uid, attempt, _KILL_TIMEOUT_SECONDS):
            id = container_id(attempt.launch.id)
            raise RuntimeDownError(f"container {id} was killed and has not ended")

    def _send_stop_signal(self, attempt: ContainerAttempt) -> None:
        """Send the stop signal, once: concurrent stops must not run a signal handler twice."""
        if attempt.started is not None and attempt.launch.id not in self._signalled:
            self._signalled.add(attempt.launch.id)
            send_signal(attempt.started.process, attempt.launch.stop_signal)

    async def _wait_ended(self, uid: PodUID, attempt: ContainerAttempt, seconds: float) -> bool:
        id = attempt.launch.id
        return await self._shim_control.wait_until(
            uid, lambda: self._shim_control.has_ended(uid, id), seconds
        )

    async def stop_pod(self, uid: PodUID) -> None:
        """Let the shim kill all containers and end; kill what a killed shim left behind."""
        control, pods = self._shim_control, self._shim_control.pods
        state = pods.find(uid)
        if state is None:
            return
        record = structs.replace(state.record, stopped=True)
        if record != state.record:
            self._record_stopped(record, is_ready=state.is_ready)
        await control.wait_ready(state.record)
        await self._terminate_shim(uid)
        for attempt in state.attempts:
            _kill(attempt)
        control.shims.reap()
        pods.set_stopped(record)
        if not await control.wait_until(uid, lambda: self._all_ended(uid), _KILL_TIMEOUT_SECONDS):
            raise RuntimeDownError(f"pod {uid} was killed and has not ended")
        await self._kill_strays(uid)

    def _record_stopped(self, record: PodRecord, *, is_ready: bool) -> None:
        """Record that the sandbox is stopped, for a shim that is still starting."""
        try:
            self._shim_control.records.write_pod(record)
        except RuntimeDownError:
            # A full disk must not prevent pods from being stopped: that may free space.
            if not is_ready:
                raise

    async def _kill_strays(self, uid: PodUID) -> None:
        """Kill the daemons of attempts whose monitor was killed, too."""
        state, limits = self._shim_control.pods.find(uid), self._shim_control.limits
        for attempt in state.attempts if state is not None else ():
            if attempt.is_lost:
                await asyncio.to_thread(limits.cgroups.kill, uid, attempt.launch.id)

    async def _terminate_shim(self, uid: PodUID) -> None:
        control = self._shim_control
        for number, seconds in (
            (signal.SIGTERM, _SHIM_TIMEOUT_SECONDS),
            (signal.SIGKILL, _KILL_TIMEOUT_SECONDS),
        ):
            if not control.signal_shim(uid, number):
                return
            if await control.wait_until(uid, lambda: control.pods.shim(uid) is None, seconds):
                return
        raise RuntimeDownError(f"the shim of pod {uid} was killed and has not ended")

    def _all_ended(self, uid: PodUID) -> bool:
        pods = self._shim_control.pods
        pods.poll_attempts(uid)
        state = pods.find(uid)
        return state is None or all(attempt.has_ended for attempt in state.attempts)

    def forget(self, id: str) -> None:
        """Drop the state of a removed attempt."""
        self._signalled.discard(id)


def _kill(attempt: ContainerAttempt) -> None:
    if attempt.started is not None:
        send_signal(attempt.started.process, signal.SIGKILL)
