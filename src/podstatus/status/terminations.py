"""Which containers a new status shows ended for the first time.

Upstream: checkAndRecordTerminations in updateStatusInternal, status_manager.go v1.36.4.
"""

from collections.abc import Sequence
from enum import Enum
from operator import attrgetter

import msgspec

from podstatus.kube.pod_status import ContainerStatus, PodStatus


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
    found = []
    for container_type, listed in _LISTS:
        for status in listed(new) or ():
            terminated = status.state.terminated
            if terminated is not None and not _was_ended(status.name, listed(old) or ()):
                found.append(Termination(container_type, terminated.exit_code, terminated.reason))
    return tuple(found)


def _was_ended(name: str, statuses: Sequence[ContainerStatus]) -> bool:
    known = next((status for status in statuses if status.name == name), None)
    return known is not None and known.state.terminated is not None
