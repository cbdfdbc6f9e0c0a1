"""Restart services that talk to the API server after an unexpected error.

Errors of the server are handled where responses are decoded. Any other exception is a bug: it is
logged with its traceback, and the service is restarted. It must not end the process that looks
after the containers: a node without a lease is better than no node.
"""

import logging
from collections.abc import Awaitable, Callable
from random import random

from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
_BACKOFF_RESET_SECONDS = 300.0
"""Reset the back-off after this much uptime."""


async def run_with_restarts(
    name: str,
    run: Callable[[], Awaitable[None]],
    clock: Clock,
    *,
    random: Callable[[], float] = random,
) -> None:
    """Run a service until cancelled or until it returns; restart it with back-off on an error.

    `run` must be restartable: it keeps no state between calls, or state that any number of
    aborted calls leaves valid.
    """
    backoff = Backoff(initial_seconds=1.0, max_seconds=60.0)
    while True:
        began = clock.monotonic()
        try:
            return await run()
        except Exception:
            uptime = (clock.monotonic() - began) / _SECOND
            backoff = backoff.failed_after(uptime, reset_after=_BACKOFF_RESET_SECONDS)
            seconds = backoff.delay(random())
            logger.exception("service failed, restarting it: service=%s wait=%.1fs", name, seconds)
        await clock.wait(seconds)
