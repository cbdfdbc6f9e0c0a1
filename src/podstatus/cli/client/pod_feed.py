"""The pods of somebody who watches, kept up with what is sent."""

import msgspec

from podstatus.cli.client.query_client import PodItem, decode_response
from podstatus.cli.client.sse import SseEvent
from podstatus.kube.objects.pod import PodUID


class DeletedPod(msgspec.Struct, frozen=True):
    """A pod that is not there any more."""

    uid: PodUID
    namespace: str
    name: str


class _CloseMessage(msgspec.Struct, frozen=True):
    reason: str = ""


PodChange = PodItem | DeletedPod


class PodFeed:
    """What is known of all pods."""

    def __init__(self) -> None:
        self._pods: dict[PodUID, PodItem] = {}
        self._stale: set[PodUID] = set()
        """Those that nothing was said of since it began anew."""
        self.is_synced = False
        """Whether all that was there has been sent."""
        self.close_reason = ""
        """Why the connection is ended, if it is."""

    def pods(self) -> list[PodItem]:
        """By namespace and name."""
        return sorted(self._pods.values(), key=lambda pod: (pod.namespace, pod.name, pod.uid))

    def apply(self, event: SseEvent) -> list[PodChange]:
        """What has changed by this event. Raises CannotAskError.

        Events of other names are of a server that knows more than we do.
        """
        match event.event:
            case "pod":
                return self._put(decode_response(event.data.encode(), PodItem))
            case "gone":
                return self._remove(decode_response(event.data.encode(), DeletedPod))
            case "anew":
                self._stale = set(self._pods)
            case "synced":
                self.is_synced, self.close_reason = True, ""
                return self._remove_stale()
            case "cut":
                self.close_reason = decode_response(event.data.encode(), _CloseMessage).reason
        return []

    def _put(self, pod: PodItem) -> list[PodChange]:
        self._stale.discard(pod.uid)
        known, self._pods[pod.uid] = self._pods.get(pod.uid), pod
        return [] if known == pod else [pod]

    def _remove(self, pod: DeletedPod) -> list[PodChange]:
        self._stale.discard(pod.uid)
        return [] if self._pods.pop(pod.uid, None) is None else [pod]

    def _remove_stale(self) -> list[PodChange]:
        lost = [self._pods.pop(uid) for uid in list(self._pods) if uid in self._stale]
        self._stale.clear()
        return [DeletedPod(pod.uid, pod.namespace, pod.name) for pod in lost]
