"""Read small files that people and programs replace under us."""

import os
import select
import stat
import time
from pathlib import Path

MAX_FILE_BYTES = 4 * 2**20
"""Kubeconfigs, certificates and tokens are far smaller."""
_PIPE_SECONDS = 5.0
"""How long whoever writes into a pipe may take: `--kubeconfig <(decrypt …)`."""


class UnreadableError(Exception):
    """A file cannot be read; the message says why, in a few words."""


def read_file(path: str | Path, *, pipes: bool = False) -> bytes:
    """The content of a file, or of a pipe if it may be one. Raises UnreadableError.

    FileNotFoundError is the cause if it is not there. Only a pipe is waited for, and not long.
    """
    try:
        # Opening a pipe that nobody writes to would wait for a writer.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise UnreadableError(_reason(error)) from error
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableError("it is a folder")
        if stat.S_ISFIFO(mode) and not pipes:
            raise UnreadableError("it is a pipe, and would have to be read more than once")
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
        if size > MAX_FILE_BYTES:
            raise UnreadableError(f"it is larger than {MAX_FILE_BYTES // 2**20} MiB")
    return b"".join(parts)


def _read_pipe(file: int) -> bytes:
    content = b""
    until = time.monotonic() + _PIPE_SECONDS
    while select.select([file], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(file, 2**16)
        content += part
        if not part or len(content) > MAX_FILE_BYTES:
            return content[:MAX_FILE_BYTES]
    raise UnreadableError(f"nothing came through the pipe for {_PIPE_SECONDS:.0f} s")


def _reason(error: OSError | ValueError) -> str:
    told = error.strerror if isinstance(error, OSError) else None
    return (told or "it has no name that a file can have").lower()
