"""The process runtime: the port, with processes of this machine as containers.

    agent ──launch.json, SIGHUP──► shim ──fork──► keeper ──► command
      ▲                                              │
      └────── started.json, exit.json, 0.log ◄───────┘

The agent may end at any moment: whatever was begun is found in the files by the next one.
"""

import asyncio
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.base.usage import Usage
from podstatus.kube.containers import Container
from podstatus.kube.pod import Pod, PodUID
from podstatus.runtime.port import CannotStartError, RuntimeDownError, RuntimePod
from podstatus.runtime.process.book import Book
from podstatus.runtime.process.cgroups import Cgroups, no_cgroups
from podstatus.runtime.process.enforce_limits import LimitEnforcer, OnUnlimited
from podstatus.runtime.process.folder_sizes import FolderSizes
from podstatus.runtime.process.identity import send_signal
from podstatus.runtime.process.make_launch import AttemptIdentity, LogLimits, make_launch
from podstatus.runtime.process.prepare import Command, Preparer
from podstatus.runtime.process.read_logs import read_log
from podstatus.runtime.process.records import Launch, PodRecord, StartRecord
from podstatus.runtime.process.shelf import Shelf
from podstatus.runtime.process.shims import Shims, last_complaint
from podstatus.runtime.process.state import (
    NAME,
    START_ERROR,
    Attempt,
    PodState,
    container_id,
    folder_name,
)
from podstatus.runtime.process.talk import attach_to, exec_in
from podstatus.runtime.process.usage import ProcessUsage, RunningContainer
from podstatus.runtime.streams import LogOptions, NoStreamError, Talk, TalkRequest

ISOLATION_LABEL = "podstatus.dev/isolation"
_START_SECONDS = 30.0
"""A shim needs some 30 ms to come up; a machine under load gets more."""
_FIRST_LOOK, _LATER_LOOKS = 0.001, 0.02
"""Seconds between two looks at files that are about to be there."""
_LOOK_SECONDS = 0.25
_END_SECONDS = 30.0
"""After which something that was killed should have ended; if not, the caller tries again."""
_SHIM_SECONDS = 10.0
"""For a shim to kill what its pod runs; then it is killed itself."""
_LONGEST_GRACE = 1e9
"""Seconds, some 30 years: what is called infinite ends, too."""


