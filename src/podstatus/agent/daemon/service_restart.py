"""Run a service that speaks to the API server, whatever it meets.

What a server can answer is handled where it is decoded. An error that no port names is a mistake
in our code: it is logged as an error with its place, each time, and the service is run again. It
must not take the containers' keeper with it: a node without a lease is better than no node.
"""

import logging
from collections.abc import Awaitable, Callable
from random import random

from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock, Elapsed

logger = logging.getLogger(__name__)

_BACKOFF_RESET_SECONDS = 300.0
"""A service that has run for so long begins with short waits again."""


async def run_with_restarts(
    name: str,
    run: Callable[[], Awaitable[None]],
    clock: Clock,
    *,
    random: Callable[[], float] = random,
) -> None:
    """Run it until cancelled, or until it returns; after an error again, later each time.

    For services whose state is of one try, or right after any number of them.
    """
    backoff, elapsed = Backoff(initial_seconds=1.0, max_seconds=60.0), Elapsed(clock)
    while True:
        began = elapsed.seconds()
        try:
            return await run()
        except Exception:
            if elapsed.seconds() - began > _BACKOFF_RESET_SECONDS:
                backoff = backoff.reset()
            backoff = backoff.failed()
            seconds = backoff.delay(random())
            logger.exception("service failed, runs again: service=%s wait=%.1fs", name, seconds)
        await clock.wait(seconds)
