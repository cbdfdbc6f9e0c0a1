"""Bodies in Kubernetes' protobuf, for the few kinds that kubectl sends so.

`kubectl create namespace`, `configmap`, `secret` and `serviceaccount` and `kubectl drain` send
protobuf and do not ask whether they may. We answer in JSON, which they take.

Upstream: generated.proto of api v0.36.4 and apimachinery v0.36.4; pkg/runtime/serializer/protobuf.
"""

import base64
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import msgspec

from podstatus.apiserver.http import errors
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.time import Time, micro_wire

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\x00"
_KINDS: Final = ("ConfigMap", "DeleteOptions", "Lease", "Namespace", "Secret", "ServiceAccount")
_MESSAGES: Final = """
Unknown: 1=typeMeta:TypeMeta 2=raw:raw 3=contentEncoding 4=contentType
TypeMeta: 1=apiVersion 2=kind
Namespace: 1=metadata:ObjectMeta 2=spec:NamespaceSpec 3=status:NamespaceStatus
NamespaceSpec: 1=finalizers:[str]
NamespaceStatus: 1=phase 2=conditions:[NamespaceCondition]
NamespaceCondition: 1=type 2=status 4=lastTransitionTime:Time 5=reason 6=message
ConfigMap: 1=metadata:ObjectMeta 2=data:{str} 3=binaryData:{bytes} 4=immutable:bool?
Secret: 1=metadata:ObjectMeta 2=data:{bytes} 3=type 4=stringData:{str} 5=immutable:bool?
ServiceAccount: 1=metadata:ObjectMeta 2=secrets:[ObjectReference]
  3=imagePullSecrets:[LocalObjectReference] 4=automountServiceAccountToken:bool?
ObjectReference: 1=kind 2=namespace 3=name 4=uid 5=apiVersion 6=resourceVersion 7=fieldPath
LocalObjectReference: 1=name
Lease: 1=metadata:ObjectMeta 2=spec:LeaseSpec
LeaseSpec: 1=holderIdentity:str? 2=leaseDurationSeconds:int32? 3=acquireTime:MicroTime
  4=renewTime:MicroTime 5=leaseTransitions:int32? 6=strategy:str? 7=preferredHolder:str?
ObjectMeta: 1=name 2=generateName 3=namespace 4=selfLink 5=uid 6=resourceVersion 7=generation:int64
  8=creationTimestamp:Time 9=deletionTimestamp:Time 10=deletionGracePeriodSeconds:int64?
  11=labels:{str} 12=annotations:{str} 13=ownerReferences:[OwnerReference] 14=finalizers:[str]
OwnerReference: 1=kind 3=name 4=uid 5=apiVersion 6=controller:bool? 7=blockOwnerDeletion:bool?
DeleteOptions: 1=gracePeriodSeconds:int64? 2=preconditions:Preconditions 3=orphanDependents:bool?
  4=propagationPolicy:str? 5=dryRun:[str]
Preconditions: 1=uid:str? 2=resourceVersion:str?
Timestamp: 1=seconds:int64 2=nanos:int32
"""
"""Field numbers, names and types; a field without a type is a string. `?` is a pointer: its zero
is kept, while the zeros of others are not on the wire in JSON either. `[…]` is a list, `{…}` a map
with strings as keys. Managed fields are not read: the server makes up its own."""


class _Field(msgspec.Struct, frozen=True):
    name: str
    type: str
    pointer: bool


class _MalformedError(Exception):
    """The bytes are no message of this type."""


def decode_protobuf(body: bytes) -> Document:
    """The object in a body. Raises Problem."""
    try:
        envelope = _decode_message(_strip_magic(body), "Unknown")
        about: Document = envelope.get("typeMeta", {})
        kind = about.get("kind", "")
        if kind in _KINDS:
            return about | _decode_message(envelope.get("raw", b""), kind)
    except _MalformedError as error:
        raise errors.bad_request(f"the protobuf in the body cannot be read: {error}") from error
    raise errors.unsupported_media_type(
        f"{kind or 'an object without a kind'} is not taken as protobuf here; send application/json"
    )


