"""Decide on a new status (refused, unchanged, accepted), and find its new terminations.

Upstream: updateStatusInternal and checkAndRecordTerminations in it, status_manager.go v1.36.4.
"""

from enum import Enum
from operator import attrgetter

import msgspec
from msgspec import structs

from podstatus.kube.by_name import first_by_name
from podstatus.kube.conditions import (
    ALL_CONTAINERS_RESTARTING,
    CONTAINERS_READY,
    DISRUPTION_TARGET,
    INITIALIZED,
    POD_READY_TO_START_CONTAINERS,
    POD_SCHEDULED,
    READY,
    restamp_conditions,
)
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.equality import is_pod_status_by_kubelet_equal
from podstatus.status.decide.normalize import normalize_conditions, normalize_containers
from podstatus.status.decide.transitions import check_container_state_transition


class ContainerType(Enum):
    """The three lists of a pod's containers, named as metrics name them."""

    INIT = "init_container"
    REGULAR = "container"
    EPHEMERAL = "ephemeral_container"


_STATUS_LISTS = (
    (ContainerType.INIT, attrgetter("init_container_statuses")),
    (ContainerType.REGULAR, attrgetter("container_statuses")),
    (ContainerType.EPHEMERAL, attrgetter("ephemeral_container_statuses")),
)


class Termination(msgspec.Struct, frozen=True):
    """A container that was not seen ended before."""

    container_type: ContainerType
    exit_code: int
    reason: str


def new_terminations(old: PodStatus, new: PodStatus) -> tuple[Termination, ...]:
    """The containers that the old status did not show ended and the new one does."""
    found: list[Termination] = []
    for container_type, listed in _STATUS_LISTS:
        ended = [status for status in listed(new) or () if status.state.terminated is not None]
        known = first_by_name(listed(old)) if ended else {}
        found += [
            Termination(container_type, end.exit_code, end.reason)
            for status in ended
            if (end := status.state.terminated) is not None
            and not _is_terminated(known.get(status.name))
        ]
    return tuple(found)


def _is_terminated(status: ContainerStatus | None) -> bool:
    return status is not None and status.state.terminated is not None


_STAMPED_CONDITIONS = frozenset(
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


class UpdateRejected(msgspec.Struct, frozen=True):
    """The update would revive a container that must stay ended."""

    reason: str


class UpdateUnchanged(msgspec.Struct, frozen=True):
    """The update says what is cached already."""

    terminations: tuple[Termination, ...]


class UpdateAccepted(msgspec.Struct, frozen=True):
    """The status to cache: stamped and normalised."""

    status: PodStatus
    terminations: tuple[Termination, ...]


UpdateOutcome = UpdateRejected | UpdateUnchanged | UpdateAccepted


def decide_update(
    pod: Pod,
    status: PodStatus,
    *,
    cached: PodStatus | None,
    last_known: PodStatus,
    force: bool,
    now: Time,
    gates: FeatureGates,
) -> UpdateOutcome:
    """Judge a new status against the last one known.

    `last_known` is the cached status, or what the API shows when nothing is cached.
    """
    why = check_container_state_transition(last_known, status, pod.spec, gates)
    if why is not None:
        return UpdateRejected(why)
    status = structs.replace(
        status,
        start_time=last_known.start_time or status.start_time or now,
        observed_generation=max(status.observed_generation, last_known.observed_generation),
    )
    status = normalize_containers(pod, status)
    terminations = new_terminations(last_known, status)
    # When conditions moved makes no difference, so it is worked out for news only.
    if cached is not None and not force and is_pod_status_by_kubelet_equal(cached, status, gates):
        return UpdateUnchanged(terminations)
    status = normalize_conditions(restamp_conditions(status, last_known, _STAMPED_CONDITIONS, now))
    return UpdateAccepted(status, terminations)
