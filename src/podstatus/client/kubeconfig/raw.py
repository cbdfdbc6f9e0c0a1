"""The fields of a kubeconfig, as they are written; others are ignored.

Upstream: clientcmd/api/v1/types.go, client-go v0.36.4.
"""

from typing import Any, Protocol

import msgspec


class RawFields(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Fields with hyphens, as most are. They hold secrets: never shown."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class RawEntry(Protocol):
    """An entry of one of the lists."""

    @property
    def name(self) -> str:
        """What others call it."""


class RawExtension(RawFields, frozen=True, kw_only=True):
    """What somebody keeps in a kubeconfig for himself."""

    name: str = ""
    extension: Any = None


class RawCluster(RawFields, frozen=True, kw_only=True):
    """A server."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: tuple[RawExtension, ...] = ()


class RawEnvVar(RawFields, frozen=True, kw_only=True):
    """A variable for a plugin."""

    name: str = ""
    value: str = ""


class RawExecConfig(RawFields, frozen=True, kw_only=True, rename="camel"):
    """A plugin."""

    command: str = ""
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[RawEnvVar, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class RawAuthProvider(RawFields, frozen=True, kw_only=True):
    """What plugins were before they were commands."""

    name: str = ""


class RawUser(RawFields, frozen=True, kw_only=True):
    """Who we are."""

    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: RawExecConfig | None = None
    auth_provider: RawAuthProvider | None = None
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, Any] = {}


class RawContext(RawFields, frozen=True, kw_only=True):
    """Who, where."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class RawClusterEntry(RawFields, frozen=True, kw_only=True):
    """An entry of `clusters`."""

    name: str = ""
    cluster: RawCluster = RawCluster()


class RawUserEntry(RawFields, frozen=True, kw_only=True):
    """An entry of `users`."""

    name: str = ""
    user: RawUser = RawUser()


class RawContextEntry(RawFields, frozen=True, kw_only=True):
    """An entry of `contexts`."""

    name: str = ""
    context: RawContext = RawContext()


class RawKubeconfig(RawFields, frozen=True, kw_only=True):
    """A whole file."""

    api_version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""
    current_context: str = ""
    clusters: tuple[RawClusterEntry, ...] = ()
    users: tuple[RawUserEntry, ...] = ()
    contexts: tuple[RawContextEntry, ...] = ()
