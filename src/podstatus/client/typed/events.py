"""The API server's events, as the recorder wants them: its port `EventSink`."""

import msgspec

from podstatus.client.api_client import ApiClient
from podstatus.client.informer.managed_fields import strip_managed_fields
from podstatus.client.rest.resources import EVENTS
from podstatus.kube.encoding.codec import DecodeError, decode, to_document
from podstatus.kube.errors import RejectedError
from podstatus.kube.objects.event import Event


class HttpEventSink:
    """Events over HTTP, decoded, without their managed fields."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def create(self, event: Event) -> Event:
        """Create an event in the namespace it names; the event as the server has it."""
        body = msgspec.json.encode(to_document(event))
        namespace = event.metadata.namespace
        return _decode_response(await self._client.create(EVENTS, body, namespace=namespace))

    async def patch(self, namespace: str, name: str, patch: bytes) -> Event:
        """Apply a strategic merge patch to an event; the event afterwards."""
        return _decode_response(await self._client.patch(EVENTS, name, patch, namespace=namespace))


def _decode_response(body: bytes) -> Event:
    try:
        return decode(strip_managed_fields(body), Event)
    except DecodeError as error:
        raise RejectedError(f"the server's answer cannot be read: {error}") from error
