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

    given: RuntimePod
    shown: RuntimePod


class KnownPods:
    """The pods as last answered. For one event loop."""

    def __init__(self) -> None:
        self._entries: dict[PodUID, _Entry] = {}
        self._shown: dict[PodUID, RuntimePod] = {}
        self._asked = 0
        self._listed = 0
        """The number of the newest list of all pods that was taken over."""
        self._single: dict[PodUID, int] = {}
        """The pods that were asked for alone since that list was, and when."""

    def ask(self) -> int:
        """The number of a question that is about to be asked."""
        self._asked += 1
        return self._asked

    def pods(self) -> Mapping[PodUID, RuntimePod]:
        """All pods, at this moment; what is learned later does not show in it."""
        return MappingProxyType(self._shown.copy())

    def find(self, uid: PodUID) -> RuntimePod | None:
        """This pod, if there is something of it."""
        return self._shown.get(uid)

    def take_list(self, asked: int, pods: Iterable[RuntimePod]) -> list[PodUID]:
        """Take over a list of all pods; those that differ from what was known, also gone ones."""
        if asked <= self._listed:
            return []
        self._listed = asked
        self._single = {uid: at for uid, at in self._single.items() if at > asked}
        listed = {pod.uid: pod for pod in pods}
        uids = [*listed, *(uid for uid in self._entries if uid not in listed)]
        return [uid for uid in uids if uid not in self._single and self._put(uid, listed.get(uid))]

    def take_one(self, asked: int, uid: PodUID, pod: RuntimePod | None) -> bool:
        """Take over what there is of one pod; whether it differs from what was known."""
        if asked <= max(self._listed, self._single.get(uid, 0)):
            return False
        self._single[uid] = asked
        return self._put(uid, pod)

    def _put(self, uid: PodUID, pod: RuntimePod | None) -> bool:
        old = self._entries.get(uid)
        if old is not None and old.given is pod:
            return False
        if pod is None:
            self._shown.pop(uid, None)
            return self._entries.pop(uid, None) is not None
        shown = _with_known_addresses(pod, old.shown.facts) if old is not None else pod
        changed = old is None or shown != old.shown
        if old is not None and not changed:
            shown = old.shown
        self._entries[uid] = _Entry(pod, shown)
        self._shown[uid] = shown
        return changed


def _with_known_addresses(pod: RuntimePod, known: PodFacts) -> RuntimePod:
    """The pod with the addresses it had, if it has none because its sandbox is over.

    The API shows the addresses of pods that have ended.
    """
    facts = pod.facts
    if facts.ips or not known.ips:
        return pod
    if any(sandbox.state is SandboxState.READY for sandbox in facts.sandboxes):
        return pod
    return structs.replace(pod, facts=structs.replace(facts, ips=known.ips))
