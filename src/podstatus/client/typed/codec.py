"""Bodies of requests and responses as typed objects."""

from typing import Protocol, TypeVar

from podstatus.client.informer.managed_fields import decode_uncached
from podstatus.kube.api_errors import RejectedError
from podstatus.kube.encoding.codec import DecodeError, to_document
from podstatus.kube.encoding.go_json import encode_document
from podstatus.kube.encoding.wire_struct import Wire

W = TypeVar("W", bound=Wire)


class Decode(Protocol):
    """Decodes an object. Raises DecodeError."""

    def __call__(self, data: bytes, kind: type[W]) -> W: ...


def encode_body(value: Wire) -> bytes:
    return encode_document(to_document(value))


def decode_response(body: bytes, kind: type[W], decode: Decode = decode_uncached) -> W:
    """Return the object in a response, without managed fields. Raises RejectedError."""
    try:
        return decode(body, kind)
    except DecodeError as error:
        raise RejectedError(f"the response is not a {kind.__name__}: {error}") from error
