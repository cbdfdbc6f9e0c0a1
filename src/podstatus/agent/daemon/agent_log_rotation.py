"""Rotate a log file that another process writes, like logrotate's `copytruncate`.

The writer has the file open with O_APPEND, so truncation frees the space at once and the writer
continues at the new end. Lines written between copy and truncation are lost.
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
    """Rotate the log whenever it exceeds `max_bytes`, until cancelled."""
    while True:
        await clock.wait(_CHECK_SECONDS)
        await asyncio.to_thread(rotate_log, path, max_bytes)


def rotate_log(path: Path, max_bytes: int) -> bool:
    """Move the last `max_bytes` of an oversized log to `….1`; return True if it was rotated.

    If the copy fails, for example on a full disk, the log is truncated without it.
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
            logger.warning(
                "cannot copy the log before truncating it: path=%s error=%s", path, error
            )
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
    return True


def _copy(descriptor: int, offset: int, target: Path) -> None:
    """Copy everything from `offset` on. Raises OSError; `target` is unchanged then."""
    temporary = target.with_name(f"{target.name}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as copy:
            while chunk := os.pread(descriptor, _CHUNK_BYTES, offset):
                copy.write(chunk)
                offset += len(chunk)
        temporary.replace(target)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
