"""The fields of a kubeconfig, as they are written; others are ignored.

Upstream: clientcmd/api/v1/types.go, client-go v0.36.4.
"""

from typing import Any, Protocol

import msgspec


class Written(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Fields with hyphens, as most are. They hold secrets: never shown."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class NamedEntry(Protocol):
    """An entry of one of the lists."""

    @property
    def name(self) -> str:
        """What others call it."""


class WrittenExtension(Written, frozen=True, kw_only=True):
    """What somebody keeps in a kubeconfig for himself."""

    name: str = ""
    extension: Any = None


class WrittenCluster(Written, frozen=True, kw_only=True):
    """A server."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: tuple[WrittenExtension, ...] = ()


class WrittenVariable(Written, frozen=True, kw_only=True):
    """A variable for a plugin."""

    name: str = ""
    value: str = ""


class WrittenExec(Written, frozen=True, kw_only=True, rename="camel"):
    """A plugin."""

    command: str = ""
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[WrittenVariable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class WrittenProvider(Written, frozen=True, kw_only=True):
    """What plugins were before they were commands."""

    name: str = ""


class WrittenUser(Written, frozen=True, kw_only=True):
    """Who we are."""

    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: WrittenExec | None = None
    auth_provider: WrittenProvider | None = None
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, Any] = {}


class WrittenContext(Written, frozen=True, kw_only=True):
    """Who, where."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(Written, frozen=True, kw_only=True):
    """An entry of `clusters`."""

    name: str = ""
    cluster: WrittenCluster = WrittenCluster()


class NamedUser(Written, frozen=True, kw_only=True):
    """An entry of `users`."""

    name: str = ""
    user: WrittenUser = WrittenUser()


class NamedContext(Written, frozen=True, kw_only=True):
    """An entry of `contexts`."""

    name: str = ""
    context: WrittenContext = WrittenContext()


class WrittenConfig(Written, frozen=True, kw_only=True):
    """A whole file."""

    api_version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""
    current_context: str = ""
    clusters: tuple[NamedCluster, ...] = ()
    users: tuple[NamedUser, ...] = ()
    contexts: tuple[NamedContext, ...] = ()
