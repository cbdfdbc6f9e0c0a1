"""Volumes and message files of containers that run without isolation.

Only paths below /tmp can be mounted. Every user can write there:

    pods/<uid>/outside.json     the claimed paths, written before anything is created
    /tmp/data/.podstatus-pod    in an emptyDir: the UID of the pod that owns it

A folder without this mark, or a file of another user, is neither used nor removed. Symbolic links
are never followed.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from podstatus.base.atomic_file import replace_file
from podstatus.base.msgspec_json import decode_json
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.paths.safe_paths import (
    FOLDER_FLAGS,
    UnsafePathError,
    create_private,
    open_descriptor,
    open_folder,
    remove_below,
)
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.spec.config_errors import config_error
from podstatus.runtime.process.spec.mount_plan import (
    TOKEN_PATH,
    PlannedMount,
    is_empty_dir,
    is_in_memory,
    plan_mounts,
    split_steps,
    volume_type,
)
from podstatus.runtime.process.spec.security import ProcessCredentials

TMP = Path("/tmp")  # noqa: S108 - the folder that a spec may name without isolation
OWNER_MARK = ".podstatus-pod"
_CLAIMS_FILE = "outside.json"
_WORLD_WRITABLE = 0o777
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """Paths of a pod outside of its folder."""

    folders: tuple[str, ...] = ()
    files: dict[str, int] = {}
    """By path, the user that the file was created for."""
    volumes: dict[str, str] = {}
    """Names of volumes, by path of the folder; folders of older agents are missing."""


class UnsandboxedFiles:
    """Creates and removes the files of pods below /tmp."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def covers(self, path: str) -> bool:
        """Return whether a path lies below /tmp."""
        steps = split_steps(path)
        return (
            ".." not in steps
            and Path("/", *steps).is_relative_to(TMP)
            and (Path("/", *steps) != TMP)
        )

    def create_folder(self, uid: PodUID, path: str, volume: str) -> Path:
        """Create the folder of a volume; an existing one of the same pod stays as it is.

        Raises CannotStartError.
        """
        steps = self._steps(path)
        with self._parent(path, steps) as parent:
            mode = _mode(parent, steps[-1])
            if mode is None:
                self._claim(uid, folders={path: volume})
                os.mkdir(steps[-1], 0o700, dir_fd=parent)
            elif _is_marked(parent, steps[-1], uid):
                return Path(path)
            elif path not in self._read_claims(uid).folders or not _is_unfinished(
                parent, steps[-1]
            ):
                raise _not_owned_error(path)
            with open_descriptor(steps[-1], FOLDER_FLAGS, dir_fd=parent) as folder:
                with open_descriptor(OWNER_MARK, _CREATE_FLAGS, dir_fd=folder) as mark:
                    os.write(mark, uid.encode())
                os.fchmod(folder, _WORLD_WRITABLE)
        return Path(path)

    def create_file(self, uid: PodUID, path: str, *, user: int, group: int) -> Path:
        """Create an empty file for a pod, replacing its previous one. Raises CannotStartError."""
        steps = self._steps(path)
        with self._parent(path, steps) as parent:
            if _mode(parent, steps[-1]) is not None:
                owner = self._read_claims(uid).files.get(path)
                if owner is None or not _is_regular_file(parent, steps[-1], owner):
                    raise _not_owned_error(path)
                os.unlink(steps[-1], dir_fd=parent)
            self._claim(uid, files={path: user})
            with open_descriptor(steps[-1], _CREATE_FLAGS, dir_fd=parent) as file:
                if os.geteuid() == 0:
                    os.fchown(file, user, group)
        return Path(path)

    def volume_folders(self, uid: PodUID) -> dict[str, Path]:
        """Return the folders of volumes that still belong to the pod, by volume name."""
        return {
            volume: Path(path)
            for path, volume in self._read_claims(uid).volumes.items()
            if self._is_owned(uid, path)
        }

    def _is_owned(self, uid: PodUID, path: str) -> bool:
        steps = self._steps(path)
        try:
            with open_folder(TMP, steps[:-1]) as parent:
                return _is_marked(parent, steps[-1], uid)
        except (UnsafePathError, OSError):
            return False

    def remove(self, uid: PodUID) -> None:
        """Remove all files and folders that still belong to the pod."""
        claims = self._read_claims(uid)
        for path, user in claims.files.items():
            with contextlib.suppress(UnsafePathError, OSError):
                steps = self._steps(path)
                with open_folder(TMP, steps[:-1]) as parent:
                    if _is_regular_file(parent, steps[-1], user):
                        os.unlink(steps[-1], dir_fd=parent)
        for path in claims.folders:
            with contextlib.suppress(UnsafePathError, FileNotFoundError):
                steps = self._steps(path)
                with open_folder(TMP, steps[:-1]) as parent:
                    if _is_marked(parent, steps[-1], uid):
                        remove_below(parent, steps[-1])
        (PodFolder(self._root, uid).path / _CLAIMS_FILE).unlink(missing_ok=True)

    def _steps(self, path: str) -> tuple[str, ...]:
        return Path("/", *split_steps(path)).relative_to(TMP).parts

    @contextlib.contextmanager
    def _parent(self, path: str, steps: tuple[str, ...]) -> Iterator[int]:
        try:
            with open_folder(TMP, steps[:-1]) as parent:
                yield parent
        except (UnsafePathError, OSError) as error:
            reason = str(error) if isinstance(error, UnsafePathError) else error.strerror
            raise config_error(f"cannot create {path}: {reason}") from error

    def _read_claims(self, uid: PodUID) -> Claims:
        try:
            data = (PodFolder(self._root, uid).path / _CLAIMS_FILE).read_bytes()
            return decode_json(data, Claims)
        except (FileNotFoundError, msgspec.DecodeError):
            return Claims()

    def _claim(
        self,
        uid: PodUID,
        *,
        folders: Mapping[str, str] | None = None,
        files: Mapping[str, int] | None = None,
    ) -> None:
        """Record the path before it is created, so that it is found again in any case."""
        old = self._read_claims(uid)
        new = Claims(
            folders=tuple(sorted({*old.folders, *(folders or {})})),
            files={**old.files, **(files or {})},
            volumes={**old.volumes, **(folders or {})},
        )
        if new == old:
            return
        folder_path = PodFolder(self._root, uid).path
        create_private(folder_path)
        replace_file(folder_path / _CLAIMS_FILE, msgspec.json.encode(new))


