"""What kubeconfigs say, as values: merged from several files, one context picked out of them.

Secrets are in here: no value shows them when it is printed.

Upstream: ClientConfigLoadingRules.Load and DirectClientConfig, clientcmd of client-go v0.36.4.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from podstatus.client.errors import KubeconfigError
from podstatus.kube.scalars.go_text import go_quoted


class Pem(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates or a key: in a file, or in the kubeconfig itself."""

    field: str
    """Who has it, for messages: `client-key of user "dev"`."""
    path: str = ""
    data: bytes = b""

    def __repr__(self) -> str:
        return f"Pem({self.name})"

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return f"{self.path} ({self.field})" if self.path else self.field


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is, and whom to trust there."""

    server: str = ""
    tls_server_name: str = ""
    insecure: bool = False
    authority: tuple[Pem, ...] = ()
    """At most one is of use; two are a contradiction."""
    proxy_url: str = ""
    plugin_config: msgspec.Raw | None = None
    """What exec plugins are to know of this cluster, JSON."""

    def __repr__(self) -> str:
        return "Cluster(…)"


class ExecPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """A command that says who we are."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""

    def __repr__(self) -> str:
        return f"ExecPlugin({self.command})"


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are."""

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
        """Files by which somebody else could be this user."""
        named = (self.token_file, *(pem.path for pem in self.key))
        return tuple(path for path in named if path)

    def __repr__(self) -> str:
        return "User(…)"


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A user at a cluster."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""
    origin: str = ""
    """The file that it is in."""


class Kubeconfig(msgspec.Struct, frozen=True, kw_only=True):
    """All that a file says, or several files together."""

    origins: tuple[str, ...] = ()
    current_context: str = ""
    clusters: Mapping[str, Cluster] = {}
    users: Mapping[str, User] = {}
    contexts: Mapping[str, Context] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is said."""
        return not (self.current_context or self.clusters or self.users or self.contexts)


class ResolvedContext(msgspec.Struct, frozen=True, kw_only=True):
    """One context, with what it refers to."""

    context: str
    origin: str
    cluster_name: str
    cluster: Cluster
    user_name: str
    user: User
    namespace: str

    @property
    def source(self) -> str:
        """Who said so, for messages."""
        return f"context {go_quoted(self.context)} of {self.origin}"


def merge_kubeconfigs(configs: Iterable[Kubeconfig]) -> Kubeconfig:
    """Several files as one: whoever says something first is right, entry by entry."""
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
    """The named context, or the current one. Raises KubeconfigError if something is missing."""
    where = " and ".join(config.origins)
    name = context or config.current_context
    if not name:
        raise KubeconfigError(
            f"{where} has no current-context; choose one with `kubectl config use-context`, or "
            f"name one of its contexts: {_format_names(config.contexts)}"
        )
    found = _entry(config.contexts, name, f"{where} has no context {go_quoted(name)}", "contexts")
    said = f"context {go_quoted(name)} of {found.origin} names"
    return ResolvedContext(
        context=name,
        origin=found.origin,
        cluster_name=found.cluster,
        cluster=_resolve_reference(config.clusters, found.cluster, said, "cluster"),
        user_name=found.user,
        user=_resolve_reference(config.users, found.user, said, "user"),
        namespace=found.namespace or "default",
    )


Entry = TypeVar("Entry")


def _resolve_reference(entries: Mapping[str, Entry], name: str, prefix: str, kind: str) -> Entry:
    if not name:
        raise KubeconfigError(
            f"{prefix} no {kind}; name one of its {kind}s: {_format_names(entries)}"
        )
    return _entry(
        entries, name, f"{prefix} {kind} {go_quoted(name)}, which is not there", f"{kind}s"
    )


def _entry(entries: Mapping[str, Entry], name: str, complaint: str, kind: str) -> Entry:
    try:
        return entries[name]
    except KeyError:
        raise KubeconfigError(f"{complaint}; its {kind} are: {_format_names(entries)}") from None


_MAX_NAMES = 10
"""As many as a line has room for."""


def _format_names(names: Iterable[str]) -> str:
    known = [name if name.isprintable() else go_quoted(name) for name in sorted(names)]
    more = f" and {len(known) - _MAX_NAMES} more" if len(known) > _MAX_NAMES else ""
    return ", ".join(known[:_MAX_NAMES]) + more if known else "none"
