"""Start shims, signal them, and wait for what they do.

`ShimProcesses` starts the shim processes and reaps those that are children of this agent.
`ShimControl` holds what starter, stopper and resizer share: the pod table, the record store, the
shims, the resource limits. It waits until a shim serves, a container has started, or a condition
holds."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.cgroups.enforcer import LimitEnforcer
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.records.models import PodRecord
from podstatus.runtime.process.records.store import RecordStore
from podstatus.runtime.process.state.pod_state import ContainerAttempt
from podstatus.runtime.process.state.pod_table import PodTable
from podstatus.runtime.process.state.process_identity import send_signal

_PROGRAM = Path(__file__).with_name("run_shim.py")
_MAX_ERROR_BYTES = 500
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
"""What Python ignores, and whoever does not know that expects."""


class ShimProcesses:
    """Shims that this agent started. Those of agents before it belong to init."""

    def __init__(self) -> None:
        self._children: dict[str, int] = {}
        """Their pids, by sandbox."""

    def start(self, folder: PodFolder, sandbox_id: str) -> None:
        """Start one; it tells by its record that it can be asked. Raises OSError."""
        complaints = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        # Isolated and without site: neither the environment nor what is installed can change
        # what it does. In a session of its own, Ctrl-C is not for it.
        self._children[sandbox_id] = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(_PROGRAM), str(folder.path), sandbox_id],
            {},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(folder.shim_log), complaints, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigdef=_DEFAULT_SIGNALS,
            setsigmask=(),
        )

    def has_ended(self, sandbox_id: str) -> bool:
        """Whether one is no more, or was never ours; its remains are gone then."""
        pid = self._children.get(sandbox_id)
        if pid is None:
            return True
        try:
            found, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            found = pid
        if not found:
            return False
        del self._children[sandbox_id]
        return True

    def reap(self) -> None:
        """Let no remains of those that ended stay."""
        for sandbox_id in list(self._children):
            self.has_ended(sandbox_id)


def last_error(folder: PodFolder) -> str:
    """What a shim said last, if anything."""
    try:
        text = folder.shim_log.read_bytes()[-_MAX_ERROR_BYTES:].decode(errors="replace")
    except OSError:
        return ""
    return (text.strip().splitlines() or [""])[-1]


_START_TIMEOUT_SECONDS = 30.0
"""A shim needs some 50 ms to come up; a machine under load gets more."""
_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.001, 0.02
"""Seconds between two looks at files that are about to be there."""
_RECHECK_SECONDS = 0.25


class ShimControl:
    """The pods of the runtime, with all that moves them. For one event loop."""

    def __init__(self, records: RecordStore, pods: PodTable, limits: LimitEnforcer) -> None:
        self.records = records
        self.shims = ShimProcesses()
        self.limits = limits
        self._pods = pods
        self._is_open = False

    @property
    def pods(self) -> PodTable:
        """With what agents before this one left. Raises RuntimeDownError."""
        if not self._is_open:
            self.records.quarantine_leftovers()
            self._pods.load()
            for uid, id in self._pods.never_started():
                self._remove(uid, id)
                self._pods.remove_attempt(uid, id)
            self.limits.retain_only({state.record.uid for state in self._pods.states()})
            self._is_open = True
        return self._pods

    def close(self) -> None:
        """Watch nobody any more."""
        self._pods.close()
        self.limits.close()

    def find(self, uid: PodUID, id: str) -> ContainerAttempt | None:
        """An attempt, if it is there."""
        state = self.pods.find(uid)
        return state.find(id) if state is not None else None

    def has_ended(self, uid: PodUID, id: str) -> bool:
        """Whether nothing of an attempt runs any more, or it is not there."""
        self.pods.exits.poll()
        attempt = self.find(uid, id)
        return attempt is None or attempt.has_ended

    def signal_shim(self, uid: PodUID, number: int) -> bool:
        """Send a signal to the shim of a pod; False if there is none."""
        shim = self.pods.shim(uid)
        return shim is not None and send_signal(shim.process, number)

    async def remove(self, uid: PodUID, id: str) -> None:
        """Forget an attempt, with its log; nothing of it may run."""
        await asyncio.to_thread(self._remove, uid, id)
        self.pods.remove_attempt(uid, id)

    def _remove(self, uid: PodUID, id: str) -> None:
        self.limits.remove(uid, id)
        self.records.remove(self.records.pod_folder(uid).container(id).path)

    async def wait_ready(self, record: PodRecord) -> bool:
        """Wait for a shim that is on its way; whether it came."""
        looks = _PollBackoff()
        while not self.pods.poll_shim(record.uid):
            if self.shims.has_ended(record.sandbox_id) or looks.expired:
                return self.pods.poll_shim(record.uid)
            await looks.wait()
        return True

    async def wait_settled(self, uid: PodUID, attempt: ContainerAttempt) -> ContainerAttempt:
        """Wait until it is known what came of starting an attempt. Raises RuntimeDownError."""
        id = attempt.launch.id
        if not attempt.is_settled:
            # An agent before this one may have ended just before it asked.
            self.signal_shim(uid, signal.SIGHUP)
        looks = _PollBackoff()
        while not (attempt := self.pods.poll_attempt(uid, id)).is_settled:
            if looks.expired:
                raise RuntimeDownError(f"the shim of pod {uid} does not start {id}")
            await looks.wait()
        return attempt

    async def wait_until(self, uid: PodUID, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait so long for something about a pod; whether it holds."""
        with self.pods.subscribe(uid) as news, suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    news.clear()
                    # Not all is told: of a shim that never came up nobody hears when it ends.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_RECHECK_SECONDS):
                            await news.wait()
        return holds()


class _PollBackoff:
    """Looks at files that are about to be there: often in the beginning, and not for ever."""

    def __init__(self) -> None:
        self._delay = _MIN_POLL_SECONDS
        self._deadline = time.monotonic() + _START_TIMEOUT_SECONDS

    @property
    def expired(self) -> bool:
        return time.monotonic() > self._deadline

    async def wait(self) -> None:
        await asyncio.sleep(self._delay)
        self._delay = min(self._delay * 1.5, _MAX_POLL_SECONDS)
