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

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANYTHING = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class UnsafePathError(Exception):
    """A path leads through something that is no folder, such as a link; the message names it."""


@contextlib.contextmanager
def open_folder(
    base: Path, steps: tuple[str, ...] = (), *, make: int | None = None
) -> Iterator[int]:
    """The folder so many steps below one that can be trusted, opened.

    Missing ones are made with the mode `make`, if that is given. Raises UnsafePathError, OSError.
    """
    here = os.open(base, _FOLDER & ~os.O_NOFOLLOW)
    try:
        walked = base
        for step in steps:
            walked /= step
            below = _step(here, step, walked, make)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def kind_below(base: Path, steps: tuple[str, ...]) -> int | None:
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


def make_private(folder: Path) -> None:
    """Make a folder for the agent alone, and those above it that are missing."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def split_steps(path: str) -> tuple[str, ...]:
    """The steps of a relative path, without those that lead nowhere."""
    return tuple(step for step in path.split("/") if step not in ("", "."))


def remove_tree(path: Path) -> None:
    """Remove a folder and all in it, never following a link. It is no error if it is gone.

    Folders that their owner may not look into are opened up first, as far as they are ours.
    """
    try:
        with open_folder(path.parent) as parent:
            remove_below(parent, path.name)
    except FileNotFoundError:
        return


def remove_below(folder: int, name: str) -> None:
    """Remove something in an open folder, with all in it. It is no error if it is gone.

    However deep somebody made it: a folder is moved up before it is looked into, so that neither
    the stack nor the number of open files grows.
    """
    opened = _open_for_removal(folder, name)
    if opened is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        return
    try:
        waiting = _take_out(opened, opened)
        while waiting:
            waiting += _remove_flat(opened, waiting.pop())
    finally:
        os.close(opened)
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=folder)


def _remove_flat(top: int, name: str) -> list[str]:
    """Remove something in the topmost folder; the folders in it, which are beside it now."""
    opened = _open_for_removal(top, name)
    if opened is None:
        os.unlink(name, dir_fd=top)
        return []
    try:
        moved = _take_out(opened, top)
    finally:
        os.close(opened)
    os.rmdir(name, dir_fd=top)
    return moved


def _take_out(opened: int, top: int) -> list[str]:
    """Unlink what is no folder, and move the folders to the top; their names there."""
    with os.scandir(opened) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    moved = []
    for name, is_folder in entries:
        if not is_folder:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=opened)
        elif opened == top:
            moved.append(name)
        else:
            _open_up(opened, name)
            moved.append(uuid.uuid4().hex)
            os.rename(name, moved[-1], src_dir_fd=opened, dst_dir_fd=top)
    return moved


def _open_for_removal(folder: int, name: str) -> int | None:
    """A folder, opened; None if it is something else, or gone."""
    _open_up(folder, name)
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
            return None
        raise


def _open_up(folder: int, name: str) -> None:
    """Let us look into a folder, and move it, if it is ours and locked; a link is passed over."""
    with contextlib.suppress(OSError):
        # By the descriptor of the path itself: chmod by name would follow a link.
        opened = os.open(name, _ANYTHING, dir_fd=folder)
        try:
            mode = os.fstat(opened).st_mode
            if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
                Path(f"/proc/self/fd/{opened}").chmod(0o700)
        finally:
            os.close(opened)


def _step(here: int, step: str, walked: Path, make: int | None) -> int:
    if step == ".." or "/" in step:
        raise UnsafePathError(f"{walked} leads out of its folder")
    if make is not None:
        try:
            os.mkdir(step, dir_fd=here)
        except FileExistsError:
            pass
        else:
            made = os.open(step, _FOLDER, dir_fd=here)
            os.fchmod(made, make)  # whatever the umask is
            return made
    try:
        return os.open(step, _FOLDER, dir_fd=here)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise UnsafePathError(f"{walked} is no folder, or a symbolic link") from error
        raise
