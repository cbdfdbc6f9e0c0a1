"""What a container runtime reports about a pod, in the vocabulary of CRI."""

from enum import Enum

import msgspec


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


class SandboxFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One sandbox of a pod."""

    id: str = ""
    state: SandboxState = SandboxState.NOT_READY
    attempt: int = 0
    network: NetworkMode = NetworkMode.POD
    ip: str | None = None
    """None when the runtime reports no network status at all."""


class ContainerRunState(Enum):
    """Where in its life a runtime says a container is."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class ContainerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One container of a pod."""

    name: str
    state: ContainerRunState
    exit_code: int = 0


class PodFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A pod as its runtime sees it; sandboxes are newest first."""

    sandboxes: tuple[SandboxFacts, ...] = ()
    containers: tuple[ContainerFacts, ...] = ()
