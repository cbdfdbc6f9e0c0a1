"""Small objects as they travel: namespaces, and what holds data or keys."""

from msgspec import field

from podstatus.kube.meta import ObjectMeta
from podstatus.kube.references import LocalObjectReference, ObjectReference
from podstatus.kube.times import Time
from podstatus.kube.wire import Wire


class Named(Wire, frozen=True, kw_only=True):
    """What every object has."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class NamespaceSpec(Wire, frozen=True, kw_only=True):
    """`v1.NamespaceSpec`."""

    finalizers: tuple[str, ...] | None = None


class NamespaceCondition(Wire, frozen=True, kw_only=True):
    """`v1.NamespaceCondition`."""

    type: str = field(default_factory=str)
    status: str = field(default_factory=str)
    last_transition_time: Time = field(default_factory=Time)
    reason: str = ""
    message: str = ""


class NamespaceStatus(Wire, frozen=True, kw_only=True):
    """`v1.NamespaceStatus`."""

    phase: str = ""
    conditions: tuple[NamespaceCondition, ...] | None = None


class Namespace(Named, frozen=True, kw_only=True):
    """`v1.Namespace`."""

    spec: NamespaceSpec = field(default_factory=NamespaceSpec)
    status: NamespaceStatus = field(default_factory=NamespaceStatus)


class ConfigMap(Named, frozen=True, kw_only=True):
    """`v1.ConfigMap`."""

    immutable: bool | None = None
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None


class Secret(Named, frozen=True, kw_only=True):
    """`v1.Secret`."""

    immutable: bool | None = None
    data: dict[str, str] | None = None
    string_data: dict[str, str] | None = None
    type: str = ""


class ServiceAccount(Named, frozen=True, kw_only=True):
    """`v1.ServiceAccount`."""

    secrets: tuple[ObjectReference, ...] | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] | None = None
    automount_service_account_token: bool | None = None
