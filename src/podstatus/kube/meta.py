"""Object metadata as it travels (`metav1`)."""

from typing import Any

from msgspec import field

from podstatus.kube.times import Time
from podstatus.kube.wire import Wire


class OwnerReference(Wire, frozen=True, kw_only=True):
    """`metav1.OwnerReference`."""

    api_version: str = field(default_factory=str)
    kind: str = field(default_factory=str)
    name: str = field(default_factory=str)
    uid: str = field(default_factory=str)
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Wire, frozen=True, kw_only=True):
    """`metav1.ManagedFieldsEntry`."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    fields_v1: Any = None
    subresource: str = ""


class ObjectMeta(Wire, frozen=True, kw_only=True):
    """`metav1.ObjectMeta`."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time = Time()
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    managed_fields: tuple[ManagedFieldsEntry, ...] | None = None


class LabelSelectorRequirement(Wire, frozen=True, kw_only=True):
    """`metav1.LabelSelectorRequirement`."""

    key: str = field(default_factory=str)
    operator: str = field(default_factory=str)
    values: tuple[str, ...] | None = None


class LabelSelector(Wire, frozen=True, kw_only=True):
    """`metav1.LabelSelector`."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None
