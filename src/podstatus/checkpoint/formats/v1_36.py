"""Checkpoints of the kubelet v1.36: a JSON text and the checksum of that text.

    {"data":"{\\"entries\\":{\\"<pod UID>\\":{\\"ContainerResources\\":…}}}","checksum":541667569}

Upstream: Checkpoint, allocation/state/checkpoint.go v1.36.4.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import field

from podstatus.checkpoint.formats.checksum import fnv1a_32
from podstatus.checkpoint.formats.go_json_decode import decode_onto
from podstatus.checkpoint.formats.go_json_encode import encode_go_json
from podstatus.checkpoint.formats.go_json_scanner import MalformedError
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.pod import PodUID


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


Entries: TypeAlias = ResourceEntries | ResizeEntries


def encode_entries(kind: type[Entries], entries: Mapping[PodUID, Any]) -> str:
    """Encode the entries of all pods as the data of an envelope."""
    return encode_go_json(kind(entries={str(uid): entry for uid, entry in entries.items()}))


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


def decode_entries(kind: type[Entries], data: str) -> Mapping[PodUID, Any]:
    """Decode the entries of all pods from the data of an envelope. Raises MalformedError."""
    try:
        entries = decode_onto(data.encode(), kind()).entries or {}
    except MalformedError as error:
        raise MalformedError(f"its data: {error}") from error
    return {PodUID(uid): entry for uid, entry in entries.items()}


def _checksum(data: str) -> int:
    # Upstream hashes a dump of the Go value, which prefixes a string with its type.
    return fnv1a_32(f"(string){data}".encode())
