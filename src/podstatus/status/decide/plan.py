"""Which pods a batch has to sync, from what is cached, sent and shown.

Upstream: syncBatch, needsUpdate, needsReconcile, canBeDeleted, status_manager.go v1.36.4.
"""

from collections.abc import Iterator, Mapping

import msgspec

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import (
    ApiUID,
    Pod,
    PodUID,
    is_mirror_pod,
    is_static_pod,
    is_terminal_phase,
)
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.status.decide.equality import is_pod_status_by_kubelet_equal
from podstatus.status.decide.normalize import normalize_status
from podstatus.status.ports import PodLookup, UIDTranslations
from podstatus.status.store import VersionedStatus

Entries = Mapping[PodUID, VersionedStatus]
SentVersions = Mapping[ApiUID, int]


class PodSync(msgspec.Struct, frozen=True):
    """One pod to sync."""

    uid: PodUID
    api_uid: ApiUID
    entry: VersionedStatus

    def __str__(self) -> str:
        """The pod as log lines name it."""
        return f"pod={self.entry.namespace}/{self.entry.name} uid={self.uid}"


class BatchPlan(msgspec.Struct, frozen=True):
    """What a batch has to do."""

    forget: frozenset[ApiUID]
    """Sent versions that count no more."""
    syncs: tuple[PodSync, ...]


def plan_changes(entries: Entries, sent: SentVersions, translations: UIDTranslations) -> BatchPlan:
    """Sync what has a newer version than was sent."""
    syncs = (sync for sync in resolve_all(entries, translations) if is_unsent(sync, sent))
    return BatchPlan(frozenset(), tuple(syncs))


def plan_full(
    entries: Entries,
    sent: SentVersions,
    translations: UIDTranslations,
    pod_manager: PodLookup,
    gates: FeatureGates,
) -> BatchPlan:
    """Sync what was not sent, what can be deleted, and what the API shows differently."""
    forget = {
        uid for uid in sent if PodUID(uid) not in entries and uid not in translations.mirror_to_pod
    }
    syncs = []
    for sync in resolve_all(entries, translations):
        if needs_update(sync, sent, pod_manager):
            syncs.append(sync)
        elif needs_reconcile(sync.uid, sync.entry.status, pod_manager, gates):
            forget.add(sync.api_uid)
            syncs.append(sync)
    return BatchPlan(frozenset(forget), tuple(syncs))


def resolve_all(entries: Entries, translations: UIDTranslations) -> Iterator[PodSync]:
    """Each entry with the API object it goes to; static pods without a mirror wait.

    So does one whose mirror pod has no UID: nobody could tell which object was meant.
    """
    for uid, entry in entries.items():
        sync = resolve_api_object(uid, entry, translations)
        if sync is not None:
            yield sync


def resolve_api_object(
    uid: PodUID, entry: VersionedStatus, translations: UIDTranslations
) -> PodSync | None:
    """An entry with the API object it goes to, if there is one."""
    api_uid = translations.pod_to_mirror.get(uid, ApiUID(uid))
    return PodSync(uid, api_uid, entry) if api_uid else None


def is_unsent(sync: PodSync, sent: SentVersions) -> bool:
    """Whether there is a newer version than the last one acknowledged."""
    return sent.get(sync.api_uid, 0) < sync.entry.version


def needs_update(sync: PodSync, sent: SentVersions, pod_manager: PodLookup) -> bool:
    """Whether the newest version was never sent, or the pod waits to be deleted.

    The API UID is looked up among ordinary pods, so a static pod never waits here.
    """
    if is_unsent(sync, sent):
        return True
    pod = pod_manager.pod_by_uid(PodUID(sync.api_uid))
    return pod is not None and can_be_deleted(pod, finished=sync.entry.finished)


def needs_reconcile(
    uid: PodUID, status: PodStatus, pod_manager: PodLookup, gates: FeatureGates
) -> bool:
    """Whether the API shows something else than what the node stands by."""
    pod = pod_manager.pod_by_uid(uid)
    if pod is not None and is_static_pod(pod):
        pod = pod_manager.mirror_pod_by_pod(pod)
    if pod is None:
        return False
    shown = normalize_status(pod, pod.status)
    return not is_pod_status_by_kubelet_equal(shown, status, gates)


def is_replaced_pod(translated: PodUID, uid: PodUID) -> bool:
    """Whether the API object of our pod's name belongs to another pod than ours.

    It does when the pod was deleted and made anew. An object without UID counts as ours.
    """
    return bool(translated) and translated != uid


def can_be_deleted(pod: Pod, *, finished: bool) -> bool:
    """Whether the API object may go: asked for, terminal there, and nothing left here."""
    return (
        finished
        and pod.metadata.deletion_timestamp is not None
        and not is_mirror_pod(pod)
        and is_terminal_phase(pod.status.phase)
    )
