"""The pods of somebody who watches, kept up with what is sent."""

import msgspec

from podstatus.cli.client.query_client import ShownPod, read_answer
from podstatus.cli.client.sse import ServerSent
from podstatus.kube.objects.pod import PodUID


class GonePod(msgspec.Struct, frozen=True):
    """A pod that is not there any more."""

    uid: PodUID
    namespace: str
    name: str


class _Why(msgspec.Struct, frozen=True):
    reason: str = ""


Change = ShownPod | GonePod


class Watched:
    """What is known of all pods."""

    def __init__(self) -> None:
        self._pods: dict[PodUID, ShownPod] = {}
        self._unseen: set[PodUID] = set()
        """Those that nothing was said of since it began anew."""
        self.is_complete = False
        """Whether all that was there has been sent."""
        self.cut_off = ""
        """Why the connection is ended, if it is."""

    def pods(self) -> list[ShownPod]:
        """By namespace and name."""
        return sorted(self._pods.values(), key=lambda pod: (pod.namespace, pod.name, pod.uid))

    def apply(self, sent: ServerSent) -> list[Change]:
        """What has changed by this event. Raises CannotAskError.

        Events of other names are of a server that knows more than we do.
        """
        match sent.event:
            case "pod":
                return self._put(read_answer(sent.data.encode(), ShownPod))
            case "gone":
                return self._remove(read_answer(sent.data.encode(), GonePod))
            case "anew":
                self._unseen = set(self._pods)
            case "synced":
                self.is_complete, self.cut_off = True, ""
                return self._forget_unseen()
            case "cut":
                self.cut_off = read_answer(sent.data.encode(), _Why).reason
        return []

    def _put(self, pod: ShownPod) -> list[Change]:
        self._unseen.discard(pod.uid)
        known, self._pods[pod.uid] = self._pods.get(pod.uid), pod
        return [] if known == pod else [pod]

    def _remove(self, gone: GonePod) -> list[Change]:
        self._unseen.discard(gone.uid)
        return [] if self._pods.pop(gone.uid, None) is None else [gone]

    def _forget_unseen(self) -> list[Change]:
        lost = [self._pods.pop(uid) for uid in list(self._pods) if uid in self._unseen]
        self._unseen.clear()
        return [GonePod(pod.uid, pod.namespace, pod.name) for pod in lost]
