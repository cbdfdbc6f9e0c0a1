"""Where things of a pod are, for the agent and for the shim.

    pods/<uid>/pod.json                     PodRecord, by the agent
               shim.json                    ShimRecord, by the shim, once it can be asked
               shim.log                     what shims complain about
               volumes/<name>/              emptyDirs, and what is projected
               containers/<id>/launch.json  Launch, by the agent: how to start it
                               resized.json Resized, by the agent: what it was given later
                               started.json StartRecord, by the shim, once the command runs
                               exit.json    ExitRecord, by the shim, once all of it has ended
                               0.log        what it wrote, in the format of CRI; <0.log.*> before it
                               message      what it leaves as its last words
                               stdin        a FIFO, if it reads its input
                               tmp/         its /tmp, if it is isolated

Files are written beside their place, as `<name>.new`, and renamed into it: who finds one finds it
whole. That of `started.json` is there before anything is executed: an attempt that has neither of
the two never ran. One that is damaged all the same, by a loss of power say, is set aside as
`<name>.damaged`. All of it is for the owner only: 0700 and 0600.
"""

from pathlib import Path
from urllib.parse import quote, unquote

from podstatus.kube.objects.pod import PodUID

POD, SHIM, SHIM_LOG = "pod.json", "shim.json", "shim.log"
LAUNCH, STARTED, EXIT = "launch.json", "started.json", "exit.json"
RESIZE_RECORD = "resized.json"
LOG, MESSAGE, STDIN, TMP = "0.log", "message", "stdin", "tmp"


class PodFolder:
    """The folder of a pod."""

    def __init__(self, root: Path, uid: PodUID) -> None:
        self.path = pods_folder(root) / _file_name(uid)
        self.record = self.path / POD
        self.shim = self.path / SHIM
        self.shim_log = self.path / SHIM_LOG
        self.volumes = self.path / "volumes"
        self.containers = self.path / "containers"

    def container(self, name: str) -> "ContainerFolder":
        """The folder of an attempt; its ID without the kind of runtime in front."""
        return ContainerFolder(self.containers / name)


class ContainerFolder:
    """The folder of one attempt at a container."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.launch = path / LAUNCH
        self.resized = path / RESIZE_RECORD
        self.started = path / STARTED
        self.starting = path / f"{STARTED}.new"
        self.exit = path / EXIT
        self.log = path / LOG
        self.message = path / MESSAGE
        self.stdin = path / STDIN
        self.tmp = path / TMP


def pods_folder(root: Path) -> Path:
    """Where the folders of all pods are."""
    return root / "pods"


def removed_folder(root: Path) -> Path:
    """Where folders go that are about to be removed: out of everybody's sight at once."""
    return root / "removed"


def pod_uid(folder: Path) -> PodUID:
    """Of which pod this is the folder."""
    return PodUID(unquote(folder.name))


def _file_name(uid: PodUID) -> str:
    # Whoever makes pods makes their UIDs: none may lead out of the folder.
    return quote(uid, safe="").replace(".", "%2E")
