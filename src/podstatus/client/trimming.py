"""Leave out what no node looks at: who manages which field.

With a real API server that is half of a pod, in some hundred small maps. Decoding them takes as
long as all the rest, and the garbage collector goes through them for ever after. client-go's
informers can leave them out too (TransformStripManagedFields, tools/cache v0.36.4).
"""

import msgspec

_KEY = b'"managedFields":'


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    managed_fields: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata


_decoder = msgspec.json.Decoder(_Object)


def without_managed_fields(data: bytes) -> bytes:
    """The text of an object without its managed fields; as it is, if they cannot be told."""
    if _KEY not in data:
        return data
    try:
        managed = _decoder.decode(data).metadata.managed_fields
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return data
    if managed is msgspec.UNSET:
        return data
    # Within a text the quotes of the key would be escaped, so this is a field; if there are several
    # that say the same, nobody can tell which of them it is.
    field = _KEY + bytes(managed)
    return data.replace(field, _KEY + b"null") if data.count(field) == 1 else data
