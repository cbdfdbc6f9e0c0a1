"""The pods a node is to run, and which API object stands for each.

A static pod comes from a file or a URL; the API server knows it through its mirror pod,
which has the same namespace and name and a UID of its own.
Upstream: pkg/kubelet/pod/pod_manager.go v1.36.4.
"""

import threading
from collections.abc import Iterable

import msgspec
from msgspec import structs

from podstatus.kube.encoding.frozen_copy import FieldTypeError, freeze, require_type
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID, is_mirror_pod, is_static_pod
from podstatus.kube.objects.pod_status import PodStatus


class UidTranslations(msgspec.Struct, frozen=True):
    """Which API object stands for which pod, and back."""

    pod_to_mirror: dict[PodUID, ApiUID | None]
    """Every static pod; None while it has no mirror pod."""
    mirror_to_pod: dict[ApiUID, PodUID]


class PodManager:
    """Desired pods by UID and by name. Safe from any thread; it never calls out."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._lock = threading.Lock()
        self._reset()
        self.set_pods(pods)

    def _reset(self) -> None:
        self._pods: dict[PodUID, Pod] = {}
        self._pods_by_name: dict[tuple[str, str], Pod] = {}
        self._mirrors: dict[ApiUID, Pod] = {}
        self._mirrors_by_name: dict[tuple[str, str], Pod] = {}
        self._pod_of_mirror: dict[ApiUID, PodUID] = {}
        self._static_uids: dict[PodUID, None] = {}
        self._translations: UidTranslations | None = None
        """Both maps, until one of them changes: they are asked for several times for each status,
        and change with static pods only."""

    def set_pods(self, pods: Iterable[Pod]) -> None:
        """Replace everything."""
        taken = [_checked_copy(pod) for pod in pods]
        with self._lock:
            self._reset()
            for pod in taken:
                self._index_pod(pod)

    def update_pod(self, pod: Pod) -> None:
        """Add a pod, or replace what is known about it."""
        require_type(pod, Pod)
        taken = self._copy_with_known_spec(pod) or freeze(pod)
        with self._lock:
            self._index_pod(taken)

    def _copy_with_known_spec(self, pod: Pod) -> Pod | None:
        """The pod, if only what changes all the time is new: its spec was looked through before."""
        if type(pod.metadata) is not ObjectMeta or type(pod.status) is not PodStatus:
            return None
        try:
            metadata, status = freeze(pod.metadata), freeze(pod.status)
        except FieldTypeError:
            return None  # who looks through all of it says where it is
        known = self.pod_by_uid(metadata.uid)
        if known is None or known.spec != pod.spec:
            return None
        return structs.replace(pod, metadata=metadata, spec=known.spec, status=status)

    def _index_pod(self, pod: Pod) -> None:
        if is_mirror_pod(pod):
            self._index_mirror_pod(pod)
            return
        uid, full_name = pod.uid, pod.full_name
        self._pods[uid] = self._pods_by_name[full_name] = pod
        if is_static_pod(pod):
            self._static_uids[uid] = None
            self._translations = None
        elif uid in self._static_uids:
            del self._static_uids[uid]
            self._translations = None
        if mirror := self._mirrors_by_name.get(full_name):
            self._pod_of_mirror[ApiUID(mirror.uid)] = uid
            self._translations = None

    def _index_mirror_pod(self, mirror: Pod) -> None:
        uid = ApiUID(mirror.uid)
        self._mirrors[uid] = self._mirrors_by_name[mirror.full_name] = mirror
        if pod := self._pods_by_name.get(mirror.full_name):
            self._pod_of_mirror[uid] = pod.uid
            self._translations = None

    def remove_pod(self, pod: Pod) -> None:
        """Forget a pod, or a mirror pod with its translation."""
        with self._lock:
            self._translations = None
            if is_mirror_pod(pod):
                uid = ApiUID(pod.uid)
                self._mirrors.pop(uid, None)
                self._mirrors_by_name.pop(pod.full_name, None)
                self._pod_of_mirror.pop(uid, None)
            else:
                # The translation stays: a mirror pod that is left over still resolves.
                self._pods.pop(pod.uid, None)
                self._pods_by_name.pop(pod.full_name, None)
                self._static_uids.pop(pod.uid, None)

    def pods(self) -> list[Pod]:
        """All pods but mirror pods."""
        with self._lock:
            return list(self._pods.values())

    def mirror_pods(self) -> list[Pod]:
        """All mirror pods."""
        with self._lock:
            return list(self._mirrors.values())

    def pod_by_uid(self, uid: str) -> Pod | None:
        """The pod (never a mirror pod) with this UID."""
        with self._lock:
            return self._pods.get(PodUID(uid))

    def pod_by_name(self, namespace: str, name: str) -> Pod | None:
        """The pod (never a mirror pod) with this name."""
        with self._lock:
            return self._pods_by_name.get((namespace, name))

    def mirror_pod_by_pod(self, pod: Pod) -> Pod | None:
        """The mirror pod that has the pod's name."""
        with self._lock:
            return self._mirrors_by_name.get(pod.full_name)

    def translate_pod_uid(self, uid: str) -> PodUID:
        """The pod's own UID for the UID of its mirror pod; any other UID as it is."""
        if not uid:
            return PodUID(uid)
        with self._lock:
            return self._pod_of_mirror.get(ApiUID(uid), PodUID(uid))

    def uid_translations(self) -> UidTranslations:
        """Both maps at one moment; not to be written to."""
        with self._lock:
            if self._translations is None:
                self._translations = self._build_translations()
            return self._translations

    def _build_translations(self) -> UidTranslations:
        mirror_to_pod = dict(self._pod_of_mirror)
        pod_to_mirror: dict[PodUID, ApiUID | None] = dict.fromkeys(self._static_uids)
        pod_to_mirror.update((pod, mirror) for mirror, pod in mirror_to_pod.items())
        return UidTranslations(pod_to_mirror, mirror_to_pod)


def _checked_copy(pod: Pod) -> Pod:
    require_type(pod, Pod)
    return freeze(pod)
