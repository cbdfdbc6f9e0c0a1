"""The event recorder's port `EventSink` over HTTP."""

import msgspec

from podstatus.client.api_client import ApiClient
from podstatus.client.informer.managed_fields import strip_managed_fields
from podstatus.client.rest.resources import EVENTS
from podstatus.kube.encoding.codec import DecodeError, decode, to_document
from podstatus.kube.errors import RejectedError
from podstatus.kube.objects.event import Event


class HttpEventSink:
    """Creates and patches events; returns them without managed fields. Raises ApiError."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def create(self, event: Event) -> Event:
        """Create an event in its namespace and return the server's copy."""
        body = msgspec.json.encode(to_document(event))
        namespace = event.metadata.namespace
        return _decode_response(await self._client.create(EVENTS, body, namespace=namespace))

    async def patch(self, namespace: str, name: str, patch: bytes) -> Event:
        """Apply a strategic merge patch to an event and return the result."""
        return _decode_response(await self._client.patch(EVENTS, name, patch, namespace=namespace))


def _decode_response(body: bytes) -> Event:
    try:
        return decode(strip_managed_fields(body), Event)
    except DecodeError as error:
        raise RejectedError(f"the response cannot be decoded: {error}") from error
