"""Ways through folders that somebody hostile can write to: step by step, never by a link.

A path is walked by opening each folder in the one before it, and no symbolic link is followed;
so what is found lies where the path says.
"""

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE_MODE = 0o700


class UnsafePathError(Exception):
    """A path leads through something that is no folder, such as a link; the message names it."""


@contextlib.contextmanager
def open_folder(
    base: Path, steps: tuple[str, ...] = (), *, make: int | None = None
) -> Iterator[int]:
    """The folder so many steps below one that can be trusted, opened.

    Missing ones are made with the mode `make`, if that is given. Raises UnsafePathError, OSError.
    """
    here = os.open(base, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
    try:
        walked = base
        for step in steps:
            walked /= step
            below = _open_component(here, step, walked, make)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def file_type_below(base: Path, steps: tuple[str, ...]) -> int | None:
    """What there is (as `stat.S_IFMT`), no link among the steps; None if there is nothing.

    Raises UnsafePathError.
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
    """Make a folder for the agent alone, and those above it that are missing."""
    if not folder.is_dir():
        create_private(folder.parent)
        folder.mkdir(mode=_PRIVATE_MODE, exist_ok=True)


def split_steps(path: str) -> tuple[str, ...]:
    """The steps of a relative path, without those that lead nowhere."""
    return tuple(step for step in path.split("/") if step not in ("", "."))


def remove_tree(path: Path) -> None:
    """Remove a folder and all in it, never following a link. It is no error if it is gone.

    Folders that their owner may not look into are opened up first, as far as they are ours. What
    cannot be removed does not keep the rest. Raises OSError, the first.
    """
    try:
        with open_folder(path.parent) as parent:
            remove_below(parent, path.name)
    except FileNotFoundError:
        return


def remove_below(folder: int, name: str) -> None:
    """Remove something in an open folder, with all in it; as `remove_tree`."""
    failed: list[OSError] = []
    with _collect_errors(failed):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            return
        with _open_writable(folder, name) as top:
            _remove_contents(top, failed)
        os.rmdir(name, dir_fd=folder)
    if failed:
        raise failed[0]


def _remove_contents(top: int, failed: list[OSError]) -> None:
    """Remove all in a folder, however deep it is: the way to the bottom may have no name.

    So what a folder holds of folders is moved up before it is removed, and no more than two are
    open at a time.
    """
    waiting = _remove_files(top, failed)
    while waiting:
        name = waiting.pop()
        with _collect_errors(failed):
            with _open_writable(top, name) as here:
                for inner in _remove_files(here, failed):
                    with _collect_errors(failed):
                        waiting.append(_move_to_top(here, inner, top))
            os.rmdir(name, dir_fd=top)


def _remove_files(folder: int, failed: list[OSError]) -> list[str]:
    """Remove all but folders; the names of those."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            with _collect_errors(failed):
                os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in found if is_folder]


def _move_to_top(folder: int, name: str, top: int) -> str:
    """The new name. To move a folder takes the right to change it."""
    with _open_writable(folder, name):
        new = uuid.uuid4().hex
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
        return new


@contextlib.contextmanager
def _open_writable(folder: int, name: str) -> Iterator[int]:
    """Let us look into a folder and change it; a link is none."""
    found = os.open(name, _PATH_FLAGS | os.O_DIRECTORY, dir_fd=folder)
    try:
        # By the descriptor of the folder itself: by name it could be another one by now.
        itself = Path(f"/proc/self/fd/{found}")
        if os.fstat(found).st_mode & _PRIVATE_MODE != _PRIVATE_MODE:
            with contextlib.suppress(PermissionError):
                itself.chmod(_PRIVATE_MODE)
        opened = os.open(itself, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
    finally:
        os.close(found)
    try:
        yield opened
    finally:
        os.close(opened)


@contextlib.contextmanager
def _collect_errors(failed: list[OSError]) -> Iterator[None]:
    """Go on whatever cannot be done; what is gone already needs nothing done."""
    try:
        yield
    except FileNotFoundError:
        return
    except OSError as error:
        failed.append(error)


def _open_component(here: int, step: str, walked: Path, make: int | None) -> int:
    if step == ".." or "/" in step:
        raise UnsafePathError(f"{walked} leads out of its folder")
    if make is not None:
        try:
            os.mkdir(step, dir_fd=here)
        except FileExistsError:
            pass
        else:
            made = os.open(step, _FOLDER_FLAGS, dir_fd=here)
            os.fchmod(made, make)  # whatever the umask is
            return made
    try:
        return os.open(step, _FOLDER_FLAGS, dir_fd=here)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise UnsafePathError(f"{walked} is no folder, or a symbolic link") from error
        raise
