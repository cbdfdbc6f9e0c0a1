"""The parallel sync in an event loop, and ports that misbehave."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from podstatus.kube.objects.pod import PodUID
from podstatus.testing.builders import ended, make_status
from tests.support.status_fleet import MemoryOutbox

NOT_IN_VIRTUAL_TIME = 120.0
"""Seconds."""


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in a new event loop."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), NOT_IN_VIRTUAL_TIME))

    return run


SUCCEEDED = make_status("Succeeded", ended("app"), Ready="False")


class HangingOutbox(MemoryOutbox):
    """Blocks on disk when it removes an entry."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = threading.Event()

    def drop(self, uid: PodUID) -> None:
        self.disk.wait(10)
        super().drop(uid)
