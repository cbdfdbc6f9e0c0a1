"""Clients that follow a watch and verify what they receive."""

import asyncio
import fcntl
import sys
import termios
import time
from typing import Any

import aiohttp

from tests.support.web.sse_client import Event, Parser

MAX_MEGABYTES = 1.5
"""Total for each client."""


class Client:
    """Counts events; resumes when it is disconnected."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self.size = self.connections = 0
        self.parser = Parser()
        self.synced = asyncio.Event()

    async def run(self) -> None:
        while True:
            headers = {"Last-Event-ID": self.parser.last_id} if self.parser.last_id else {}
            try:
                async with self._session.get("/v1/watch", headers=headers) as answer:
                    assert answer.status == 200
                    self.connections += 1
                    await self.read(answer)
            except aiohttp.ClientPayloadError:
                continue
            except aiohttp.ClientConnectorError as error:
                # The server gives a connection 10 s for its first request: on a busy machine
                # that is too short if all clients of this process connect at once.
                if not isinstance(error.os_error, ConnectionResetError):
                    raise

    async def read(self, answer: aiohttp.ClientResponse) -> None:
        tail = b""
        while data := await answer.content.readany():
            self.size += len(data)
            if not self.synced.is_set() and b"event: synced" in tail + data:
                self.synced.set()
            tail = data[-20:]


class Verifier(Client):
    """Checks the order and the content of every event."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        super().__init__(session)
        self.steps: dict[str, int] = {}
        self.events = 0
        self.delays: list[float] = []
        self.faults: list[str] = []
        self.cuts: list[str] = []

    async def read(self, answer: aiohttp.ClientResponse) -> None:
        # An event that was cut in the middle is sent again.
        last = self.parser.last_id
        self.parser = Parser()
        self.parser.last_id = last
        while data := await answer.content.readany():
            self.size += len(data)
            for event in self.parser.feed(data):
                self.take(event)

    def take(self, event: Event) -> None:
        self.events += 1
        match event.name:
            case "pod":
                self._pod(event.data)
            case "deleted":
                self.steps.pop(event.data["uid"], None)
            case "synced":
                self.synced.set()
            case "closing":
                self.cuts.append(event.data["reason"])
            case other:
                self.faults.append(f"{other} came")

    def _pod(self, pod: dict[str, Any]) -> None:
        uid, step = pod["uid"], int(pod["message"])
        if step < self.steps.get(uid, 0):
            self.faults.append(f"{uid}: {step} after {self.steps[uid]}")
        self.steps[uid] = step
        if self.synced.is_set():
            self.delays.append(time.monotonic() - float(pod["reason"]))


class Sleeper(Verifier):
    """Reads nothing of its first response for some seconds, once the server cannot send more."""

    def __init__(self, session: aiohttp.ClientSession, seconds: float) -> None:
        super().__init__(session)
        self._seconds = seconds

    async def read(self, answer: aiohttp.ClientResponse) -> None:
        if self._seconds:
            await until_full(answer)
        seconds, self._seconds = self._seconds, 0.0
        await asyncio.sleep(seconds)
        await super().read(answer)


async def until_full(answer: aiohttp.ClientResponse) -> None:
    """Wait until the socket receives no more: on a busy machine its server has others first."""
    assert answer.connection is not None
    assert answer.connection.transport is not None
    number = answer.connection.transport.get_extra_info("socket").fileno()
    before, unread = -1, 0
    while unread == 0 or unread != before:
        await asyncio.sleep(1)
        before, unread = unread, unread_bytes(number)


def unread_bytes(number: int) -> int:
    return int.from_bytes(fcntl.ioctl(number, termios.FIONREAD, bytes(4)), sys.byteorder)
