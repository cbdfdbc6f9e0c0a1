"""What is known of the pods of a runtime, and what an answer of it changes.

Answers may come in another order than they were asked for: a list of all pods takes longer than
a question about one. So every question has a number, and what was asked earlier never replaces
what was asked later.

Upstream: podRecords and getPodIPs, pleg/generic.go v1.36.4; there a lock lets one question be
asked at a time.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import PodFacts, SandboxState
from podstatus.runtime.port import RuntimePod


class _Entry(msgspec.Struct, frozen=True):
    """A pod as the runtime gave it, and as it is shown."""

    reported: RuntimePod
    pod: RuntimePod


class PodCache:
    """The pods as last answered. For one event loop."""

    def __init__(self) -> None:
        self._entries: dict[PodUID, _Entry] = {}
        self._pods: dict[PodUID, RuntimePod] = {}
        self._last_request = 0
        self._list_request = 0
        """The number of the newest list of all pods that was taken over."""
        self._pod_requests: dict[PodUID, int] = {}
        """The pods that were asked for alone since that list was, and when."""

    def next_request(self) -> int:
        """The number of a question that is about to be asked."""
        self._last_request += 1
        return self._last_request

    def pods(self) -> Mapping[PodUID, RuntimePod]:
        """All pods, at this moment; what is learned later does not show in it."""
        return MappingProxyType(self._pods.copy())

    def find(self, uid: PodUID) -> RuntimePod | None:
        """This pod, if there is something of it."""
        return self._pods.get(uid)

    def apply_list(self, request: int, pods: Iterable[RuntimePod]) -> list[PodUID]:
        """Take over a list of all pods; those that differ from what was known, also gone ones."""
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
        """Take over what there is of one pod; whether it differs from what was known."""
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
        shown = _with_previous_ips(pod, old.pod.facts) if old is not None else pod
        changed = old is None or shown != old.pod
        if old is not None and not changed:
            shown = old.pod
        self._entries[uid] = _Entry(pod, shown)
        self._pods[uid] = shown
        return changed


def _with_previous_ips(pod: RuntimePod, previous: PodFacts) -> RuntimePod:
    """The pod with the addresses it had, if it has none because its sandbox is over.

    The API shows the addresses of pods that have ended.
    """
    facts = pod.facts
    if facts.ips or not previous.ips:
        return pod
    if any(sandbox.state is SandboxState.READY for sandbox in facts.sandboxes):
        return pod
    return structs.replace(pod, facts=structs.replace(facts, ips=previous.ips))
