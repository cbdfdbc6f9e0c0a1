"""Decode objects without their managed fields, which a node does not use.

From a real API server they are half of a pod, in some hundred small maps. Decoding them takes as
long as everything else, and the garbage collector traverses them from then on. client-go's
informers can drop them, too (TransformStripManagedFields, tools/cache v0.36.4).
"""

from functools import lru_cache
from typing import TypeVar, cast

import msgspec

from podstatus.kube.encoding.codec import decode
from podstatus.kube.encoding.wire_struct import Wire

W = TypeVar("W", bound=Wire)

_MAX_CACHED_OBJECTS = 128
"""More than the number of objects between a response and its watch event."""
_MAX_CACHED_BYTES = 32 << 10
"""Ten times the size of a pod; larger objects are not cached, to bound memory."""

_KEY = b'"managedFields":'


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    managed_fields: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata


_decoder = msgspec.json.Decoder(_Object)


def decode_cached(data: bytes, kind: type[W]) -> W:
    """Decode an object without its managed fields. Raises DecodeError.

    The response to a patch and its watch event are the same text, which is decoded once.
    """
    text = data.rstrip(b"\n")
    if len(text) > _MAX_CACHED_BYTES:
        return decode_uncached(text, kind)
    return cast(W, decode_with_cache(text, kind))


def decode_uncached(data: bytes, kind: type[W]) -> W:
    """Like `decode_cached`, without the cache: for text that does not come again."""
    return decode(strip_managed_fields(data), kind)


@lru_cache(maxsize=_MAX_CACHED_OBJECTS)
def decode_with_cache(text: bytes, kind: type[Wire]) -> Wire:
    return decode_uncached(text, kind)


def strip_managed_fields(data: bytes) -> bytes:
    """Return the JSON text without managed fields; unchanged if they cannot be located."""
    start = data.find(_KEY) + len(_KEY)
    if start < len(_KEY):
        return data
    try:
        managed = _decoder.decode(data).metadata.managed_fields
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return data
    if managed is msgspec.UNSET:
        return data
    value = bytes(managed)
    end = start + len(value)
    # Within a JSON string the quotes of the key would be escaped, so this is a field; with several
    # fields of that name it is ambiguous. Cut out by position: searching for such a long text takes
    # longer than decoding it.
    is_located = data.startswith(value, start) and _KEY not in data[end:]
    return data[:start] + b"null" + data[end:] if is_located else data
