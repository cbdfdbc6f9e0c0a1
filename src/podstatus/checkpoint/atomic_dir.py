"""Files that are replaced as a whole: after a crash there is the old one or the new one.

A new text goes to a temporary file beside the old one, onto the disk, and then takes its
name. Upstream does the same (writeFile, util/store/filestore.go v1.36.4), but does not wait
for the folder to be on the disk too.
"""

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podstatus.checkpoint.errors import CheckpointWriteError, UnreadableCheckpointError

_TEMPORARY_SUFFIX = ".podstatus"
"""Tells our temporary files from those of a kubelet, whose folder it may be."""


class AtomicDirectory:
    """A folder with small files. It is made, for its owner alone, when the first is written."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def path(self, name: str) -> Path:
        """Where the file of this name is."""
        return self._path / name

    def read(self, name: str) -> bytes | None:
        """The text of a file, None if there is none. Raises UnreadableCheckpointError."""
        path = self.path(name)
        try:
            # A pipe would keep us waiting for somebody to write into it.
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if stat.S_ISREG(os.fstat(file).st_mode):
                    with os.fdopen(file, "rb", closefd=False) as reader:
                        return reader.read()
            finally:
                os.close(file)
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise UnreadableCheckpointError(path, "its folder is a file") from error
        except OSError as error:
            raise UnreadableCheckpointError(path, _error_text(error)) from error
        raise UnreadableCheckpointError(path, "it is a folder, a pipe or a device")

    def write(self, name: str, text: bytes) -> None:
        """Make this the text of a file, for good. Raises CheckpointWriteError."""
        path = self.path(name)
        replaced = False
        try:
            _make_directory(self._path)
            with (
                _open_directory(self._path) as folder,
                self._temporary_file(name) as (file, temporary),
            ):
                with os.fdopen(file, "wb", closefd=False) as writer:
                    writer.write(text)
                os.fsync(file)
                temporary.rename(path)
                replaced = True
                os.fsync(folder)
        except OSError as error:
            raise CheckpointWriteError(path, _error_text(error), replaced=replaced) from error

    def list_names(self, suffix: str) -> list[str]:
        """The files with this ending, sorted; none if there is no folder.

        Raises UnreadableCheckpointError.
        """
        try:
            with os.scandir(self._path) as entries:
                found = [entry.name for entry in entries]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UnreadableCheckpointError(self._path, _error_text(error)) from error
        return sorted(name for name in found if name.endswith(suffix) and name[0] != ".")

    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name, for good. Raises CheckpointWriteError."""
        with self._sync_directory(name):
            self.path(name).rename(self.path(new_name))

    def remove(self, name: str) -> None:
        """Remove a file, for good, if there is one. Raises CheckpointWriteError."""
        # Also if it is gone already: the removal may not be on the disk yet.
        if self._path.is_dir():
            with self._sync_directory(name):
                self.path(name).unlink(missing_ok=True)

    @contextmanager
    def _sync_directory(self, name: str) -> Iterator[None]:
        """Let a change of the folder reach the disk."""
        changed = False
        try:
            with _open_directory(self._path) as folder:
                yield
                changed = True
                os.fsync(folder)
        except OSError as error:
            raise CheckpointWriteError(
                self.path(name), _error_text(error), replaced=changed
            ) from error

    @contextmanager
    def _temporary_file(self, name: str) -> Iterator[tuple[int, Path]]:
        """A new file that is ours while it is locked, and gone afterwards unless renamed."""
        claimed = False
        while not claimed:
            file, temporary = tempfile.mkstemp(_TEMPORARY_SUFFIX, f".{name}.", self._path)
            try:
                # Whoever cleans up may have taken it for a leftover before it was locked.
                claimed = _try_lock(file) and os.fstat(file).st_nlink > 0
                if claimed:
                    yield file, Path(temporary)
            finally:
                with suppress(OSError):
                    Path(temporary).unlink()
                os.close(file)

    def is_writable(self) -> bool:
        """Whether a write has a chance, as far as permissions tell."""
        existing = next(path for path in (self._path, *self._path.parents) if path.exists())
        return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)

    def remove_temporary_files(self, name: str) -> None:
        """Remove what killed writers left behind; what is being written now is locked.

        With `*` for a name that of all files.
        """
        with suppress(OSError):
            for path in list(self._path.glob(f".{name}.*{_TEMPORARY_SUFFIX}")):
                with suppress(OSError):
                    _remove_if_unlocked(path)


def _remove_if_unlocked(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if _try_lock(file):
            path.unlink()
    finally:
        os.close(file)


def _try_lock(file: int) -> bool:
    """Lock a file until it is closed, or its process dies; whether nobody else has.

    Some file systems of clusters have no locks. They only serve cleaning up, so we go on.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
            raise
    return True


def _make_directory(path: Path) -> None:
    """Make a folder, and those above it, and see them onto the disk."""
    if path.is_dir():
        return
    _make_directory(path.parent)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    with _open_directory(path.parent) as above:
        os.fsync(above)


@contextmanager
def _open_directory(path: Path) -> Iterator[int]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)


def _error_text(error: OSError) -> str:
    return error.strerror or str(error)
