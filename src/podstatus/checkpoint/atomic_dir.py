"""A directory of checkpoints: files that are replaced atomically, with the errors of this package.

Upstream replaces files in the same way (writeFile, util/store/filestore.go v1.36.4), but does not
sync the directory.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podstatus.base.atomic_file import remove_temporary_files, replace_file, sync_directory
from podstatus.checkpoint.errors import CheckpointWriteError, UnreadableCheckpointError


class AtomicDirectory:
    """A directory of small files, created with mode 0700 by the first write."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def path(self, name: str) -> Path:
        return self._path / name

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if it does not exist.

        Raises UnreadableCheckpointError.
        """
        path = self.path(name)
        try:
            # O_NONBLOCK: opening a named pipe would block until a writer opens it.
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
            raise UnreadableCheckpointError(path, "its directory is a file") from error
        except OSError as error:
            raise UnreadableCheckpointError(path, _error_text(error)) from error
        raise UnreadableCheckpointError(path, "it is a directory, a pipe or a device")

    def write(self, name: str, text: bytes) -> None:
        """Replace the content of a file; synced on return. Raises CheckpointWriteError."""
        with self._sync_directory(name):
            _make_directory(self._path)
            replace_file(self.path(name), text)

    def list_names(self, suffix: str) -> list[str]:
        """Return the sorted names with this suffix; empty if the directory does not exist.

        Raises UnreadableCheckpointError.
        """
        try:
            with os.scandir(self._path) as entries:
                names = [entry.name for entry in entries]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UnreadableCheckpointError(self._path, _error_text(error)) from error
        return sorted(name for name in names if name.endswith(suffix) and name[0] != ".")

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file; synced on return. Raises CheckpointWriteError."""
        with self._sync_directory(name):
            self.path(name).rename(self.path(new_name))

    def remove(self, name: str) -> None:
        """Remove a file if it exists; synced on return. Raises CheckpointWriteError."""
        # Sync even if the file is gone: an earlier removal may not be on disk yet.
        if self._path.is_dir():
            with self._sync_directory(name):
                self.path(name).unlink(missing_ok=True)

    @contextmanager
    def _sync_directory(self, name: str) -> Iterator[None]:
        """Sync the directory after the change made in the `with` block."""
        changed = False
        try:
            yield
            changed = True
            sync_directory(self._path)
        except OSError as error:
            raise CheckpointWriteError(
                self.path(name), _error_text(error), replaced=changed
            ) from error

    def is_writable(self) -> bool:
        """Return whether the permissions allow writing."""
        existing = next(path for path in (self._path, *self._path.parents) if path.exists())
        return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)

    def remove_temporary_files(self, name: str) -> None:
        """Remove temporary files of killed writers; files being written are locked and stay.

        `name` is the name of the target file, `*` for all files.
        """
        remove_temporary_files(self._path, name)


def _make_directory(path: Path) -> None:
    """Create a directory and its parents, and sync each of them."""
    if path.is_dir():
        return
    _make_directory(path.parent)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    sync_directory(path.parent)


def _error_text(error: OSError) -> str:
    return error.strerror or str(error)
