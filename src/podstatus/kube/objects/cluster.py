"""Namespace, ConfigMap, Secret, ServiceAccount, Lease (coordination.k8s.io/v1), and the bodies of
requests: Binding, DeleteOptions."""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Base64, Int64, Wire
from podstatus.kube.objects.meta import LocalObjectReference, ObjectMeta, ObjectReference
from podstatus.kube.scalars.time import MicroTime, Time


class KubeObject(Wire, frozen=True, kw_only=True):
    """The fields that all API objects have."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class NamespaceSpec(Wire, frozen=True, kw_only=True):
    finalizers: tuple[str, ...] | None = None


class NamespaceCondition(Wire, frozen=True, kw_only=True):
    type: str = field(default_factory=str)
    status: str = field(default_factory=str)
    last_transition_time: Time = field(default_factory=Time)
    reason: str = ""
    message: str = ""


class NamespaceStatus(Wire, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[NamespaceCondition, ...] | None = None


class Namespace(KubeObject, frozen=True, kw_only=True):
    spec: NamespaceSpec = field(default_factory=NamespaceSpec)
    status: NamespaceStatus = field(default_factory=NamespaceStatus)


class ConfigMap(KubeObject, frozen=True, kw_only=True):
    immutable: bool | None = None
    data: dict[str, str] | None = None
    binary_data: dict[str, Base64] | None = None


class Secret(KubeObject, frozen=True, kw_only=True):
    immutable: bool | None = None
    data: dict[str, Base64] | None = None
    string_data: dict[str, str] | None = None
    type: str = ""


class ServiceAccount(KubeObject, frozen=True, kw_only=True):
    secrets: tuple[ObjectReference, ...] | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] | None = None
    automount_service_account_token: bool | None = None


class LeaseSpec(Wire, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubeObject, frozen=True, kw_only=True):
    spec: LeaseSpec = field(default_factory=LeaseSpec)


class Binding(KubeObject, frozen=True, kw_only=True):
    target: ObjectReference = field(default_factory=ObjectReference)


class Preconditions(Wire, frozen=True, kw_only=True):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Wire, frozen=True, kw_only=True):
    kind: str = ""
    api_version: str = ""
    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
