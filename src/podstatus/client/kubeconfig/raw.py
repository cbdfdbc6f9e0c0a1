"""The fields of a kubeconfig as they are in the file; unknown fields are ignored.

Upstream: clientcmd/api/v1/types.go, client-go v0.36.4.
"""

from typing import Any

import msgspec

from podstatus.client.kubeconfig.model import ExecPlugin, RedactedStruct


class RawFields(RedactedStruct, frozen=True, kw_only=True, rename="kebab"):
    """Base class: names in kebab case."""


class RawExtension(RawFields, frozen=True, kw_only=True):
    """A named extension of a cluster, for other programs."""

    name: str = ""
    extension: Any = None


class RawCluster(RawFields, frozen=True, kw_only=True):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: tuple[RawExtension, ...] = ()


class RawAuthProvider(RawFields, frozen=True, kw_only=True):
    """The `auth-provider` field, the predecessor of exec plugins."""

    name: str = ""


class RawUser(RawFields, frozen=True, kw_only=True):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: ExecPlugin | None = None
    auth_provider: RawAuthProvider | None = None
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, Any] = msgspec.field(default_factory=dict)


class RawContext(RawFields, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class RawClusterEntry(RawFields, frozen=True, kw_only=True):
    name: str = ""
    cluster: RawCluster = RawCluster()


class RawUserEntry(RawFields, frozen=True, kw_only=True):
    name: str = ""
    user: RawUser = RawUser()


class RawContextEntry(RawFields, frozen=True, kw_only=True):
    name: str = ""
    context: RawContext = RawContext()


RawEntry = RawClusterEntry | RawUserEntry | RawContextEntry


class RawKubeconfig(RawFields, frozen=True, kw_only=True):
    api_version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""
    current_context: str = ""
    clusters: tuple[RawClusterEntry, ...] = ()
    users: tuple[RawUserEntry, ...] = ()
    contexts: tuple[RawContextEntry, ...] = ()
