"""The pods of somebody who watches, kept up with what is sent."""

from podstatus.cli.client.query_client import decode_response
from podstatus.cli.client.sse import SseEvent
from podstatus.kube.objects.pod import PodUID
from podstatus.web.v1.wire import ClosingEvent, DeletedEvent, PodView

PodChange = PodView | DeletedEvent


class PodFeed:
    """What is known of all pods."""

    def __init__(self) -> None:
        self._pods: dict[PodUID, PodView] = {}
        self._stale: set[PodUID] = set()
        """Those that nothing was said of since it began anew."""
        self.is_synced = False
        """Whether all that was there has been sent."""
        self.close_reason = ""
        """Why the connection is ended, if it is."""

    def pods(self) -> list[PodView]:
        """By namespace and name."""
        return sorted(self._pods.values(), key=lambda pod: (pod.namespace, pod.name, pod.uid))

    def apply(self, event: SseEvent) -> list[PodChange]:
        """What has changed by this event. Raises CannotAskError.

        Events of other names are of a server that knows more than we do.
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
        known, self._pods[pod.uid] = self._pods.get(pod.uid), pod
        return [] if known == pod else [pod]

    def _remove(self, pod: DeletedEvent) -> list[PodChange]:
        self._stale.discard(pod.uid)
        return [] if self._pods.pop(pod.uid, None) is None else [pod]

    def _remove_stale(self) -> list[PodChange]:
        lost = [self._pods.pop(uid) for uid in list(self._pods) if uid in self._stale]
        self._stale.clear()
        return [DeletedEvent(uid=pod.uid, namespace=pod.namespace, name=pod.name) for pod in lost]
