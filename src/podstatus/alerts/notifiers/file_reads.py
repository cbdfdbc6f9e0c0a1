"""Files that are read in threads which nobody has to wait for.

They may be on a mount that hangs: that holds up neither the loop, and with it the lease of the
node, nor the end of the process. Of each file one read is under way at most; who asks for it
meanwhile is given the same. For one event loop.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from podstatus.alerts.ports import NotSentError

T = TypeVar("T")
READ_TIMEOUT_SECONDS = 5.0
"""How long a file may take."""
_in_flight: dict[tuple[Callable[[str], Any], str], "Future[Any]"] = {}


async def read_with_timeout(read: Callable[[str], T], path: str) -> T:
    """What `read` makes of a file; of no path at once. Raises NotReachedError, and as it does."""
    if not path:
        return read(path)
    reading: Future[T] | None = _in_flight.get((read, path))
    if reading is None:
        reading = _in_flight[read, path] = Future()
        # It runs: who gives up does not cancel it for the others.
        reading.set_running_or_notify_cancel()
        threading.Thread(
            target=_complete_read, args=(reading, read, path), name="podstatus-secret", daemon=True
        ).start()
    try:
        async with asyncio.timeout(READ_TIMEOUT_SECONDS):
            return await asyncio.wrap_future(reading)
    except TimeoutError:
        raise NotSentError(
            f"cannot read {path}: no answer in {READ_TIMEOUT_SECONDS:g} s; see whether its "
            "disk is there"
        ) from None


def _complete_read(reading: "Future[T]", read: Callable[[str], T], path: str) -> None:
    try:
        found = read(path)
    except BaseException as error:  # noqa: BLE001 - who asked is told
        del _in_flight[read, path]
        reading.set_exception(error)
    else:
        del _in_flight[read, path]
        reading.set_result(found)
