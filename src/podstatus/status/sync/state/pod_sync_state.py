"""What the parallel sync knows of one pod, and how events change it.

A patch is based on the newest known copy of the pod: from the watch, or the response to the last
request. Resource versions are compared as numbers. A GET is needed if they are not numbers, if a
patch had no response, or if the watch has not shown the last response for a long time. All times
are monotonic seconds.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import structs

from podstatus.base.token_bucket import TokenBucket
from podstatus.kube.conditions import READY, is_condition_true
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import ApiUID, Pod
from podstatus.status.decide.foreign_writes import ForeignWrite, StatusPart, foreign_writes
from podstatus.status.sync.state.retry import Retry

MAX_WATCH_LAG_SECONDS = 60.0
"""A watch with more delay is broken; or the server was restored from a backup and its resource
versions are lower, so that current copies from the watch look old."""
CORRECTION_BURST = 3
"""Immediate corrections per pod; a persistent writer is then corrected by full syncs only."""
CORRECTION_REFILL_SECONDS = 60
"""Seconds until a pod gets one further immediate correction."""
REPORT_INTERVAL_SECONDS = 600.0
"""Seconds until the same write to the same pod is reported again."""

_SECOND = 1_000_000_000
WriteKey = tuple[StatusPart, str | None]
"""A part of the status, and the field manager that wrote it if that is known."""


class ServerCopy(msgspec.Struct, frozen=True):
    """A pod that the server returned or the watch delivered, and when."""

    pod: Pod
    at: float


class ForeignWriteState(msgspec.Struct, frozen=True, kw_only=True):
    """The writes of other clients to parts of the status that the node owns."""

    pending: Mapping[StatusPart, ForeignWrite] = {}
    """Writes to report once they are corrected."""
    corrections: TokenBucket | None = None
    """The limit of immediate corrections; None while it is full."""
    reported_at: Mapping[WriteKey, float] = {}

    def with_writes(self, writes: Iterable[ForeignWrite]) -> "ForeignWriteState":
        """Add pending writes; the first value before the writes of a part is kept."""
        pending = dict(self.pending)
        for write in writes:
            first = pending.get(write.part, write)
            pending[write.part] = ForeignWrite(write.part, first.before, write.after)
        return structs.replace(self, pending=pending)

    def try_correct(self, now: float) -> tuple["ForeignWriteState", bool]:
        """Take a token for an immediate correction; False if there is none."""
        nanos = round(now * _SECOND)
        full = TokenBucket(burst=CORRECTION_BURST, interval_ns=CORRECTION_REFILL_SECONDS * _SECOND)
        bucket, allowed = (self.corrections or full).try_acquire(nanos)
        return structs.replace(self, corrections=bucket), allowed

    def corrected(self) -> "ForeignWriteState":
        """Clear the pending writes: the server has the node's status again."""
        return structs.replace(self, pending={}) if self.pending else self

    def try_report(self, key: WriteKey, now: float) -> tuple["ForeignWriteState", bool]:
        """Record a report; False if the same write was reported within the interval."""
        recent = {
            reported: at
            for reported, at in self.reported_at.items()
            if now - at < REPORT_INTERVAL_SECONDS
        }
        is_new = key not in recent
        return structs.replace(self, reported_at={key: now} | recent), is_new


NO_FOREIGN_WRITES = ForeignWriteState()


