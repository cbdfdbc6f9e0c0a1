"""Which copy of a pod a patch starts from, when the server is not asked first.

The newest that is known: what the watch brought, or what the server answered to our last patch.
Resource versions are compared as numbers; where they are none, nobody can tell, and the server
has to be asked.
"""

from collections.abc import Collection

from podstatus.kube.pod import ApiUID, Pod


class Bases:
    """The server's last answers, as long as they are newer than what the watch shows."""

    def __init__(self) -> None:
        self._answers: dict[ApiUID, Pod] = {}

    def answered(self, pod: Pod) -> None:
        """Remember an answer, unless a newer one is known."""
        known = self._answers.get(ApiUID(pod.uid))
        if known is None or is_newer(pod, known):
            self._answers[ApiUID(pod.uid)] = pod

    def newest(self, uid: ApiUID, shown: Pod | None) -> Pod | None:
        """The newest copy of this object; None if the server has to be asked."""
        if shown is not None and ApiUID(shown.uid) != uid:
            shown = None
        answer = self._answers.get(uid)
        if shown is not None and answer is not None and not is_newer(answer, shown):
            del self._answers[uid]
            answer = None
        newest = answer or shown
        return newest if newest is not None and _number(newest) is not None else None

    def forget(self, uid: ApiUID) -> None:
        """Let go of an object that is gone, or not as we think."""
        self._answers.pop(uid, None)

    def keep(self, known: Collection[ApiUID]) -> None:
        """Let go of all objects but these."""
        for uid in [uid for uid in self._answers if uid not in known]:
            del self._answers[uid]


def is_newer(pod: Pod, other: Pod) -> bool:
    """Whether this copy is the newer one; one that nobody can date is not."""
    mine, theirs = _number(pod), _number(other)
    return mine is not None and (theirs is None or mine > theirs)


def _number(pod: Pod) -> int | None:
    version = pod.metadata.resource_version
    return int(version) if version.isascii() and version.isdigit() else None