class ProcessRuntime:
    """Containers as processes, each pod with a shim. For one event loop."""

    def __init__(
        self,
        folder: Path,
        preparer: Preparer,
        *,
        isolation: str,
        version: str = "1.0",
        host_ips: Callable[[], Sequence[str]],
        clock: Clock,
        log_limits: LogLimits | None = None,
        cgroups: Cgroups | None = None,
        on_unlimited: OnUnlimited = lambda *_: None,
    ) -> None:
        """Raises RuntimeDownError if the folder cannot be used."""
        self._preparer = preparer
        self._isolation = isolation
        self._version = version
        self._clock = clock
        self._log_limits = log_limits or LogLimits()
        cgroups = cgroups or no_cgroups("cgroups are not used")
        self._limits = LimitEnforcer(cgroups, on_unlimited)
        self._shelf = Shelf(folder)
        self._shims = Shims()
        self._usage = ProcessUsage(
            cgroups, FolderSizes(lambda uid: self._shelf.folder(uid).path), clock=clock
        )
        self._book = Book(self._shelf, host_ips, self._limits.in_force)
        self._is_open = False
        self._has_swept = False
        self._asked: set[str] = set()
        """The attempts that were sent their stop signal."""

    @property
    def name(self) -> str:
        """In front of container IDs and on the Node."""
        return NAME

    @property
    def version(self) -> str:
        """With how pods are kept apart."""
        return f"{self._version}+{self._isolation}"

    @property
    def node_labels(self) -> Mapping[str, str]:
        """How pods are kept apart, for those who want to choose."""
        return {ISOLATION_LABEL: self._isolation}

    # Starting

    async def start_pod(self, pod: Pod) -> None:
        """Make a folder for the pod, with its volumes, and start its shim."""
        book = self._opened()
        state = book.find(pod.uid)
        if state is not None and (state.is_ready or await self._came_up(state.record)):
            return
        # An agent before this one may have ended in the middle of a stop.
        await self.stop_pod(pod.uid)
        record = self._next_record(pod, state)
        self._shelf.write_pod(record)
        book.begin(record)
        await asyncio.to_thread(self._shelf.force, self._shelf.folder(pod.uid).record)
        await self._preparer.prepare_pod(pod)
        self._limits.make_pod(pod)
        try:
            self._shims.start(self._shelf.folder(pod.uid), record.sandbox_id)
        except OSError as error:
            raise CannotStartError(
                "CreatePodSandboxError", f"the shim cannot be started: {error}"
            ) from error
        if not await self._came_up(record):
            told = last_complaint(self._shelf.folder(pod.uid)) or "it says nothing"
            raise CannotStartError("CreatePodSandboxError", f"the shim did not come up: {told}")

    def _next_record(self, pod: Pod, known: PodState | None) -> PodRecord:
        return PodRecord(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            sandbox_id=uuid.uuid4().hex,
            sandbox_attempt=known.record.sandbox_attempt + 1 if known is not None else 0,
            created_at=self._clock.now(),
        )

    async def _came_up(self, record: PodRecord) -> bool:
        """Wait for a shim that is on its way; whether it came."""
        looks = _Looks()
        while not self._opened().look_for_shim(record.uid):
            if self._shims.has_ended(record.sandbox_id) or looks.are_over:
                return self._opened().look_for_shim(record.uid)
            await looks.wait()
        return True

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        """Have the shim start an attempt; its ID."""
        state = self._opened().find(pod.uid)
        if state is None or not state.is_ready:
            raise CannotStartError("RunContainerError", "the pod has no shim any more")
        attempt = state.find_attempt(container.name, restart_count)
        if attempt is None:
            attempt = await self._make(pod, container, state.record, restart_count)
        attempt = await self._settled(pod.uid, attempt)
        await self._forget_outdated(pod.uid, container.name)
        if attempt.lost:
            raise CannotStartError("RunContainerError", "the pod's shim has ended")
        if attempt.exit is not None and attempt.exit.reason == START_ERROR:
            raise CannotStartError("RunContainerError", attempt.exit.message)
        return container_id(attempt.launch.id)

    async def _make(
        self, pod: Pod, container: Container, record: PodRecord, restart_count: int
    ) -> Attempt:
        """Make an attempt and tell the shim; from then on whoever asks again finds it."""
        id = uuid.uuid4().hex
        attempt = AttemptIdentity(
            id=id,
            restart_count=restart_count,
            sandbox_id=record.sandbox_id,
            created_at=self._clock.now(),
        )
        place = self._shelf.make_place(pod.uid, id)
        try:
            command = await self._preparer.prepare_container(pod, container, place)
            launch = self._make_launch(pod, container, attempt, command)
            self._shelf.write_launch(place, launch)
        except BaseException:
            self._limits.remove(pod.uid, id)
            self._shelf.remove(place.path)
            raise
        return self._opened().add(pod.uid, launch)

    def _make_launch(
        self, pod: Pod, container: Container, attempt: AttemptIdentity, command: Command
    ) -> Launch:
        return make_launch(
            container,
            attempt,
            command,
            self._limits.make(pod, container, attempt.id),
            self._log_limits,
        )

    async def _settled(self, uid: PodUID, attempt: Attempt) -> Attempt:
        """Wait until it is known what came of starting an attempt."""
        id = attempt.launch.id
        place = self._shelf.folder(uid).container(id)
        if not attempt.is_settled:
            # An agent before this one may have ended just before it asked.
            self._ask_shim(uid, signal.SIGHUP)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(self._shelf.force, place.launch))
            looks = _Looks()
            while not (attempt := self._opened().look_at(uid, id)).is_settled:
                if looks.are_over:
                    raise RuntimeDownError(f"the shim of pod {uid} does not start {id}")
                await looks.wait()
        return attempt

    async def _forget_outdated(self, uid: PodUID, container: str) -> None:
        state = self._opened().find(uid)
        for attempt in state.outdated(container) if state is not None else ():
            await self.remove_container(uid, container_id(attempt.launch.id))

    # Stopping

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        """Send the stop signal, after the grace SIGKILL; come back when all of it has ended."""
        id = folder_name(container_id)
        attempt = self._find(uid, id)
        if attempt is None or attempt.has_ended:
            return
        attempt = await self._settled(uid, attempt)
        self._ask(attempt)
        grace = min(max(0.0, grace_seconds), _LONGEST_GRACE)
        if await self._ends(uid, id, grace):
            return
        self._kill(attempt)
        if not await self._ends(uid, id, _END_SECONDS):
            raise RuntimeDownError(f"container {container_id} was killed and has not ended")

    def _ask(self, attempt: Attempt) -> None:
        """Send the stop signal, once: a handler should not run again for each who asks."""
        if attempt.started is not None and attempt.launch.id not in self._asked:
            self._asked.add(attempt.launch.id)
            send_signal(attempt.started.process, attempt.launch.stop_signal)

    def _kill(self, attempt: Attempt) -> None:
        if attempt.started is not None:
            send_signal(attempt.started.process, signal.SIGKILL)

    async def _ends(self, uid: PodUID, id: str, seconds: float) -> bool:
        """Wait so long for the end of an attempt; whether it has ended."""
        return await self._comes_true(uid, lambda: self._has_ended(uid, id), seconds)

    def _has_ended(self, uid: PodUID, id: str) -> bool:
        self._opened().ends.look()
        attempt = self._find(uid, id)
        return attempt is None or attempt.has_ended

    async def stop_pod(self, uid: PodUID) -> None:
        """Have the shim kill what runs, and end."""
        book = self._opened()
        state = book.find(uid)
        if state is None:
            return
        record = structs.replace(state.record, stopped=True)
        if record != state.record:
            self._shelf.write_pod(record)
        await self._came_up(state.record)
        await self._end_shim(uid)
        for attempt in state.attempts:
            self._kill(attempt)
        self._shims.reap()
        book.stopped(record)
        if not await self._comes_true(uid, lambda: self._all_ended(uid), _END_SECONDS):
            raise RuntimeDownError(f"pod {uid} was killed and has not ended")

    async def _end_shim(self, uid: PodUID) -> None:
        for number, seconds in ((signal.SIGTERM, _SHIM_SECONDS), (signal.SIGKILL, _END_SECONDS)):
            if not self._ask_shim(uid, number):
                return
            if await self._comes_true(uid, lambda: self._opened().shim(uid) is None, seconds):
                return
        raise RuntimeDownError(f"the shim of pod {uid} was killed and has not ended")

    def _all_ended(self, uid: PodUID) -> bool:
        book = self._opened()
        book.look_at_all(uid)
        state = book.find(uid)
        return state is None or all(attempt.has_ended for attempt in state.attempts)

    # Forgetting

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        """Forget an attempt that has ended, with its log; one that runs stays."""
        id = folder_name(container_id)
        attempt = self._find(uid, id)
        if attempt is None or not attempt.has_ended:
            return
        await asyncio.to_thread(self._remove_container, uid, id)
        self._asked.discard(id)
        self._opened().drop_attempt(uid, id)

    def _remove_container(self, uid: PodUID, id: str) -> None:
        self._limits.remove(uid, id)
        self._shelf.remove(self._shelf.folder(uid).container(id).path)

    async def remove_pod(self, uid: PodUID) -> None:
        """Let go of all there is of the pod; what still runs is ended."""
        state = self._opened().find(uid)
        if state is None:
            return
        await self.stop_pod(uid)
        await self._preparer.remove_pod(uid)
        await asyncio.to_thread(self._remove_pod, uid)
        self._asked -= {attempt.launch.id for attempt in state.attempts}
        self._opened().drop(uid)

    def _remove_pod(self, uid: PodUID) -> None:
        self._limits.remove_pod(uid)
        self._shelf.remove(self._shelf.folder(uid).path)

    async def refresh_pod(self, pod: Pod) -> None:
        """Put what changed of configMaps, secrets and tokens into the volumes of a pod that runs.

        Raises CannotStartError.
        """
        state = self._opened().find(pod.uid)
        if state is not None and state.is_ready:
            await self._preparer.refresh_pod(pod)

    # Telling

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        """All pods, or this one alone."""
        book = self._opened()
        self._shims.reap()
        if not self._has_swept:
            self._has_swept = True
            await asyncio.to_thread(self._shelf.sweep)
        return book.listed() if uid is None else book.listed_one(uid)

    def changes(self) -> AsyncIterator[PodUID]:
        """The pods that are to be looked at again."""
        return self._opened().hints.ask()

    async def usage(self) -> Mapping[PodUID, Usage]:
        """What each pod uses now."""
        states = self._opened().states()
        used = await self._usage.read({state.record.uid: _running(state) for state in states})
        return {uid: usage.pod for uid, usage in used.items()}

    def container_logs(
        self, uid: PodUID, container_id: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        """What an attempt wrote. Raises NoStreamError."""
        id = folder_name(container_id)
        self._must_find(uid, id)
        return read_log(
            self._shelf.folder(uid).container(id),
            options,
            has_ended=lambda: self._has_ended(uid, id),
            clock=self._clock,
        )

    async def exec(
        self, uid: PodUID, container_id: str, command: tuple[str, ...], request: TalkRequest
    ) -> Talk:
        """Run a command where a running container is. Raises NoStreamError."""
        attempt, started = self._must_run(uid, container_id)
        return await exec_in(started.process, attempt.launch, command, request, clock=self._clock)

    async def attach(self, uid: PodUID, container_id: str, request: TalkRequest) -> Talk:
        """Talk to a running container itself. Raises NoStreamError."""
        attempt, started = self._must_run(uid, container_id)
        place = self._shelf.folder(uid).container(attempt.launch.id)
        return await attach_to(place, attempt.launch, started, request, clock=self._clock)

    def _must_find(self, uid: PodUID, id: str) -> Attempt:
        attempt = self._find(uid, id)
        if attempt is None:
            raise NoStreamError(f"container {container_id(id)} is not there any more")
        return attempt

    def _must_run(self, uid: PodUID, container_id: str) -> tuple[Attempt, StartRecord]:
        attempt = self._must_find(uid, folder_name(container_id))
        if attempt.started is None or attempt.has_ended:
            raise NoStreamError(f"container {container_id} is not running")
        return attempt, attempt.started

    def close(self) -> None:
        """Watch nobody any more; all that runs goes on."""
        self._book.close()
        self._limits.close()

    # Both sides

    def _opened(self) -> Book:
        """The book, with what agents before this one left."""
        if not self._is_open:
            self._shelf.set_aside_remains()
            self._book.open()
            self._limits.sweep({state.record.uid for state in self._book.states()})
            self._is_open = True
        return self._book

    def _find(self, uid: PodUID, id: str) -> Attempt | None:
        state = self._opened().find(uid)
        return state.find(id) if state is not None else None

    def _ask_shim(self, uid: PodUID, number: int) -> bool:
        """Send a signal to the shim of a pod; False if there is none."""
        shim = self._opened().shim(uid)
        return shim is not None and send_signal(shim.process, number)

    async def _comes_true(self, uid: PodUID, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait so long for something about a pod; whether it holds."""
        with self._opened().news(uid) as news, suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    news.clear()
                    # Not all is told: of a shim that never came up nobody hears when it ends.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_SECONDS):
                            await news.wait()
        return holds()


def _running(state: PodState) -> dict[str, RunningContainer]:
    """The containers of a pod that run, by name."""
    return {
        attempt.launch.container: RunningContainer(
            id=attempt.launch.id, keeper=attempt.started.keeper
        )
        for attempt in state.attempts
        if attempt.started is not None and not attempt.has_ended
    }


class _Looks:
    """Looks at files that are about to be there: often in the beginning, and not for ever."""

    def __init__(self) -> None:
        self._pause = _FIRST_LOOK
        self._until = time.monotonic() + _START_SECONDS

    @property
    def are_over(self) -> bool:
        return time.monotonic() > self._until

    async def wait(self) -> None:
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 1.5, _LATER_LOOKS)
