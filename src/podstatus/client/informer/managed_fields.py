"""Decode objects without what no node looks at: who manages which field.

With a real API server that is half of a pod, in some hundred small maps. Decoding them takes as
long as all the rest, and the garbage collector goes through them for ever after. client-go's
informers can leave them out too (TransformStripManagedFields, tools/cache v0.36.4).
"""

from functools import lru_cache
from typing import TypeVar, cast

import msgspec

from podstatus.kube.encoding.codec import decode
from podstatus.kube.encoding.wire import Wire

W = TypeVar("W", bound=Wire)

_MAX_CACHED_OBJECTS = 128
"""That are remembered: more than there are between an answer and its event."""
_MAX_CACHED_BYTES = 32 << 10
"""Bytes. Ten times what a pod has; longer ones must not fill the memory."""

_KEY = b'"managedFields":'


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    managed_fields: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata


_decoder = msgspec.json.Decoder(_Object)


def decode_cached(data: bytes, kind: type[W]) -> W:
    """An object without its managed fields. Raises DecodeError.

    The answer to a patch and the event that tells of it are the same text, which is decoded once.
    """
    text = data.rstrip(b"\n")
    read = _decode_with_cache if len(text) <= _MAX_CACHED_BYTES else _decode
    return cast(W, read(text, kind))


def decode_uncached(data: bytes, kind: type[W]) -> W:
    """The same for one who will not see that text again, and remembers nothing of it."""
    return decode(strip_managed_fields(data), kind)


def _decode(text: bytes, kind: type[Wire]) -> Wire:
    return decode_uncached(text, kind)


_decode_with_cache = lru_cache(maxsize=_MAX_CACHED_OBJECTS)(_decode)


def strip_managed_fields(data: bytes) -> bytes:
    """The text of an object without its managed fields; as it is, if they cannot be told."""
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
    # Within a text the quotes of the key would be escaped, so this is a field; if there are several
    # of that name, nobody can tell which of them it is. Cut out by its place: to look for a text as
    # long as this one takes longer than to decode it.
    is_it = data.startswith(value, start) and _KEY not in data[end:]
    return data[:start] + b"null" + data[end:] if is_it else data
