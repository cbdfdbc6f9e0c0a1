"""Select the pods that a batch has to sync, from cached, sent and observed statuses.

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
from podstatus.status.decide.normalize_and_compare import (
    is_pod_status_by_kubelet_equal,
    normalize_status,
)
from podstatus.status.decide.versioned_status import VersionedStatus
from podstatus.status.ports import PodLookup, UIDTranslations

Entries = Mapping[PodUID, VersionedStatus]
SentVersions = Mapping[ApiUID, int]


class PodSync(msgspec.Struct, frozen=True):
    """A pod to sync, with its API object."""

    uid: PodUID
    api_uid: ApiUID
    entry: VersionedStatus

    def __str__(self) -> str:
        """Return the pod's log keys: `pod=namespace/name uid=uid`."""
        return f"pod={self.entry.namespace}/{self.entry.name} uid={self.uid}"


class BatchPlan(msgspec.Struct, frozen=True):
    """The work of one batch."""

    forget: frozenset[ApiUID]
    """API objects whose sent version is to be reset."""
    syncs: tuple[PodSync, ...]
    reconciles: tuple[PodSync, ...] = ()
    """Those of `syncs` that were sent, but differ on the API server."""


def plan_changes(entries: Entries, sent: SentVersions, translations: UIDTranslations) -> BatchPlan:
    """Select the pods whose cached version is newer than the sent one."""
    syncs = (
        sync
        for sync in resolve_all(entries, translations)
        if sent.get(sync.api_uid, 0) < sync.entry.version
    )
    return BatchPlan(frozenset(), tuple(syncs))


def plan_full(
    entries: Entries,
    sent: SentVersions,
    translations: UIDTranslations,
    pod_manager: PodLookup,
    gates: FeatureGates,
) -> BatchPlan:
    """Select pods that are unsent, can be deleted, or differ from the API server's status."""
    forget = {
        uid for uid in sent if PodUID(uid) not in entries and uid not in translations.mirror_to_pod
    }
    syncs, reconciles = [], []
    for sync in resolve_all(entries, translations):
        if needs_update(sync, sent.get(sync.api_uid, 0), pod_manager):
            syncs.append(sync)
        elif needs_reconcile(sync.uid, sync.entry.status, pod_manager, gates):
            forget.add(sync.api_uid)
            syncs.append(sync)
            reconciles.append(sync)
    return BatchPlan(frozenset(forget), tuple(syncs), tuple(reconciles))


def resolve_all(entries: Entries, translations: UIDTranslations) -> Iterator[PodSync]:
    """Yield each entry with its API object.

    Skips static pods without a mirror pod, and those whose mirror pod has no UID: their API
    object cannot be identified.
    """
    for uid, entry in entries.items():
        sync = resolve_api_object(uid, entry, translations)
        if sync is not None:
            yield sync


def resolve_api_object(
    uid: PodUID, entry: VersionedStatus, translations: UIDTranslations
) -> PodSync | None:
    """Return the entry with its API object, or None if it has none."""
    api_uid = translations.pod_to_mirror.get(uid, ApiUID(uid))
    return PodSync(uid, api_uid, entry) if api_uid else None


def needs_update(sync: PodSync, sent_version: int, pod_manager: PodLookup) -> bool:
    """Whether the newest version was not sent, or the pod can be deleted."""
    return sent_version < sync.entry.version or is_deletable(sync, pod_manager)


def is_deletable(sync: PodSync, pod_manager: PodLookup) -> bool:
    """Whether the pod can be deleted as far as the watch shows.

    The API UID is looked up among regular pods, so a static pod is never deleted here.
    """
    pod = pod_manager.pod_by_uid(PodUID(sync.api_uid))
    return pod is not None and can_be_deleted(pod, finished=sync.entry.finished)


def needs_reconcile(
    uid: PodUID, status: PodStatus, pod_manager: PodLookup, gates: FeatureGates
) -> bool:
    """Whether the API server's status differs from the node's."""
    observed = observed_status(uid, pod_manager)
    return observed is not None and not is_pod_status_by_kubelet_equal(observed, status, gates)


def observed_status(uid: PodUID, pod_manager: PodLookup) -> PodStatus | None:
    """Return the API server's status of a pod as the watch shows it, normalised; or None."""
    pod = pod_manager.pod_by_uid(uid)
    if pod is not None and is_static_pod(pod):
        pod = pod_manager.mirror_pod_by_pod(pod)
    return None if pod is None else normalize_status(pod, pod.status)


def is_replaced_pod(translated: PodUID, uid: PodUID) -> bool:
    """Whether the API object with the pod's name belongs to another pod.

    This happens when the pod was deleted and recreated. An object without a UID counts as the
    same pod.
    """
    return bool(translated) and translated != uid


def can_be_deleted(pod: Pod, *, finished: bool) -> bool:
    """Whether the node may delete the API object.

    Its deletion was requested, its phase is terminal on the server, the node has finished with
    it, and it is not a mirror pod.
    """
    return (
        finished
        and pod.metadata.deletion_timestamp is not None
        and not is_mirror_pod(pod)
        and is_terminal_phase(pod.status.phase)
    )
