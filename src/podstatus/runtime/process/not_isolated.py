"""Mounts and messages of containers that are not isolated: only what lies below /tmp can be."""

from collections.abc import Mapping

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.mount_plan import (
    TOKEN_PATH,
    PlannedMount,
    is_empty_dir,
    kind_of_volume,
    plan_mounts,
)
from podstatus.runtime.process.outside import Outside
from podstatus.runtime.process.refusals import config_error
from podstatus.runtime.process.security import Credentials

_INSTALL = "run the agent with --isolation=bubblewrap (Debian: apt install bubblewrap)"


def own_folders(pod: Pod, container: Container, env: Mapping[str, str], outside: Outside) -> None:
    """Make the emptyDirs that a container sees below /tmp. Raises CannotStartError."""
    planned = plan_mounts(pod, container, env)
    for mount in planned:
        _check(pod, mount, outside)
    for mount in planned:
        outside.make_folder(pod.uid, mount.target)


def own_message(pod: Pod, container: Container, outside: Outside, who: Credentials) -> str:
    """Make the file for the last words, if it is below /tmp; where it is. Raises CannotStartError.

    /dev is the host's: a container that leaves the path as it is has no message.
    """
    path = container.termination_message_path
    if not outside.covers(path):
        return ""
    made = outside.make_file(pod.uid, path, user=who.user, group=who.group)
    return str(made)


def _check(pod: Pod, mount: PlannedMount, outside: Outside) -> None:
    volume, name = mount.volume, go_quoted(mount.volume.name)
    if mount.target == TOKEN_PATH:
        raise _refused(
            f"the token of the service account cannot be mounted at {mount.target}",
            "set automountServiceAccountToken: false",
        )
    if not is_empty_dir(volume):
        kind = kind_of_volume(volume)
        raise _refused(f"volume {name} ({kind}) cannot be mounted", "leave it out")
    if not outside.covers(mount.target):
        raise _refused(f"volume {name} cannot be mounted at {mount.target}", "mount it below /tmp")
    if mount.steps or mount.read_only:
        what = "subPath" if mount.steps else "readOnly"
        raise _refused(f"{what} of volume {name} cannot be honoured", "leave it out")
    _check_alone(pod, mount)


def _check_alone(pod: Pod, mount: PlannedMount) -> None:
    """A volume is one folder, and a folder one volume, for all containers of the pod."""
    spec = pod.spec
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        for other in container.volume_mounts or ():
            same_volume = other.name == mount.volume.name
            same_path = other.mount_path.rstrip("/") == mount.target
            if same_volume != same_path:
                raise _refused(
                    f"volume {go_quoted(other.name)} cannot be mounted at {other.mount_path}",
                    "mount each volume at one path, the same in all containers",
                )


def _refused(what: str, instead: str) -> CannotStartError:
    return config_error(f"{what}: containers are not isolated here; {_INSTALL}, or {instead}")
