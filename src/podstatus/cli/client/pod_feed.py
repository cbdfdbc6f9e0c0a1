"""The client-side pod cache of a watch."""

from podstatus.cli.client.query_api_client import decode_response
from podstatus.cli.client.sse import SseEvent
from podstatus.kube.objects.pod import PodUID
from podstatus.web.v1.wire import ClosingEvent, DeletedEvent, PodView

PodChange = PodView | DeletedEvent


class PodFeed:
    """Applies watch events to a cache of pods. Not thread-safe."""

    def __init__(self) -> None:
        self._pods: dict[PodUID, PodView] = {}
        self._stale: set[PodUID] = set()
        """Pods that have not been sent since the last reset."""
        self.is_synced = False
        """True once the initial pods have been received."""
        self.close_reason = ""
        """Why the server closes the connection; empty if it does not."""

    def pods(self) -> list[PodView]:
        """Return all pods, sorted by namespace and name."""
        return sorted(self._pods.values(), key=lambda pod: (pod.namespace, pod.name, pod.uid))

    def apply(self, event: SseEvent) -> list[PodChange]:
        """Apply an event and return the changed pods. Raises RequestError.

        Unknown events, of a newer server, are ignored.
        """
        match event.event:
            case "pod":
                return self._put(decode_response(event.data.encode(), PodView))
            case "deleted":
                return self._remove(decode_response(event.data.encode(), DeletedEvent))
            case "reset":
                self._stale = set(self._pods)
            case "synced":
                self.is_synced, self.close_reason = True, ""
                return self._remove_stale()
            case "closing":
                self.close_reason = decode_response(event.data.encode(), ClosingEvent).reason
        return []

    def _put(self, pod: PodView) -> list[PodChange]:
        self._stale.discard(pod.uid)
        previous, self._pods[pod.uid] = self._pods.get(pod.uid), pod
        return [] if previous == pod else [pod]

    def _remove(self, pod: DeletedEvent) -> list[PodChange]:
        self._stale.discard(pod.uid)
        return [] if self._pods.pop(pod.uid, None) is None else [pod]

    def _remove_stale(self) -> list[PodChange]:
        lost = [self._pods.pop(uid) for uid in list(self._pods) if uid in self._stale]
        self._stale.clear()
        return [DeletedEvent(uid=pod.uid, namespace=pod.namespace, name=pod.name) for pod in lost]
