"""Kubernetes protobuf bodies, for the few kinds that kubectl sends.

`kubectl create namespace`, `configmap`, `secret`, `service`, `serviceaccount` and `token` and
`kubectl drain` send protobuf without negotiation. Responses are JSON, which they accept.

Upstream: generated.proto of api v0.36.4 and apimachinery v0.36.4; pkg/runtime/serializer/protobuf.
"""

import base64
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import msgspec

from podstatus.apiserver.http import errors
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.patch.schema import table_rows
from podstatus.kube.scalars.time import MicroTime, Time

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\x00"
_KINDS: Final = (
    *("ConfigMap", "DeleteOptions", "Lease", "Namespace", "Secret", "Service"),
    *("ServiceAccount", "TokenRequest"),
)
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
Service: 1=metadata:ObjectMeta 2=spec:ServiceSpec
ServiceSpec: 1=ports:[ServicePort] 2=selector:{str} 3=clusterIP 4=type 5=externalIPs:[str]
  7=sessionAffinity 8=loadBalancerIP 9=loadBalancerSourceRanges:[str] 10=externalName
  11=externalTrafficPolicy 12=healthCheckNodePort:int32 13=publishNotReadyAddresses:bool
  14=sessionAffinityConfig:SessionAffinityConfig 17=ipFamilyPolicy:str? 18=clusterIPs:[str]
  19=ipFamilies:[str] 20=allocateLoadBalancerNodePorts:bool? 21=loadBalancerClass:str?
  22=internalTrafficPolicy:str? 23=trafficDistribution:str?
ServicePort: 1=name 2=protocol 3=port:int32 4=targetPort:IntOrString 5=nodePort:int32
  6=appProtocol:str?
SessionAffinityConfig: 1=clientIP:ClientIPConfig
ClientIPConfig: 1=timeoutSeconds:int32?
IntOrStringMessage: 1=type:int64 2=intVal:int32 3=strVal
ObjectReference: 1=kind 2=namespace 3=name 4=uid 5=apiVersion 6=resourceVersion 7=fieldPath
LocalObjectReference: 1=name
TokenRequest: 1=metadata:ObjectMeta 2=spec:TokenRequestSpec
TokenRequestSpec: 1=audiences:[str] 3=boundObjectRef:BoundObjectReference?
  4=expirationSeconds:int64?
BoundObjectReference: 1=kind 2=apiVersion 3=name 4=uid
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
"""Field numbers, names and types; a field without a type is a string.

`?` is a pointer: its zero value is kept, while other zero values are omitted in JSON, too. `[…]` is
a list, `{…}` a map with string keys. Managed fields are not decoded: the server computes its own.
"""


class _Field(msgspec.Struct, frozen=True):
    name: str
    type: str
    pointer: bool


class _MalformedError(Exception):
    """The bytes are not a message of this type."""


def decode_protobuf(body: bytes) -> Document:
    """Decode the object in a body. Raises StatusError (400 or 415)."""
    try:
        envelope = _decode_message(_strip_magic(body), "Unknown")
        type_meta: Document = envelope.get("typeMeta", {})
        kind = type_meta.get("kind", "")
        if kind in _KINDS:
            return type_meta | _decode_message(envelope.get("raw", b""), kind)
    except _MalformedError as error:
        raise errors.bad_request(f"cannot decode the protobuf body: {error}") from error
    raise errors.unsupported_media_type(
        f"protobuf is not supported for {kind or 'an object without a kind'}; send application/json"
    )


def _strip_magic(body: bytes) -> bytes:
    if not body.startswith(_MAGIC):
        raise _MalformedError("the Kubernetes magic number is missing")
    return body[len(_MAGIC) :]


def _decode_message(data: bytes, type_name: str) -> Document:
    fields = _message_fields(type_name)
    document: Document = {}
    for number, value in _iter_fields(data):
        field = fields.get(number)
        if field is not None:
            _set_field(document, field, value)
    return document


def _set_field(document: Document, field: _Field, value: int | bytes) -> None:
    inner = field.type[1:-1]
    if field.type.startswith("["):
        document.setdefault(field.name, []).append(_decode_value(value, inner))
    elif field.type.startswith("{"):
        key, item = _decode_map_entry(_require_bytes(value), inner)
        document.setdefault(field.name, {})[key] = item
    elif (decoded := _decode_value(value, field.type)) or (field.pointer and decoded is not None):
        document[field.name] = decoded


def _decode_map_entry(data: bytes, type_name: str) -> tuple[str, Any]:
    members = dict(_iter_fields(data))
    return _decode_str(members.get(1, b"")), _decode_value(members.get(2, b""), type_name)


def _decode_value(value: int | bytes, type_name: str) -> Any:
    reader = _DECODERS.get(type_name)
    return _decode_message(_require_bytes(value), type_name) if reader is None else reader(value)


def _decode_str(value: int | bytes) -> str:
    try:
        return _require_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise _MalformedError("a string is not UTF-8") from error


def _decode_int64(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise _MalformedError("expected a varint, got bytes")
    return value - 2**64 if value >= 2**63 else value


def _truncate_int32(number: int) -> int:
    """Truncate to an int32, as Go's decoder does."""
    return (number + 2**31) % 2**32 - 2**31


def _require_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise _MalformedError("expected bytes, got a varint")
    return value


def _decode_time(value: int | bytes) -> Time:
    timestamp = _decode_message(_require_bytes(value), "Timestamp")
    nanos = timestamp.get("seconds", 0) * 10**9 + timestamp.get("nanos", 0)
    return Time.from_unix_nanos(nanos) if nanos else Time()


def _decode_int_or_string(value: int | bytes) -> int | str:
    message = _decode_message(_require_bytes(value), "IntOrStringMessage")
    number: int = message.get("intVal", 0)
    text: str = message.get("strVal", "")
    return text if message.get("type") else number


_DECODERS: Final[dict[str, Callable[[int | bytes], Any]]] = {
    "str": _decode_str,
    "int32": lambda value: _truncate_int32(_decode_int64(value)),
    "int64": _decode_int64,
    "bool": lambda value: bool(_decode_int64(value)),
    "bytes": lambda value: base64.b64encode(_require_bytes(value)).decode(),
    "raw": _require_bytes,
    "Time": lambda value: _decode_time(value).wire,
    "MicroTime": lambda value: MicroTime(_decode_time(value)).wire,
    "IntOrString": _decode_int_or_string,
}


def _iter_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: varints as int, everything else as bytes."""
    position = 0
    while position < len(data):
        tag, position = _decode_varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = _decode_varint(data, position)
            yield number, value
            continue
        if wire_type == 2:
            length, position = _decode_varint(data, position)
        elif wire_type in (1, 5):
            length = 8 if wire_type == 1 else 4
        else:
            raise _MalformedError(f"unknown wire type {wire_type}")
        if position + length > len(data):
            raise _MalformedError("unexpected end of data")
        yield number, data[position : position + length]
        position += length


def _decode_varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise _MalformedError("unexpected end of data")
        value |= (data[position] & 0x7F) << shift
        position += 1
        if data[position - 1] < 0x80:
            return value & (2**64 - 1), position
    raise _MalformedError("a varint is too long")


@cache
def _message_fields(type_name: str) -> dict[int, _Field]:
    return dict(map(_parse_field, table_rows(_MESSAGES)[type_name].split()))


def _parse_field(text: str) -> tuple[int, _Field]:
    number, _, rest = text.partition("=")
    name, _, type_name = rest.partition(":")
    return int(number), _Field(name, type_name.removesuffix("?") or "str", type_name.endswith("?"))
