"""One stream of changes out of the pods of several sources.

Upstream: podStorage, pkg/kubelet/config/config.go v1.36.4. Unlike there, a pod that runs is not
taken away because a second one of its name comes before it in a list.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import msgspec

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.sources.pod_changes import (
    PodAdded,
    PodConfigChange,
    PodDeleting,
    PodReconciled,
    PodRemoved,
    PodUpdated,
    classify_change,
    oldest_first,
)

logger = logging.getLogger(__name__)

NotificationT = TypeVar("NotificationT")


class RejectedPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that is not taken, because another one is in its place."""

    source: str
    pod: Pod
    message: str


class Mux:
    """Knows the pods of all sources, and tells what changes. For one event loop.

    Of two pods with the same UID, and of two of one source with the same name, the one that was
    there first is taken. The other one is told to `on_refused`, once, and taken when the first is
    gone. What is known has changed already when the handler is told; if it raises, that is
    logged, and the change counts as told.
    """

    def __init__(
        self,
        sources: Collection[str],
        handler: Callable[[PodConfigChange], None],
        *,
        on_rejected: Callable[[RejectedPod], None] = lambda _: None,
    ) -> None:
        self._handler = handler
        self._on_rejected = on_rejected
        self._desired: dict[str, dict[PodUID, Pod]] = {source: {} for source in sources}
        """All that each source wants, also what is refused."""
        self._accepted: dict[PodUID, tuple[str, Pod]] = {}
        self._uids_by_name: dict[tuple[str, str, str], PodUID] = {}
        """Those that are taken, by source, namespace and name."""
        self._rejected: dict[tuple[str, PodUID], str] = {}
        """Why those that are not taken are not, by source and UID."""
        self._duplicates: dict[str, frozenset[tuple[PodUID, tuple[str, str]]]] = {}
        """Those that have the UID of another one in the same delivery."""
        self._ready: set[str] = set()

    @property
    def all_sources_ready(self) -> bool:
        """Whether every source has delivered once: what is not known now is not wanted."""
        return len(self._ready) == len(self._desired)

    def ready_sources(self) -> frozenset[str]:
        """The sources that have delivered."""
        return frozenset(self._ready)

    def pods(self) -> list[Pod]:
        """All pods that are taken, in no particular order."""
        return [pod for _, pod in self._accepted.values()]

    def deliver(self, source: str, pods: Iterable[Pod]) -> None:
        """Take over all that a source wants."""
        before, batch = self._desired_of(source), _Batch()
        self._desired[source] = wanted = self._without_duplicates(source, pods, batch)
        self._ready.add(source)
        for uid in before:
            if uid not in wanted:
                self._drop(source, uid, batch)
        for pod in wanted.values():
            self._put(source, pod, batch)
        self._flush(batch)

    def update(self, source: str, pod: Pod) -> None:
        """Take over one pod, which is new or has changed."""
        self._desired_of(source)[pod.uid] = pod
        batch = _Batch()
        self._put(source, pod, batch)
        self._flush(batch)

    def remove(self, source: str, pod: Pod) -> None:
        """A source does not want this pod any more."""
        self._desired_of(source).pop(pod.uid, None)
        batch = _Batch()
        self._drop(source, pod.uid, batch)
        self._flush(batch)

    def _desired_of(self, source: str) -> dict[PodUID, Pod]:
        try:
            return self._desired[source]
        except KeyError:
            known = ", ".join(sorted(self._desired)) or "none"
            raise ValueError(f"no source {source!r} was named; there are: {known}") from None

    def _without_duplicates(
        self, source: str, pods: Iterable[Pod], batch: "_Batch"
    ) -> dict[PodUID, Pod]:
        """The pods by UID; of those that have the same one, the first."""
        wanted: dict[PodUID, Pod] = {}
        twins = {}
        for pod in pods:
            first = wanted.setdefault(pod.uid, pod)
            if first.full_name != pod.full_name:
                twins[pod.uid, pod.full_name] = RejectedPod(
                    source=source, pod=pod, message=_duplicate_uid_message(first, source)
                )
        known, self._duplicates[source] = (
            self._duplicates.get(source, frozenset()),
            frozenset(twins),
        )
        batch.duplicates = [refused for key, refused in twins.items() if key not in known]
        return wanted

    def _put(self, source: str, pod: Pod, batch: "_Batch") -> None:
        owner, known = self._accepted.get(pod.uid, ("", None))
        if known is not None and owner == source:
            if known.full_name == pod.full_name:
                self._replace(source, known, pod, batch)
                return
            # A pod cannot be renamed: this is another one.
            self._drop(source, pod.uid, batch)
        if why := self._rejection_reason(source, pod):
            if self._rejected.get((source, pod.uid)) != why:
                self._rejected[source, pod.uid] = why
                batch.rejected.append(RejectedPod(source=source, pod=pod, message=why))
            return
        self._rejected.pop((source, pod.uid), None)
        self._accepted[pod.uid] = source, pod
        self._uids_by_name[source, *pod.full_name] = pod.uid
        batch.added.append(pod)

    def _replace(self, source: str, old: Pod, new: Pod, batch: "_Batch") -> None:
        change = classify_change(old, new)
        if change is not None:
            self._accepted[new.uid] = source, change.pod
            batch.changed.append(change)

    def _drop(self, source: str, uid: PodUID, batch: "_Batch") -> None:
        self._rejected.pop((source, uid), None)
        owner, pod = self._accepted.get(uid, ("", None))
        if pod is not None and owner == source:
            del self._accepted[uid]
            del self._uids_by_name[source, *pod.full_name]
            batch.removed.append(pod)

    def _rejection_reason(self, source: str, pod: Pod) -> str:
        """Why a pod cannot be taken now; empty if it can."""
        if pod.uid in self._accepted:
            where, other = self._accepted[pod.uid]
            return _duplicate_uid_message(other, where)
        if (source, *pod.full_name) in self._uids_by_name:
            return f'due to duplicate pod name "{pod.name}"'
        return ""

    def _flush(self, batch: "_Batch") -> None:
        """Take what has become free, and tell."""
        if batch.removed and self._rejected:
            for source, uid in list(self._rejected):
                self._put(source, self._desired[source][uid], batch)
        for change in batch.changes():
            self._call_safely(self._handler, change)
        for refused in batch.duplicates:
            self._report(refused)
        for refused in batch.rejected:
            # One that was refused at first may have been taken since.
            if (refused.source, refused.pod.uid) in self._rejected:
                self._report(refused)

    def _report(self, rejected: RejectedPod) -> None:
        logger.warning(
            "pod is not taken: source=%s namespace=%s name=%s uid=%s why=%s",
            *(rejected.source, *rejected.pod.full_name, rejected.pod.uid, rejected.message),
        )
        self._call_safely(self._on_rejected, rejected)

    def _call_safely(
        self, handler: Callable[[NotificationT], None], notification: NotificationT
    ) -> None:
        try:
            handler(notification)
        except Exception:
            logger.exception("handler failed: change=%s", type(notification).__name__)


def _duplicate_uid_message(other: Pod, source: str) -> str:
    return f"UID {other.uid} is that of pod {'/'.join(other.full_name)} from {source}"


class _Batch:
    """What one delivery changes."""

    def __init__(self) -> None:
        self.removed: list[Pod] = []
        self.added: list[Pod] = []
        self.changed: list[PodUpdated | PodDeleting | PodReconciled] = []
        self.rejected: list[RejectedPod] = []
        self.duplicates: list[RejectedPod] = []

    def changes(self) -> list[PodConfigChange]:
        """In upstream's order: gone, new, to be otherwise, otherwise in their status."""
        changes: list[PodConfigChange] = [PodRemoved(pod) for pod in self.removed]
        if self.added:
            changes.append(PodAdded(oldest_first(self.added)))
        for kind in (PodUpdated, PodDeleting, PodReconciled):
            changes += [change for change in self.changed if isinstance(change, kind)]
        return changes
