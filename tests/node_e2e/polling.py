"""Waits for a condition."""

import time
from collections.abc import Callable

from podstatus.testing.servers.etcd import StartError

_POLL_SECONDS = 0.1


def until(is_so: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait until a condition holds. Raises StartError after `seconds`, naming it as `what`."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise StartError(f"not so after {seconds:.0f} s: {what}")
        time.sleep(_POLL_SECONDS)
