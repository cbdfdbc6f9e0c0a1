"""Load the client configuration: from a kubeconfig, a service account, or a token.

    async with ApiClient(load_config()) as client: …

These functions only read files and send no requests; they raise KubeconfigError.
"""

import base64
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from podstatus.base.clock import Clock
from podstatus.base.system_clock import SystemClock
from podstatus.client.auth.config import CredentialProvider, ResolvedClientConfig
from podstatus.client.auth.exec_plugin.credential_cache import ExecCredentials
from podstatus.client.auth.exec_plugin.run_plugin import PLUGIN_SECONDS, PluginCommand
from podstatus.client.auth.file_credentials import (
    AuthHeader,
    FileCredentials,
    StaticHeader,
    TokenFile,
)
from podstatus.client.auth.in_cluster_config import (
    SERVICE_ACCOUNT,
    in_cluster_config,
    is_in_cluster,
)
from podstatus.client.auth.load_kubeconfig import (
    discover_kubeconfig,
    load_kubeconfig,
    missing_message,
)
from podstatus.client.auth.proxy import select_proxy
from podstatus.client.auth.tls import TlsFiles
from podstatus.client.config_errors import KubeconfigError
from podstatus.client.kubeconfig.model import (
    Kubeconfig,
    Pem,
    ResolvedContext,
    User,
    resolve_context,
)
from podstatus.client.kubeconfig.server_url import is_loopback, validate_server_url
from podstatus.client.kubeconfig.validate import is_header_text, validate_context

logger = logging.getLogger(__name__)


def load_config(
    kubeconfig: Path | str | None = None,
    context: str | None = None,
    *,
    service_account: Path | str = SERVICE_ACCOUNT,
    environment: Mapping[str, str] | None = None,
) -> ResolvedClientConfig:
    """Load the given kubeconfig, else KUBECONFIG or ~/.kube/config, else the service account."""
    environment = os.environ if environment is None else environment
    if kubeconfig is not None:
        return kubeconfig_config(kubeconfig, context, environment=environment)
    config = discover_kubeconfig(environment)
    if config.is_empty and context is None and is_in_cluster(environment):
        return in_cluster_config(service_account, environment=environment)
    if not config.origins:
        suffix = "" if is_in_cluster(environment) else " (not running in a cluster either)"
        raise KubeconfigError(f"{missing_message(environment)}{suffix}")
    return _resolve_config(config, context or "", environment, SystemClock(), PLUGIN_SECONDS)


def kubeconfig_config(
    path: Path | str | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    plugin_seconds: float = PLUGIN_SECONDS,
) -> ResolvedClientConfig:
    """Load a kubeconfig (default: KUBECONFIG or ~/.kube/config) and one of its contexts.

    An exec plugin that runs longer than `plugin_seconds` is killed.
    """
    environment = os.environ if environment is None else environment
    config = load_kubeconfig(None if path is None else Path(path), environment)
    return _resolve_config(
        config, context or "", environment, clock or SystemClock(), plugin_seconds
    )


def token_config(
    server: str,
    token: str,
    authority: Path | str | None = None,
    *,
    namespace: str = "default",
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> ResolvedClientConfig:
    """Use a URL, a token, and a file with the trusted CA (default: the system's CAs).

    Plain HTTP is only allowed to a loopback address: a token must not be sent unencrypted.
    """
    _check_server(server, "the server")
    if not token or not is_header_text(token):
        raise KubeconfigError("the token is empty or has invalid characters")
    url = urlsplit(server)
    if url.scheme != "https" and not is_loopback(url.hostname or ""):
        raise KubeconfigError(f"a token is not sent to {server} without TLS; use https")
    pem = None if authority is None else Pem(field="authority", path=str(authority))
    tls = TlsFiles(authority=pem) if url.scheme == "https" else None
    credentials = FileCredentials(StaticHeader(f"Bearer {token}"), tls, clock or SystemClock())
    credentials.validate("the token for it")
    return ResolvedClientConfig(
        server=server,
        source="a token",
        namespace=namespace,
        credential_provider=credentials,
        proxy=select_proxy(server, "", os.environ if environment is None else environment),
    )


def _resolve_config(
    config: Kubeconfig,
    context: str,
    environment: Mapping[str, str],
    clock: Clock,
    plugin_seconds: float,
) -> ResolvedClientConfig:
    resolved = resolve_context(config, context)
    validate_context(resolved)
    cluster = resolved.cluster
    if cluster.insecure:
        logger.warning("server certificate is not verified: source=%s", resolved.source)
    return ResolvedClientConfig(
        server=cluster.server,
        source=resolved.source,
        namespace=resolved.namespace,
        credential_provider=_credential_provider(resolved, clock, plugin_seconds),
        server_hostname=cluster.tls_server_name or None,
        proxy=_proxy(resolved, environment),
    )


def _proxy(context: ResolvedContext, environment: Mapping[str, str]) -> str | None:
    try:
        return select_proxy(context.cluster.server, context.cluster.proxy_url, environment)
    except KubeconfigError as error:
        raise KubeconfigError(f"{context.source} cannot be used: {error}") from error


def _credential_provider(
    context: ResolvedContext, clock: Clock, plugin_seconds: float
) -> CredentialProvider:
    user, cluster = context.user, context.cluster
    if urlsplit(cluster.server).scheme != "https":
        # As client-go: credentials are never sent unencrypted.
        if user != User():
            logger.warning("credentials are not sent without TLS: source=%s", context.source)
        return FileCredentials(StaticHeader(None), None, clock)
    tls = TlsFiles(
        authority=next(iter(cluster.authority), None),
        certificate=next(iter(user.certificate), None),
        key=next(iter(user.key), None),
        insecure=cluster.insecure,
    )
    credentials = FileCredentials(_header(user), tls, clock)
    credentials.validate(context.source)
    if user.plugin is None:
        return credentials
    if user.token or user.token_file or user.username or user.certificate:
        logger.warning("exec plugin ignored, other credentials are set: source=%s", context.source)
        return credentials
    return ExecCredentials(PluginCommand(user.plugin, cluster, seconds=plugin_seconds), tls, clock)


def _header(user: User) -> AuthHeader:
    if user.token_file:
        return TokenFile(user.token_file, user.token)
    if user.token:
        return StaticHeader(f"Bearer {user.token}")
    if user.username or user.password:
        pair = f"{user.username}:{user.password}".encode()
        return StaticHeader(f"Basic {base64.b64encode(pair).decode()}")
    return StaticHeader(None)


def _check_server(server: str, what: str) -> None:
    if problem := validate_server_url(server):
        raise KubeconfigError(f"{what}: {problem}")
