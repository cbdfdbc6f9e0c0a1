"""A cached pod status with its version, and the updates that the API server lacks."""

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus

MAX_UNSENT = 16
"""Unsent updates that are recorded per pod, always including the oldest. Further ones only matter
if they arrive during a single send. The limit bounds memory during an outage."""

_SECOND = 1_000_000_000


class UnsentUpdate(msgspec.Struct, frozen=True):
    """The monotonic time at which a version was cached, in ns."""

    version: int
    at: int


class VersionedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A cached pod status with its version."""

    version: int
    namespace: str
    name: str
    finished: bool
    """This is the pod's final status."""
    status: PodStatus
    unsent: tuple[UnsentUpdate, ...] = ()
    """The updates that the API server has not acknowledged, oldest first, including this one."""

    def unsent_seconds(self, monotonic: int) -> float | None:
        """Return the age of the oldest unsent update in seconds; None if all are acknowledged."""
        return (monotonic - self.unsent[0].at) / _SECOND if self.unsent else None

    def acknowledged(self, sent: "VersionedStatus") -> "VersionedStatus":
        """Return this entry without the updates of `sent`, which the server has."""
        unsent = tuple(update for update in self.unsent if update not in sent.unsent)
        return structs.replace(self, unsent=unsent)


def next_version(
    old: VersionedStatus | None, pod: Pod, status: PodStatus, *, finished: bool, monotonic: int
) -> VersionedStatus:
    """Return the entry that follows `old`; the first version of a pod is 1."""
    version = 1 if old is None else old.version + 1
    unsent = () if old is None else old.unsent
    if len(unsent) == MAX_UNSENT:
        unsent = unsent[:1] + unsent[2:]
    return VersionedStatus(
        version=version,
        namespace=pod.namespace,
        name=pod.name,
        finished=finished,
        status=status,
        unsent=(*unsent, UnsentUpdate(version, monotonic)),
    )
