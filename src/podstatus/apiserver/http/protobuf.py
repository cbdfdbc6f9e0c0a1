"""Kubernetes protobuf bodies, for the few kinds that kubectl sends.

`kubectl create namespace`, `configmap`, `secret`, `service`, `serviceaccount` and `token` and
`kubectl drain` send protobuf without negotiation. Responses are JSON, which they accept.

Upstream: generated.proto of api v0.36.4 and apimachinery v0.36.4; pkg/runtime/serializer/protobuf.
"""

import base64
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from podstatus.apiserver.http import errors
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.encoding.protobuf import wire
from podstatus.kube.encoding.protobuf.field_table import TableField, parse_field_table
from podstatus.kube.scalars.time import MicroTime, Time

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\x00"
_KINDS: Final = (
    *("ConfigMap", "DeleteOptions", "Lease", "Namespace", "Secret", "Service"),
    *("ServiceAccount", "TokenRequest"),
)
_TABLE: Final = parse_field_table("""
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
""")
"""The zero value of a pointer is kept, while other zero values are omitted in JSON, too. Managed
fields are not decoded: the server computes its own.
"""


def decode_protobuf(body: bytes) -> Document:
    """Decode the object in a body. Raises StatusError (400 or 415)."""
    try:
        envelope = _decode_message(_strip_magic(body), "Unknown")
        type_meta: Document = envelope.get("typeMeta", {})
        kind = type_meta.get("kind", "")
        if kind in _KINDS:
            return type_meta | _decode_message(envelope.get("raw", b""), kind)
    except wire.MalformedMessageError as error:
        raise errors.bad_request(f"cannot decode the protobuf body: {error}") from error
    raise errors.unsupported_media_type(
        f"protobuf is not supported for {kind or 'an object without a kind'}; send application/json"
    )


def _strip_magic(body: bytes) -> bytes:
    if not body.startswith(_MAGIC):
        raise wire.MalformedMessageError("the Kubernetes magic number is missing")
    return body[len(_MAGIC) :]


def _decode_message(data: bytes, type_name: str) -> Document:
    fields = _message_fields(type_name)
    document: Document = {}
    for number, value in wire.iter_fields(data):
        field = fields.get(number)
        if field is not None:
            _set_field(document, field, value)
    return document


def _set_field(document: Document, field: TableField, value: int | bytes) -> None:
    if field.is_list:
        document.setdefault(field.name, []).append(_decode_value(value, field.type))
    elif field.is_map:
        key, item = _decode_map_entry(wire.require_bytes(value), field.type)
        document.setdefault(field.name, {})[key] = item
    elif (decoded := _decode_value(value, field.type)) or (
        field.is_pointer and decoded is not None
    ):
        document[field.name] = decoded


def _decode_map_entry(data: bytes, type_name: str) -> tuple[str, Any]:
    members = dict(wire.iter_fields(data))
    return wire.decode_str(members.get(1, b"")), _decode_value(members.get(2, b""), type_name)


def _decode_value(value: int | bytes, type_name: str) -> Any:
    reader = _DECODERS.get(type_name)
    return (
        _decode_message(wire.require_bytes(value), type_name) if reader is None else reader(value)
    )


def _decode_time(value: int | bytes) -> Time:
    timestamp = _decode_message(wire.require_bytes(value), "Timestamp")
    nanos = timestamp.get("seconds", 0) * 10**9 + timestamp.get("nanos", 0)
    return Time.from_unix_nanos(nanos) if nanos else Time()


def _decode_int_or_string(value: int | bytes) -> int | str:
    message = _decode_message(wire.require_bytes(value), "IntOrStringMessage")
    number: int = message.get("intVal", 0)
    text: str = message.get("strVal", "")
    return text if message.get("type") else number


_DECODERS: Final[dict[str, Callable[[int | bytes], Any]]] = {
    "str": wire.decode_str,
    "int32": wire.decode_int32,
    "int64": wire.decode_int64,
    "bool": wire.decode_bool,
    "bytes": lambda value: base64.b64encode(wire.require_bytes(value)).decode(),
    "raw": wire.require_bytes,
    "Time": lambda value: _decode_time(value).wire,
    "MicroTime": lambda value: MicroTime(_decode_time(value)).wire,
    "IntOrString": _decode_int_or_string,
}


@cache
def _message_fields(type_name: str) -> dict[int, TableField]:
    return {field.number: field for field in _TABLE[type_name]}
