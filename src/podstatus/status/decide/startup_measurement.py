"""The startup state of a pod, and how long the startup took.

The Kubernetes SLI is the latency of stateless, schedulable pods from creation until all containers
are observed running, without image pulls and init containers.

Upstream: pod_startup_latency_tracker.go v1.36.4.
"""

import msgspec
from msgspec import structs

from podstatus.kube.conditions import POD_SCHEDULED
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.volumes import Volume
from podstatus.kube.scalars.time import UNSET_TIME, Time

MAX_OPEN_STARTS = 64
"""Operations of one kind that may run in a pod at a time; further ones are not measured. The limit
is only reached if starts are reported without their ends."""

_SECOND = 1_000_000_000


class BusyTime(msgspec.Struct, frozen=True):
    """The time during which at least one operation of a kind was running; overlaps count once.

    An end does not identify its operation, so it is matched with the oldest start. Ends arrive
    in chronological order, so all accounted time lies before `accounted_until`.
    """

    open_starts: tuple[Time, ...] = ()
    """Start times of the running operations, oldest first."""
    total: int = 0
    """Accounted time, in nanoseconds."""
    accounted_until: Time = UNSET_TIME

    def started(self, at: Time) -> "BusyTime":
        """Return the state after a further operation started."""
        if len(self.open_starts) == MAX_OPEN_STARTS:
            return self
        return structs.replace(self, open_starts=(*self.open_starts, at))

    def finished(self, at: Time) -> "BusyTime":
        """Return the state after the oldest operation ended; only unaccounted time is added.

        If the wall clock was set back, the total stays the same.
        """
        if not self.open_starts:
            return self
        oldest, *others = self.open_starts
        added = max(at - max(oldest, self.accounted_until), 0)
        return BusyTime(tuple(others), self.total + added, max(at, self.accounted_until))

    def reported_finished(self, at: Time) -> "BusyTime":
        """Like `finished`, for an end that may be reported repeatedly.

        An end before the oldest start belongs to an earlier operation and is ignored.
        """
        return self.finished(at) if self.open_starts and self.open_starts[0] <= at else self


class StartupState(msgspec.Struct, frozen=True, kw_only=True):
    """The startup state of one pod."""

    pulls: BusyTime = BusyTime()
    init_containers: BusyTime = BusyTime()
    is_reported: bool = False
    """The API server has accepted a status that shows every container running."""
    seen_at: Time | None = None
    """When the watch first showed every container running."""
    is_done: bool = False
    """The startup was measured, or is excluded from measurement."""


DONE = StartupState(is_done=True)


class PodStartup(msgspec.Struct, frozen=True, kw_only=True):
    """How long a pod took to start. No duration is negative."""

    total_seconds: float
    """From the pod's creation until it was observed started."""
    image_pulling_seconds: float
    init_containers_seconds: float
    sli_seconds: float | None
    """The total without those two; None for a stateful pod, which the SLI excludes."""
    is_first_network_pod: bool = False
    """Whether this is the first measured pod that uses the pod network."""


def measure_startup(pod: Pod, startup: StartupState, when: Time) -> PodStartup:
    """Return the pod's startup durations; `when` is the time it was observed started.

    The creation time is in whole seconds of the API server's clock, so a difference can be
    negative; it is reported as 0.
    """
    total = when - pod.metadata.creation_timestamp
    pulling, initializing = startup.pulls.total, startup.init_containers.total
    sli = None if is_stateful_pod(pod) else _seconds(total - pulling - initializing)
    return PodStartup(
        total_seconds=_seconds(total),
        image_pulling_seconds=_seconds(pulling),
        init_containers_seconds=_seconds(initializing),
        sli_seconds=sli,
    )


def _seconds(nanos: int) -> float:
    return max(nanos, 0) / _SECOND


def has_pod_started(pod: Pod) -> bool:
    """Whether the status shows all containers running at the same time.

    Upstream: hasPodStartedSLO, which is also true for a status without containers.
    """
    states = [container.state for container in pod.status.container_statuses or ()]
    return bool(states) and all(s.running is not None and s.running.started_at for s in states)


def is_stateful_pod(pod: Pod) -> bool:
    """Whether the pod has a volume that outlives it or that is provisioned externally."""
    return not all(_is_ephemeral(volume) for volume in pod.spec.volumes or ())


def _is_ephemeral(volume: Volume) -> bool:
    own = (volume.secret, volume.config_map, volume.downward_api, volume.empty_dir)
    return any(source is not None for source in (*own, volume.projected))


def is_pod_unschedulable(pod: Pod) -> bool:
    """Whether the scheduler could not place the pod immediately."""
    conditions = pod.status.conditions or ()
    return any(c.type == POD_SCHEDULED and c.status == "False" for c in conditions)
