"""Read files in daemon threads, so that a hung mount does not block the caller.

A mount that hangs delays neither the event loop, and with it the node lease, nor process exit. At
most one read per file is in flight; concurrent callers share it. For one event loop.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from podstatus.alerts.ports import NotSentError
from podstatus.base.daemon_thread import SharedCalls

T = TypeVar("T")
READ_TIMEOUT_SECONDS = 5.0
"""How long a caller waits for a file."""
_reads = SharedCalls()


async def read_with_timeout(read: Callable[[str], T], path: str) -> T:
    """Return `read(path)`, directly if the path is empty. Raises NotSentError, and what `read`
    raises.
    """
    if not path:
        return read(path)
    try:
        async with asyncio.timeout(READ_TIMEOUT_SECONDS):
            return await _reads.call(read, path)
    except TimeoutError:
        raise NotSentError(
            f"cannot read {path}: no answer in {READ_TIMEOUT_SECONDS:g} s; check whether its "
            "disk responds"
        ) from None
