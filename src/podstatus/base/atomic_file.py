"""Files that are replaced atomically: after a crash, a file has its old or its new content.

The new content is written to a temporary file in the same directory, synced, and renamed.
"""

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TEMPORARY_SUFFIX = ".podstatus"
"""Distinguishes our temporary files from a kubelet's, which may share the directory."""


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file, mode 0600, its content synced to disk. Raises OSError: nothing is changed.

    Call `sync_directory` afterwards if it must survive a power failure.
    """
    with _temporary_file(path) as (file, temporary):
        with os.fdopen(file, "wb", closefd=False) as writer:
            writer.write(content)
        os.fsync(file)
        temporary.replace(path)


def sync_directory(path: Path) -> None:
    """Sync the names in a directory to disk. Raises OSError."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def remove_temporary_files(directory: Path, name: str) -> None:
    """Remove temporary files of killed writers; files being written are locked and stay.

    `name` is the name of the target file, `*` for all files.
    """
    with suppress(OSError):
        for path in list(directory.glob(f".{name}.*{_TEMPORARY_SUFFIX}")):
            with suppress(OSError):
                _remove_if_unlocked(path)


@contextmanager
def _temporary_file(path: Path) -> Iterator[tuple[int, Path]]:
    """Create and lock a temporary file; removed on exit unless renamed."""
    claimed = False
    while not claimed:
        file, temporary = tempfile.mkstemp(_TEMPORARY_SUFFIX, f".{path.name}.", path.parent)
        try:
            # A concurrent cleanup may have removed the file before it was locked.
            claimed = _try_lock(file) and os.fstat(file).st_nlink > 0
            if claimed:
                yield file, Path(temporary)
        finally:
            with suppress(OSError):
                Path(temporary).unlink()
            os.close(file)


def _remove_if_unlocked(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if _try_lock(file):
            path.unlink()
    finally:
        os.close(file)


def _try_lock(file: int) -> bool:
    """Lock a file until it is closed or its process dies; return False if it is locked already.

    Some network file systems have no locks. Only the cleanup needs them, so the file then counts as
    locked.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
            raise
    return True
