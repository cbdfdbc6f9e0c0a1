"""Ports that the recorder requires."""

from typing import Protocol

from podstatus.kube.objects.event import Event


class EventSink(Protocol):
    """Writes events to the API server. Raises the errors of `podstatus.kube.api_errors`.

    Every call must return, so the client needs timeouts: a call that blocks forever blocks all
    later events.
    """

    async def create(self, event: Event) -> Event:
        """Create an event in its namespace and return it as the server stored it."""

    async def patch(self, namespace: str, name: str, patch: bytes) -> Event:
        """Apply a strategic merge patch to an event and return the result."""
