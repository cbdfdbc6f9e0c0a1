"""Checkpoints of the kubelet v1.36: a JSON text and the checksum of that text.

    {"data":"{\\"entries\\":{\\"<pod UID>\\":{\\"ContainerResources\\":…}}}","checksum":541667569}

Upstream: Checkpoint, allocation/state/checkpoint.go v1.36.4.
"""

from typing import TypeVar

from msgspec import field

from podstatus.checkpoint.formats.checksum import fnv1a_32
from podstatus.checkpoint.formats.go_json_decode import decode_onto
from podstatus.checkpoint.formats.go_json_encode import encode_go_json
from podstatus.checkpoint.formats.go_json_scanner import MalformedError
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.allocation import PodResourceInfo, PodResources, ResizeStatuses
from podstatus.kube.objects.pod import PodUID

W = TypeVar("W", bound=Wire)


class Envelope(Wire, frozen=True, kw_only=True):
    """Content of a file: data and the checksum of the data."""

    data: str = field(default_factory=str)
    checksum: int = field(default_factory=int)


class ResourceEntries(Wire, frozen=True, kw_only=True):
    """Data of an envelope: the resources of all pods."""

    entries: dict[str, PodResourceInfo] | None = None


class ResizeEntries(Wire, frozen=True, kw_only=True):
    """Data of an envelope that upstream does not have: the resize statuses of all pods."""

    entries: dict[str, str] | None = None


def encode_resources(pods: PodResources) -> str:
    """Encode the resources of all pods as the data of an envelope."""
    return encode_go_json(ResourceEntries(entries={str(uid): info for uid, info in pods.items()}))


def encode_resize_statuses(statuses: ResizeStatuses) -> str:
    """Encode the resize statuses of all pods as the data of an envelope."""
    return encode_go_json(
        ResizeEntries(entries={str(uid): status for uid, status in statuses.items()})
    )


def wrap(data: str) -> bytes:
    """Return the text of a file with this data and its checksum."""
    return encode_go_json(Envelope(data=data, checksum=_checksum(data))).encode()


def unwrap(text: bytes) -> str:
    """Return the data of a file. Raises MalformedError, also if the checksum does not match."""
    envelope = decode_onto(text, Envelope())
    actual = _checksum(envelope.data)
    if not envelope.data and not envelope.checksum:
        raise MalformedError("it has neither data nor a checksum")
    if envelope.checksum != actual:
        raise MalformedError(f"its checksum is {envelope.checksum}, its data has {actual}")
    return envelope.data


def decode_resources(data: str) -> PodResources:
    """Decode the resources of all pods. Raises MalformedError."""
    entries = _decode_data(data, ResourceEntries()).entries or {}
    return {PodUID(uid): info for uid, info in entries.items()}


def decode_resize_statuses(data: str) -> ResizeStatuses:
    """Decode the resize statuses of all pods. Raises MalformedError."""
    entries = _decode_data(data, ResizeEntries()).entries or {}
    return {PodUID(uid): status for uid, status in entries.items()}


def _decode_data(data: str, onto: W) -> W:
    try:
        return decode_onto(data.encode(), onto)
    except MalformedError as error:
        raise MalformedError(f"its data: {error}") from error


def _checksum(data: str) -> int:
    # Upstream hashes a dump of the Go value, which prefixes a string with its type.
    return fnv1a_32(f"(string){data}".encode())
