"""What the campaign has asked of the API server, and what of it was acknowledged."""

from collections.abc import Iterator

import msgspec

from tests.support.processes.agent_process import Document

MARK = "soak"
"""A label that is counted up."""


class Entry(msgspec.Struct, kw_only=True):
    """A pod that was created; the server has said so."""

    name: str
    uid: str
    kind: str
    grace: int = 30
    deleted: bool = False
    """The server has said that it deletes it."""
    maybe_deleted: bool = False
    """It was asked to, and no answer came."""
    forced: bool = False
    mark: int = 0
    """The last that was acknowledged."""
    marks_tried: int = 0
    disk_was_full: bool = False

    @property
    def wanted(self) -> bool:
        return not (self.deleted or self.maybe_deleted)


class Ledger:
    """All pods, by UID."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self._newest = 0
        self.created = self.deleted = self.writes = 0
        self.graceful: dict[str, bool] = {}
        """Of pods that were deleted and are gone: whether the node was given time to end them."""

    def take_created(self, pod: Document) -> list[str]:
        """The server says that it has created this."""
        meta = pod["metadata"]
        self.created += 1
        grace = pod["spec"]["terminationGracePeriodSeconds"]
        self.entries[meta["uid"]] = Entry(
            name=meta["name"], uid=meta["uid"], kind=meta["labels"]["kind"], grace=grace
        )
        return self._take_version(pod)

    def take_marked(self, uid: str, pod: Document) -> list[str]:
        """The server says that it has set the label."""
        self.entries[uid].mark = int(pod["metadata"]["labels"][MARK])
        return self._take_version(pod)

    def take_deleted(self, uid: str, *, forced: bool) -> None:
        """The server says that it deletes this."""
        self.deleted += 1
        self.writes += 1
        entry = self.entries[uid]
        entry.deleted = True
        entry.forced = entry.forced or forced

    def wanted(self) -> list[Entry]:
        """Those that nobody has deleted."""
        return [entry for entry in self.entries.values() if entry.wanted]

    def judge(self, pods: list[Document]) -> Iterator[str]:
        """Which acknowledged writes are not there, given all ordinary pods that are."""
        there = {pod["metadata"]["uid"]: pod for pod in pods}
        for uid, entry in self.entries.items():
            pod = there.get(uid)
            if pod is None:
                if entry.wanted:
                    yield f"{entry.name} ({uid}) was created and is not there"
                continue
            mark = int(pod["metadata"].get("labels", {}).get(MARK, 0))
            if not entry.mark <= mark <= entry.marks_tried:
                yield f"{entry.name} ({uid}): mark {entry.mark} was acknowledged, {mark} is there"
            if entry.deleted:
                when = pod["metadata"].get("deletionTimestamp")
                yield f"{entry.name} ({uid}) was deleted and is still there, since {when}"
        for uid in there.keys() - self.entries.keys():
            yield f"{there[uid]['metadata']['name']} ({uid}) is there and nobody created it"

    def settle(self, pods: list[Document]) -> None:
        """Learn what became of deletions without an answer; forget who is gone."""
        there = {pod["metadata"]["uid"]: pod for pod in pods}
        for uid, entry in list(self.entries.items()):
            if entry.maybe_deleted and uid in there:
                entry.maybe_deleted = False
                entry.deleted = "deletionTimestamp" in there[uid]["metadata"]
            if not entry.wanted and uid not in there:
                self.graceful[uid] = not entry.forced
                del self.entries[uid]

    def _take_version(self, pod: Document) -> list[str]:
        version, newest = int(pod["metadata"]["resourceVersion"]), self._newest
        self._newest = max(version, newest)
        self.writes += 1
        if version > newest:
            return []
        return [f"version {version} was given out after {newest}"]
