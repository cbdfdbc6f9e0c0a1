"""Paths of the host, opened for bubblewrap to mount: those that the agent has checked, or none.

Between the agent's check and the mount another pod may swap a folder for a link, so each is opened
step by step, no link is followed, and what is there must be the same file. Bubblewrap is handed
the open file.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .start import StartFailedError

_PATH_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_host_paths(host_paths: Sequence[Mapping[str, Any]]) -> list[int]:
    """Open each of `records.HostPathArgument`. Raises CannotStartError."""
    opened: list[int] = []
    try:
        for path in host_paths:
            # One by one: those before one that fails are closed.
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
        why = (error.strerror or str(error)).lower()
        raise StartFailedError(f'hostPath "{path}": {why}') from error
    found = os.fstat(file)
    if (found.st_dev, found.st_ino) != (device, inode):
        os.close(file)
        raise StartFailedError(f'hostPath "{path}": it was replaced while the container started')
    return file


def _walk(path: str) -> int:
    """A link is opened as such, and then is no folder to go on from, nor the same file."""
    here = os.open("/", _PATH_FLAGS | os.O_DIRECTORY)
    for step in filter(None, path.split("/")):
        try:
            below = os.open(step, _PATH_FLAGS, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here
