"""The runtime port: the eight idempotent methods that the agent needs of a runtime.

A runtime is a class with these methods; `podstatus.testing.runtime_suite` checks it. A runtime
starts, stops and records containers on request; restarts and the pod's status are decided
elsewhere. Records must outlive the agent: a container that ended while no agent was running is
listed with its exit.

    CannotStartError     this container cannot be started, or not now; the next sync tries again
    CannotResizeError    running containers cannot be resized, or not now
    RuntimeDownError     the runtime itself does not answer; nothing is known about any pod
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from podstatus.kube.objects.cgroup_details import PodDetails
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.kube.objects.usage import PodDiskUsage, Usage


class CannotStartError(Exception):
    """A container could not be started; reason and message as in a waiting state."""

    def __init__(self, reason: str, message: str, *, retry_soon: bool = False) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        """CamelCase reason: RunContainerError, CreateContainerConfigError, ErrImageNeverPull, ...
        """
        self.message = message
        self.retry_soon = retry_soon
        """Whether the cause may pass within a moment, as for an object that the API server does not
        show yet: retried after 0.5 s, 1 s, 2 s, … instead of 10 s."""


class CannotResizeError(Exception):
    """Running containers could not be resized; the message says why."""


class RuntimeDownError(Exception):
    """The runtime does not answer; the message says how it was tried."""


class RuntimePod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of which the runtime holds a sandbox, containers or records of ended containers."""

    uid: PodUID
    namespace: str
    name: str
    facts: PodFacts


class Runtime(Protocol):
    """Runs containers. Calls for different pods overlap; calls for one pod do not.

    Any call may raise RuntimeDownError and may be cancelled; the next call of the same kind then
    continues from the state it finds. The stop and remove methods succeed for a pod or container
    that does not exist.
    """

    @property
    def name(self) -> str:
        """One word: the scheme of container IDs (`process://…`), also shown on the Node."""

    @property
    def version(self) -> str:
        """Runtime version, shown on the Node."""

    async def start_pod(self, pod: Pod) -> None:
        """Create what the pod's containers share: sandbox, folder, IP. Raises CannotStartError.

        Does nothing if the pod has a ready sandbox. If an older sandbox was given up, its attempts
        are listed with `active=False` from now on.
        """

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        """Start a container of the pod's spec and return the attempt's ID. Raises CannotStartError.

        On return the container is listed as running or exited. If the sandbox in use already has an
        attempt with this restart count, its ID is returned. At least the newest older attempt of
        the same container is retained. An attempt that was created and could not run is listed as
        exited with reason StartError and exit code 128.
        """

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        """Send the stop signal, kill the container after the grace period, return when it has
        ended.

        The stop signal is sent even if the grace period is 0. A concurrent second call with a
        shorter grace period shortens the first.
        """

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        """Remove an ended attempt together with its logs."""

    async def stop_pod(self, uid: PodUID) -> None:
        """Kill the pod's running containers and stop its sandbox; records and files stay."""

    async def remove_pod(self, uid: PodUID) -> None:
        """Remove everything that belongs to a stopped pod: records, folder, cgroup.

        On return the pod is no longer listed.
        """

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        """Return the current state of all pods the runtime holds anything of, or of `uid` only."""

    def changes(self) -> AsyncIterator[PodUID]:
        """Yield the UID of each pod that changed, as it happens; never ends.

        Only a hint: all pods are relisted once a second anyway. Changes after this call must not be
        lost, even before the first iteration. A runtime without change events waits forever.
        """


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one probe of one container."""

    uid: PodUID
    container: str
    container_id: str
    probe: str
    """`readiness`, `startup` or `liveness`."""
    success: bool
    output: str = ""
    """Probe output, human-readable."""


@runtime_checkable
class PodStats(Protocol):
    """A runtime that reports the resource usage of pods."""

    async def usage(self) -> Mapping[PodUID, Usage]:
        """Return the current usage of each pod."""


@runtime_checkable
class ContainerStats(PodStats, Protocol):
    """A runtime that also reports the usage of containers."""

    def container_usage(self) -> Mapping[PodUID, Mapping[str, Usage]]:
        """Return the usage of running containers, by name, at the last `usage()`. Never blocks."""


@runtime_checkable
class DiskStats(PodStats, Protocol):
    """A runtime whose pods use the disk of the node."""

    def disk_usage(self) -> Mapping[PodUID, PodDiskUsage]:
        """Return the disk usage of pods as measured last, at the last `usage()`. Never blocks.

        Pods that have not been measured yet are missing.
        """

    async def measure_disks(self) -> None:
        """Measure all pods, for the next `usage()`; return after at most half a minute."""


@runtime_checkable
class DetailedStats(ContainerStats, Protocol):
    """A runtime that reads what only cAdvisor's metrics have."""

    def details_reader(self) -> Callable[[], Mapping[PodUID, PodDetails]]:
        """Return a function that reads the details of the pods that run now. Never blocks.

        The function may block for about a millisecond per pod, and is called in another thread.
        """


@runtime_checkable
class SystemStats(PodStats, Protocol):
    """A runtime that also reports what it uses itself."""

    def system_usage(self) -> Mapping[str, Usage]:
        """Return the usage at the last `usage()`, by the names of system containers. Never blocks.

        `runtime`: the processes of the runtime itself; `pods`: all pods together.
        """


@runtime_checkable
class ResizesPods(Protocol):
    """A runtime that can resize running containers in place."""

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        """Apply the resources of the pod's spec to the pod and to these running containers.

        `containers` maps names to attempt IDs. The runtime chooses the order in which limits are
        raised and lowered; the resources in force are those listed for the pod (`resources`).
        Idempotent. Raises CannotResizeError if the resize failed completely or in part.
        """


@runtime_checkable
class NodeLabels(Protocol):
    """A runtime that adds labels to the Node."""

    @property
    def node_labels(self) -> Mapping[str, str]:
        """Labels for the Node, for use in node selectors."""


@runtime_checkable
class DescribesImages(Protocol):
    """A runtime in which an image is not what it is to the kubelet."""

    def image_message(self, image: str) -> str:
        """Return the message of the event Pulled when a container with this image starts."""


@runtime_checkable
class RunsHooks(Protocol):
    """A runtime without processes to exec into or connect to: it runs hooks itself."""

    async def run_hook(self, uid: PodUID, container_id: str, hook: str) -> bool:
        """Run the `postStart` or `preStop` hook of a container; return whether it succeeded."""


@runtime_checkable
class ReportsProbes(Protocol):
    """A runtime whose containers cannot be probed from outside: it reports results itself."""

    def probe_results(self) -> AsyncIterator[ProbeResult]:
        """Yield probe results as they change; never ends."""
