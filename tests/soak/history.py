"""Whether what the API showed over time could have happened. Pure; answers are complaints."""

from collections.abc import Callable, Iterator

from tests.soak.judge import ENDED, judge_end, judge_readiness, statuses
from tests.soak.truth import Told
from tests.support.processes.agent_process import Document

_ORDER = {"Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}
_MIRROR = "kubernetes.io/config.mirror"
Tell = Callable[[str, str], Told]
"""What became of a container of the pod with this UID."""


class History:
    """All that was seen of pods, an event after the other."""

    def __init__(self, told: Tell) -> None:
        self._told = told
        self._last: dict[str, Document] = {}
        self._ends: dict[str, tuple[int, str]] = {}
        """What was shown as the end of an attempt, by its container ID."""
        self.gone: dict[str, Document] = {}
        """The last that was seen of pods that are not there any more, by UID."""
        self.events = 0
        self.ends_seen = 0

    def see(self, kind: str, pod: Document) -> list[str]:
        """What is wrong with this event, given those before it."""
        uid = pod["metadata"]["uid"]
        self.events += 1
        complaints = [*self._judge_order(uid, pod), *judge_readiness(pod)]
        # A mirror may show its next static pod for a moment before it is replaced, as upstream's.
        if not is_mirror(pod):
            complaints += self._judge_ends(uid, pod)
            if (last := self._last.get(uid)) is not None:
                complaints += _judge_step(last, pod, touched=self._touched(uid, pod))
        if kind == "DELETED":
            self._last.pop(uid, None)
            self.gone[uid] = pod
        else:
            self._last[uid] = pod
        return [f"{pod['metadata']['name']} ({uid}): {complaint}" for complaint in complaints]

    def missing(self, uids: set[str]) -> None:
        """Only these are there, as a list says; how the others went was not seen."""
        for uid in self._last.keys() - uids:
            del self._last[uid]

    def _judge_order(self, uid: str, pod: Document) -> Iterator[str]:
        if uid in self.gone:
            yield "it is there again after it was deleted"
        last = self._last.get(uid)
        if last is not None and version_of(pod) < version_of(last):
            yield f"version {version_of(pod)} came after {version_of(last)}"

    def _judge_ends(self, uid: str, pod: Document) -> Iterator[str]:
        for status in statuses(pod):
            for state in (status["state"], status.get("lastState", {})):
                if end := state.get("terminated"):
                    yield from self._judge_end(uid, status["name"], end)

    def _judge_end(self, uid: str, container: str, end: Document) -> Iterator[str]:
        seen = end["exitCode"], end.get("reason", "")
        known = self._ends.get(end.get("containerID", ""))
        if known is None:
            self.ends_seen += 1
            self._ends[end.get("containerID", "")] = seen
            yield from (f"{container}: {it}" for it in judge_end(end, self._told(uid, container)))
        elif known != seen:
            yield f"{container}: the end of {end['containerID']} was {known}, now it is {seen}"

    def _touched(self, uid: str, pod: Document) -> bool:
        return any(self._told(uid, status["name"]).kills for status in statuses(pod))


def is_mirror(pod: Document) -> bool:
    """Whether it stands for a static pod."""
    return _MIRROR in (pod["metadata"].get("annotations") or {})


def uid_of(pod: Document) -> str:
    """Of the pod that runs; a mirror pod has it in an annotation."""
    metadata = pod["metadata"]
    return str((metadata.get("annotations") or {}).get(_MIRROR) or metadata["uid"])


def version_of(pod: Document) -> int:
    """Its resource version."""
    return int(pod["metadata"]["resourceVersion"])


def _judge_step(before: Document, after: Document, *, touched: bool) -> Iterator[str]:
    was, is_ = before["status"].get("phase"), after["status"].get("phase")
    if was in ENDED and is_ != was:
        yield f"it was {was}, now it is {is_}"
    elif _ORDER.get(is_ or "", 0) < _ORDER.get(was or "", 0) and not touched:
        yield f"its phase went back from {was} to {is_}"
    counts = {status["name"]: status["restartCount"] for status in statuses(before)}
    for status in statuses(after):
        known = counts.get(status["name"], 0)
        if status["restartCount"] < known:
            yield f"{status['name']}: restartCount went back {known} -> {status['restartCount']}"
