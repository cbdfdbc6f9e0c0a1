"""Where files of pods are: volumes, termination messages and hosts files below the runtime's
folder, logs as the kubelet has them.

    pods/<uid>/volumes/<volume>
    pods/<uid>/containers/<container>/<restart count>.<sandbox>.message
    pods/<uid>/etc-hosts
    logs/<namespace>_<name>_<uid>/<container>/<restart count>.log

Upstream: BuildPodLogsDirectory, kuberuntime/helpers.go v1.36.4.
"""

import os
from pathlib import Path

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.runtime.cri.api.containers import CriContainer, CriContainerMetadata
from podstatus.runtime.cri.model import labels
from podstatus.runtime.process.paths.safe_paths import create_private, remove_tree
from podstatus.runtime.process.records.layout import PodFolder

_MESSAGE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_ID_LENGTH = 12
"""Characters of a sandbox ID that distinguish the sandboxes of a pod."""


class PodFiles:
    """Creates and removes files of pods. Blocks; none of it is large."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def log_directory(self, pod: Pod) -> Path:
        """Return the folder of a pod's logs."""
        return self._logs / f"{pod.namespace}_{pod.name}_{self._quoted(pod.uid)}"

    def create_log_directory(self, pod: Pod, container: str = "") -> Path:
        """Create the folder of a pod's logs, or of a container's; return that of the pod."""
        folder = self.log_directory(pod)
        (folder / container).mkdir(parents=True, exist_ok=True)
        return folder

    def create_message(self, uid: PodUID, container: str, attempt: int, sandbox: str) -> Path:
        """Create the empty termination message of an attempt, writable by any user."""
        folder = PodFolder(self._root, uid).containers / container
        create_private(folder)
        path = folder / _message_name(attempt, sandbox)
        descriptor = os.open(path, _MESSAGE_FLAGS, 0o666)
        try:
            os.fchmod(descriptor, 0o666)
        finally:
            os.close(descriptor)
        return path

    def write_hosts(self, uid: PodUID, text: str) -> Path:
        """Write the hosts file of a pod."""
        folder = PodFolder(self._root, uid).path
        create_private(folder)
        path = folder / "etc-hosts"
        # In place: running containers have it mounted.
        path.write_text(text, errors="surrogateescape")
        path.chmod(0o644)
        return path

    def remove_attempt(self, uid: PodUID, container: CriContainer) -> None:
        """Remove log and termination message of an attempt."""
        metadata = container.metadata or CriContainerMetadata()
        pod = container.labels.get(labels.POD_NAMESPACE, ""), container.labels.get(labels.POD_NAME)
        logs = self._logs / f"{pod[0]}_{pod[1]}_{self._quoted(uid)}" / metadata.name
        for path in logs.glob(f"{metadata.attempt}.log*"):
            path.unlink(missing_ok=True)
        folder = PodFolder(self._root, uid).containers / metadata.name
        message = _message_name(metadata.attempt, container.pod_sandbox_id)
        (folder / message).unlink(missing_ok=True)

    def remove_pod(self, uid: PodUID) -> None:
        """Remove all files of a pod."""
        remove_tree(PodFolder(self._root, uid).path)
        # Names and namespaces have no underscores.
        for folder in self._logs.glob("*_*_*"):
            if folder.name.split("_", 2)[2] == self._quoted(uid):
                remove_tree(folder)

    def _quoted(self, uid: PodUID) -> str:
        return PodFolder(self._root, uid).path.name

    @property
    def _logs(self) -> Path:
        return self._root / "logs"


def _message_name(attempt: int, sandbox: str) -> str:
    return f"{attempt}.{sandbox[:_ID_LENGTH]}.message"
