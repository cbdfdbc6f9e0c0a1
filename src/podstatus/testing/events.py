"""Events in memory: a stand-in for the API server that a recorder sends them to."""

from collections import deque

import msgspec

from podstatus.kube.encoding.codec import from_document, to_document
from podstatus.kube.errors import ConflictError, GoneError
from podstatus.kube.objects.event import Event
from podstatus.kube.patch import EVENT, apply_patch


class FakeEventSink:
    """Keeps events by namespace and name, and applies patches as the server does."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], Event] = {}
        self.calls: list[str] = []
        """`create` or `patch`, in order, also those that failed."""
        self.failures: deque[Exception | None] = deque()
        """What the next calls raise instead; None for a call that works."""
        self.answers_lost = 0
        """So many of the failures come after the work was done."""

    @property
    def told(self) -> list[tuple[str, str, int]]:
        """Reason, message and count of all events, in the order in which they came."""
        return [(event.reason, event.message, event.count) for event in self.events.values()]

    async def create(self, event: Event) -> Event:
        """Create an event."""
        self.calls.append("create")
        self._fail_before()
        key = (event.metadata.namespace, event.metadata.name)
        if key in self.events:
            raise ConflictError(f"events {key[1]!r} already exists", code=409)
        self.events[key] = event
        self._fail_after()
        return event

    async def patch(self, namespace: str, name: str, patch: bytes) -> Event:
        """Apply a strategic merge patch."""
        self.calls.append("patch")
        self._fail_before()
        key = (namespace, name)
        if key not in self.events:
            raise GoneError(f"events {name!r} not found", code=404)
        document = apply_patch(to_document(self.events[key]), msgspec.json.decode(patch), EVENT)
        self.events[key] = from_document(document, Event)
        self._fail_after()
        return self.events[key]

    def _fail_before(self) -> None:
        if not self.answers_lost:
            self._fail()

    def _fail_after(self) -> None:
        if self.answers_lost:
            self.answers_lost -= 1
            self._fail()

    def _fail(self) -> None:
        failure = self.failures.popleft() if self.failures else None
        if failure is not None:
            raise failure
