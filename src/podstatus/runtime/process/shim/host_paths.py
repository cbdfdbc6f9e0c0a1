"""Opens host paths for bubblewrap to mount, only if they are the ones the agent has checked.

Between the agent's check and the mount, another pod may replace a folder by a symbolic link. Each
path is therefore opened component by component without following links, and the result must be the
same inode. Bubblewrap receives the open descriptor.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .start import StartFailedError

_PATH_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_host_paths(host_paths: Sequence[Mapping[str, Any]]) -> list[int]:
    """Open each `records.HostPathArgument`. Raises StartFailedError."""
    opened: list[int] = []
    try:
        for path in host_paths:
            # In a loop: on an error, those opened before are closed.
            opened.append(_open_verified(path["path"], path["device"], path["inode"]))  # noqa: PERF401
    except BaseException:
        for file in opened:
            os.close(file)
        raise
    return opened


def _open_verified(path: str, device: int, inode: int) -> int:
    try:
        file = _walk(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartFailedError(f'hostPath "{path}": {reason}') from error
    status = os.fstat(file)
    if (status.st_dev, status.st_ino) != (device, inode):
        os.close(file)
        raise StartFailedError(f'hostPath "{path}": replaced while the container started')
    return file


def _walk(path: str) -> int:
    """Open a path without following links; a link itself is not the checked inode."""
    folder = os.open("/", _PATH_FLAGS | os.O_DIRECTORY)
    for name in filter(None, path.split("/")):
        try:
            child = os.open(name, _PATH_FLAGS, dir_fd=folder)
        finally:
            os.close(folder)
        folder = child
    return folder
