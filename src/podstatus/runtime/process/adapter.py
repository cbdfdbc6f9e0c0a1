"""The process runtime: the port, with processes of this machine as containers.

    agent ──launch.json, SIGHUP──► shim ──fork──► keeper ──► command
      ▲                                              │
      └────── started.json, exit.json, 0.log ◄───────┘

The agent may end at any moment: whatever was begun is found in the files by the next one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from podstatus.base.clock import Clock
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.usage import Usage
from podstatus.runtime.port import CannotStartError, RuntimePod
from podstatus.runtime.process.cgroups.enforcer import LimitEnforcer, OnUnlimited
from podstatus.runtime.process.cgroups.tree import Cgroups, no_cgroups
from podstatus.runtime.process.exec.start import attach_to, exec_in
from podstatus.runtime.process.logs.reader import read_log
from podstatus.runtime.process.preparer import Preparer
from podstatus.runtime.process.records.launch import LogLimits
from podstatus.runtime.process.records.models import StartRecord
from podstatus.runtime.process.records.store import Shelf
from podstatus.runtime.process.resizer import Resizer
from podstatus.runtime.process.shim_control import Machinery
from podstatus.runtime.process.starter import Starter
from podstatus.runtime.process.state.pod_state import (
    NAME,
    Attempt,
    PodState,
    container_id,
    folder_name,
)
from podstatus.runtime.process.state.pod_table import Book
from podstatus.runtime.process.stopper import Stopper
from podstatus.runtime.process.usage.collector import PodUsage, ProcessUsage, RunningContainer
from podstatus.runtime.process.usage.disk_usage import FolderSizes
from podstatus.runtime.streams import LogOptions, NoStreamError, Talk, TalkRequest

ISOLATION_LABEL = "podstatus.dev/isolation"


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
        cgroups = cgroups or no_cgroups("cgroups are not used")
        self._shelf = Shelf(folder)
        limits = LimitEnforcer(cgroups, on_unlimited)
        book = Book(self._shelf, host_ips, limits, clock.now)
        self._machinery = Machinery(self._shelf, book, limits)
        self._starter = Starter(
            self._machinery, preparer, clock=clock, log_limits=log_limits or LogLimits()
        )
        self._stopper = Stopper(self._machinery)
        self._resizer = Resizer(self._machinery)
        sizes = FolderSizes(lambda uid: self._shelf.folder(uid).path)
        self._usage = ProcessUsage(cgroups, sizes, clock=clock)
        self._used: Mapping[PodUID, PodUsage] = {}
        self._has_swept = False

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

    async def start_pod(self, pod: Pod) -> None:
        """Make a folder for the pod, with its volumes, and start its shim."""
        state = self._machinery.book.find(pod.uid)
        if state is not None:
            if state.is_ready or await self._machinery.came_up(state.record):
                return
            # An agent before this one may have ended in the middle of a stop.
            await self._stopper.stop_pod(pod.uid)
        await self._starter.start_pod(pod, state)

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        """Have the shim start an attempt; its ID."""
        state = self._machinery.book.find(pod.uid)
        if state is None or not state.is_ready:
            raise CannotStartError("RunContainerError", "the pod has no shim any more")
        attempt = await self._starter.start_container(
            pod, container, state, restart_count=restart_count
        )
        await self._forget_outdated(pod.uid, container.name)
        return container_id(attempt.launch.id)

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        """Have other limits hold for a pod that runs, and for these attempts by name."""
        await self._resizer.resize_pod(pod, containers)

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        """Send the stop signal, after the grace SIGKILL; come back when all of it has ended."""
        attempt = self._machinery.find(uid, folder_name(container_id))
        if attempt is not None and not attempt.has_ended:
            await self._stopper.stop_container(uid, attempt, grace_seconds)

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        """Forget an attempt that has ended, with its log; one that runs stays."""
        id = folder_name(container_id)
        attempt = self._machinery.find(uid, id)
        if attempt is None or not attempt.has_ended:
            return
        self._stopper.forget(id)
        await self._machinery.remove(uid, id)

    async def _forget_outdated(self, uid: PodUID, container: str) -> None:
        state = self._machinery.book.find(uid)
        for attempt in state.outdated(container) if state is not None else ():
            await self.remove_container(uid, container_id(attempt.launch.id))

    async def stop_pod(self, uid: PodUID) -> None:
        """Have the shim kill what runs, and end."""
        await self._stopper.stop_pod(uid)

    async def remove_pod(self, uid: PodUID) -> None:
        """Let go of all there is of the pod; what still runs is ended."""
        state = self._machinery.book.find(uid)
        await self._stopper.stop_pod(uid)
        # Also without a sandbox: there may be volumes of one that could not be started.
        await self._preparer.remove_pod(uid)
        await asyncio.to_thread(self._remove_pod, uid)
        if state is None:
            return
        for attempt in state.attempts:
            self._stopper.forget(attempt.launch.id)
        self._machinery.book.drop(uid)

    def _remove_pod(self, uid: PodUID) -> None:
        self._machinery.limits.remove_pod(uid)
        self._shelf.remove(self._shelf.folder(uid).path)

    async def refresh_pod(self, pod: Pod) -> None:
        """Put what changed of configMaps, secrets and tokens into the volumes of a pod that runs.

        Raises CannotStartError.
        """
        state = self._machinery.book.find(pod.uid)
        if state is not None and state.is_ready:
            await self._preparer.refresh_pod(pod)

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        """All pods, or this one alone."""
        book = self._machinery.book
        self._machinery.shims.reap()
        if not self._has_swept:
            self._has_swept = True
            await asyncio.to_thread(self._shelf.sweep)
        return book.listed() if uid is None else book.listed_one(uid)

    def changes(self) -> AsyncIterator[PodUID]:
        """The pods that are to be looked at again."""
        return self._machinery.book.hints.ask()

    async def usage(self) -> Mapping[PodUID, Usage]:
        """What each pod uses now."""
        states = self._machinery.book.states()
        self._used = await self._usage.read({state.record.uid: _running(state) for state in states})
        return {uid: usage.pod for uid, usage in self._used.items()}

    def container_usage(self) -> Mapping[PodUID, Mapping[str, Usage]]:
        """What those that run used when `usage` was asked last, by name."""
        return {uid: usage.containers for uid, usage in self._used.items()}

    def container_logs(
        self, uid: PodUID, container_id: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        """What an attempt wrote. Raises NoStreamError."""
        id = self._must_find(uid, container_id).launch.id
        return read_log(
            self._shelf.folder(uid).container(id),
            options,
            has_ended=lambda: self._machinery.has_ended(uid, id),
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

    def close(self) -> None:
        """Watch nobody any more; all that runs goes on."""
        self._preparer.close()
        self._machinery.close()

    def _must_find(self, uid: PodUID, container_id: str) -> Attempt:
        attempt = self._machinery.find(uid, folder_name(container_id))
        if attempt is None:
            raise NoStreamError(f"container {container_id} is not there any more")
        return attempt

    def _must_run(self, uid: PodUID, container_id: str) -> tuple[Attempt, StartRecord]:
        attempt = self._must_find(uid, container_id)
        if attempt.started is None or attempt.has_ended:
            raise NoStreamError(f"container {container_id} is not running")
        return attempt, attempt.started


def _running(state: PodState) -> dict[str, RunningContainer]:
    """The containers of a pod that run, by name."""
    return {
        attempt.launch.container: RunningContainer(
            id=attempt.launch.id, keeper=attempt.started.keeper
        )
        for attempt in state.attempts
        if attempt.started is not None and not attempt.has_ended
    }
