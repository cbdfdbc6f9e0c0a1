"""Decode listed and watched objects: key, UID, resource version and content."""

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from podstatus.client.informer.resource_version import ResourceVersion
from podstatus.client.informer.transform import Transform, decode_and_transform
from podstatus.kube.encoding.codec import DecodeError


class ObjectIdentity(Protocol):
    """The identity and version of an object: an `ObjectMeta`, or the part that is kept of it."""

    @property
    def namespace(self) -> str:
        """Return the namespace; "" for a cluster-scoped object."""

    @property
    def name(self) -> str:
        """Return the name of the object."""

    @property
    def uid(self) -> str:
        """Return the UID, which differs for a recreated object."""

    @property
    def resource_version(self) -> str:
        """Return the version of this state of the object."""


class HasMetadata(Protocol):
    """An object with a `metadata` field."""

    @property
    def metadata(self) -> ObjectIdentity:
        """Return the identity and version of the object."""


T = TypeVar("T", bound=HasMetadata)

_MAX_NAME, _MAX_UID = 253, 512
"""Characters. The limit on names is Kubernetes' own; its UIDs have 36 characters."""


class ObjectKey(NamedTuple):
    """Namespace and name of an object; cluster-scoped objects have an empty namespace."""

    namespace: str
    name: str


class ObjectState(msgspec.Struct, Generic[T], frozen=True):
    """An object at one resource version."""

    key: ObjectKey
    uid: str
    version: ResourceVersion
    object: T | None = None
    """None if the content could not be decoded or was not read."""


def key_of(object_: HasMetadata) -> ObjectKey:
    """Return the namespace and name of an object."""
    return ObjectKey(object_.metadata.namespace, object_.metadata.name)


def read_object(data: bytes, kind: type[T] | Transform[T]) -> ObjectState[T] | None:
    """Decode an object; without its content if that is invalid.

    Returns None if its name or UID cannot be read either.
    """
    try:
        object_ = decode_and_transform(bytes(data), kind)
    except DecodeError:
        return read_metadata(data)
    metadata = object_.metadata
    key = ObjectKey(metadata.namespace, metadata.name)
    if not _is_valid_identity(key, metadata.uid):
        return None
    return ObjectState(key, metadata.uid, ResourceVersion.parse(metadata.resource_version), object_)


def read_item(
    data: bytes, kind: type[T] | Transform[T], cached: Callable[[ObjectKey], T | None]
) -> ObjectState[T] | None:
    """Decode an item of a list; an unchanged cached object is reused instead.

    So a list that confirms the cache costs a fraction of the first one, and no memory.
    """
    item: ObjectState[T] | None = read_metadata(data)
    if item is None:
        return None
    object_ = cached(item.key)
    if object_ is None or object_.metadata.uid != item.uid:
        return read_object(data, kind)
    if object_.metadata.resource_version != item.version.text:
        return read_object(data, kind)
    return ObjectState(item.key, item.uid, item.version, object_)


def read_metadata(data: bytes) -> ObjectState[T] | None:
    """Decode only the key, UID and version of an object; None if they cannot be read."""
    metadata = _metadata(data)
    if metadata is None:
        return None
    key = ObjectKey(metadata.namespace or "", metadata.name or "")
    if not _is_valid_identity(key, metadata.uid or ""):
        return None
    return ObjectState(key, metadata.uid or "", read_version(metadata))


def _is_valid_identity(key: ObjectKey, uid: str) -> bool:
    """Whether the name and the UID are valid.

    An object without them cannot be identified; a name with a slash would change request paths.
    """
    if not uid or len(uid) > _MAX_UID or key.name in ("", ".", ".."):
        return False
    return max(map(len, key)) <= _MAX_NAME and not any("/" in part for part in key)


def read_bookmark(data: bytes) -> ResourceVersion | None:
    """Return the resource version of a bookmark; None if it cannot be read."""
    metadata = _metadata(data)
    return None if metadata is None else read_version(metadata)


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata fields that identify an object and its version."""

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
    """Return the resource version; one without a number if it is missing."""
    return ResourceVersion.parse(metadata.resource_version or "")
