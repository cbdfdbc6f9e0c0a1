"""Stop containers and pods: ask, wait, kill; and come back when nothing runs any more."""

import asyncio
import signal

from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.records.models import PodRecord
from podstatus.runtime.process.shim_control import Machinery
from podstatus.runtime.process.state.pod_state import Attempt, container_id
from podstatus.runtime.process.state.process_identity import send_signal

_END_SECONDS = 30.0
"""After which something that was killed should have ended; if not, the caller tries again."""
_SHIM_SECONDS = 10.0
"""For a shim to kill what its pod runs; then it is killed itself."""
_LONGEST_GRACE = 1e9
"""Seconds, some 30 years: what is called infinite ends, too."""


class Stopper:
    """Stops containers and pods. For one event loop."""

    def __init__(self, machinery: Machinery) -> None:
        self._machinery = machinery
        self._asked: set[str] = set()
        """The attempts that were sent their stop signal."""

    async def stop_container(self, uid: PodUID, attempt: Attempt, grace_seconds: float) -> None:
        """Send the stop signal, after the grace SIGKILL; come back when all of it has ended."""
        attempt = await self._machinery.settled(uid, attempt)
        self._ask(attempt)
        grace = min(max(0.0, grace_seconds), _LONGEST_GRACE)
        if await self._ends(uid, attempt, grace):
            return
        _kill(attempt)
        if not await self._ends(uid, attempt, _END_SECONDS):
            shown = container_id(attempt.launch.id)
            raise RuntimeDownError(f"container {shown} was killed and has not ended")

    def _ask(self, attempt: Attempt) -> None:
        """Send the stop signal, once: a handler should not run again for each who asks."""
        if attempt.started is not None and attempt.launch.id not in self._asked:
            self._asked.add(attempt.launch.id)
            send_signal(attempt.started.process, attempt.launch.stop_signal)

    async def _ends(self, uid: PodUID, attempt: Attempt, seconds: float) -> bool:
        id = attempt.launch.id
        return await self._machinery.comes_true(
            uid, lambda: self._machinery.has_ended(uid, id), seconds
        )

    async def stop_pod(self, uid: PodUID) -> None:
        """Have the shim kill what runs, and end; kill what is left of one that was killed."""
        machinery, book = self._machinery, self._machinery.book
        state = book.find(uid)
        if state is None:
            return
        record = structs.replace(state.record, stopped=True)
        if record != state.record:
            self._give_up(record, is_there=state.is_ready)
        await machinery.came_up(state.record)
        await self._end_shim(uid)
        for attempt in state.attempts:
            _kill(attempt)
        machinery.shims.reap()
        book.stopped(record)
        if not await machinery.comes_true(uid, lambda: self._all_ended(uid), _END_SECONDS):
            raise RuntimeDownError(f"pod {uid} was killed and has not ended")
        await self._end_strays(uid)

    def _give_up(self, record: PodRecord, *, is_there: bool) -> None:
        """Say that a sandbox is not wanted any more, for a shim that is still to come up."""
        try:
            self._machinery.shelf.write_pod(record)
        except RuntimeDownError:
            # A full disk must not keep pods from ending: that may be what makes room.
            if not is_there:
                raise

    async def _end_strays(self, uid: PodUID) -> None:
        """Who was killed together with all who looked after it may have left daemons behind."""
        state = self._machinery.book.find(uid)
        for attempt in state.attempts if state is not None else ():
            if attempt.is_lost:
                await asyncio.to_thread(self._machinery.limits.end, uid, attempt.launch.id)

    async def _end_shim(self, uid: PodUID) -> None:
        machinery = self._machinery
        for number, seconds in ((signal.SIGTERM, _SHIM_SECONDS), (signal.SIGKILL, _END_SECONDS)):
            if not machinery.ask_shim(uid, number):
                return
            if await machinery.comes_true(uid, lambda: machinery.book.shim(uid) is None, seconds):
                return
        raise RuntimeDownError(f"the shim of pod {uid} was killed and has not ended")

    def _all_ended(self, uid: PodUID) -> bool:
        book = self._machinery.book
        book.look_at_all(uid)
        state = book.find(uid)
        return state is None or all(attempt.has_ended for attempt in state.attempts)

    def forget(self, id: str) -> None:
        """An attempt was removed."""
        self._asked.discard(id)


def _kill(attempt: Attempt) -> None:
    if attempt.started is not None:
        send_signal(attempt.started.process, signal.SIGKILL)
