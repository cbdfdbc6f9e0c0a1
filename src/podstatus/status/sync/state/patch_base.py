"""Which copy of a pod a patch starts from, when the server is not asked first.

The newest that is known: what the watch brought, or what the server answered to our last patch.
Resource versions are compared as numbers. The server has to be asked where nobody can tell: they
are no numbers, a patch was sent and its answer never came, or the watch has not shown for long
what was answered.
"""

from collections.abc import Collection

import msgspec

from podstatus.kube.objects.pod import ApiUID, Pod

LONGEST_LAG = 60.0
"""Seconds. A watch that is later than this is broken; or a server was restored from a backup and
counts from a smaller number, so that what the watch brings looks old and is not."""


class Answer(msgspec.Struct, frozen=True):
    """What the server said, and when."""

    pod: Pod
    at: float


class Bases:
    """The server's last answers, as long as they are newer than what the watch shows."""

    def __init__(self) -> None:
        self._answers: dict[ApiUID, Answer] = {}
        self._doubted: set[ApiUID] = set()

    def sending(self, uid: ApiUID) -> None:
        """A patch is on its way. Unless an answer comes, nobody knows whether it arrived."""
        self._doubted.add(uid)

    def not_taken(self, uid: ApiUID) -> None:
        """No patch has reached the object."""
        self._doubted.discard(uid)

    def answered(self, pod: Pod, now: float) -> None:
        """Remember an answer. They come in order, since a pod has one patch under way at most."""
        uid = ApiUID(pod.uid)
        self._doubted.discard(uid)
        self._answers[uid] = Answer(pod, now)

    def newest(self, uid: ApiUID, shown: Pod | None, now: float) -> Pod | None:
        """The newest copy of this object; None if the server has to be asked."""
        if uid in self._doubted:
            return None
        if shown is not None and ApiUID(shown.uid) != uid:
            shown = None
        answer = self._answers.get(uid)
        if answer is None:
            return shown if shown is not None and _number(shown) is not None else None
        if shown is not None and _is_as_new(shown, answer.pod):
            del self._answers[uid]
            return shown
        if now - answer.at > LONGEST_LAG or _number(answer.pod) is None:
            return None
        return None if shown is not None and _number(shown) is None else answer.pod

    def forget(self, uid: ApiUID) -> None:
        """Let go of an object that is gone, or not as we think."""
        self._answers.pop(uid, None)
        self._doubted.add(uid)

    def keep(self, known: Collection[ApiUID]) -> None:
        """Let go of all objects but these."""
        for uid in [uid for uid in self._answers if uid not in known]:
            del self._answers[uid]
        self._doubted.intersection_update(known)


def _is_as_new(pod: Pod, other: Pod) -> bool:
    """Whether this copy is at least as new; where nobody can tell, it is not."""
    mine, theirs = _number(pod), _number(other)
    return mine is not None and theirs is not None and mine >= theirs


def is_newer(pod: Pod, other: Pod) -> bool:
    """Whether this copy is newer than another; where nobody can tell, it is not."""
    if pod.metadata.resource_version == other.metadata.resource_version:
        return False
    mine, theirs = _number(pod), _number(other)
    return mine is not None and theirs is not None and mine > theirs


def _number(pod: Pod) -> int | None:
    version = pod.metadata.resource_version
    return int(version) if version.isascii() and version.isdigit() else None
