"""The pods of the node as its HTTPS port wants them: its port `NodePods`."""

from collections.abc import Sequence

from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.pods.pod_manager import PodDirectory
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.relist import RuntimeView
from podstatus.status.manager import StatusManager


class AgentPods:
    """Pods of the directory with what is decided about them; and those of the runtime."""

    def __init__(self, directory: PodDirectory, statuses: StatusManager, view: RuntimeView) -> None:
        self._directory = directory
        self._statuses = statuses
        self._view = view

    def pods(self) -> list[Pod]:
        """All that are to run here, each with its newest status."""
        return [self._with_status(pod) for pod in self._directory.pods()]

    def find_pod(self, namespace: str, name: str, uid: str = "") -> Pod | None:
        """One of them; if a UID is given, only if it has that one, or its mirror pod has."""
        pod = self._directory.pod_by_name(namespace, name)
        if pod is None or (uid and self._directory.translate_pod_uid(uid) != pod.uid):
            return None
        return self._with_status(pod)

    def running_pods(self) -> Sequence[RuntimePod]:
        """Those of which the runtime has something."""
        return list(self._view.pods().values())

    def _with_status(self, pod: Pod) -> Pod:
        status = self._statuses.pod_status(pod.uid)
        # Just after a start, what the API server shows is the newest there is.
        return pod if status is None else structs.replace(pod, status=status)
