"""Build the root filesystem that an isolated container sees.

Its mounts are placed in the host's root, which is read-only: a mount point that does not exist
cannot be made in it. So the folder where it is missing is shown entry by entry, in a folder of its
own.
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
from podstatus.runtime.process.spec.mount_plan import PlannedMount, concurrent_writers, is_empty_dir

PRIVATE_MOUNTS = ("/dev", "/proc", "/tmp")  # noqa: S108
"""What every container has for itself."""
HIDDEN_FOLDERS = ("/run", "/home", "/root", "/var/tmp")  # noqa: S108
"""What is not for containers: sockets of the machine's services, what people have, leavings."""
_MASKED_FILES = ("/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list")
_MAX_LINKS = 40
"""As the kernel has it."""
_MAX_ENTRIES = 1000
"""Each is a mount; /etc has some hundreds."""


def hidden_folders(more: Iterable[str]) -> tuple[str, ...]:
    """The folders that are hidden, of those that are there; none that lies in another one."""
    real = {os.path.realpath(path) for path in (*HIDDEN_FOLDERS, *more) if Path(path).is_dir()} - {
        *PRIVATE_MOUNTS
    }
    return tuple(
        sorted(path for path in real if not is_within_any(path, {*PRIVATE_MOUNTS, *real} - {path}))
    )


def hidden_files(paths: Iterable[str], hidden: Collection[str]) -> tuple[str, ...]:
    """Those of the paths that are files, and would be seen."""
    return tuple(
        path
        for path in paths
        if Path(path).is_file() and not is_within_any(path, (*PRIVATE_MOUNTS, *hidden))
    )


def masked_files() -> tuple[str, ...]:
    """Files of /proc that are not for containers, of those that are there."""
    return tuple(path for path in _MASKED_FILES if Path(path).exists())


