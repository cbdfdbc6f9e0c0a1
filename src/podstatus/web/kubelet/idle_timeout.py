"""Notice that nothing happens on a connection any more, or that nobody is there."""

import asyncio

from podstatus.base.clock import Clock, Elapsed
from podstatus.base.net.sockets import enable_keepalive, is_connected

_POLL_SECONDS = 5.0


class IdleTimeout:
    """Comes back from `watch` when a connection has been idle for too long, or has gone."""

    def __init__(
        self, transport: asyncio.BaseTransport | None, seconds: float, clock: Clock
    ) -> None:
        """`seconds`: how long it may be idle; 0: for ever."""
        self._transport = transport
        self.seconds = seconds
        self._clock = clock
        self._elapsed = Elapsed(clock)
        self._last_activity = 0.0
        enable_keepalive(transport)

    def touch(self) -> None:
        """Something happened."""
        self._last_activity = self._elapsed.seconds()

    async def wait_idle(self) -> str:
        """Wait for the end; why it is one."""
        while True:
            idle = self._elapsed.seconds() - self._last_activity
            if self.seconds and idle >= self.seconds:
                return f"nothing happened for {self.seconds:g} s"
            if not is_connected(self._transport):
                return "the client has gone"
            left = self.seconds - idle if self.seconds else _POLL_SECONDS
            await self._clock.wait(min(left, _POLL_SECONDS))
