"""The facts that a container runtime reports about a pod, in the terms of CRI.

The runtime adapter creates these values. Only `name` and `state` of a container are required; all
other fields have a neutral default (docs/reference/runtime-facts.md lists them):

    PodFacts(
        ips=("10.1.2.3",),
        sandboxes=(SandboxFacts(state=SandboxState.READY, ip="10.1.2.3"),),
        containers=(
            ContainerFacts(
                id="slurm://4711", name="app", state=ContainerRunState.RUNNING, started_at=began
            ),
        ),
    )
"""

from enum import Enum

from msgspec import structs

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.pod_status import LinuxContainerUser
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import UNSET_TIME, Time


class SandboxState(Enum):
    """Whether a sandbox can run containers."""

    READY = "SANDBOX_READY"
    NOT_READY = "SANDBOX_NOTREADY"


class NetworkMode(Enum):
    """The network namespace that a sandbox uses."""

    POD = "POD"
    CONTAINER = "CONTAINER"
    NODE = "NODE"
    TARGET = "TARGET"


class SandboxFacts(Wire, frozen=True, kw_only=True):
    """One sandbox of a pod: what its containers share, above all a network."""

    id: str = ""
    state: SandboxState = SandboxState.NOT_READY
    attempt: int = 0
    network: NetworkMode = NetworkMode.POD
    ip: str | None = None
    """None if the runtime reports no network status."""


class ResourceFacts(Wire, frozen=True, kw_only=True):
    """The actuated cpu and memory; None if the runtime does not report a value."""

    cpu_request: Quantity | None = None
    cpu_limit: Quantity | None = None
    memory_request: Quantity | None = None
    memory_limit: Quantity | None = None


class ContainerRunState(Enum):
    """The state of a container according to the runtime."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class ContainerFacts(Wire, frozen=True, kw_only=True):
    """One attempt at running a container of the spec, as the runtime lists it."""

    name: str
    """Name of the container in the spec; shared by all attempts."""
    state: ContainerRunState
    id: str = ""
    """The ID with the kind of runtime, as `containerd://0f3a`; probe results refer to it."""
    created_at: Time = UNSET_TIME
    """The latest is the newest attempt; if equal, the first in the list."""
    started_at: Time = UNSET_TIME
    finished_at: Time = UNSET_TIME
    exit_code: int = 0
    reason: str = ""
    """Why it ended, in one word: `Completed`, `Error`, `OOMKilled`. Shown unchanged."""
    message: str = ""
    """The termination message of the container."""
    image: str = ""
    image_ref: str = ""
    """The image by its digest."""
    restart_count: int | None = None
    """Number of earlier attempts; None if the runtime does not count. Then the count of the
    previous status is continued, which requires a unique `id` for each attempt."""
    resources: ResourceFacts | None = None
    user: LinuxContainerUser | None = None
    """The user of its first process."""
    active: bool = True
    """Whether it belongs to the current sandbox, not to a discarded one."""

    def __post_init__(self) -> None:
        # Runtimes have None for what has not happened yet; readers have one kind of unset time.
        for name in ("created_at", "started_at", "finished_at"):
            if getattr(self, name) is None:
                structs.force_setattr(self, name, UNSET_TIME)


class PodFacts(Wire, frozen=True, kw_only=True):
    """A pod as reported by its runtime; sandboxes and attempts newest first."""

    sandboxes: tuple[SandboxFacts, ...] = ()
    containers: tuple[ContainerFacts, ...] = ()
    ips: tuple[str, ...] = ()
    """Any number of addresses in any order; empty for a pod with `hostNetwork`."""
    resources: ResourceFacts | None = None
    """The actuated pod-level resources, if they can be read."""
    recursive_read_only: bool = False
    """Whether the runtime supports recursive read-only mounts."""

    def find_container(self, name: str) -> ContainerFacts | None:
        """Return the first listed attempt of this container, None if there is none."""
        for container in self.containers:
            if container.name == name:
                return container
        return None
