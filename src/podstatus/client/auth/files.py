"""Read small files that may be replaced at any time."""

import os
import select
import stat
import time
from pathlib import Path

MAX_FILE_BYTES = 4 * 2**20
"""Kubeconfigs, certificates and tokens are far smaller."""
_PIPE_SECONDS = 5.0
"""Timeout of a read from a pipe, as in `--kubeconfig <(decrypt …)`."""


class UnreadableError(Exception):
    """A file cannot be read; the message is the reason, in a few words."""


def read_file(path: str | Path, *, pipes: bool = False) -> bytes:
    """Return the content of a file, or with `pipes` also of a pipe. Raises UnreadableError.

    The error's cause is FileNotFoundError if the file does not exist. Only a pipe is waited for,
    for at most 5 s in all.
    """
    try:
        # Without O_NONBLOCK, opening a pipe without a writer would block.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise UnreadableError(_reason(error)) from error
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableError("it is a directory")
        if stat.S_ISFIFO(mode) and not pipes:
            raise UnreadableError("it is a pipe, which cannot be read repeatedly")
        return _read_pipe(file) if stat.S_ISFIFO(mode) else _read(file)
    except OSError as error:
        raise UnreadableError(_reason(error)) from error
    finally:
        os.close(file)


def _read(file: int) -> bytes:
    parts, size = [], 0
    while part := os.read(file, 2**20):
        parts.append(part)
        size += len(part)
        _check_size(size)
    return b"".join(parts)


def _read_pipe(file: int) -> bytes:
    content = b""
    until = time.monotonic() + _PIPE_SECONDS
    while select.select([file], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(file, 2**16)
        if not part:
            return content
        content += part
        _check_size(len(content))
    problem = "was not closed within" if content else "had no data for"
    raise UnreadableError(f"the pipe {problem} {_PIPE_SECONDS:.0f} s")


def _check_size(size: int) -> None:
    if size > MAX_FILE_BYTES:
        raise UnreadableError(f"it is larger than {MAX_FILE_BYTES // 2**20} MiB")


def _reason(error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or "its name is not a valid file name").lower()
