"""Notice that nothing happens on a connection any more, or that nobody is there.

A client that has gone is not heard of while nobody reads from its connection, and nobody does
while a process does not take its input. So the state of the connection is looked at, too.
"""

import asyncio
import socket

from podstatus.base.clock import Clock, Elapsed

_LOOK_SECONDS = 5.0
_ESTABLISHED = 1
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))
"""A machine that has vanished is noticed after a minute and a half."""


class IdleWatch:
    """Comes back from `watch` when a connection has been idle for too long, or has gone."""

    def __init__(
        self, transport: asyncio.BaseTransport | None, seconds: float, clock: Clock
    ) -> None:
        """`seconds`: how long it may be idle; 0: for ever."""
        self._transport = transport
        self.seconds = seconds
        self._clock = clock
        self._elapsed = Elapsed(clock)
        self._last = 0.0
        _keep_alive(transport)

    def touch(self) -> None:
        """Something happened."""
        self._last = self._elapsed.seconds()

    async def watch(self) -> str:
        """Wait for the end; why it is one."""
        while True:
            idle = self._elapsed.seconds() - self._last
            if self.seconds and idle >= self.seconds:
                return f"nothing happened for {self.seconds:g} s"
            if not _is_connected(self._transport):
                return "the client has gone"
            left = self.seconds - idle if self.seconds else _LOOK_SECONDS
            await self._clock.wait(min(left, _LOOK_SECONDS))


def _socket(transport: asyncio.BaseTransport | None) -> socket.socket | None:
    found: socket.socket | None = None if transport is None else transport.get_extra_info("socket")
    return found


def _is_connected(transport: asyncio.BaseTransport | None) -> bool:
    if transport is None or transport.is_closing():
        return False
    found = _socket(transport)
    option = getattr(socket, "TCP_INFO", None)
    if found is None or option is None:
        return True
    try:
        return found.getsockopt(socket.IPPROTO_TCP, option, 1)[0] == _ESTABLISHED
    except OSError:
        return False


def _keep_alive(transport: asyncio.BaseTransport | None) -> None:
    found = _socket(transport)
    if found is None:
        return
    for name, value in _KEEP_ALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            found.setsockopt(socket.IPPROTO_TCP, option, value)
