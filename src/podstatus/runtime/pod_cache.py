"""Cache of the pods of a runtime, updated by lists of all pods and of single pods.

Responses may arrive out of order, since a list of all pods takes longer than a list of one. Every
request therefore has a number, and the response to an older request never replaces the response to
a newer one.

Upstream: podRecords and getPodIPs, pleg/generic.go v1.36.4; there a lock serialises the requests.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import PodFacts, SandboxState
from podstatus.runtime.port import RuntimePod


class _Entry(msgspec.Struct, frozen=True):
    """A pod as the runtime reported it, and as readers of the cache see it."""

    reported: RuntimePod
    pod: RuntimePod


class PodCache:
    """The newest known state of each pod. Not thread-safe: for one event loop."""

    def __init__(self) -> None:
        self._entries: dict[PodUID, _Entry] = {}
        self._pods: dict[PodUID, RuntimePod] = {}
        self._last_request = 0
        self._list_request = 0
        """Request number of the newest list of all pods that was applied."""
        self._pod_requests: dict[PodUID, int] = {}
        """Pods requested individually after that list, with their request numbers."""

    def next_request(self) -> int:
        """Return the number of a request that is about to be sent."""
        self._last_request += 1
        return self._last_request

    def pods(self) -> Mapping[PodUID, RuntimePod]:
        """Return a snapshot of all pods; later updates do not change it."""
        return MappingProxyType(self._pods.copy())

    def find(self, uid: PodUID) -> RuntimePod | None:
        """Return the pod, or None if the runtime holds nothing of it."""
        return self._pods.get(uid)

    def apply_list(self, request: int, pods: Iterable[RuntimePod]) -> list[PodUID]:
        """Apply a list of all pods; return the UIDs that changed, including pods that are gone."""
        if request <= self._list_request:
            return []
        self._list_request = request
        self._pod_requests = {uid: at for uid, at in self._pod_requests.items() if at > request}
        listed = {pod.uid: pod for pod in pods}
        uids = [*listed, *(uid for uid in self._entries if uid not in listed)]
        return [
            uid
            for uid in uids
            if uid not in self._pod_requests and self._store(uid, listed.get(uid))
        ]

    def apply_pod(self, request: int, uid: PodUID, pod: RuntimePod | None) -> bool:
        """Apply the list of one pod; return whether it changed."""
        if request <= max(self._list_request, self._pod_requests.get(uid, 0)):
            return False
        self._pod_requests[uid] = request
        return self._store(uid, pod)

    def _store(self, uid: PodUID, pod: RuntimePod | None) -> bool:
        old = self._entries.get(uid)
        if old is not None and old.reported is pod:
            return False
        if pod is None:
            self._pods.pop(uid, None)
            return self._entries.pop(uid, None) is not None
        visible = _with_previous_ips(pod, old.pod.facts) if old is not None else pod
        changed = old is None or visible != old.pod
        if old is not None and not changed:
            visible = old.pod
        self._entries[uid] = _Entry(pod, visible)
        self._pods[uid] = visible
        return changed


def _with_previous_ips(pod: RuntimePod, previous: PodFacts) -> RuntimePod:
    """Return the pod with its previous IPs if its sandbox is gone and took them along.

    The API shows the IPs of pods that have ended.
    """
    facts = pod.facts
    if facts.ips or not previous.ips:
        return pod
    if any(sandbox.state is SandboxState.READY for sandbox in facts.sandboxes):
        return pod
    return structs.replace(pod, facts=structs.replace(facts, ips=previous.ips))
