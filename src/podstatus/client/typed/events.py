"""The event recorder's port `EventSink` over HTTP."""

from podstatus.client.api_client import ApiClient
from podstatus.client.rest.resources import EVENTS
from podstatus.client.typed.codec import decode_response, encode_body
from podstatus.kube.objects.event import Event


class HttpEventSink:
    """Creates and patches events; returns them without managed fields. Raises ApiError."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def create(self, event: Event) -> Event:
        """Create an event in its namespace and return the server's copy."""
        body, namespace = encode_body(event), event.metadata.namespace
        return decode_response(await self._client.create(EVENTS, body, namespace=namespace), Event)

    async def patch(self, namespace: str, name: str, patch: bytes) -> Event:
        body = await self._client.patch(EVENTS, name, patch, namespace=namespace)
        return decode_response(body, Event)
