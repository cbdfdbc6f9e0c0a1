"""What becomes of a new status: refused, nothing new, or cached.

Upstream: updateStatusInternal, status_manager.go v1.36.4.
"""

import msgspec
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.conditions import (
    ALL_CONTAINERS_RESTARTING,
    CONTAINERS_READY,
    DISRUPTION_TARGET,
    INITIALIZED,
    POD_READY_TO_START_CONTAINERS,
    POD_SCHEDULED,
    READY,
    restamp_conditions,
)
from podstatus.status.equality import is_pod_status_by_kubelet_equal
from podstatus.status.normalize import normalize_conditions, normalize_containers
from podstatus.status.terminations import Termination, new_terminations
from podstatus.status.transitions import check_container_state_transition

_STAMPED = frozenset(
    {
        CONTAINERS_READY,
        READY,
        INITIALIZED,
        POD_READY_TO_START_CONTAINERS,
        POD_SCHEDULED,
        DISRUPTION_TARGET,
        ALL_CONTAINERS_RESTARTING,
    }
)


class Refused(msgspec.Struct, frozen=True):
    """The update would revive a container that must stay ended."""

    why: str


class Unchanged(msgspec.Struct, frozen=True):
    """The update says what is cached already."""

    terminations: tuple[Termination, ...]


class Accepted(msgspec.Struct, frozen=True):
    """The status to cache: stamped and normalised."""

    status: PodStatus
    terminations: tuple[Termination, ...]


Outcome = Refused | Unchanged | Accepted


def decide_update(
    pod: Pod,
    status: PodStatus,
    *,
    cached: PodStatus | None,
    last_known: PodStatus,
    force: bool,
    now: Time,
    gates: FeatureGates,
) -> Outcome:
    """Judge a new status against the last one known.

    `last_known` is the cached status, or what the API shows when nothing is cached.
    """
    why = check_container_state_transition(last_known, status, pod.spec, gates)
    if why is not None:
        return Refused(why)
    status = structs.replace(
        status,
        start_time=last_known.start_time or status.start_time or now,
        observed_generation=max(status.observed_generation, last_known.observed_generation),
    )
    status = normalize_containers(pod, status)
    terminations = new_terminations(last_known, status)
    # When conditions moved makes no difference, so it is worked out for news only.
    if cached is not None and not force and is_pod_status_by_kubelet_equal(cached, status, gates):
        return Unchanged(terminations)
    status = normalize_conditions(restamp_conditions(status, last_known, _STAMPED, now))
    return Accepted(status, terminations)
