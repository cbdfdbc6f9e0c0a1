"""Keep a log short that another process writes.

The process has it open with O_APPEND, so what is cut off is free at once, and it goes on at the new
end. Lines that it writes between copy and truncation are lost, as with logrotate's `copytruncate`.
"""

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path

from podstatus.base.clock import Clock

logger = logging.getLogger(__name__)

MAX_LOG_BYTES = 10 * 2**20
_CHECK_SECONDS = 5.0
_CHUNK_BYTES = 2**16


async def run_log_rotation(path: Path, clock: Clock, max_bytes: int = MAX_LOG_BYTES) -> None:
    """Rotate a log whenever it has become too long; until cancelled."""
    while True:
        await clock.wait(_CHECK_SECONDS)
        await asyncio.to_thread(rotate_log, path, max_bytes)


def rotate_log(path: Path, max_bytes: int) -> bool:
    """Put the last part of a log aside as `….1` if it is too long; whether it was.

    On a full disk nothing is put aside, and the log is cut off all the same.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        size = os.fstat(descriptor).st_size
        if size <= max_bytes:
            return False
        try:
            _copy(descriptor, size - max_bytes, path.with_name(f"{path.name}.1"))
        except OSError as error:
            logger.warning("log cut off without a copy: path=%s error=%s", path, error)
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
    return True


def _copy(descriptor: int, offset: int, target: Path) -> None:
    """Copy all from an offset on. Raises OSError, and leaves the target as it was then."""
    temporary = target.with_name(f"{target.name}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as copied:
            while chunk := os.pread(descriptor, _CHUNK_BYTES, offset):
                copied.write(chunk)
                offset += len(chunk)
        temporary.replace(target)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
