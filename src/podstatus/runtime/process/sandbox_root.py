"""Where a mount point of a container is in the root of the host, and what is made for it.

The root of a container is the host's, read-only: a mount point that is not there cannot be made
in it. So the folder where it is missing is shown entry by entry, in a folder of its own.
"""

import os
import posixpath
import stat
from collections.abc import Collection, Iterable
from pathlib import Path

from podstatus.runtime.process.bubblewrap_args import OpenedFolder
from podstatus.runtime.process.mount_table import lies_in
from podstatus.runtime.process.refusals import config_error, not_honoured

OWN = ("/dev", "/proc", "/tmp")  # noqa: S108
"""What every container has for itself."""
HIDDEN = ("/run", "/home", "/root", "/var/tmp")  # noqa: S108
"""What is not for containers: sockets of the machine's services, what people have, leavings."""
_MASKED = ("/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list")
_MAX_LINKS = 40
"""As the kernel has it."""
_MAX_ENTRIES = 1000
"""Each is a mount; /etc has some hundreds."""


def hidden_folders(more: Iterable[str]) -> tuple[str, ...]:
    """The folders that are hidden, of those that are there; none that lies in another one."""
    real = {os.path.realpath(path) for path in (*HIDDEN, *more) if Path(path).is_dir()} - {*OWN}
    return tuple(sorted(path for path in real if not lies_in_any(path, {*OWN, *real} - {path})))


def hidden_files(paths: Iterable[str], hidden: Collection[str]) -> tuple[str, ...]:
    """Those of the paths that are files, and would be seen."""
    return tuple(
        path for path in paths if Path(path).is_file() and not lies_in_any(path, (*OWN, *hidden))
    )


def masked_files() -> tuple[str, ...]:
    """Files of /proc that are not for containers, of those that are there."""
    return tuple(path for path in _MASKED if Path(path).exists())


def lies_in_any(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of the folders, or in one."""
    return any(lies_in(path, folder) for folder in folders)


def find_target(target: str, covered: Collection[str]) -> tuple[str, str | None]:
    """Where a mount point is without links, and the folder in which it is missing, if it is.

    What lies in a covered folder is not the host's. Raises CannotStartError.
    """
    here, steps, links = "/", _steps(target), 0
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
        steps = [*_steps(leads_to), *steps]
    return here, None


def open_folders(missing_in: Iterable[str], hidden: Collection[str]) -> tuple[OpenedFolder, ...]:
    """The root and other folders, with what is to be shown in each. Raises CannotStartError."""
    return tuple(_opened(path, hidden) for path in sorted({"/", *missing_in}))


def _opened(path: str, hidden: Collection[str]) -> OpenedFolder:
    entries, links = [], {}
    with os.scandir(path) as found:
        for entry in found:
            if lies_in_any(entry.path, (*OWN, *hidden)) or not _is_text(entry.name):
                continue
            if entry.is_symlink():
                links[entry.name] = str(Path(entry.path).readlink())
            elif entry.is_dir() or entry.is_file():
                entries.append(entry.name)
    if len(entries) > _MAX_ENTRIES:
        why = f"there is no such path on the host, and {path} is too large; make it there"
        raise not_honoured("volumeMounts.mountPath", path, why)
    return OpenedFolder(path=path, entries=tuple(sorted(entries)), links=links)


def _is_text(name: str) -> bool:
    """Whether it can be handed on; what is no UTF-8 is not shown."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]
