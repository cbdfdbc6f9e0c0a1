"""What the agent needs of a runtime: eight methods, and all of them may be called again.

Whoever brings a runtime writes a class with these methods; `podstatus.testing.runtime_suite`
checks it. A runtime starts, stops and remembers what it is told to: when a container is started
again, and what is shown of it, is decided elsewhere. Its records outlive the agent: a container
that ended while no agent was there is listed with its exit.

    CannotStartError     this container cannot be started, or not now; the next sync tries again
    CannotResizeError    running containers cannot be given other resources, or not now
    RuntimeDownError     the runtime itself does not answer; nothing is known about any pod
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.kube.objects.usage import Usage


class CannotStartError(Exception):
    """A container could not be started; why, in the words of a waiting state."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        """One word: RunContainerError, CreateContainerConfigError, ErrImageNeverPull, ..."""
        self.message = message


class CannotResizeError(Exception):
    """Running containers could not be given what they ask for now; the message says why."""


class RuntimeDownError(Exception):
    """The runtime does not answer; the message says how it was tried."""


class RuntimePod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of which the runtime has something: a sandbox, containers, records of ended ones."""

    uid: PodUID
    namespace: str
    name: str
    facts: PodFacts


class Runtime(Protocol):
    """Runs containers. Calls about different pods overlap, those about one pod do not.

    Any call may raise RuntimeDownError, and may be cancelled: then the next call of the same
    kind finds out how far it came. A pod or a container that is not there is no error for those
    that stop and remove.
    """

    @property
    def name(self) -> str:
        """One word, in front of container IDs (`process://…`) and on the Node."""

    @property
    def version(self) -> str:
        """Shown on the Node."""

    async def start_pod(self, pod: Pod) -> None:
        """Make what its containers share: a sandbox, a folder, an address. Raises CannotStartError.

        If the pod has a ready sandbox already, nothing happens. If one was given up, the attempts
        in it are listed with `active=False` from now on.
        """

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        """Start a container of the pod's spec; the ID of this attempt. Raises CannotStartError.

        When this returns, the container is listed as running, or as exited. An attempt with this
        restart count that is there already, in the sandbox in use, is the one. Of older attempts at
        the same container at least the newest is kept. An attempt that was made and could not
        run is listed as exited, with the reason StartError and the exit code 128.
        """

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        """Ask a container to end, make it end after the grace; come back when it has ended.

        It is asked even if the grace is 0. A second call while one is under way, with a shorter
        grace, shortens it.
        """

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        """Forget an attempt that has ended, with its logs."""

    async def stop_pod(self, uid: PodUID) -> None:
        """End at once what still runs of the pod, and its sandbox; records and files stay."""

    async def remove_pod(self, uid: PodUID) -> None:
        """Let go of all there is of a stopped pod: records, folder, cgroup.

        When this returns, it is not listed any more.
        """

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        """All pods the runtime has something of, or this one alone; as it is now."""

    def changes(self) -> AsyncIterator[PodUID]:
        """The pods that are to be looked at again, as things happen; it never ends.

        Only a hint: all pods are listed once a second anyway. One who asks before a change is
        told of it; who has nothing to tell waits for ever.
        """


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe of a container came to."""

    uid: PodUID
    container: str
    container_id: str
    probe: str
    """`readiness`, `startup` or `liveness`."""
    success: bool
    output: str = ""
    """What it saw, for people."""


@runtime_checkable
class PodStats(Protocol):
    """A runtime that knows what pods use."""

    async def usage(self) -> Mapping[PodUID, Usage]:
        """What each pod uses now."""


@runtime_checkable
class ContainerStats(PodStats, Protocol):
    """A runtime that knows what their containers use, too. Must not wait."""

    def container_usage(self) -> Mapping[PodUID, Mapping[str, Usage]]:
        """What those that run used when `usage` was asked last, by name."""


@runtime_checkable
class ResizesPods(Protocol):
    """A runtime that can give running containers other resources than they were started with."""

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        """Give the pod, and these running containers, what the pod's spec says.

        By name the IDs of the attempts. In which order limits are raised and lowered is the
        runtime's business; what is in force is seen when the pod is listed (`resources`). May
        be called again. Raises CannotResizeError if something could not be done, also if only
        a part of it could.
        """


@runtime_checkable
class NodeLabels(Protocol):
    """A runtime that has something to say about itself on the Node."""

    @property
    def node_labels(self) -> Mapping[str, str]:
        """Labels of the Node, by which pods may choose it."""


@runtime_checkable
class RunsHooks(Protocol):
    """A runtime in whose containers nothing can be run or asked: it does itself what hooks do."""

    async def run_hook(self, uid: PodUID, container_id: str, hook: str) -> bool:
        """Do what `postStart` or `preStop` of a container does, and take the time; its success."""


@runtime_checkable
class ReportsProbes(Protocol):
    """A runtime whose containers cannot be probed from outside: it says itself what came of it."""

    def probe_results(self) -> AsyncIterator[ProbeResult]:
        """The results of the probes that containers have, as they change; it never ends."""
