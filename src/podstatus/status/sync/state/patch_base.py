"""Which copy of a pod a patch starts from, when the server is not asked first.

The newest that is known: what the watch brought, or what the server answered to our last patch.
Resource versions are compared as numbers. The server has to be asked where nobody can tell: they
are no numbers, a patch was sent and its answer never came, or the watch has not shown for long
what was answered.
"""

from collections.abc import Collection

import msgspec

from podstatus.kube.objects.pod import ApiUID, Pod

MAX_WATCH_LAG_SECONDS = 60.0
"""Seconds. A watch that is later than this is broken; or a server was restored from a backup and
counts from a smaller number, so that what the watch brings looks old and is not."""


class ServerCopy(msgspec.Struct, frozen=True):
    """What the server said, and when."""

    pod: Pod
    at: float


class KnownCopies:
    """The server's last answers, as long as they are newer than what the watch shows."""

    def __init__(self) -> None:
        self._copies: dict[ApiUID, ServerCopy] = {}
        self._uncertain: set[ApiUID] = set()

    def patch_started(self, uid: ApiUID) -> None:
        """A patch is on its way. Unless an answer comes, nobody knows whether it arrived."""
        self._uncertain.add(uid)

    def patch_not_applied(self, uid: ApiUID) -> None:
        """No patch has reached the object."""
        self._uncertain.discard(uid)

    def response_received(self, pod: Pod, now: float) -> None:
        """Remember an answer. They come in order, since a pod has one patch under way at most."""
        uid = ApiUID(pod.uid)
        self._uncertain.discard(uid)
        self._copies[uid] = ServerCopy(pod, now)

    def patch_base(self, uid: ApiUID, observed: Pod | None, now: float) -> Pod | None:
        """The newest copy of this object; None if the server has to be asked."""
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
        """Let go of an object that is gone, or not as we think."""
        self._copies.pop(uid, None)
        self._uncertain.add(uid)

    def retain_only(self, uids: Collection[ApiUID]) -> None:
        """Let go of all objects but these."""
        for uid in [uid for uid in self._copies if uid not in uids]:
            del self._copies[uid]
        self._uncertain.intersection_update(uids)


def _is_at_least_as_new(pod: Pod, other: Pod) -> bool:
    """Whether this copy is at least as new; where nobody can tell, it is not."""
    mine, theirs = _resource_version(pod), _resource_version(other)
    return mine is not None and theirs is not None and mine >= theirs


def is_newer(pod: Pod, other: Pod) -> bool:
    """Whether this copy is newer than another; where nobody can tell, it is not."""
    if pod.metadata.resource_version == other.metadata.resource_version:
        return False
    mine, theirs = _resource_version(pod), _resource_version(other)
    return mine is not None and theirs is not None and mine > theirs


def _resource_version(pod: Pod) -> int | None:
    version = pod.metadata.resource_version
    return int(version) if version.isascii() and version.isdigit() else None