def is_within_any(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of the folders, or in one."""
    return any(is_within(path, folder) for folder in folders)


def resolve_target(target: str, covered: Collection[str]) -> tuple[str, str | None]:
    """Where a mount point is without links, and the folder in which it is missing, if it is.

    What lies in a covered folder is not the host's. Raises CannotStartError.
    """
    here, steps, links = "/", _components(target), 0
    while steps:
        step = steps.pop(0)
        below = posixpath.normpath(posixpath.join(here, step))
        if below in covered:
            return posixpath.join(below, *steps), None
        try:
            mode = os.lstat(below).st_mode
        except FileNotFoundError:
            return posixpath.join(below, *steps), here
        except OSError as error:
            raise config_error(f"cannot mount at {target}: {error.strerror}: {below}") from error
        if not stat.S_ISLNK(mode):
            here = below
            continue
        links += 1
        if links > _MAX_LINKS:
            raise config_error(f"cannot mount at {target}: too many symbolic links")
        leads_to = str(Path(below).readlink())
        here = "/" if leads_to.startswith("/") else here
        steps = [*_components(leads_to), *steps]
    return here, None


def expand_folders(
    missing_in: Iterable[str], hidden: Collection[str]
) -> tuple[ExpandedFolder, ...]:
    """The root and other folders, with what is to be shown in each. Raises CannotStartError."""
    return tuple(_expand(path, hidden) for path in sorted({"/", *missing_in}))


def _expand(path: str, hidden: Collection[str]) -> ExpandedFolder:
    entries, links = [], {}
    with os.scandir(path) as found:
        for entry in found:
            if is_within_any(entry.path, (*PRIVATE_MOUNTS, *hidden)) or not _is_text(entry.name):
                continue
            if entry.is_symlink():
                links[entry.name] = str(Path(entry.path).readlink())
            elif entry.is_dir() or entry.is_file():
                entries.append(entry.name)
    if len(entries) > _MAX_ENTRIES:
        why = f"there is no such path on the host, and {path} is too large; make it there"
        raise unsupported_field("volumeMounts.mountPath", path, why)
    return ExpandedFolder(path=path, entries=tuple(sorted(entries)), links=links)


def _is_text(name: str) -> bool:
    """Whether it can be handed on; what is no UTF-8 is not shown."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _components(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


class ResolvedMount(msgspec.Struct, frozen=True, kw_only=True):
    """Something of the host, and where the spec wants it."""

    source: Path
    host_path: HostPath | None = None
    """What was checked at the source, if that is of the host."""
    planned: PlannedMount | None = None
    """None: the file for the message."""
    target: str
    read_only: bool = False


class SandboxBuilder:
    """Finds places for the mounts of one container."""

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
        self, mounts: Sequence[ResolvedMount], *, tmp: Path, env: Mapping[str, str], hostname: str
    ) -> SandboxSpec:
        """The sandbox with all of these in it. Raises CannotStartError."""
        for thing in sorted(mounts, key=lambda thing: thing.target.count("/")):
            self._add_mount(thing)
        return SandboxSpec(
            folders=expand_folders(self._missing_in, self._hidden),
            hidden=self._hidden,
            masked=self._masked_paths(),
            tmp=str(tmp),
            mounts=tuple(mount for mount, _ in self._mounts),
            hidden_in_mounts=self._visible_in_mounts(filter(os.path.isdir, self._hidden_paths)),
            masked_in_mounts=self._visible_in_mounts(filter(os.path.isfile, self._hidden_paths)),
            env=env,
            cwd=self._container.working_dir or "/",
            hostname=hostname,
            share_ipc=self._pod.spec.host_ipc,
        )

    def _add_mount(self, thing: ResolvedMount) -> None:
        target, missing_in = resolve_target(thing.target, self._covered)
        if target in self._targets:
            raise config_error(f"two things are to be mounted at {target}; choose another path")
        if missing_in is not None:
            self._missing_in.add(missing_in)
        self._ensure_mount_point(target, thing)
        mount = Mount(
            source=str(thing.source),
            target=target,
            read_only=thing.read_only,
            host_path=thing.host_path,
        )
        self._mounts.append((mount, thing))
        self._covered.add(target)
        self._targets[target] = mount, thing

    def _ensure_mount_point(self, target: str, thing: ResolvedMount) -> None:
        """If it is to be seen inside of another volume, let there be a place for it.

        Bubblewrap would make it, but follow links on the way.
        """
        around = self._enclosing_mount(target)
        if around is None:
            return
        mount, outer = around
        self._check_mount_point(target, outer)
        steps = tuple(target[len(mount.target) :].strip("/").split("/"))
        try:
            _create_mount_point(Path(mount.source), steps, is_folder=thing.source.is_dir())
        except (UnsafePathError, OSError) as error:
            raise config_error(f"cannot mount at {target}: there is no place for it") from error

    def _enclosing_mount(self, target: str) -> tuple[Mount, ResolvedMount] | None:
        """The volume that a mount point lies in; the innermost."""
        while target != "/":
            target = posixpath.dirname(target)
            if target in self._targets:
                return self._targets[target]
        return None

    def _check_mount_point(self, target: str, outer: ResolvedMount) -> None:
        planned = outer.planned
        if planned is None or planned.volume.host_path is not None:
            raise config_error(f"cannot mount at {target}: it lies in a path of the host")
        if not is_empty_dir(planned.volume):
            return
        for other, _ in concurrent_writers(self._pod, self._container, planned.volume.name):
            raise config_error(
                f"cannot mount at {target} safely: it lies in volume "
                f"{go_quoted(planned.volume.name)}, which container {other.name} can change "
                "meanwhile; choose a path outside of it"
            )

    def _masked_paths(self) -> tuple[str, ...]:
        return (*masked_files(), *hidden_files(self._hidden_paths, self._hidden))

    def _visible_in_mounts(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Where what is the agent's would be seen through a path of the host."""
        return tuple(
            mount.target.rstrip("/") + "/" + os.path.relpath(path, mount.source)
            for path in paths
            for mount, _ in self._mounts
            if is_within(path, mount.source)
        )


def _create_mount_point(base: Path, steps: tuple[str, ...], *, is_folder: bool) -> None:
    found = file_type_below(base, steps) if _has_parent(base, steps) else None
    if found is not None:
        if (found == stat.S_IFDIR) != is_folder:
            raise UnsafePathError("there is something else")
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
