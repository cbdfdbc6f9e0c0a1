"""Access to paths below folders that a hostile process can write to.

Each folder is opened relative to its parent, and no symbolic link is followed; the result is
guaranteed to lie where the path says.
"""

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE_MODE = 0o700


class UnsafePathError(Exception):
    """A component of the path is not a folder (a link, say); the message names it."""


@contextlib.contextmanager
def open_descriptor(
    path: Path | str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None
) -> Iterator[int]:
    """Provide an open file descriptor; see os.open. Raises OSError."""
    descriptor = os.open(path, flags, mode, dir_fd=dir_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_folder(
    base: Path, steps: tuple[str, ...] = (), *, make: int | None = None
) -> Iterator[int]:
    """Open the folder at `steps` below a trusted base.

    Missing folders are created with mode `make`, unless that is None. Raises UnsafePathError,
    OSError.
    """
    folder = os.open(base, FOLDER_FLAGS & ~os.O_NOFOLLOW)
    try:
        walked = base
        for name in steps:
            walked /= name
            child = _open_component(folder, name, walked, make)
            os.close(folder)
            folder = child
        yield folder
    finally:
        os.close(folder)


def file_type_below(base: Path, steps: tuple[str, ...]) -> int | None:
    """Return the type of a file (`stat.S_IFMT`); None if it does not exist.

    Raises UnsafePathError if a component is a link.
    """
    try:
        with open_folder(base, steps[:-1]) as folder:
            mode = os.stat(steps[-1], dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(mode):
        raise UnsafePathError(f"{base.joinpath(*steps)} is a symbolic link")
    return stat.S_IFMT(mode)


def create_private(folder: Path) -> None:
    """Create a folder and its missing parents, accessible only to the agent."""
    if not folder.is_dir():
        create_private(folder.parent)
        folder.mkdir(mode=_PRIVATE_MODE, exist_ok=True)


def remove_tree(path: Path) -> None:
    """Remove a folder recursively without following links; no error if it does not exist.

    Folders without permissions for their owner are made accessible first, where possible. After an
    error the removal continues with the rest. Raises the first OSError.
    """
    try:
        with open_folder(path.parent) as parent:
            remove_below(parent, path.name)
    except FileNotFoundError:
        return


def remove_below(folder: int, name: str) -> None:
    """Remove an entry of an open folder recursively; otherwise as `remove_tree`."""
    errors: list[OSError] = []
    with _collect_errors(errors):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            return
        with _open_writable(folder, name) as top:
            _remove_contents(top, errors)
        os.rmdir(name, dir_fd=folder)
    if errors:
        raise errors[0]


def _remove_contents(top: int, errors: list[OSError]) -> None:
    """Remove all entries of a folder, however deep: paths to the bottom may exceed PATH_MAX.

    Subfolders are therefore moved to the top before their parent is removed, and no more than two
    folders are open at a time.
    """
    queue = _remove_files(top, errors)
    while queue:
        name = queue.pop()
        with _collect_errors(errors):
            with _open_writable(top, name) as folder:
                for inner in _remove_files(folder, errors):
                    with _collect_errors(errors):
                        queue.append(_move_to_top(folder, inner, top))
            os.rmdir(name, dir_fd=top)


def _remove_files(folder: int, errors: list[OSError]) -> list[str]:
    """Remove all entries but folders; return the names of the folders."""
    with os.scandir(folder) as entries:
        listing = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listing:
        if not is_folder:
            with _collect_errors(errors):
                os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in listing if is_folder]


def _move_to_top(folder: int, name: str, top: int) -> str:
    """Move a folder to the top; return its new name. Moving requires write access to it."""
    with _open_writable(folder, name):
        new = uuid.uuid4().hex
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
        return new


@contextlib.contextmanager
def _open_writable(folder: int, name: str) -> Iterator[int]:
    """Open a folder, made accessible if necessary; never follows a link."""
    with open_descriptor(name, _PATH_FLAGS | os.O_DIRECTORY, dir_fd=folder) as path_fd:
        # Through the descriptor: by name it could be another folder by now.
        path = Path(f"/proc/self/fd/{path_fd}")
        if os.fstat(path_fd).st_mode & _PRIVATE_MODE != _PRIVATE_MODE:
            with contextlib.suppress(PermissionError):
                path.chmod(_PRIVATE_MODE)
        opened = os.open(path, FOLDER_FLAGS & ~os.O_NOFOLLOW)
    try:
        yield opened
    finally:
        os.close(opened)


@contextlib.contextmanager
def _collect_errors(errors: list[OSError]) -> Iterator[None]:
    """Collect errors and continue; a missing file is no error."""
    try:
        yield
    except FileNotFoundError:
        return
    except OSError as error:
        errors.append(error)


def _open_component(folder: int, name: str, walked: Path, make: int | None) -> int:
    if name == ".." or "/" in name:
        raise UnsafePathError(f"{walked} leads out of its folder")
    if make is not None:
        try:
            os.mkdir(name, dir_fd=folder)
        except FileExistsError:
            pass
        else:
            created = os.open(name, FOLDER_FLAGS, dir_fd=folder)
            os.fchmod(created, make)  # regardless of the umask
            return created
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise UnsafePathError(f"{walked} is not a folder, or is a symbolic link") from error
        raise
