"""An object as a list or a watch shows it: where it is, which one, how new, and what it says."""

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from podstatus.client.informer.resource_version import ResourceVersion
from podstatus.client.informer.transform import Transform, decode_and_transform
from podstatus.kube.encoding.codec import DecodeError


class ObjectIdentity(Protocol):
    """Which state of which object: an `ObjectMeta` says so, or as much of one as is kept."""

    @property
    def namespace(self) -> str:
        """Empty if it is in none."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """What tells it from others of the same name."""

    @property
    def resource_version(self) -> str:
        """What tells this state of it from others."""


class HasMetadata(Protocol):
    """What every object has."""

    @property
    def metadata(self) -> ObjectIdentity:
        """Its name, its UID, its version."""


T = TypeVar("T", bound=HasMetadata)

_MAX_NAME, _MAX_UID = 253, 512
"""Characters. The first is Kubernetes' own limit; its UIDs have 36."""


class ObjectKey(NamedTuple):
    """Where an object is; objects of a cluster have an empty namespace."""

    namespace: str
    name: str


class ObjectState(msgspec.Struct, Generic[T], frozen=True):
    """An object, as it was at a version."""

    key: ObjectKey
    uid: str
    version: ResourceVersion
    object: T | None = None
    """None if all that is known is that it was there."""


def key_of(object_: HasMetadata) -> ObjectKey:
    """Where it is."""
    return ObjectKey(object_.metadata.namespace, object_.metadata.name)


def read_object(data: bytes, kind: type[T] | Transform[T]) -> ObjectState[T] | None:
    """The object, without its content if that cannot be decoded.

    None if not even its name and its UID can be read.
    """
    try:
        found = decode_and_transform(bytes(data), kind)
    except DecodeError:
        return read_metadata(data)
    metadata = found.metadata
    key = ObjectKey(metadata.namespace, metadata.name)
    if not _is_valid_identity(key, metadata.uid):
        return None
    return ObjectState(key, metadata.uid, ResourceVersion.parse(metadata.resource_version), found)


def read_item(
    data: bytes, kind: type[T] | Transform[T], cached: Callable[[ObjectKey], T | None]
) -> ObjectState[T] | None:
    """The object in a list; one that is known as it is there is not decoded again.

    So the list that confirms what we have costs a fraction of the first one, and no memory.
    """
    seen: ObjectState[T] | None = read_metadata(data)
    if seen is None:
        return None
    ours = cached(seen.key)
    if ours is None or ours.metadata.uid != seen.uid:
        return read_object(data, kind)
    if ours.metadata.resource_version != seen.version.text:
        return read_object(data, kind)
    return ObjectState(seen.key, seen.uid, seen.version, ours)


def read_metadata(data: bytes) -> ObjectState[T] | None:
    """Where an object is, which one and how new; None if that cannot be read."""
    metadata = _metadata(data)
    if metadata is None:
        return None
    key = ObjectKey(metadata.namespace or "", metadata.name or "")
    if not _is_valid_identity(key, metadata.uid or ""):
        return None
    return ObjectState(key, metadata.uid or "", read_version(metadata))


def _is_valid_identity(key: ObjectKey, uid: str) -> bool:
    """Whether an object can have this name and this UID.

    One without could not be identified; a name with a slash would lead to another path.
    """
    if not uid or len(uid) > _MAX_UID or key.name in ("", ".", ".."):
        return False
    return max(map(len, key)) <= _MAX_NAME and not any("/" in part for part in key)


def read_bookmark(data: bytes) -> ResourceVersion | None:
    """How far a watch is that says nothing else; None if that cannot be read."""
    metadata = _metadata(data)
    return None if metadata is None else read_version(metadata)


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """As much of it as says which state of which object this is."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: Metadata


_DECODER = msgspec.json.Decoder(_Object)


def _metadata(data: bytes) -> Metadata | None:
    try:
        return _DECODER.decode(data).metadata
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def read_version(metadata: Metadata) -> ResourceVersion:
    """Its version; that of an object that has none is like no other."""
    return ResourceVersion.parse(metadata.resource_version or "")
