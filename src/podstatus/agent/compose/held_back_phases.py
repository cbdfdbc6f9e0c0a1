"""Show a terminal phase when the status sync sends it: once no container of the pod may run.

The status manager caches the terminal phase of a pod when its node begins to terminate it. Without
this, the snapshot and the history would show a pod as failed that the API server shows as running.
"""

from collections.abc import Sequence

from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.pods.pod_manager import PodManager
from podstatus.status.decide.merge import hold_back_phase, is_ending
from podstatus.status.ports import PodDeletionSafetyProvider, PodUpdateNotifier


class HeldBackPhases:
    """A status notifier that forwards each status with the phase that is sent.

    For one thread at a time, as the agent's event loop.
    A phase that was held back is forwarded after `pod_changed`, which is called for every change of
    a pod's lifecycle and of its API object.
    """

    def __init__(self, pod_manager: PodManager, safety: PodDeletionSafetyProvider) -> None:
        self._pod_manager = pod_manager
        self._safety = safety
        self._listeners: tuple[PodUpdateNotifier, ...] = ()
        self._last: dict[PodUID, PodStatus] = {}
        """The last status of each pod that was forwarded."""
        self._held_back: dict[PodUID, Pod] = {}
        """Pods whose phase is held back, with the status that the manager caches."""

    def forward_to(self, listeners: Sequence[PodUpdateNotifier]) -> None:
        """Forward all statuses from now on to these listeners, in this order."""
        self._listeners = tuple(listeners)

    def apply(self, pod: Pod) -> Pod:
        """Return the pod, which has its cached status, with the phase that is sent."""
        old, new = self._old_status(pod.uid), pod.status
        if not is_ending(old, new) or not self._safety.could_have_running_containers(pod):
            return pod
        return structs.replace(pod, status=hold_back_phase(old, new))

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:  # noqa: ARG002
        """Forward the status, which `pod` already has."""
        shown = self.apply(pod)
        if shown is pod:
            self._held_back.pop(pod.uid, None)
        else:
            self._held_back[pod.uid] = pod
        self._forward(shown, is_added=is_added)

    def _forward(self, pod: Pod, *, is_added: bool) -> None:
        self._last[pod.uid] = pod.status
        for listener in self._listeners:
            listener.on_pod_updated(pod, pod.status, is_added=is_added)

    def on_pod_removed(self, pod: Pod) -> None:
        """Forward the end of the pod, after its terminal phase: none may follow the end."""
        if (held_back := self._held_back.pop(pod.uid, None)) is not None:
            self._forward(held_back, is_added=False)
        for listener in self._listeners:
            listener.on_pod_removed(pod)

    def pod_changed(self, uid: PodUID) -> None:
        """Forward the phase of a pod if it is not held back any more; accepts a mirror's UID."""
        uid = self._pod_manager.translate_pod_uid(uid)
        pod = self._held_back.get(uid)
        if pod is not None and self.apply(pod) is pod:
            self.on_pod_updated(pod, pod.status, is_added=False)

    def forget(self, uid: PodUID) -> None:
        """Forget a pod that its source has removed and that is cleaned up."""
        self._last.pop(uid, None)
        self._held_back.pop(uid, None)

    def _old_status(self, uid: PodUID) -> PodStatus:
        """Return the last status that was forwarded; before the first, the API server's."""
        if (last := self._last.get(uid)) is not None:
            return last
        pod = self._pod_manager.pod_by_uid(uid)
        mirror = None if pod is None else self._pod_manager.mirror_pod_by_pod(pod)
        known = mirror or pod
        return PodStatus() if known is None else known.status
