"""Namespace, ConfigMap, Secret, ServiceAccount and Lease."""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.meta import LocalObjectReference, ObjectMeta, ObjectReference
from podstatus.kube.scalars.time import MicroTime, Time


class KubeObject(Wire, frozen=True, kw_only=True):
    """The fields that all API objects have."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class NamespaceSpec(Wire, frozen=True, kw_only=True):
    """The Kubernetes API type `v1.NamespaceSpec`."""

    finalizers: tuple[str, ...] | None = None


class NamespaceCondition(Wire, frozen=True, kw_only=True):
    """The Kubernetes API type `v1.NamespaceCondition`."""

    type: str = field(default_factory=str)
    status: str = field(default_factory=str)
    last_transition_time: Time = field(default_factory=Time)
    reason: str = ""
    message: str = ""


class NamespaceStatus(Wire, frozen=True, kw_only=True):
    """The Kubernetes API type `v1.NamespaceStatus`."""

    phase: str = ""
    conditions: tuple[NamespaceCondition, ...] | None = None


class Namespace(KubeObject, frozen=True, kw_only=True):
    """The Kubernetes API type `v1.Namespace`."""

    spec: NamespaceSpec = field(default_factory=NamespaceSpec)
    status: NamespaceStatus = field(default_factory=NamespaceStatus)


class ConfigMap(KubeObject, frozen=True, kw_only=True):
    """The Kubernetes API type `v1.ConfigMap`."""

    immutable: bool | None = None
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None


class Secret(KubeObject, frozen=True, kw_only=True):
    """The Kubernetes API type `v1.Secret`."""

    immutable: bool | None = None
    data: dict[str, str] | None = None
    string_data: dict[str, str] | None = None
    type: str = ""


class ServiceAccount(KubeObject, frozen=True, kw_only=True):
    """The Kubernetes API type `v1.ServiceAccount`."""

    secrets: tuple[ObjectReference, ...] | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] | None = None
    automount_service_account_token: bool | None = None


class LeaseSpec(Wire, frozen=True, kw_only=True):
    """The Kubernetes API type `coordination.k8s.io/v1.LeaseSpec`."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Wire, frozen=True, kw_only=True):
    """The Kubernetes API type `coordination.k8s.io/v1.Lease`."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LeaseSpec = field(default_factory=LeaseSpec)
