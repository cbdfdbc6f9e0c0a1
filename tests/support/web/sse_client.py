"""Reads server-sent events as the standard says, and keeps a copy of the pods from them."""

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
    """Events from bytes."""

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
    """What a client makes of events."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.synced = self.anew = 0
        self.cut = ""

    def take(self, event: Event) -> None:
        match event.name:
            case "pod":
                self.pods[event.data["uid"]] = event.data
            case "deleted":
                self.pods.pop(event.data["uid"], None)
            case "reset":
                self.anew += 1
                self.pods.clear()
            case "synced":
                self.synced += 1
            case "closing":
                self.cut = event.data["reason"]

    @property
    def phases(self) -> dict[str, str]:
        return {pod["name"]: pod.get("phase", "") for pod in self.pods.values()}


class Stream:
    """One connection."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer
        self.parser = Parser()
        self._events: list[Event] = []

    async def next(self) -> Event | None:
        """None at the end."""
        while not self._events:
            data = await self.answer.content.readany()
            if not data:
                return None
            self._events = self.parser.feed(data)
        return self._events.pop(0)

    async def until(self, name: str) -> list[Event]:
        """All up to the first of this name."""
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
