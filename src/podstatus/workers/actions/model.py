"""Values of `compute`: the probe verdicts that it is given, and the actions that it returns."""

from collections.abc import Mapping
from enum import Enum

import msgspec

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.runtime_facts import ContainerFacts
from podstatus.kube.scalars.time import Time
from podstatus.pods.container_status import StartFailure


class ContainerKind(Enum):
    """In which list of the spec a container stands."""

    REGULAR = "container"
    INIT = "init container"
    EPHEMERAL = "ephemeral container"


class StopContainer(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that has to end."""

    container: ContainerFacts
    message: str
    """The text of its Killing event."""
    grace_seconds: int | None = None
    """None: as long as the pod says."""


class StartContainer(msgspec.Struct, frozen=True, kw_only=True):
    """A container that has to be started."""

    container: Container
    kind: ContainerKind
    restart_count: int
    last_exit: Time | None = None
    """When the attempt before it ended, for `CrashLoops.started`; None if none has."""


class PodActions(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, in this order. By default nothing."""

    stop_pod: bool = False
    """Stop every container (`stop_order`) and the sandbox."""
    stop: tuple[StopContainer, ...] = ()
    """Stop these alone; empty if the whole pod is stopped."""
    remove: tuple[ContainerFacts, ...] = ()
    """Forget these attempts; all of them have been stopped by now. The order matters: what
    asks for a restart of the whole pod goes last, so that it still asks if this is cut short."""
    start_pod: bool = False
    """Make a sandbox."""
    resize: Mapping[str, str] | None = None
    """Give the pod what it was granted, and these containers while they run, by name their IDs;
    None: nothing has changed. It comes before the starts, for which there is room then."""
    start: tuple[StartContainer, ...] = ()
    """One after another. A sidecar that cannot be started does not hold up those behind it."""
    waiting: Mapping[str, StartFailure] = {}
    """By container: why it is not started now although it should be."""
    requeue_after: float | None = None
    """Seconds until the first of those may be started."""


class ContainerProbeVerdicts(msgspec.Struct, frozen=True, kw_only=True):
    """The latest word of liveness and startup probes and of others, by container ID.

    True is a success and False a failure for good: the failures reached the probe's threshold.
    A probe that is still trying has no entry.
    """

    liveness: Mapping[str, bool] = {}
    startup: Mapping[str, bool] = {}
    restart_requested: frozenset[str] = frozenset()
    """Those that somebody wants to be started again, though no probe says so."""
