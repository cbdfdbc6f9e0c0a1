"""Events of the status manager: its port `PodEvents`, fulfilled by a recorder.

What others wrote to a pod is told of the node, not of the pod: the kubelet was recorded to say
nothing about such a pod (docs/decisions/0028-foreign-writers.md).
"""

from podstatus.events import reasons
from podstatus.events.event import node_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.meta import NamedPod, ObjectReference


class StatusEvents:
    """Records what the status manager has to tell about pods."""

    def __init__(self, recorder: EventRecorder, node: str) -> None:
        self._recorder = recorder
        self._node = node

    def warn(self, pod: NamedPod, reason: str, message: str) -> None:
        """Record an event of type Warning."""
        if reason == reasons.FOREIGN_STATUS_WRITE:
            message = f"Pod {pod.namespace}/{pod.name}: {message}"
            self._recorder.warn(node_reference(self._node), reason, message)
            return
        about = ObjectReference(
            kind="Pod", api_version="v1", namespace=pod.namespace, name=pod.name, uid=pod.uid
        )
        self._recorder.warn(about, reason, message)
