"""Starts shims, signals them, and waits for their results.

`ShimProcesses` starts the shim processes and reaps those that are children of this agent.
`ShimControl` holds what starter, stopper and resizer share: the pod table, the record store, the
shims and the resource limits. It waits until a shim serves, a container has started, or a condition
holds.
"""

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

_PROGRAM = Path(__file__).with_name("shim_program.py")
_MAX_ERROR_BYTES = 500
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores, which a child would inherit; other programs rely on the default."""


class ShimProcesses:
    """Shims that this agent started. Those of previous agents are children of init."""

    def __init__(self) -> None:
        self._children: dict[str, int] = {}
        """Process IDs by sandbox ID."""

    def start(self, folder: PodFolder, sandbox_id: str) -> None:
        """Start a shim; it writes its record once it serves requests. Raises OSError."""
        log_flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        # Isolated and without site: neither the environment nor installed packages can change its
        # behaviour. A session of its own keeps Ctrl-C away from it.
        self._children[sandbox_id] = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(_PROGRAM), str(folder.path), sandbox_id],
            {},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(folder.shim_log), log_flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigdef=_DEFAULT_SIGNALS,
            setsigmask=(),
        )

    def has_ended(self, sandbox_id: str) -> bool:
        """Return whether the shim has ended or is not a child of this agent; reaps it."""
        pid = self._children.get(sandbox_id)
        if pid is None:
            return True
        try:
            reaped, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            reaped = pid
        if not reaped:
            return False
        del self._children[sandbox_id]
        return True

    def reap(self) -> None:
        for sandbox_id in list(self._children):
            self.has_ended(sandbox_id)


def last_error(folder: PodFolder) -> str:
    """Return the last line of a shim's log; empty if there is none."""
    try:
        text = folder.shim_log.read_bytes()[-_MAX_ERROR_BYTES:].decode(errors="replace")
    except OSError:
        return ""
    return (text.strip().splitlines() or [""])[-1]


_START_TIMEOUT_SECONDS = 30.0
"""A shim starts in about 50 ms; allow for a machine under load."""
_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.001, 0.02
"""Bounds of the delay between two checks for a file that is about to appear."""
_RECHECK_SECONDS = 0.25


class ShimControl:
    """Shared state of starter, stopper and resizer. Not thread-safe: for one event loop."""

    def __init__(self, records: RecordStore, pods: PodTable, limits: LimitEnforcer) -> None:
        self.records = records
        self.shims = ShimProcesses()
        self.limits = limits
        self.pods = pods

    def recover(self) -> None:
        """Load the records of previous agents; remove what they left. Raises RuntimeDownError."""
        self.records.quarantine_leftovers()
        self.pods.load()
        for uid, id in self.pods.never_started():
            self._remove(uid, id)
            self.pods.remove_attempt(uid, id)
        self.limits.retain_only({state.record.uid for state in self.pods.states()})

    def close(self) -> None:
        """Stop watching processes and cgroups."""
        self.pods.close()
        self.limits.close()

    def find(self, uid: PodUID, id: str) -> ContainerAttempt | None:
        state = self.pods.find(uid)
        return state.find(id) if state is not None else None

    def has_ended(self, uid: PodUID, id: str) -> bool:
        """Return whether no process of the attempt runs, or the attempt does not exist."""
        self.pods.exits.poll()
        attempt = self.find(uid, id)
        return attempt is None or attempt.has_ended

    def signal_shim(self, uid: PodUID, number: int) -> bool:
        """Send a signal to the pod's shim; False if it has none."""
        shim = self.pods.shim(uid)
        return shim is not None and send_signal(shim.process, number)

    async def remove(self, uid: PodUID, id: str) -> None:
        """Remove an attempt and its log; none of its processes may run."""
        await asyncio.to_thread(self._remove, uid, id)
        self.pods.remove_attempt(uid, id)

    def _remove(self, uid: PodUID, id: str) -> None:
        self.limits.cgroups.remove(uid, id)
        self.records.remove(self.records.pod_folder(uid).container(id).path)

    async def wait_ready(self, record: PodRecord) -> bool:
        """Wait until the pod's shim serves requests; False if it ended or timed out."""
        poll = _PollBackoff()
        while not self.pods.poll_shim(record.uid):
            if self.shims.has_ended(record.sandbox_id) or poll.expired:
                return self.pods.poll_shim(record.uid)
            await poll.wait()
        return True

    async def wait_settled(self, uid: PodUID, attempt: ContainerAttempt) -> ContainerAttempt:
        """Wait until the attempt has started or failed to start. Raises RuntimeDownError."""
        id = attempt.launch.id
        if not attempt.is_settled:
            # A previous agent may have ended just before it signalled the shim.
            self.signal_shim(uid, signal.SIGHUP)
        poll = _PollBackoff()
        while not (attempt := self.pods.poll_attempt(uid, id)).is_settled:
            if poll.expired:
                raise RuntimeDownError(f"the shim of pod {uid} did not start attempt {id} in time")
            await poll.wait()
        return attempt

    async def wait_until(self, uid: PodUID, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait up to `seconds` until `holds()`; return whether it holds."""
        with self.pods.subscribe(uid) as changed, suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    changed.clear()
                    # Not every change is signalled: a shim that never served ends without an event.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_RECHECK_SECONDS):
                            await changed.wait()
        return holds()


class _PollBackoff:
    """Polling delays that grow, with an overall deadline."""

    def __init__(self) -> None:
        self._delay = _MIN_POLL_SECONDS
        self._deadline = time.monotonic() + _START_TIMEOUT_SECONDS

    @property
    def expired(self) -> bool:
        return time.monotonic() > self._deadline

    async def wait(self) -> None:
        await asyncio.sleep(self._delay)
        self._delay = min(self._delay * 1.5, _MAX_POLL_SECONDS)
