"""What is known of a pod that starts, and how long it took.

The latency that Kubernetes promises is that of stateless, schedulable pods, from creation
until all containers are seen running, without pulling images and running init containers.

Upstream: pod_startup_latency_tracker.go v1.36.4.
"""

import msgspec
from msgspec import structs

from podstatus.kube.conditions import POD_SCHEDULED
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.volumes import Volume
from podstatus.kube.scalars.time import UNSET_TIME, Time

MAX_OPEN_STARTS = 64
"""How many things of a kind may be under way in one pod; what begins beyond is not measured.
Only starts whose end nobody reports add up to so many."""

_SECOND = 1_000_000_000


class BusyTime(msgspec.Struct, frozen=True):
    """For how long at least one thing of a kind was under way; what overlaps counts once.

    An end does not say what has ended, so it is taken for that of the oldest start. Ends come
    in the order of time, and so all that is accounted for lies before `until`.
    """

    open_starts: tuple[Time, ...] = ()
    """When the things under way began, oldest first."""
    total: int = 0
    """Nanoseconds accounted for."""
    accounted_until: Time = UNSET_TIME

    def started(self, at: Time) -> "BusyTime":
        """One thing more is under way."""
        if len(self.open_starts) == MAX_OPEN_STARTS:
            return self
        return structs.replace(self, open_starts=(*self.open_starts, at))

    def finished(self, at: Time) -> "BusyTime":
        """The oldest has ended; only what came after all that is accounted for is added.

        A clock that was set back adds nothing, and takes nothing away.
        """
        if not self.open_starts:
            return self
        oldest, *others = self.open_starts
        added = max(at - max(oldest, self.accounted_until), 0)
        return BusyTime(tuple(others), self.total + added, max(at, self.accounted_until))

    def reported_finished(self, at: Time) -> "BusyTime":
        """The same, told by somebody who reports an end again and again.

        An end before the oldest start is not the end of what is under way.
        """
        return self.finished(at) if self.open_starts and self.open_starts[0] <= at else self


class StartupState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a pod that starts."""

    pulls: BusyTime = BusyTime()
    init_containers: BusyTime = BusyTime()
    is_reported: bool = False
    """The API server has accepted a status that shows every container running."""
    seen_at: Time | None = None
    """When the watch first showed every container running."""
    is_done: bool = False
    """It was measured, or it is never to be."""


DONE = StartupState(is_done=True)


class PodStartup(msgspec.Struct, frozen=True, kw_only=True):
    """How long a pod took to start. No duration is negative."""

    total_seconds: float
    """From its creation until it was seen started."""
    image_pulling_seconds: float
    init_containers_seconds: float
    sli_seconds: float | None
    """The total without those two; None for a stateful pod, of which nothing is promised."""
    is_first_network_pod: bool = False
    """Whether it is the first one so measured that needs the pod network."""


def measure_startup(pod: Pod, startup: StartupState, when: Time) -> PodStartup:
    """How long the pod took, if this is when it was seen started.

    The creation is by the API server's clock and in whole seconds, so a difference can come
    out negative; it is 0 then.
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
    """Whether the status shows every container running at the same time.

    Upstream: hasPodStartedSLO, which also says so of a status without containers.
    """
    states = [container.state for container in pod.status.container_statuses or ()]
    return bool(states) and all(s.running is not None and s.running.started_at for s in states)


def is_stateful_pod(pod: Pod) -> bool:
    """Whether the pod has a volume that outlives it, or that somebody else has to provide."""
    return not all(_is_ephemeral(volume) for volume in pod.spec.volumes or ())


def _is_ephemeral(volume: Volume) -> bool:
    own = (volume.secret, volume.config_map, volume.downward_api, volume.empty_dir)
    return any(source is not None for source in (*own, volume.projected))


def is_pod_unschedulable(pod: Pod) -> bool:
    """Whether the scheduler could not place the pod at once."""
    conditions = pod.status.conditions or ()
    return any(c.type == POD_SCHEDULED and c.status == "False" for c in conditions)
