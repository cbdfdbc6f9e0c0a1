"""Decide on a new status (rejected, unchanged, accepted), and find its new terminations.

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
from podstatus.status.decide.legal_transitions import check_container_state_transition
from podstatus.status.decide.normalize_and_compare import (
    is_pod_status_by_kubelet_equal,
    normalize_conditions,
    normalize_containers,
)


class ContainerType(Enum):
    """The container lists of a pod, with their metric label values."""

    INIT = "init_container"
    REGULAR = "container"
    EPHEMERAL = "ephemeral_container"


_STATUS_LISTS = (
    (ContainerType.INIT, attrgetter("init_container_statuses")),
    (ContainerType.REGULAR, attrgetter("container_statuses")),
    (ContainerType.EPHEMERAL, attrgetter("ephemeral_container_statuses")),
)


class Termination(msgspec.Struct, frozen=True):
    """A container whose termination was observed for the first time."""

    container_type: ContainerType
    exit_code: int
    reason: str


def new_terminations(old: PodStatus, new: PodStatus) -> tuple[Termination, ...]:
    """Return the containers that are terminated in the new status but not in the old one."""
    terminations: list[Termination] = []
    for container_type, statuses in _STATUS_LISTS:
        old_by_name: dict[str, ContainerStatus] | None = None
        for status in statuses(new) or ():
            end = status.state.terminated
            if end is None:
                continue
            if old_by_name is None:
                old_by_name = first_by_name(statuses(old))
            before = old_by_name.get(status.name)
            if before is None or before.state.terminated is None:
                terminations.append(Termination(container_type, end.exit_code, end.reason))
    return tuple(terminations)


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
    """The update would restart a container that must stay terminated."""

    reason: str


class UpdateUnchanged(msgspec.Struct, frozen=True):
    """The update equals the cached status."""

    terminations: tuple[Termination, ...]


class UpdateAccepted(msgspec.Struct, frozen=True):
    """The status to cache, with transition times set and normalised."""

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
    """Compare a new status with the last known one.

    `last_known` is the cached status, or the API server's status if none is cached.
    """
    if pod.spec.restart_policy != "Always":  # otherwise every transition is legal
        reason = check_container_state_transition(last_known, status, pod.spec, gates)
        if reason is not None:
            return UpdateRejected(reason)
    start_time = last_known.start_time or status.start_time or now
    generation = max(status.observed_generation, last_known.observed_generation)
    if start_time != status.start_time or generation != status.observed_generation:
        status = structs.replace(status, start_time=start_time, observed_generation=generation)
    status = normalize_containers(pod, status)
    terminations = new_terminations(last_known, status)
    # Transition times do not affect the comparison, so they are only set on a changed status.
    if cached is not None and not force and is_pod_status_by_kubelet_equal(cached, status, gates):
        return UpdateUnchanged(terminations)
    status = restamp_conditions(status, last_known, _STAMPED_CONDITIONS, now.truncated())
    status = normalize_conditions(status)
    return UpdateAccepted(status, terminations)
