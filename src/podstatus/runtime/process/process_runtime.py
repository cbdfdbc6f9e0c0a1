"""The process runtime: the runtime port over processes of this machine.

    agent ──launch.json, SIGHUP──► shim ──fork──► monitor ──► command
      ▲                                              │
      └────── started.json, exit.json, 0.log ◄───────┘

The agent may end at any moment: the next agent finds the state of every operation in the files.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from podstatus.base.clock import Clock
from podstatus.kube.objects.cgroup_details import PodDetails
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.usage import PodDiskUsage, Usage
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.port import CannotStartError, RuntimeDownError, RuntimePod
from podstatus.runtime.process.cgroups.enforcer import LimitEnforcer, OnUnlimited
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups
from podstatus.runtime.process.container_starter import Starter
from podstatus.runtime.process.container_stopper import Stopper
from podstatus.runtime.process.exec.start import attach_to, exec_in
from podstatus.runtime.process.launch_preparer import ContainerPreparer
from podstatus.runtime.process.logs.reader import read_log
from podstatus.runtime.process.pod_resizer import resize_pod
from podstatus.runtime.process.records.launch import LogLimits
from podstatus.runtime.process.records.models import StartRecord
from podstatus.runtime.process.records.store import RecordStore
from podstatus.runtime.process.shim_control import ShimControl
from podstatus.runtime.process.state.pod_state import (
    NAME,
    ContainerAttempt,
    PodState,
    container_id,
    folder_name,
)
from podstatus.runtime.process.state.pod_table import PodTable
from podstatus.runtime.process.usage.collector import PodUsage, RunningContainer, UsageCollector
from podstatus.runtime.process.usage.details_reader import DetailsReader
from podstatus.runtime.process.usage.disk_usage import (
    ContainerAttemptFolder,
    DiskUsageCache,
    PodMeter,
)
from podstatus.runtime.process.volumes.unsandboxed_files import UnsandboxedFiles
from podstatus.runtime.streams import (
    LogOptions,
    ProcessStream,
    StreamOptions,
    StreamUnavailableError,
)

ISOLATION_LABEL = "podstatus.dev/isolation"


class ProcessRuntime:
    """Runs containers as processes, with one shim per pod. Not thread-safe: for one event loop."""

    def __init__(
        self,
        folder: Path,
        preparer: ContainerPreparer,
        *,
        version: str,
        host_ips: Callable[[], Sequence[str]],
        clock: Clock,
        log_limits: LogLimits,
        cgroups: Cgroups,
        on_unlimited: OnUnlimited,
    ) -> None:
        """Raises RuntimeDownError if the folder cannot be used."""
        self._preparer = preparer
        self._isolation = preparer.isolation.value
        self._version = version
        self._clock = clock
        self._records = RecordStore(folder)
        limits = LimitEnforcer(cgroups, on_unlimited)
        pods = PodTable(self._records, host_ips, limits, clock.now)
        self._shim_control = ShimControl(self._records, pods, limits)
        self._starter = Starter(self._shim_control, preparer, clock=clock, log_limits=log_limits)
        self._stopper = Stopper(self._shim_control)
        outside = UnsandboxedFiles(folder)
        meter = PodMeter(folder, outside.volume_folders, now=clock.now)
        self._disk_usage = DiskUsageCache(meter.measure, clock=clock)
        self._usage = UsageCollector(cgroups, self._disk_usage, clock=clock)
        self._details = DetailsReader(cgroups, now=clock.now)
        self._last_usage: Mapping[PodUID, PodUsage] = {}
        self._is_open = False
        self._garbage_collected = False

    async def open(self) -> None:
        """Recover the state that previous agents left; call once, before anything else.

        Raises RuntimeDownError if the records cannot be read.
        """
        self._shim_control.recover()
        self._is_open = True

    @property
    def name(self) -> str:
        """Scheme of container IDs, also shown on the Node."""
        return NAME

    @property
    def version(self) -> str:
        """Version with the isolation as its suffix."""
        return f"{self._version}+{self._isolation}"

    @property
    def node_labels(self) -> Mapping[str, str]:
        """Label with the isolation of pods, for node selectors."""
        return {ISOLATION_LABEL: self._isolation}

    def image_message(self, image: str) -> str:
        """Return the message of the event Pulled: there was no pull."""
        return (
            f"Container image {go_quoted(image)} is not used: the process runtime runs programs on "
            "the host"
        )

    async def start_pod(self, pod: Pod) -> None:
        """Create the pod's folder and volumes, and start its shim."""
        state = self._shim_control.pods.find(pod.uid)
        if state is not None:
            if state.is_ready or await self._shim_control.wait_ready(state.record):
                return
            # A previous agent may have ended in the middle of a stop.
            await self._stopper.stop_pod(pod.uid)
        await self._starter.start_pod(pod, state)

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        """Let the shim start an attempt; return the attempt's ID."""
        state = self._shim_control.pods.find(pod.uid)
        if state is None or not state.is_ready:
            raise CannotStartError("RunContainerError", "the pod's shim is not running")
        attempt = await self._starter.start_container(
            pod, container, state, restart_count=restart_count
        )
        await self._prune_attempts(pod.uid, container.name)
        return container_id(attempt.launch.id)

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        await resize_pod(self._shim_control, pod, containers)

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        """Send the stop signal, SIGKILL after the grace period; return when all processes ended."""
        attempt = self._shim_control.find(uid, folder_name(container_id))
        if attempt is not None and not attempt.has_ended:
            await self._stopper.stop_container(uid, attempt, grace_seconds)

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        """Remove an ended attempt and its log; a running one stays."""
        id = folder_name(container_id)
        attempt = self._shim_control.find(uid, id)
        if attempt is None or not attempt.has_ended:
            return
        self._stopper.forget(id)
        await self._shim_control.remove(uid, id)

    async def _prune_attempts(self, uid: PodUID, container: str) -> None:
        state = self._shim_control.pods.find(uid)
        for attempt in state.prunable_attempts(container) if state is not None else ():
            await self.remove_container(uid, container_id(attempt.launch.id))

    async def stop_pod(self, uid: PodUID) -> None:
        """Let the shim kill all containers and end."""
        await self._stopper.stop_pod(uid)

    async def remove_pod(self, uid: PodUID) -> None:
        """Stop the pod if necessary, and remove its folder, volumes and cgroups."""
        state = self._shim_control.pods.find(uid)
        await self._stopper.stop_pod(uid)
        # Also without a sandbox: a pod whose start failed may have volumes.
        await self._preparer.remove_pod(uid)
        await asyncio.to_thread(self._remove_pod, uid)
        if state is None:
            return
        for attempt in state.attempts:
            self._stopper.forget(attempt.launch.id)
        self._shim_control.pods.remove(uid)

    def _remove_pod(self, uid: PodUID) -> None:
        self._shim_control.limits.cgroups.remove_pod(uid)
        self._records.remove(self._records.pod_folder(uid).path)

    async def refresh_pod(self, pod: Pod) -> None:
        """Update configMaps, secrets and tokens in the volumes of a running pod.

        Raises CannotStartError.
        """
        state = self._shim_control.pods.find(pod.uid)
        if state is not None and state.is_ready:
            await self._preparer.refresh_pod(pod)

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        """Return all pods, or `uid` only. Raises RuntimeDownError before `open()`."""
        if not self._is_open:
            # An empty list would have the containers of previous agents started twice.
            raise RuntimeDownError("the process runtime has not been opened")
        if not self._garbage_collected:
            # Not in `open`: it may take long, and the agent serves in the meantime.
            self._garbage_collected = True
            await asyncio.to_thread(self._records.collect_garbage)
        pods = self._shim_control.pods
        self._shim_control.shims.reap()
        return pods.runtime_pods() if uid is None else pods.runtime_pod_list(uid)

    def changes(self) -> AsyncIterator[PodUID]:
        return self._shim_control.pods.changes.subscribe()

    async def usage(self) -> Mapping[PodUID, Usage]:
        states = self._shim_control.pods.states()
        self._last_usage = await self._usage.read(
            {state.record.uid: _running_containers(state) for state in states},
            {state.record.uid: _attempt_folders(state) for state in states},
            [state.shim for state in states if state.shim is not None],
        )
        return {uid: usage.pod for uid, usage in self._last_usage.items()}

    def container_usage(self) -> Mapping[PodUID, Mapping[str, Usage]]:
        return {uid: usage.containers for uid, usage in self._last_usage.items()}

    def details_reader(self) -> Callable[[], Mapping[PodUID, PodDetails]]:
        states = self._shim_control.pods.states()
        running = {state.record.uid: _running_containers(state) for state in states}
        return partial(self._details.read, running)

    def system_usage(self) -> Mapping[str, Usage]:
        return self._usage.system

    def disk_usage(self) -> Mapping[PodUID, PodDiskUsage]:
        return {
            uid: usage.disk for uid, usage in self._last_usage.items() if usage.disk is not None
        }

    async def measure_disks(self) -> None:
        states = self._shim_control.pods.states()
        await self._disk_usage.refresh(
            {state.record.uid: _attempt_folders(state) for state in states}
        )

    def container_logs(
        self, uid: PodUID, container_id: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        id = self._require_attempt(uid, container_id).launch.id
        return read_log(
            self._records.pod_folder(uid).container(id).log,
            options,
            has_ended=lambda: self._shim_control.has_ended(uid, id),
            clock=self._clock,
        )

    async def exec(
        self, uid: PodUID, container_id: str, command: tuple[str, ...], request: StreamOptions
    ) -> ProcessStream:
        attempt, started = self._require_running(uid, container_id)
        return await exec_in(started.process, attempt.launch, command, request, clock=self._clock)

    async def attach(self, uid: PodUID, container_id: str, request: StreamOptions) -> ProcessStream:
        attempt, started = self._require_running(uid, container_id)
        folder = self._records.pod_folder(uid).container(attempt.launch.id)
        return await attach_to(folder, attempt.launch, started, request, clock=self._clock)

    def close(self) -> None:
        """Stop watching processes; all containers keep running."""
        self._preparer.close()
        self._shim_control.close()

    def _require_attempt(self, uid: PodUID, container_id: str) -> ContainerAttempt:
        attempt = self._shim_control.find(uid, folder_name(container_id))
        if attempt is None:
            raise StreamUnavailableError(f"container {container_id} does not exist any more")
        return attempt

    def _require_running(
        self, uid: PodUID, container_id: str
    ) -> tuple[ContainerAttempt, StartRecord]:
        attempt = self._require_attempt(uid, container_id)
        if attempt.started is None or attempt.has_ended:
            raise StreamUnavailableError(f"container {container_id} is not running")
        return attempt, attempt.started


def _running_containers(state: PodState) -> dict[str, RunningContainer]:
    """Return the running containers of a pod, by name."""
    return {
        attempt.launch.container: RunningContainer(
            id=attempt.launch.id, monitor=attempt.started.monitor
        )
        for attempt in state.attempts
        if attempt.started is not None and not attempt.has_ended
    }


def _attempt_folders(state: PodState) -> tuple[ContainerAttemptFolder, ...]:
    """Return the folders of all attempts of a pod, newest first."""
    return tuple(
        ContainerAttemptFolder(attempt.launch.container, attempt.launch.id)
        for attempt in state.attempts
    )
