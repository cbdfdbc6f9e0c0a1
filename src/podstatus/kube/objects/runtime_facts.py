"""What a container runtime reports about a pod, in the vocabulary of CRI.

Whoever brings a runtime fills these in. Only `name` and `state` of a container are needed;
everything else has a default that claims nothing (docs/facts.md has them all):

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

from podstatus.kube.encoding.wire import Wire
from podstatus.kube.objects.pod_status import LinuxContainerUser
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import UNSET_TIME, Time


class SandboxState(Enum):
    """Whether a sandbox can hold containers."""

    READY = "SANDBOX_READY"
    NOT_READY = "SANDBOX_NOTREADY"


class NetworkMode(Enum):
    """Whose network namespace a sandbox uses."""

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
    """None when the runtime reports no network status at all."""


class ResourceFacts(Wire, frozen=True, kw_only=True):
    """The cpu and memory in force; None where the runtime does not say."""

    cpu_request: Quantity | None = None
    cpu_limit: Quantity | None = None
    memory_request: Quantity | None = None
    memory_limit: Quantity | None = None


class ContainerRunState(Enum):
    """Where in its life a runtime says a container is."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class ContainerFacts(Wire, frozen=True, kw_only=True):
    """One container that was made for a pod: one attempt at running a container of its spec."""

    name: str
    """Of the container in the pod's spec; several attempts have the same."""
    state: ContainerRunState
    id: str = ""
    """With the kind of runtime in front, as in `containerd://0f3a`; by it probes find it again."""
    created_at: Time = UNSET_TIME
    """Tells the newest attempt; of equal ones the first listed counts as newer."""
    started_at: Time = UNSET_TIME
    finished_at: Time = UNSET_TIME
    exit_code: int = 0
    reason: str = ""
    """Why it ended, in one word: `Completed`, `Error`, `OOMKilled`. It is shown as it is given."""
    message: str = ""
    """What it left behind as its last words."""
    image: str = ""
    image_ref: str = ""
    """The image by its digest."""
    restart_count: int | None = None
    """How many attempts there were before this one; None if the runtime does not count. Then
    what was shown before is counted on, as long as each attempt has an id of its own."""
    resources: ResourceFacts | None = None
    user: LinuxContainerUser | None = None
    """As whom its first process runs."""
    active: bool = True
    """Whether it belongs to the sandbox now in use, not to one that was given up."""


class PodFacts(Wire, frozen=True, kw_only=True):
    """A pod as its runtime sees it; sandboxes and the attempts at a container newest first."""

    sandboxes: tuple[SandboxFacts, ...] = ()
    containers: tuple[ContainerFacts, ...] = ()
    ips: tuple[str, ...] = ()
    """Any number of addresses in any order; empty for a pod in its node's network."""
    resources: ResourceFacts | None = None
    """What is in force for the pod as a whole, where that can be read."""
    recursive_read_only: bool = False
    """Whether this pod's runtime can make mounts below a read-only mount read-only too."""

    def find_container(self, name: str) -> ContainerFacts | None:
        """The first attempt listed at this container."""
        for container in self.containers:
            if container.name == name:
                return container
        return None
