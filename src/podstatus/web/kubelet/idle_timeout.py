"""Detect connections that are idle for too long, or closed by the client."""

import asyncio

from podstatus.base.clock import Clock
from podstatus.base.net.sockets import enable_keepalive, is_connected

_POLL_SECONDS = 5.0


class IdleTimeout:
    """`wait_idle` returns when the connection is idle for too long, or closed."""

    def __init__(
        self, transport: asyncio.BaseTransport | None, seconds: float, clock: Clock
    ) -> None:
        """`seconds` is the maximum idle time; 0: no limit."""
        self._transport = transport
        self.seconds = seconds
        self._clock = clock
        self._last_activity = clock.monotonic()
        enable_keepalive(transport)

    def touch(self) -> None:
        """Restart the idle time: data was sent or received."""
        self._last_activity = self._clock.monotonic()

    async def wait_idle(self) -> str:
        """Wait until the connection is idle for too long or closed, and return which."""
        while True:
            idle = (self._clock.monotonic() - self._last_activity) / 1e9
            if self.seconds and idle >= self.seconds:
                return f"idle for {self.seconds:g} s"
            if not is_connected(self._transport):
                return "client disconnected"
            left = self.seconds - idle if self.seconds else _POLL_SECONDS
            await self._clock.wait(min(left, _POLL_SECONDS))
