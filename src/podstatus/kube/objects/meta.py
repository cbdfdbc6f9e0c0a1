"""Object metadata (`metav1`), and references to other objects and fields."""

from typing import Any, Protocol

from msgspec import field

from podstatus.kube.encoding.wire_struct import Int64, Wire, nil, zero_quantity
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time


class OwnerReference(Wire, frozen=True, kw_only=True):
    api_version: str = field(default_factory=str)
    kind: str = field(default_factory=str)
    name: str = field(default_factory=str)
    uid: str = field(default_factory=str)
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Wire, frozen=True, kw_only=True):
    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    fields_v1: Any = None
    subresource: str = ""


class ObjectMeta(Wire, frozen=True, kw_only=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Time = Time()
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    managed_fields: tuple[ManagedFieldsEntry, ...] | None = None


class LabelSelectorRequirement(Wire, frozen=True, kw_only=True):
    key: str = field(default_factory=str)
    operator: str = field(default_factory=str)
    values: tuple[str, ...] | None = None


class LabelSelector(Wire, frozen=True, kw_only=True):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class LocalObjectReference(Wire, frozen=True, kw_only=True):
    name: str = ""


class ObjectReference(Wire, frozen=True, kw_only=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class ObjectFieldSelector(Wire, frozen=True, kw_only=True):
    api_version: str = ""
    field_path: str = field(default_factory=str)


class ResourceFieldSelector(Wire, frozen=True, kw_only=True):
    container_name: str = ""
    resource: str = field(default_factory=str)
    divisor: Quantity = field(default_factory=zero_quantity)


class TypedLocalObjectReference(Wire, frozen=True, kw_only=True):
    api_group: str | None = field(default_factory=nil)
    kind: str = field(default_factory=str)
    name: str = field(default_factory=str)


class TypedObjectReference(Wire, frozen=True, kw_only=True):
    api_group: str | None = field(default_factory=nil)
    kind: str = field(default_factory=str)
    name: str = field(default_factory=str)
    namespace: str | None = None


class NamedPod(Protocol):
    """Identifies a pod: the pod itself, its summary, or a reference."""

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""

    @property
    def name(self) -> str:
        """The name of the pod."""

    @property
    def uid(self) -> str:
        """The UID of the pod."""
