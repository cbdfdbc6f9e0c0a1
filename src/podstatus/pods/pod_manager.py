"""The desired pods of a node, and the API object of each.

A static pod comes from a file or a URL. The API server has a mirror pod for it, with the same
namespace and name, but another UID.
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
    """Translation between the UIDs of static pods and of their mirror pods."""

    pod_to_mirror: dict[PodUID, ApiUID | None]
    """Contains every static pod; None if it has no mirror pod."""
    mirror_to_pod: dict[ApiUID, PodUID]


class PodManager:
    """Desired pods by UID and by name. Thread-safe; never calls other components."""

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
        """Cached result of `uid_translations`, which is read several times for each status. None
        after a change of static or mirror pods."""

    def set_pods(self, pods: Iterable[Pod]) -> None:
        """Replace all pods and mirror pods."""
        copies = [_checked_copy(pod) for pod in pods]
        with self._lock:
            self._reset()
            for copy in copies:
                self._index_pod(copy)

    def update_pod(self, pod: Pod) -> None:
        """Add a pod or a mirror pod, or replace the one with this UID."""
        require_type(pod, Pod)
        copy = self._copy_with_stored_spec(pod) or freeze(pod)
        with self._lock:
            self._index_pod(copy)

    def _copy_with_stored_spec(self, pod: Pod) -> Pod | None:
        """Return a frozen copy that reuses the stored spec if it is equal, otherwise None.

        Status and metadata change often, the spec rarely: this saves checking the spec again.
        """
        if type(pod.metadata) is not ObjectMeta or type(pod.status) is not PodStatus:
            return None
        try:
            metadata, status = freeze(pod.metadata), freeze(pod.status)
        except FieldTypeError:
            return None  # `freeze` of the whole pod raises it again, with the full path
        stored = self.pod_by_uid(metadata.uid)
        if stored is None or stored.spec != pod.spec:
            return None
        return structs.replace(pod, metadata=metadata, spec=stored.spec, status=status)

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
        """Remove a pod, or a mirror pod and its translation."""
        with self._lock:
            self._translations = None
            if is_mirror_pod(pod):
                uid = ApiUID(pod.uid)
                self._mirrors.pop(uid, None)
                self._mirrors_by_name.pop(pod.full_name, None)
                self._pod_of_mirror.pop(uid, None)
            else:
                # Keep the translation, so that a remaining mirror pod still resolves.
                self._pods.pop(pod.uid, None)
                self._pods_by_name.pop(pod.full_name, None)
                self._static_uids.pop(pod.uid, None)

    def pods(self) -> list[Pod]:
        """Return all pods except mirror pods."""
        with self._lock:
            return list(self._pods.values())

    def mirror_pods(self) -> list[Pod]:
        """Return the mirror pods of all static pods."""
        with self._lock:
            return list(self._mirrors.values())

    def pod_by_uid(self, uid: str) -> Pod | None:
        """Return the pod with this UID, never a mirror pod."""
        with self._lock:
            return self._pods.get(PodUID(uid))

    def pod_by_name(self, namespace: str, name: str) -> Pod | None:
        """Return the pod with this name, never a mirror pod."""
        with self._lock:
            return self._pods_by_name.get((namespace, name))

    def mirror_pod_by_pod(self, pod: Pod) -> Pod | None:
        """Return the mirror pod with the name of this pod."""
        with self._lock:
            return self._mirrors_by_name.get(pod.full_name)

    def translate_pod_uid(self, uid: str) -> PodUID:
        """Return the pod's own UID for the UID of its mirror pod; any other UID unchanged."""
        if not uid:
            return PodUID(uid)
        with self._lock:
            return self._pod_of_mirror.get(ApiUID(uid), PodUID(uid))

    def uid_translations(self) -> UidTranslations:
        """Return a consistent snapshot of both translations; must not be modified."""
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
