"""Layout of the folder that agent and shim share.

    pods/<uid>/pod.json                     PodRecord, by the agent
               shim.json                    ShimRecord, by the shim, once it serves requests
               shim.log                     errors of shims
               volumes/<name>/              emptyDirs and projected volumes
               containers/<id>/launch.json  LaunchRecord, by the agent: how to start it
                               resized.json ResizeRecord, by the agent: resources after a resize
                               started.json StartRecord, by the monitor, once the command runs
                               exit.json    ExitRecord, by the monitor, once all processes ended
                               0.log        output in the CRI format; rotated: 0.log.*
                               message      termination message
               hosts        its /etc/hosts, if it is isolated
                               stdin        FIFO, if the container has standard input
                               tmp/         its /tmp, if it is isolated

Files are written as `<name>.new` and renamed, so that readers never see a partial file. That of
`started.json` is created before anything is executed: an attempt with neither of the two never ran.
A file that is damaged nevertheless, such as by a power loss, is renamed to `<name>.damaged`.
Everything is private to the owner: modes 0700 and 0600.
"""

from pathlib import Path
from urllib.parse import quote, unquote

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.shim.records import EXIT, LAUNCH, LOG, POD, SHIM, STARTED, STDIN

SHIM_LOG, RESIZE_RECORD = "shim.log", "resized.json"
MESSAGE, HOSTS, TMP = "message", "hosts", "tmp"


class PodFolder:
    """Paths in the folder of a pod."""

    def __init__(self, root: Path, uid: PodUID) -> None:
        self.path = pods_folder(root) / _file_name(uid)
        self.record = self.path / POD
        self.shim = self.path / SHIM
        self.shim_log = self.path / SHIM_LOG
        self.volumes = self.path / "volumes"
        self.containers = self.path / "containers"

    def container(self, name: str) -> "ContainerFolder":
        """Return the folder of an attempt, given its ID without the scheme."""
        return ContainerFolder(self.containers / name)


class ContainerFolder:
    """Paths in the folder of one attempt."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.launch = path / LAUNCH
        self.resized = path / RESIZE_RECORD
        self.started = path / STARTED
        self.starting = path / f"{STARTED}.new"
        self.exit = path / EXIT
        self.log = path / LOG
        self.message = path / MESSAGE
        self.hosts = path / HOSTS
        self.stdin = path / STDIN
        self.tmp = path / TMP


def pods_folder(root: Path) -> Path:
    return root / "pods"


def removed_folder(root: Path) -> Path:
    """Return the folder to which folders are moved before their removal, so that they vanish at
    once.
    """
    return root / "removed"


def pod_uid(folder: Path) -> PodUID:
    return PodUID(unquote(folder.name))


def _file_name(uid: PodUID) -> str:
    # UIDs come from the pods' authors: escape them, so that none leads out of the folder.
    return quote(uid, safe="").replace(".", "%2E")
