"""Builds the root filesystem of an isolated container.

Volumes are mounted into the host's root, which is read-only: a missing mount point cannot be
created there. The folder in which it is missing is therefore replaced by a new folder with a mount
for each of its entries.
"""

import os
import posixpath
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.process.paths.mount_table import is_within
from podstatus.runtime.process.paths.safe_paths import UnsafePathError, file_type_below, open_folder
from podstatus.runtime.process.sandbox.bubblewrap.arguments import (
    ExpandedFolder,
    HostPath,
    Mount,
    SandboxSpec,
)
from podstatus.runtime.process.spec.config_errors import config_error, unsupported_field
from podstatus.runtime.process.spec.mount_plan import (
    PlannedMount,
    concurrent_writers,
    is_empty_dir,
    split_steps,
)

PRIVATE_MOUNTS = ("/dev", "/proc", "/tmp")  # noqa: S108
"""Folders that every container has for itself."""
HIDDEN_FOLDERS = ("/run", "/home", "/root", "/var/tmp")  # noqa: S108
"""Not for containers: sockets of system services, home directories, temporary files."""
_MASKED_FILES = ("/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list")
_MAX_LINKS = 40
"""The kernel's limit."""
_MAX_ENTRIES = 1000
"""Each entry is a mount; /etc has a few hundred."""


def hidden_folders(more: Iterable[str]) -> tuple[str, ...]:
    """Return the existing hidden folders; none lies within another."""
    real = {os.path.realpath(path) for path in (*HIDDEN_FOLDERS, *more) if Path(path).is_dir()} - {
        *PRIVATE_MOUNTS
    }
    return tuple(
        sorted(path for path in real if not is_within_any(path, {*PRIVATE_MOUNTS, *real} - {path}))
    )


def hidden_files(paths: Iterable[str], hidden: Collection[str]) -> tuple[str, ...]:
    """Return the paths that are files and would be visible."""
    return tuple(
        path
        for path in paths
        if Path(path).is_file() and not is_within_any(path, (*PRIVATE_MOUNTS, *hidden))
    )


def masked_files() -> tuple[str, ...]:
    """Return the existing files of /proc that containers must not read."""
    return tuple(path for path in _MASKED_FILES if Path(path).exists())


