"""Which containers a new status shows ended for the first time.

Upstream: checkAndRecordTerminations in updateStatusInternal, status_manager.go v1.36.4.
"""

from collections.abc import Iterator, Sequence
from enum import Enum

import msgspec

from podstatus.kube.pod_status import ContainerStateTerminated, ContainerStatus, PodStatus


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


def new_terminations(old: PodStatus, new: PodStatus) -> Iterator[Termination]:
    """The containers that the old status did not show ended and the new one does."""
    for container_type, before, after in (
        (ContainerType.INIT, old.init_container_statuses, new.init_container_statuses),
        (ContainerType.REGULAR, old.container_statuses, new.container_statuses),
        (
            ContainerType.EPHEMERAL,
            old.ephemeral_container_statuses,
            new.ephemeral_container_statuses,
        ),
    ):
        for terminated in _newly_terminated(before or (), after or ()):
            yield Termination(container_type, terminated.exit_code, terminated.reason)


def _newly_terminated(
    before: Sequence[ContainerStatus], after: Sequence[ContainerStatus]
) -> Iterator[ContainerStateTerminated]:
    for status in after:
        if status.state.terminated is None:
            continue
        known = next((old for old in before if old.name == status.name), None)
        if known is None or known.state.terminated is None:
            yield status.state.terminated
