"""Read files in daemon threads, so that a hung mount does not block the caller.

A mount that hangs delays neither the event loop, and with it the node lease, nor process exit. At
most one read per file is in flight; concurrent callers share it. For one event loop.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from podstatus.alerts.ports import NotSentError

T = TypeVar("T")
READ_TIMEOUT_SECONDS = 5.0
"""How long a caller waits for a file."""
_in_flight: dict[tuple[Callable[[str], Any], str], "Future[Any]"] = {}


async def read_with_timeout(read: Callable[[str], T], path: str) -> T:
    """Return `read(path)`, directly if the path is empty. Raises NotSentError, and what `read`
    raises.
    """
    if not path:
        return read(path)
    reading: Future[T] | None = _in_flight.get((read, path))
    if reading is None:
        reading = _in_flight[read, path] = Future()
        # Mark it as running: a caller that gives up does not cancel it for the others.
        reading.set_running_or_notify_cancel()
        threading.Thread(
            target=_complete_read, args=(reading, read, path), name="podstatus-secret", daemon=True
        ).start()
    try:
        async with asyncio.timeout(READ_TIMEOUT_SECONDS):
            return await asyncio.wrap_future(reading)
    except TimeoutError:
        raise NotSentError(
            f"cannot read {path}: no answer in {READ_TIMEOUT_SECONDS:g} s; check whether its "
            "disk responds"
        ) from None


def _complete_read(reading: "Future[T]", read: Callable[[str], T], path: str) -> None:
    try:
        content = read(path)
    except BaseException as error:  # noqa: BLE001 - passed on to the callers
        del _in_flight[read, path]
        reading.set_exception(error)
    else:
        del _in_flight[read, path]
        reading.set_result(content)
