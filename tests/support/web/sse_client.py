"""A client of server-sent events by the standard, which maintains a copy of the pods."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from tests.support.web.node_server import Scene


class Event(msgspec.Struct, frozen=True):
    name: str
    data: dict[str, Any]
    id: str


class Parser:
    """Parses events from chunks of bytes."""

    def __init__(self) -> None:
        self._rest = b""
        self.last_id = ""
        self.comments = 0

    def feed(self, data: bytes) -> list[Event]:
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        return [event for block in blocks if (event := self._read(block)) is not None]

    def _read(self, block: bytes) -> Event | None:
        name, data = "message", b""
        for line in block.split(b"\n"):
            field, _, value = line.partition(b": ")
            match field:
                case b"event":
                    name = value.decode()
                case b"data":
                    data += value
                case b"id":
                    self.last_id = value.decode()
                case b":":
                    self.comments += 1
        return Event(name, msgspec.json.decode(data), self.last_id) if data else None


class Copy:
    """The pods of a client, updated by events."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.synced = self.resets = 0
        self.close_reason = ""

    def take(self, event: Event) -> None:
        match event.name:
            case "pod":
                self.pods[event.data["uid"]] = event.data
            case "deleted":
                self.pods.pop(event.data["uid"], None)
            case "reset":
                self.resets += 1
                self.pods.clear()
            case "synced":
                self.synced += 1
            case "closing":
                self.close_reason = event.data["reason"]

    @property
    def phases(self) -> dict[str, str]:
        return {pod["name"]: pod.get("phase", "") for pod in self.pods.values()}


class Stream:
    """One connection to /v1/watch."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer
        self.parser = Parser()
        self._events: list[Event] = []

    async def next(self) -> Event | None:
        """The next event; None at the end of the stream."""
        while not self._events:
            data = await self.answer.content.readany()
            if not data:
                return None
            self._events = self.parser.feed(data)
        return self._events.pop(0)

    async def until(self, name: str) -> list[Event]:
        """All events up to the first one of this name."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
            if event.name == name:
                return found
        raise AssertionError(f"no {name} came, but {found}")


@asynccontextmanager
async def watching(scene: Scene, query: str = "", last: str = "") -> AsyncIterator[Stream]:
    headers = {"Last-Event-ID": last} if last else {}
    async with (
        scene.client("") as session,
        session.get(f"/v1/watch{query}", headers=headers) as answer,
    ):
        assert answer.status == 200, await answer.text()
        yield Stream(answer)
