"""Choose the copy of a pod that a patch is based on, without a GET if possible.

The base is the newest known copy: from the watch, or the response to the last patch. Resource
versions are compared as numbers. A GET is needed if they are not numbers, if a patch had no
response, or if the watch has not shown the last response for a long time.
"""

from collections.abc import Collection

import msgspec

from podstatus.kube.objects.pod import ApiUID, Pod

MAX_WATCH_LAG_SECONDS = 60.0
"""A watch with more delay is broken; or the server was restored from a backup and its resource
versions are lower, so that current copies from the watch look old."""


class ServerCopy(msgspec.Struct, frozen=True):
    """A pod that the server returned, and the monotonic time in seconds."""

    pod: Pod
    at: float


class KnownCopies:
    """The server's last responses, as long as they are newer than the watched copies."""

    def __init__(self) -> None:
        self._copies: dict[ApiUID, ServerCopy] = {}
        self._uncertain: set[ApiUID] = set()

    def patch_started(self, uid: ApiUID) -> None:
        """Mark the copy as uncertain: without a response, the patch may or may not be applied."""
        self._uncertain.add(uid)

    def patch_not_applied(self, uid: ApiUID) -> None:
        """Clear the uncertainty: the patch was not applied."""
        self._uncertain.discard(uid)

    def response_received(self, pod: Pod, now: float) -> None:
        """Store a response. Responses arrive in order: a pod has at most one patch in flight."""
        uid = ApiUID(pod.uid)
        self._uncertain.discard(uid)
        self._copies[uid] = ServerCopy(pod, now)

    def patch_base(self, uid: ApiUID, observed: Pod | None, now: float) -> Pod | None:
        """Return the newest known copy of the object; None if a GET is needed."""
        if uid in self._uncertain:
            return None
        if observed is not None and ApiUID(observed.uid) != uid:
            observed = None
        answer = self._copies.get(uid)
        if answer is None:
            return (
                observed
                if observed is not None and _resource_version(observed) is not None
                else None
            )
        if observed is not None and _is_at_least_as_new(observed, answer.pod):
            del self._copies[uid]
            return observed
        if now - answer.at > MAX_WATCH_LAG_SECONDS or _resource_version(answer.pod) is None:
            return None
        return None if observed is not None and _resource_version(observed) is None else answer.pod

    def forget(self, uid: ApiUID) -> None:
        """Discard the copy of an object that is gone or differs; the next base needs a GET."""
        self._copies.pop(uid, None)
        self._uncertain.add(uid)

    def retain_only(self, uids: Collection[ApiUID]) -> None:
        """Remove the copies of all objects except these."""
        for uid in [uid for uid in self._copies if uid not in uids]:
            del self._copies[uid]
        self._uncertain.intersection_update(uids)


def _is_at_least_as_new(pod: Pod, other: Pod) -> bool:
    """Whether the copy is at least as new; False if the versions cannot be compared."""
    version, other_version = _resource_version(pod), _resource_version(other)
    return version is not None and other_version is not None and version >= other_version


def is_newer(pod: Pod, other: Pod) -> bool:
    """Whether `pod` is newer than `other`; False if the versions cannot be compared."""
    if pod.metadata.resource_version == other.metadata.resource_version:
        return False
    version, other_version = _resource_version(pod), _resource_version(other)
    return version is not None and other_version is not None and version > other_version


def _resource_version(pod: Pod) -> int | None:
    version = pod.metadata.resource_version
    return int(version) if version.isascii() and version.isdigit() else None
