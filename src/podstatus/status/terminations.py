"""Which containers a new status shows ended for the first time.

Upstream: checkAndRecordTerminations in updateStatusInternal, status_manager.go v1.36.4.
"""

from collections.abc import Sequence
from enum import Enum

import msgspec

from podstatus.kube.pod_status import ContainerStatus, PodStatus


class ContainerType(Enum):
    """The three lists of a pod's containers, named as metrics name them."""

    INIT = "init_container"
    REGULAR = "container"
    EPHEMERAL = "ephemeral_container"


class Termination(msgspec.Struct, frozen=True):
    """A container that was not seen ended before."""

    container_type: ContainerType
    exit_code: int
    reason: str


def new_terminations(old: PodStatus, new: PodStatus) -> tuple[Termination, ...]:
    """The containers that the old status did not show ended and the new one does."""
    return (
        *_listed(ContainerType.INIT, old.init_container_statuses, new.init_container_statuses),
        *_listed(ContainerType.REGULAR, old.container_statuses, new.container_statuses),
        *_listed(
            ContainerType.EPHEMERAL,
            old.ephemeral_container_statuses,
            new.ephemeral_container_statuses,
        ),
    )


def _listed(
    container_type: ContainerType,
    before: Sequence[ContainerStatus] | None,
    after: Sequence[ContainerStatus] | None,
) -> Sequence[Termination]:
    if not after:
        return ()
    return [
        Termination(container_type, terminated.exit_code, terminated.reason)
        for status in after
        if (terminated := status.state.terminated) is not None
        and not _was_ended(status.name, before or ())
    ]


def _was_ended(name: str, statuses: Sequence[ContainerStatus]) -> bool:
    known = next((status for status in statuses if status.name == name), None)
    return known is not None and known.state.terminated is not None