def _strip_magic(body: bytes) -> bytes:
    if not body.startswith(_MAGIC):
        raise _MalformedError("it does not begin as Kubernetes' protobuf does")
    return body[len(_MAGIC) :]


def _decode_message(data: bytes, of_type: str) -> Document:
    fields = _message_fields(of_type)
    told: Document = {}
    for number, value in _iter_fields(data):
        field = fields.get(number)
        if field is not None:
            _set_field(told, field, value)
    return told


def _set_field(document: Document, field: _Field, value: int | bytes) -> None:
    inner = field.type[1:-1]
    if field.type.startswith("["):
        document.setdefault(field.name, []).append(_decode_value(value, inner))
    elif field.type.startswith("{"):
        key, item = _decode_map_entry(_require_bytes(value), inner)
        document.setdefault(field.name, {})[key] = item
    elif (read := _decode_value(value, field.type)) or (field.pointer and read is not None):
        document[field.name] = read


def _decode_map_entry(data: bytes, of_type: str) -> tuple[str, Any]:
    members = dict(_iter_fields(data))
    return _decode_str(members.get(1, b"")), _decode_value(members.get(2, b""), of_type)


def _decode_value(value: int | bytes, of_type: str) -> Any:
    reader = _DECODERS.get(of_type)
    return _decode_message(_require_bytes(value), of_type) if reader is None else reader(value)


def _decode_str(value: int | bytes) -> str:
    try:
        return _require_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise _MalformedError("a text is not UTF-8") from error


def _decode_int64(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise _MalformedError("a number is missing")
    return value - 2**64 if value >= 2**63 else value


def _truncate_int32(number: int) -> int:
    """The number as an int32: like Go's decoder, it drops the bits above."""
    return (number + 2**31) % 2**32 - 2**31


def _require_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise _MalformedError("a number is where none belongs")
    return value


def _decode_time(value: int | bytes) -> Time:
    told = _decode_message(_require_bytes(value), "Timestamp")
    nanos = told.get("seconds", 0) * 10**9 + told.get("nanos", 0)
    return Time.from_unix_nanos(nanos) if nanos else Time()


_DECODERS: Final[dict[str, Callable[[int | bytes], Any]]] = {
    "str": _decode_str,
    "int32": lambda value: _truncate_int32(_decode_int64(value)),
    "int64": _decode_int64,
    "bool": lambda value: bool(_decode_int64(value)),
    "bytes": lambda value: base64.b64encode(_require_bytes(value)).decode(),
    "raw": _require_bytes,
    "Time": lambda value: _decode_time(value).wire,
    "MicroTime": lambda value: micro_wire(_decode_time(value)),
}


def _iter_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: numbers as numbers, everything else as bytes."""
    at = 0
    while at < len(data):
        tag, at = _decode_varint(data, at)
        number, form = tag >> 3, tag & 7
        if form == 0:
            value, at = _decode_varint(data, at)
            yield number, value
            continue
        if form == 2:
            length, at = _decode_varint(data, at)
        elif form in (1, 5):
            length = 8 if form == 1 else 4
        else:
            raise _MalformedError(f"there is no wire type {form}")
        if at + length > len(data):
            raise _MalformedError("it ends too early")
        yield number, data[at : at + length]
        at += length


def _decode_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise _MalformedError("it ends too early")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value & (2**64 - 1), at
    raise _MalformedError("a number is too long")


@cache
def _message_fields(of_type: str) -> dict[int, _Field]:
    lines = _MESSAGES.replace("\n  ", " ").strip().splitlines()
    rows = dict(line.split(": ", 1) for line in lines)
    return dict(map(_parse_field, rows[of_type].split()))


def _parse_field(text: str) -> tuple[int, _Field]:
    number, _, rest = text.partition("=")
    name, _, of_type = rest.partition(":")
    return int(number), _Field(name, of_type.removesuffix("?") or "str", of_type.endswith("?"))
