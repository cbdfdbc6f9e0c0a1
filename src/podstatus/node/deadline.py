"""API calls with a timeout, so that a dead connection cannot block a heartbeat."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from podstatus.base.clock import Clock
from podstatus.base.timeouts import run_with_timeout
from podstatus.kube.api_errors import UnavailableError

T = TypeVar("T")


async def call_with_timeout(clock: Clock, seconds: float, call: Coroutine[Any, Any, T]) -> T:
    """The result of the call. Raises UnavailableError if it takes longer than `seconds`."""
    try:
        return await run_with_timeout(seconds, clock, call)
    except TimeoutError as error:
        raise UnavailableError(
            f"no response from the API server within {seconds:g} s; will retry"
        ) from error
