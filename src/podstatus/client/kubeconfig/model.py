"""The content of kubeconfigs as values: merged from several files, and one resolved context.

The values contain secrets: their reprs do not show them.

Upstream: ClientConfigLoadingRules.Load and DirectClientConfig, clientcmd of client-go v0.36.4.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from podstatus.client.config_errors import KubeconfigError
from podstatus.kube.scalars.go_text import go_quoted


class RedactedStruct(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of values that may have secrets: their repr is the name of the type."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class Pem(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates or a key: in a file, or inline in the kubeconfig."""

    field: str
    """The field, for messages: `client-key of user "dev"`."""
    path: str = ""
    data: bytes = b""

    def __repr__(self) -> str:
        return f"Pem({self.name})"

    @property
    def name(self) -> str:
        """Return the path and field for messages."""
        return f"{self.path} ({self.field})" if self.path else self.field


class Cluster(RedactedStruct, frozen=True, kw_only=True):
    """A server and its trusted CA."""

    server: str = ""
    tls_server_name: str = ""
    insecure: bool = False
    authority: tuple[Pem, ...] = ()
    """At most one; two (file and inline data) are rejected by the validation."""
    proxy_url: str = ""
    plugin_config: msgspec.Raw | None = None
    """Configuration for exec plugins, as JSON."""


class PluginVariable(msgspec.Struct, frozen=True, kw_only=True):
    """An environment variable of a plugin."""

    name: str = ""
    value: str = ""

    def __repr__(self) -> str:
        return f"PluginVariable({self.name})"


class ExecPlugin(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A command that returns credentials: the `exec` field of a user."""

    command: str = ""
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[PluginVariable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""

    def __repr__(self) -> str:
        return f"ExecPlugin({self.command})"


class User(RedactedStruct, frozen=True, kw_only=True):
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    certificate: tuple[Pem, ...] = ()
    key: tuple[Pem, ...] = ()
    plugin: ExecPlugin | None = None
    auth_provider: str = ""
    impersonates: bool = False

    @property
    def secret_files(self) -> tuple[str, ...]:
        """Return the files whose content would allow others to act as this user."""
        paths = (self.token_file, *(pem.path for pem in self.key))
        return tuple(path for path in paths if path)


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A combination of cluster, user and namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""
    origin: str = ""
    """The file that has the context."""


class Kubeconfig(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one file, or of several merged files."""

    origins: tuple[str, ...] = ()
    current_context: str = ""
    clusters: Mapping[str, Cluster] = {}
    users: Mapping[str, User] = {}
    contexts: Mapping[str, Context] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the kubeconfig has no entries at all."""
        return not (self.current_context or self.clusters or self.users or self.contexts)


class ResolvedContext(msgspec.Struct, frozen=True, kw_only=True):
    context: str
    origin: str
    cluster_name: str
    cluster: Cluster
    user_name: str
    user: User
    namespace: str

    @property
    def source(self) -> str:
        """Return the context and its file, for messages."""
        return f"context {go_quoted(self.context)} of {self.origin}"


def merge_kubeconfigs(configs: Iterable[Kubeconfig]) -> Kubeconfig:
    """Merge several files; the first file that has an entry wins."""
    result = Kubeconfig()
    for config in configs:
        result = Kubeconfig(
            origins=result.origins + config.origins,
            current_context=result.current_context or config.current_context,
            clusters={**config.clusters, **result.clusters},
            users={**config.users, **result.users},
            contexts={**config.contexts, **result.contexts},
        )
    return result


def resolve_context(config: Kubeconfig, context: str = "") -> ResolvedContext:
    """Return the given or the current context. Raises KubeconfigError if an entry is missing."""
    where = " and ".join(config.origins)
    name = context or config.current_context
    if not name:
        raise KubeconfigError(
            f"{where} has no current-context; set one with `kubectl config use-context`, or "
            f"specify one of its contexts: {_format_names(config.contexts)}"
        )
    entry = _entry(config.contexts, name, f"{where} has no context {go_quoted(name)}", "contexts")
    prefix = f"context {go_quoted(name)} of {entry.origin} refers to"
    return ResolvedContext(
        context=name,
        origin=entry.origin,
        cluster_name=entry.cluster,
        cluster=_resolve_reference(config.clusters, entry.cluster, prefix, "cluster"),
        user_name=entry.user,
        user=_resolve_reference(config.users, entry.user, prefix, "user"),
        namespace=entry.namespace or "default",
    )


Entry = TypeVar("Entry")


def _resolve_reference(entries: Mapping[str, Entry], name: str, prefix: str, kind: str) -> Entry:
    if not name:
        raise KubeconfigError(
            f"{prefix} no {kind}; specify one of its {kind}s: {_format_names(entries)}"
        )
    return _entry(
        entries, name, f"{prefix} {kind} {go_quoted(name)}, which does not exist", f"{kind}s"
    )


def _entry(entries: Mapping[str, Entry], name: str, error: str, kind: str) -> Entry:
    try:
        return entries[name]
    except KeyError:
        raise KubeconfigError(f"{error}; its {kind} are: {_format_names(entries)}") from None


_MAX_NAMES = 10
"""Keeps the error message on one line."""


def _format_names(names: Iterable[str]) -> str:
    texts = [name if name.isprintable() else go_quoted(name) for name in sorted(names)]
    more = f" and {len(texts) - _MAX_NAMES} more" if len(texts) > _MAX_NAMES else ""
    return ", ".join(texts[:_MAX_NAMES]) + more if texts else "none"
