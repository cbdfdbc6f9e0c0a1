"""Values of `compute`: probe verdicts (input) and pod actions (output)."""

from collections.abc import Mapping
from enum import Enum, auto

import msgspec

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.runtime_facts import ContainerFacts
from podstatus.kube.scalars.time import Time
from podstatus.pods.container_status import StartFailure


class ContainerKind(Enum):
    """The list of the pod spec that a container belongs to."""

    REGULAR = auto()
    INIT = auto()
    """Also a sidecar."""
    EPHEMERAL = auto()


class StopContainer(msgspec.Struct, frozen=True, kw_only=True):
    """A container attempt to stop."""

    container: ContainerFacts
    message: str
    """Message of the Killing event."""
    grace_seconds: int | None = None
    """None: the pod's termination grace period."""


class StartContainer(msgspec.Struct, frozen=True, kw_only=True):
    """A container to start, for the first time or again."""

    container: Container
    kind: ContainerKind
    restart_count: int
    last_exit: Time | None = None
    """Exit time of the previous attempt, for `CrashLoopBackoff.started`; None if there is none."""


class PodActions(msgspec.Struct, frozen=True, kw_only=True):
    """Actions, executed in the order of the fields. By default none."""

    stop_pod: bool = False
    """Stop every container (in `termination_order`) and the sandbox."""
    stop: tuple[StopContainer, ...] = ()
    """Stop only these containers; empty if `stop_pod`."""
    remove: tuple[ContainerFacts, ...] = ()
    """Remove these stopped attempts. The attempt that requests a restart of the whole pod is last,
    so that the request survives an interruption."""
    start_pod: bool = False
    """Create a sandbox."""
    resize: Mapping[str, str] | None = None
    """Apply the allocation to the pod level and to these running containers, name -> ID. None: no
    resize. Executed before the starts, so that new containers find the resources they need."""
    start: tuple[StartContainer, ...] = ()
    """Started in order. A sidecar that fails to start does not block the containers after it."""
    waiting: Mapping[str, StartFailure] = {}
    """Containers whose start is delayed by a back-off, by name."""
    requeue_after: float | None = None
    """Seconds until the first container in `waiting` may start."""


class ContainerProbeVerdicts(msgspec.Struct, frozen=True, kw_only=True):
    """Results of liveness and startup probes and requested restarts, by container ID.

    True: success. False: the failure threshold was reached. No entry: no result yet.
    """

    liveness: Mapping[str, bool] = {}
    startup: Mapping[str, bool] = {}
    restart_requested: frozenset[str] = frozenset()
    """Containers to restart on request, without a failed probe."""