def is_within_any(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of the folders, or lies within one."""
    return any(is_within(path, folder) for folder in folders)


def resolve_target(target: str, covered: Collection[str]) -> tuple[str, str | None]:
    """Resolve a mount point without links; also return the folder in which it is missing, if any.

    Paths within a covered folder are not the host's. Raises CannotStartError.
    """
    folder, steps, links = "/", list(split_steps(target)), 0
    while steps:
        name = steps.pop(0)
        path = posixpath.normpath(posixpath.join(folder, name))
        if path in covered:
            return posixpath.join(path, *steps), None
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return posixpath.join(path, *steps), folder
        except OSError as error:
            raise config_error(f"cannot mount at {target}: {error.strerror}: {path}") from error
        if not stat.S_ISLNK(mode):
            folder = path
            continue
        links += 1
        if links > _MAX_LINKS:
            raise config_error(f"cannot mount at {target}: too many symbolic links")
        link = str(Path(path).readlink())
        folder = "/" if link.startswith("/") else folder
        steps = [*split_steps(link), *steps]
    return folder, None


def expand_folders(
    missing_in: Iterable[str], hidden: Collection[str]
) -> tuple[ExpandedFolder, ...]:
    """Return the root and these folders with their visible entries. Raises CannotStartError."""
    return tuple(_expand(path, hidden) for path in sorted({"/", *missing_in}))


def _expand(path: str, hidden: Collection[str]) -> ExpandedFolder:
    entries, links = [], {}
    with os.scandir(path) as listing:
        for entry in listing:
            if is_within_any(entry.path, (*PRIVATE_MOUNTS, *hidden)) or not _is_text(entry.name):
                continue
            if entry.is_symlink():
                links[entry.name] = str(Path(entry.path).readlink())
            elif entry.is_dir() or entry.is_file():
                entries.append(entry.name)
    if len(entries) > _MAX_ENTRIES:
        reason = f"no such path on the host, and {path} has too many entries; create it there"
        raise unsupported_field("volumeMounts.mountPath", path, reason)
    return ExpandedFolder(path=path, entries=tuple(sorted(entries)), links=links)


def _is_text(name: str) -> bool:
    """Return whether the name is UTF-8; other names are not shown, as they cannot be passed on."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class ResolvedMount(msgspec.Struct, frozen=True, kw_only=True):
    """A host path and its target in the container."""

    source: Path
    host_path: HostPath | None = None
    """The checked inode, if the source is a hostPath volume."""
    planned: PlannedMount | None = None
    """None: the termination message file."""
    target: str
    read_only: bool = False


class SandboxBuilder:
    """Resolves the mounts of one container and builds its sandbox."""

    def __init__(self, pod: Pod, container: Container, hidden_paths: Sequence[str]) -> None:
        self._pod = pod
        self._container = container
        self._hidden_paths = tuple(os.path.realpath(path) for path in hidden_paths)
        self._hidden = hidden_folders(hidden_paths)
        self._covered = {*PRIVATE_MOUNTS, *self._hidden}
        self._missing_in: set[str] = set()
        self._targets: dict[str, tuple[Mount, ResolvedMount]] = {}
        self._mounts: list[tuple[Mount, ResolvedMount]] = []

    def build(
        self,
        mounts: Sequence[ResolvedMount],
        *,
        tmp: Path,
        env: Mapping[str, str],
        hostname: str,
        inherit_ipc: bool = False,
    ) -> SandboxSpec:
        """Return the sandbox with these mounts. Raises CannotStartError."""
        for mount in sorted(mounts, key=lambda mount: mount.target.count("/")):
            self._add_mount(mount)
        return SandboxSpec(
            folders=expand_folders(self._missing_in, self._hidden),
            hidden=self._hidden,
            masked=(*masked_files(), *hidden_files(self._hidden_paths, self._hidden)),
            tmp=str(tmp),
            mounts=tuple(mount for mount, _ in self._mounts),
            hidden_in_mounts=self._visible_in_mounts(filter(os.path.isdir, self._hidden_paths)),
            masked_in_mounts=self._visible_in_mounts(filter(os.path.isfile, self._hidden_paths)),
            env=env,
            cwd=self._container.working_dir or "/",
            hostname=hostname,
            share_ipc=self._pod.spec.host_ipc,
            inherit_ipc=inherit_ipc,
        )

    def _add_mount(self, resolved: ResolvedMount) -> None:
        target, missing_in = resolve_target(resolved.target, self._covered)
        if target in self._targets:
            raise config_error(f"two volumes are mounted at {target}; choose another path")
        if missing_in is not None:
            self._missing_in.add(missing_in)
        self._ensure_mount_point(target, resolved)
        mount = Mount(
            source=str(resolved.source),
            target=target,
            read_only=resolved.read_only,
            host_path=resolved.host_path,
        )
        self._mounts.append((mount, resolved))
        self._covered.add(target)
        self._targets[target] = mount, resolved

    def _ensure_mount_point(self, target: str, resolved: ResolvedMount) -> None:
        """Create the mount point of a volume that is mounted within another volume.

        Bubblewrap would create it, but follow links on the way.
        """
        enclosing = self._enclosing_mount(target)
        if enclosing is None:
            return
        mount, outer = enclosing
        self._check_mount_point(target, outer)
        steps = tuple(target[len(mount.target) :].strip("/").split("/"))
        try:
            _create_mount_point(Path(mount.source), steps, is_folder=resolved.source.is_dir())
        except (UnsafePathError, OSError) as error:
            raise config_error(
                f"cannot mount at {target}: the mount point cannot be created"
            ) from error

    def _enclosing_mount(self, target: str) -> tuple[Mount, ResolvedMount] | None:
        """Return the innermost volume that a mount point lies in, or None."""
        while target != "/":
            target = posixpath.dirname(target)
            if target in self._targets:
                return self._targets[target]
        return None

    def _check_mount_point(self, target: str, outer: ResolvedMount) -> None:
        planned = outer.planned
        if planned is None or planned.volume.host_path is not None:
            raise config_error(f"cannot mount at {target}: it lies within a hostPath volume")
        if not is_empty_dir(planned.volume):
            return
        for other, _ in concurrent_writers(self._pod, self._container, planned.volume.name):
            raise config_error(
                f"cannot mount at {target} safely: it lies in volume "
                f"{go_quoted(planned.volume.name)}, which container {other.name} can modify "
                "meanwhile; choose a path outside of it"
            )

    def _visible_in_mounts(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return where paths of the agent would be visible through host path mounts."""
        return tuple(
            mount.target.rstrip("/") + "/" + os.path.relpath(path, mount.source)
            for path in paths
            for mount, _ in self._mounts
            if is_within(path, mount.source)
        )


def _create_mount_point(base: Path, steps: tuple[str, ...], *, is_folder: bool) -> None:
    file_type = file_type_below(base, steps) if _has_parent(base, steps) else None
    if file_type is not None:
        if (file_type == stat.S_IFDIR) != is_folder:
            raise UnsafePathError("a file of another type exists")
        return
    if is_folder:
        with open_folder(base, steps, make=0o755):
            return
    with open_folder(base, steps[:-1], make=0o755) as parent:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(steps[-1], flags, 0o644, dir_fd=parent))


def _has_parent(base: Path, steps: tuple[str, ...]) -> bool:
    try:
        with open_folder(base, steps[:-1]):
            return True
    except FileNotFoundError:
        return False
