"""The status manager's `PodEvents` port, implemented with the event recorder.

A foreign status write is an event about the node, not the pod, since the recorded kubelet emits
no event for such a pod (docs/explanation/foreign-status-writes.md).
"""

from collections.abc import Callable

from podstatus.events import reasons
from podstatus.events.object_references import node_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.meta import NamedPod, ObjectReference


class StatusEvents:
    def __init__(
        self,
        recorder: EventRecorder,
        node: str,
        *,
        on_foreign_write: Callable[[NamedPod, str], None],
    ) -> None:
        """`on_foreign_write` is called with the pod and the message of a foreign status write."""
        self._recorder = recorder
        self._node = node
        self._on_foreign_write = on_foreign_write

    def warn(self, pod: NamedPod, reason: str, message: str) -> None:
        if reason == reasons.FOREIGN_STATUS_WRITE:
            self._on_foreign_write(pod, message)
            message = f"Pod {pod.namespace}/{pod.name}: {message}"
            self._recorder.warn(node_reference(self._node), reason, message)
            return
        about = ObjectReference(
            kind="Pod", api_version="v1", namespace=pod.namespace, name=pod.name, uid=pod.uid
        )
        self._recorder.warn(about, reason, message)