class PodSyncState(msgspec.Struct, frozen=True, kw_only=True):
    """The sync state of one pod. A transition returns the next state."""

    api_uid: ApiUID
    """The API object: that of the mirror pod for a static pod."""
    deadline: float | None = None
    """When the queued pod goes first in any lane; None if it is not queued."""
    in_flight: bool = False
    is_probe: bool = False
    """In flight to find out whether an unavailable server responds again."""
    retry: Retry | None = None
    """None if the last sync succeeded."""
    wakeup: float | None = None
    """When a failed pod is checked again."""
    sent_version: int = 0
    """The last version that the server has acknowledged."""
    has_been_ready: bool = False
    """Whether the server has ever acknowledged Ready=True."""
    server_copy: ServerCopy | None = None
    is_uncertain: bool = False
    """A patch had no response, or the object was replaced: the copies that are known may be old."""
    may_land_late: bool = False
    """A patch had no response, and may be applied at any time."""
    foreign: ForeignWriteState = NO_FOREIGN_WRITES

    def for_object(self, api_uid: ApiUID) -> "PodSyncState":
        """Forget what is known of the server if the API object is another one."""
        if self.api_uid == api_uid:
            return self
        return PodSyncState(
            api_uid=api_uid,
            deadline=self.deadline,
            in_flight=self.in_flight,
            is_probe=self.is_probe,
            wakeup=self.wakeup,
        )

    def patch_started(self) -> "PodSyncState":
        """Without a response, the patch may or may not be applied."""
        return structs.replace(self, is_uncertain=True, may_land_late=True)

    def patch_not_applied(self, *, may_land_late: bool) -> "PodSyncState":
        """The server refused to process the patch; `may_land_late` as before it."""
        return structs.replace(self, is_uncertain=False, may_land_late=may_land_late)

    def read(self, pod: Pod, now: float) -> "PodSyncState":
        """The server returned this pod. A pod has at most one request in flight."""
        return structs.replace(self, server_copy=ServerCopy(pod, now), is_uncertain=False)

    def acknowledged(self, pod: Pod, version: int, now: float) -> "PodSyncState":
        """The server has this version; `pod` is its copy."""
        copy = self.server_copy
        return structs.replace(
            self,
            sent_version=version,
            has_been_ready=self.has_been_ready or is_condition_true(pod.status.conditions, READY),
            server_copy=copy if copy is not None and copy.pod is pod else ServerCopy(pod, now),
            is_uncertain=False,
            may_land_late=False,
        )

    def object_replaced(self) -> "PodSyncState":
        """The object is gone, changed, or another one has its name: the next patch needs a GET."""
        return structs.replace(self, server_copy=None, is_uncertain=True, may_land_late=False)

    def resend(self) -> "PodSyncState":
        """Send the status again, although this version was acknowledged."""
        return structs.replace(self, sent_version=0)

    def patch_base(self, observed: Pod | None, now: float) -> Pod | None:
        """Return the newest known copy of the object; None if a GET is needed.

        `observed` is the copy from the watch.
        """
        if self.is_uncertain:
            return None
        version = None if observed is None else _resource_version(observed)
        if self.server_copy is None:
            return None if version is None else observed
        copied = _resource_version(self.server_copy.pod)
        if copied is None or (observed is not None and version is None):
            return None
        if version is not None and version >= copied:
            return observed
        return None if now - self.server_copy.at > MAX_WATCH_LAG_SECONDS else self.server_copy.pod

    def observed(self, pod: Pod, gates: FeatureGates, now: float) -> tuple["PodSyncState", bool]:
        """The watch delivered this pod; returns whether to correct it immediately.

        Nothing is compared while a sync is in flight or without a response: the watch may show the
        node's own write.
        """
        if self.in_flight or self.is_uncertain or self.server_copy is None:
            return self, False
        previous = self.server_copy.pod
        if not _is_newer(pod, previous):
            return self, False
        writes = foreign_writes(previous.status, pod.status, gates)
        foreign, correct = self.foreign, False
        if writes:
            foreign, correct = foreign.with_writes(writes).try_correct(now)
        copy = ServerCopy(pod, now)
        return structs.replace(self, server_copy=copy, foreign=foreign), correct


def _is_newer(pod: Pod, other: Pod) -> bool:
    """Whether `pod` is newer than `other`; False if the versions cannot be compared."""
    version, other_version = _resource_version(pod), _resource_version(other)
    return version is not None and other_version is not None and version > other_version


def _resource_version(pod: Pod) -> int | None:
    version = pod.metadata.resource_version
    return int(version) if version.isascii() and version.isdigit() else None
