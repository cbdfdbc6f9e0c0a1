"""Which containers a new status shows ended for the first time.

Upstream: checkAndRecordTerminations in updateStatusInternal, status_manager.go v1.36.4.
"""

from enum import Enum
from operator import attrgetter

import msgspec

from podstatus.kube.by_name import first_by_name
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus


class ContainerType(Enum):
    """The three lists of a pod's containers, named as metrics name them."""

    INIT = "init_container"
    REGULAR = "container"
    EPHEMERAL = "ephemeral_container"


_LISTS = (
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
    for container_type, listed in _LISTS:
        ended = [status for status in listed(new) or () if status.state.terminated is not None]
        known = first_by_name(listed(old)) if ended else {}
        found += [
            Termination(container_type, end.exit_code, end.reason)
            for status in ended
            if (end := status.state.terminated) is not None
            and not _is_ended(known.get(status.name))
        ]
    return tuple(found)


def _is_ended(status: ContainerStatus | None) -> bool:
    return status is not None and status.state.terminated is not None
