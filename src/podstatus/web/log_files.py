"""The agent's own logs: the files of one folder, and nothing that a name could lead to besides.

Blocks on the disk: call it in a thread.
"""

import html
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from podstatus.web.refusals import not_found

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting: opening a pipe that nobody writes to would not come back.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def list_logs(folder: Path) -> str:
    """The names of the files, as a page with links, as upstream's file server has it."""
    with _opened(folder) as descriptor:
        there = sorted(os.listdir(descriptor))  # noqa: PTH208 - a descriptor is no path
        names = [name for name in there if _is_file(descriptor, name)]
    links = (f'<a href="{quote(name)}">{html.escape(name)}</a>\n' for name in names)
    return f"<pre>\n{''.join(links)}</pre>\n"


def open_log(folder: Path, name: str) -> tuple[BinaryIO, int]:
    """A file and its size now. Raises Refusal if there is no such file."""
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise _no_log(name)
    with _opened(folder) as descriptor:
        try:
            file = os.open(name, _FILE, dir_fd=descriptor)
        except OSError as error:
            raise _no_log(name) from error
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise _no_log(name)
    return os.fdopen(file, "rb"), found.st_size


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    try:
        descriptor = os.open(folder, _FOLDER)
    except OSError as error:
        raise not_found("404 page not found: the agent keeps no logs here") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_file(folder: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and not name.startswith(".")


def _no_log(name: str) -> Exception:
    return not_found(f"404 page not found: no log {name[:80]!a}; /logs/ has the names")
