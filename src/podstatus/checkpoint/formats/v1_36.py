"""Checkpoints as the kubelet of v1.36 writes them: a text, and the checksum of that text.

    {"data":"{\\"entries\\":{\\"<pod UID>\\":{\\"ContainerResources\\":…}}}","checksum":541667569}

Upstream: Checkpoint, allocation/state/checkpoint.go v1.36.4.
"""

from typing import TypeVar

from msgspec import field

from podstatus.checkpoint.formats.go_json_decode import decode_onto
from podstatus.checkpoint.formats.go_json_encode import encode_go_json, fnv1a_32
from podstatus.checkpoint.formats.go_json_scanner import MalformedError
from podstatus.kube.encoding.wire import Wire
from podstatus.kube.objects.allocation import PodResourceInfo, PodResources, ResizeStatuses
from podstatus.kube.objects.pod import PodUID

W = TypeVar("W", bound=Wire)


class Envelope(Wire, frozen=True, kw_only=True):
    """What the file holds."""

    data: str = field(default_factory=str)
    checksum: int = field(default_factory=int)


class ResourceEntries(Wire, frozen=True, kw_only=True):
    """What is in the envelope: the resources of all pods."""

    entries: dict[str, PodResourceInfo] | None = None


class ResizeEntries(Wire, frozen=True, kw_only=True):
    """What is in the envelope that upstream does not have: the resize statuses of all pods."""

    entries: dict[str, str] | None = None


def encode_resources(pods: PodResources) -> str:
    """The resources of all pods as the data of an envelope."""
    return encode_go_json(ResourceEntries(entries={str(uid): info for uid, info in pods.items()}))


def encode_resize_statuses(statuses: ResizeStatuses) -> str:
    """The resize statuses of all pods as the data of an envelope."""
    return encode_go_json(ResizeEntries(entries={str(uid): word for uid, word in statuses.items()}))


def wrap(data: str) -> bytes:
    """The file that holds this data."""
    return encode_go_json(Envelope(data=data, checksum=_checksum(data))).encode()


def unwrap(text: bytes) -> str:
    """The data that a file holds. Raises MalformedError if its checksum is wrong."""
    envelope = decode_onto(text, Envelope())
    actual = _checksum(envelope.data)
    if not envelope.data and not envelope.checksum:
        raise MalformedError("there is neither data nor a checksum in it")
    if envelope.checksum != actual:
        raise MalformedError(f"its checksum is {envelope.checksum}, its data has {actual}")
    return envelope.data


def decode_resources(data: str) -> PodResources:
    """The resources of all pods. Raises MalformedError."""
    entries = _decode_data(data, ResourceEntries()).entries or {}
    return {PodUID(uid): info for uid, info in entries.items()}


def decode_resize_statuses(data: str) -> ResizeStatuses:
    """The resize statuses of all pods. Raises MalformedError."""
    entries = _decode_data(data, ResizeEntries()).entries or {}
    return {PodUID(uid): word for uid, word in entries.items()}


def _decode_data(data: str, onto: W) -> W:
    try:
        return decode_onto(data.encode(), onto)
    except MalformedError as error:
        raise MalformedError(f"its data: {error}") from error


def _checksum(data: str) -> int:
    # Upstream hashes a dump of the Go value, in which a string has its type before it.
    return fnv1a_32(f"(string){data}".encode())
