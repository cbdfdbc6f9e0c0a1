"""Merge the pods of several sources into one stream of changes.

Upstream: podStorage, pkg/kubelet/config/config.go v1.36.4. Unlike upstream, a running pod is not
removed because a second pod of the same name precedes it in a list.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import msgspec

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.sources.decide.pod_changes import (
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
    """A pod that is ignored because of a duplicate UID or name."""

    source: str
    pod: Pod
    message: str


class Mux:
    """Tracks the pods of all sources and reports changes. Not thread-safe.

    Of two pods with the same UID, or with the same name in one source, the first is accepted. The
    other is passed to `on_rejected` once, and accepted when the first is gone. The state is updated
    before `handler` is called; an exception of the handler is logged, and the change is not
    repeated.
    """

    def __init__(
        self,
        sources: Collection[str],
        handler: Callable[[PodConfigChange], None],
        *,
        on_rejected: Callable[[RejectedPod], None],
    ) -> None:
        self._handler = handler
        self._on_rejected = on_rejected
        self._desired: dict[str, dict[PodUID, Pod]] = {source: {} for source in sources}
        """Pods that each source delivered, including rejected ones."""
        self._accepted: dict[PodUID, tuple[str, Pod]] = {}
        self._uids_by_name: dict[tuple[str, str, str], PodUID] = {}
        """Accepted pods by source, namespace and name."""
        self._rejected: dict[tuple[str, PodUID], str] = {}
        """Reasons of rejected pods, by source and UID."""
        self._duplicates: dict[str, frozenset[tuple[PodUID, tuple[str, str]]]] = {}
        """Pods with the UID of another pod in the same delivery, by source."""
        self._ready: set[str] = set()

    @property
    def all_sources_ready(self) -> bool:
        """Whether every source has delivered once, so that an unknown pod is not desired."""
        return len(self._ready) == len(self._desired)

    def pods(self) -> list[Pod]:
        """All accepted pods, in no particular order."""
        return [pod for _, pod in self._accepted.values()]

    def deliver(self, source: str, pods: Iterable[Pod]) -> None:
        before, batch = self._desired_of(source), _Batch()
        self._desired[source] = desired = self._without_duplicates(source, pods, batch)
        self._ready.add(source)
        for uid in before:
            if uid not in desired:
                self._drop(source, uid, batch)
        for pod in desired.values():
            self._put(source, pod, batch)
        self._flush(batch)

    def update(self, source: str, pod: Pod) -> None:
        self._desired_of(source)[pod.uid] = pod
        batch = _Batch()
        self._put(source, pod, batch)
        self._flush(batch)

    def remove(self, source: str, pod: Pod) -> None:
        self._desired_of(source).pop(pod.uid, None)
        batch = _Batch()
        self._drop(source, pod.uid, batch)
        self._flush(batch)

    def _desired_of(self, source: str) -> dict[PodUID, Pod]:
        try:
            return self._desired[source]
        except KeyError:
            configured = ", ".join(sorted(self._desired)) or "none"
            raise ValueError(
                f"unknown source {source!r}; configured sources: {configured}"
            ) from None

    def _without_duplicates(
        self, source: str, pods: Iterable[Pod], batch: "_Batch"
    ) -> dict[PodUID, Pod]:
        """The pods by UID; of several with the same UID, the first."""
        desired: dict[PodUID, Pod] = {}
        duplicates = {}
        for pod in pods:
            first = desired.setdefault(pod.uid, pod)
            if first.full_name != pod.full_name:
                duplicates[pod.uid, pod.full_name] = RejectedPod(
                    source=source, pod=pod, message=_duplicate_uid_message(first, source)
                )
        reported = self._duplicates.get(source, frozenset())
        self._duplicates[source] = frozenset(duplicates)
        batch.duplicates = [pod for key, pod in duplicates.items() if key not in reported]
        return desired

    def _put(self, source: str, pod: Pod, batch: "_Batch") -> None:
        owner, accepted = self._accepted.get(pod.uid, ("", None))
        if accepted is not None and owner == source:
            if accepted.full_name == pod.full_name:
                self._replace(source, accepted, pod, batch)
                return
            # Names are immutable, so this is another pod.
            self._drop(source, pod.uid, batch)
        if reason := self._rejection_reason(source, pod):
            if self._rejected.get((source, pod.uid)) != reason:
                self._rejected[source, pod.uid] = reason
                batch.rejected.append(RejectedPod(source=source, pod=pod, message=reason))
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
        """Why the pod cannot be accepted; empty if it can."""
        if pod.uid in self._accepted:
            owner, other = self._accepted[pod.uid]
            return _duplicate_uid_message(other, owner)
        if (source, *pod.full_name) in self._uids_by_name:
            return f'due to duplicate pod name "{pod.name}"'
        return ""

    def _flush(self, batch: "_Batch") -> None:
        """Accept rejected pods that no longer conflict, then report all changes."""
        if batch.removed and self._rejected:
            for source, uid in list(self._rejected):
                self._put(source, self._desired[source][uid], batch)
        for change in batch.changes():
            self._call_safely(self._handler, change)
        for rejected in batch.duplicates:
            self._report(rejected)
        for rejected in batch.rejected:
            # A pod that was rejected in this batch may have been accepted since.
            if (rejected.source, rejected.pod.uid) in self._rejected:
                self._report(rejected)

    def _report(self, rejected: RejectedPod) -> None:
        logger.warning(
            "pod ignored: source=%s pod=%s/%s uid=%s error=%s",
            *(rejected.source, *rejected.pod.full_name, rejected.pod.uid, rejected.message),
        )
        self._call_safely(self._on_rejected, rejected)

    def _call_safely(
        self, handler: Callable[[NotificationT], None], notification: NotificationT
    ) -> None:
        try:
            handler(notification)
        except Exception:
            logger.exception(
                "change handler raised an exception: change=%s", type(notification).__name__
            )


def _duplicate_uid_message(other: Pod, source: str) -> str:
    return f"due to duplicate UID {other.uid} of pod {'/'.join(other.full_name)} from {source}"


class _Batch:
    """The changes of one delivery."""

    def __init__(self) -> None:
        self.removed: list[Pod] = []
        self.added: list[Pod] = []
        self.changed: list[PodUpdated | PodDeleting | PodReconciled] = []
        self.rejected: list[RejectedPod] = []
        self.duplicates: list[RejectedPod] = []

    def changes(self) -> list[PodConfigChange]:
        """In upstream's order: removed, added, updated, deleting, reconciled."""
        changes: list[PodConfigChange] = [PodRemoved(pod) for pod in self.removed]
        if self.added:
            changes.append(PodAdded(oldest_first(self.added)))
        for kind in (PodUpdated, PodDeleting, PodReconciled):
            changes += [change for change in self.changed if isinstance(change, kind)]
        return changes