def _mode(parent: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _is_unfinished(parent: int, name: str) -> bool:
    """Return whether it was created by an agent that died before it wrote the mark."""
    try:
        with (
            open_descriptor(name, FOLDER_FLAGS, dir_fd=parent) as folder,
            os.scandir(folder) as entries,
        ):
            return os.fstat(folder).st_uid == os.geteuid() and not any(entries)
    except OSError:
        return False


def _is_regular_file(parent: int, name: str, user: int) -> bool:
    """Return whether it is a regular file of the agent or of the container's user."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid in (os.geteuid(), user)


def _is_marked(parent: int, name: str, uid: PodUID) -> bool:
    try:
        with (
            open_descriptor(name, FOLDER_FLAGS, dir_fd=parent) as folder,
            open_descriptor(OWNER_MARK, _READ_FLAGS, dir_fd=folder) as mark,
        ):
            if not stat.S_ISREG(os.fstat(mark).st_mode):
                return False
            return os.read(mark, len(uid) + 1) == uid.encode()
    except OSError:
        return False


def _not_owned_error(path: str) -> Exception:
    return config_error(
        f"{path} exists and is not owned by the pod; remove it, or choose another path below /tmp"
    )


_INSTALL_HINT = "run the agent with --isolation=bubblewrap (Debian: apt install bubblewrap)"


def create_folders(
    pod: Pod, container: Container, env: Mapping[str, str], files: UnsandboxedFiles
) -> None:
    """Create the emptyDirs of a container below /tmp. Raises CannotStartError."""
    planned = plan_mounts(pod, container, env)
    for mount in planned:
        _check_mount(pod, mount, files)
    for mount in planned:
        files.create_folder(pod.uid, mount.target, mount.volume.name)


def create_message_file(
    pod: Pod, container: Container, files: UnsandboxedFiles, run_as: ProcessCredentials
) -> str:
    """Create the termination message file if it is below /tmp, and return its path.

    Empty otherwise: /dev is the host's, so a container with the default path has no message. Raises
    CannotStartError.
    """
    path = container.termination_message_path
    if not files.covers(path):
        return ""
    file = files.create_file(pod.uid, path, user=run_as.user, group=run_as.group)
    return str(file)


def _check_mount(pod: Pod, mount: PlannedMount, files: UnsandboxedFiles) -> None:
    volume, name = mount.volume, go_quoted(mount.volume.name)
    if mount.target == TOKEN_PATH:
        raise _unsupported_error(
            f"the token of the service account cannot be mounted at {mount.target}",
            "set automountServiceAccountToken: false",
        )
    if not is_empty_dir(volume):
        kind = volume_type(volume)
        raise _unsupported_error(f"volume {name} ({kind}) cannot be mounted", "remove it")
    if is_in_memory(volume):
        raise _unsupported_error(f"volume {name} cannot be in memory", "remove its medium")
    if not files.covers(mount.target):
        raise _unsupported_error(
            f"volume {name} cannot be mounted at {mount.target}", "mount it below /tmp"
        )
    if mount.steps or mount.read_only:
        field = "subPath" if mount.steps else "readOnly"
        raise _unsupported_error(f"{field} of volume {name} is not supported", "remove it")
    _check_exclusive(pod, mount)


def _check_exclusive(pod: Pod, mount: PlannedMount) -> None:
    """Require that each volume has one path, the same in all containers of the pod."""
    spec = pod.spec
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        for other in container.volume_mounts or ():
            same_volume = other.name == mount.volume.name
            same_path = other.mount_path.rstrip("/") == mount.target
            if same_volume != same_path:
                raise _unsupported_error(
                    f"volume {go_quoted(other.name)} cannot be mounted at {other.mount_path}",
                    "mount each volume at one path, the same in all containers",
                )


def _unsupported_error(problem: str, remedy: str) -> CannotStartError:
    return config_error(
        f"{problem}: containers are not isolated here; {_INSTALL_HINT}, or {remedy}"
    )
