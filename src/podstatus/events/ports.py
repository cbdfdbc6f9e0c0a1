"""What the recorder needs from others. Any object with these methods will do."""

from typing import Protocol

from podstatus.kube.objects.event import Event


class EventSink(Protocol):
    """The API server's events. Failures are the errors of `podstatus.kube.errors`.

    Every call must come back, so the client has time-outs: an event that waits for ever keeps all
    others waiting.
    """

    async def create(self, event: Event) -> Event:
        """Create an event in the namespace it names; the event as the server has it."""

    async def patch(self, namespace: str, name: str, patch: bytes) -> Event:
        """Apply a strategic merge patch to an event; the event afterwards."""
