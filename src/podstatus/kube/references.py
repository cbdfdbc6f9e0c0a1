"""References to other objects and fields as they travel."""

from typing import Protocol

from msgspec import field

from podstatus.kube.quantity import Quantity
from podstatus.kube.wire import Wire, nil, zero_quantity


class LocalObjectReference(Wire, frozen=True, kw_only=True):
    """`v1.LocalObjectReference`."""

    name: str = ""


class ObjectReference(Wire, frozen=True, kw_only=True):
    """`v1.ObjectReference`."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class ObjectFieldSelector(Wire, frozen=True, kw_only=True):
    """`v1.ObjectFieldSelector`."""

    api_version: str = ""
    field_path: str = field(default_factory=str)


class ResourceFieldSelector(Wire, frozen=True, kw_only=True):
    """`v1.ResourceFieldSelector`."""

    container_name: str = ""
    resource: str = field(default_factory=str)
    divisor: Quantity = field(default_factory=zero_quantity)


class TypedLocalObjectReference(Wire, frozen=True, kw_only=True):
    """`v1.TypedLocalObjectReference`."""

    api_group: str | None = field(default_factory=nil)
    kind: str = field(default_factory=str)
    name: str = field(default_factory=str)


class TypedObjectReference(Wire, frozen=True, kw_only=True):
    """`v1.TypedObjectReference`."""

    api_group: str | None = field(default_factory=nil)
    kind: str = field(default_factory=str)
    name: str = field(default_factory=str)
    namespace: str | None = None


class NamedPod(Protocol):
    """Which pod is meant: a pod, its summary, or a reference to one."""

    @property
    def namespace(self) -> str:
        """The namespace it is in."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID."""
