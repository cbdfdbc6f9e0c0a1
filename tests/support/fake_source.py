"""A server in memory that lists and watches, and fails when it is told to."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from podstatus.client.rest.resources import ApiResource
from podstatus.client.rest.watch_events import ADDED, BOOKMARK, DELETED, MODIFIED, WatchEvent
from podstatus.kube.api_errors import GoneError

Document = dict[str, Any]


def expired() -> GoneError:
    return GoneError("too old resource version", code=410, reason="Expired")


class FakeStream:
    """One watch: what is queued is told, then its end or its error."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.is_open = True
        self.is_held = False
        """Whether what is told stays on its way, until `release`."""
        self._held: list[WatchEvent] = []
        self._queue: asyncio.Queue[WatchEvent | Exception | None] = asyncio.Queue()

    def tell(self, type_: str, document: object) -> None:
        event = WatchEvent(type_, msgspec.Raw(msgspec.json.encode(document)))
        self._held.append(event)
        if not self.is_held:
            self.release()

    def release(self) -> None:
        self.is_held = False
        for event in self._held:
            self._queue.put_nowait(event)
        self._held.clear()

    def end(self, error: Exception | None = None) -> None:
        self._queue.put_nowait(error)

    def __aiter__(self) -> "FakeStream":
        return self

    async def __anext__(self) -> WatchEvent:
        event = await self._queue.get()
        if event is None:
            raise StopAsyncIteration
        if isinstance(event, Exception):
            raise event
        return event


class FakeSource:
    """Objects with versions, all changes since the beginning, and what is to go wrong."""

    def __init__(self, version: int = 10) -> None:
        self.version = version
        self.objects: dict[str, Document] = {}
        self.streams: list[FakeStream] = []
        self.list_calls: list[Document] = []
        self.list_errors: deque[Exception | bytes] = deque()
        """What the next lists answer instead."""
        self.watch_errors: deque[Exception] = deque()
        self.spell: Callable[[int], str] = str
        """How a version is written."""
        self._changes: list[tuple[int, str, Document]] = []
        self.before_list: Callable[[], None] = lambda: None
        """Done when a list was asked for, before it is answered."""
        self.answers = asyncio.Event()
        """Lists wait for it."""
        self.answers.set()

    @property
    def stream(self) -> FakeStream:
        """The last one that was opened."""
        return self.streams[-1]

    def put(self, name: str, *, uid: str = "", silently: bool = False, **more: object) -> None:
        """Create or change an object; `silently` if watches are not told."""
        known = self.objects.get(name)
        uid = uid or (known["metadata"]["uid"] if known else f"{name}-{self.version}")
        document = {"metadata": {"name": name, "namespace": "default", "uid": uid}} | more
        self._change(MODIFIED if known else ADDED, name, document, silently=silently)
        self.objects[name] = document

    def delete(self, name: str, *, silently: bool = False) -> None:
        """Delete an object."""
        document = self.objects.pop(name)
        copy = document | {"metadata": dict(document["metadata"])}
        self._change(DELETED, name, copy, silently=silently)

    def recreate(self, version: int) -> None:
        """Become another server without any objects; watches get no event."""
        self.version = version
        self.objects.clear()
        self._changes.clear()

    def bookmark(self) -> None:
        """Send a bookmark with the current version."""
        metadata = {"resourceVersion": self.spell(self.version)}
        self.stream.tell(BOOKMARK, {"metadata": metadata})

    def _change(self, type_: str, name: str, document: Document, *, silently: bool) -> None:
        self.version += 1
        document["metadata"]["resourceVersion"] = self.spell(self.version)
        if silently:
            return
        self._changes.append((self.version, type_, document))
        if self.streams and self.stream.is_open:
            self.stream.tell(type_, document)

    async def list(self, resource: ApiResource, **asked: Any) -> bytes:
        """A page."""
        self.list_calls.append(asked)
        await self.answers.wait()
        self.before_list()
        if self.list_errors:
            answer = self.list_errors.popleft()
            if isinstance(answer, Exception):
                raise answer
            return answer
        documents = [self.objects[name] for name in sorted(self.objects)]
        start = int(asked["continue_token"] or 0)
        end = start + (asked["limit"] or len(documents))
        metadata = {"resourceVersion": self.spell(self.version)}
        if end < len(documents):
            metadata["continue"] = str(end)
        return msgspec.json.encode({"metadata": metadata, "items": documents[start:end]})

    @asynccontextmanager
    async def watch(
        self, resource: ApiResource, *, resource_version: str = "", **asked: Any
    ) -> AsyncIterator[FakeStream]:
        """What happened since, and what happens."""
        if self.watch_errors:
            raise self.watch_errors.popleft()
        stream = FakeStream(resource_version)
        for version, type_, document in self._changes:
            if resource_version.isdigit() and version > int(resource_version):
                stream.tell(type_, document)
        self.streams.append(stream)
        try:
            yield stream
        finally:
            stream.is_open = False
