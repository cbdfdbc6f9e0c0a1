"""Connections that cost little: not too many, and none that is opened and then not used."""

import asyncio
import logging
from typing import Any

from aiohttp import web

logger = logging.getLogger(__name__)

MOST_CONNECTIONS = 400
"""A process may have 1024 files open unless told otherwise, and the agent needs some itself."""
FIRST_SECONDS = 30.0
"""Until a client has asked something; later on, aiohttp looks after that."""


class BoundedServer(web.Server):
    """A server that lets go of clients that only connect."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._silent: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Take one more, or hang up at once."""
        super().connection_made(handler, transport)
        if len(self.connections) > MOST_CONNECTIONS:
            logger.warning("connection refused, there are too many: most=%d", MOST_CONNECTIONS)
            transport.abort()
            return
        loop = asyncio.get_running_loop()
        self._silent[handler] = loop.call_later(FIRST_SECONDS, transport.abort)

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        """Forget one."""
        self.has_asked(handler)
        super().connection_lost(handler, exc)

    def has_asked(self, handler: web.RequestHandler) -> None:
        """Told that a client has asked something."""
        timer = self._silent.pop(handler, None)
        if timer is not None:
            timer.cancel()
