"""Find out how to reach a server: from a kubeconfig, inside of a cluster, or as told.

    async with ApiClient(default_access()) as client: …

All of these look at files only, and ask nobody; they raise KubeconfigError.
"""

import base64
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from podstatus.base.aio import SystemClock
from podstatus.base.clock import Clock
from podstatus.client.auth.config import Identity, ServerAccess
from podstatus.client.auth.exec_plugin import PluginIdentity
from podstatus.client.auth.exec_process import PLUGIN_SECONDS, PluginCommand
from podstatus.client.auth.file_credentials import FileIdentity, FixedHeader, Header, TokenFile
from podstatus.client.auth.files import UnreadableError, read_file
from podstatus.client.auth.load_kubeconfig import found_kubeconfig, load_kubeconfig, missing_message
from podstatus.client.auth.proxy import chosen_proxy
from podstatus.client.auth.tls import TlsFiles
from podstatus.client.errors import CredentialsError, KubeconfigError
from podstatus.client.kubeconfig.model import Choice, Kubeconfig, Pem, User, pick
from podstatus.client.kubeconfig.server_url import host_and_port, is_loopback, server_problem
from podstatus.client.kubeconfig.validate import check_choice, is_header_text

logger = logging.getLogger(__name__)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""What a cluster gives its pods."""


def default_access(
    kubeconfig: Path | str | None = None,
    context: str | None = None,
    *,
    service_account: Path | str = SERVICE_ACCOUNT,
    environment: Mapping[str, str] | None = None,
) -> ServerAccess:
    """By the named kubeconfig, else by KUBECONFIG or ~/.kube/config, else inside of a cluster."""
    environment = os.environ if environment is None else environment
    if kubeconfig is not None:
        return kubeconfig_access(kubeconfig, context, environment=environment)
    config = found_kubeconfig(environment)
    if config.is_empty and context is None and is_in_cluster(environment):
        return in_cluster_access(service_account, environment=environment)
    if not config.origins:
        elsewhere = "" if is_in_cluster(environment) else " (and this is no pod of a cluster)"
        raise KubeconfigError(f"{missing_message(environment)}{elsewhere}")
    return _access(config, context or "", environment, SystemClock(), PLUGIN_SECONDS)


def kubeconfig_access(
    path: Path | str | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    plugin_seconds: float = PLUGIN_SECONDS,
) -> ServerAccess:
    """By a kubeconfig and one of its contexts; by the usual ones if none is named.

    A plugin that takes longer than `plugin_seconds` is ended.
    """
    environment = os.environ if environment is None else environment
    config = load_kubeconfig(None if path is None else Path(path), environment)
    return _access(config, context or "", environment, clock or SystemClock(), plugin_seconds)


def in_cluster_access(
    folder: Path | str = SERVICE_ACCOUNT,
    *,
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> ServerAccess:
    """As the service account of the pod that we run in.

    Upstream: InClusterConfig, rest/config.go, client-go v0.36.4.
    """
    environment = os.environ if environment is None else environment
    if not is_in_cluster(environment):
        raise KubeconfigError(
            "not inside of a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
            "set; pass a kubeconfig"
        )
    folder = Path(folder)
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    server = f"https://{host_and_port(host, port)}"
    source = f"the service account in {folder}"
    _check_server(server, "KUBERNETES_SERVICE_HOST and _PORT")
    authority = Pem(field="the cluster's authority", path=str(folder / "ca.crt"))
    identity = FileIdentity(
        TokenFile(str(folder / "token")), TlsFiles(authority=authority), clock or SystemClock()
    )
    _look_first(identity, source)
    return ServerAccess(
        server=server,
        source=source,
        namespace=environment.get("POD_NAMESPACE") or _namespace(folder / "namespace"),
        identity=identity,
        proxy=chosen_proxy(server, "", environment),
    )


def token_access(
    server: str,
    token: str,
    authority: Path | str | None = None,
    *,
    namespace: str = "default",
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> ServerAccess:
    """By an address, a token, and a file with the certificate to trust (else the system's).

    Without TLS only on this machine: a token must not travel in the open.
    """
    _check_server(server, "the server")
    if not token or not is_header_text(token):
        raise KubeconfigError("the token is empty or has characters that no token has")
    where = urlsplit(server)
    if where.scheme != "https" and not is_loopback(where.hostname or ""):
        raise KubeconfigError(f"a token is not sent to {server} without TLS; use https")
    pem = None if authority is None else Pem(field="authority", path=str(authority))
    tls = TlsFiles(authority=pem) if where.scheme == "https" else None
    identity = FileIdentity(FixedHeader(f"Bearer {token}"), tls, clock or SystemClock())
    _look_first(identity, "the token for it")
    return ServerAccess(
        server=server,
        source="a token",
        namespace=namespace,
        identity=identity,
        proxy=chosen_proxy(server, "", os.environ if environment is None else environment),
    )


def is_in_cluster(environment: Mapping[str, str]) -> bool:
    """Whether we run in a pod that may know its API server."""
    variables = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
    return all(environment.get(name) for name in variables)


def _access(
    config: Kubeconfig,
    context: str,
    environment: Mapping[str, str],
    clock: Clock,
    plugin_seconds: float,
) -> ServerAccess:
    choice = pick(config, context)
    check_choice(choice)
    cluster = choice.cluster
    if cluster.insecure:
        logger.warning("the server's certificate is not checked: source=%s", choice.source)
    return ServerAccess(
        server=cluster.server,
        source=choice.source,
        namespace=choice.namespace,
        identity=_identity(choice, clock, plugin_seconds),
        server_hostname=cluster.tls_server_name or None,
        proxy=_proxy(choice, environment),
    )


def _proxy(choice: Choice, environment: Mapping[str, str]) -> str | None:
    try:
        return chosen_proxy(choice.cluster.server, choice.cluster.proxy_url, environment)
    except KubeconfigError as error:
        raise KubeconfigError(f"{choice.source} cannot be used: {error}") from error


def _identity(choice: Choice, clock: Clock, plugin_seconds: float) -> Identity:
    user, cluster = choice.user, choice.cluster
    if urlsplit(cluster.server).scheme != "https":
        # As client-go: what says who we are never travels in the open.
        if user != User():
            logger.warning("no credentials are sent without TLS: source=%s", choice.source)
        return FileIdentity(FixedHeader(None), None, clock)
    tls = TlsFiles(
        authority=next(iter(cluster.authority), None),
        certificate=next(iter(user.certificate), None),
        key=next(iter(user.key), None),
        insecure=cluster.insecure,
    )
    written = FileIdentity(_header(user), tls, clock)
    _look_first(written, choice.source)
    if user.plugin is None:
        return written
    if user.token or user.token_file or user.username or user.certificate:
        logger.warning("exec plugin not used, there are credentials: source=%s", choice.source)
        return written
    return PluginIdentity(PluginCommand(user.plugin, cluster, seconds=plugin_seconds), tls, clock)


def _header(user: User) -> Header:
    if user.token_file:
        return TokenFile(user.token_file, user.token)
    if user.token:
        return FixedHeader(f"Bearer {user.token}")
    if user.username or user.password:
        pair = f"{user.username}:{user.password}".encode()
        return FixedHeader(f"Basic {base64.b64encode(pair).decode()}")
    return FixedHeader(None)


def _look_first(identity: FileIdentity, source: str) -> None:
    """Find what is missing now, and not with the first request."""
    try:
        identity.look()
    except (CredentialsError, KubeconfigError) as error:
        raise KubeconfigError(f"{source} cannot be used: {error}") from error


def _check_server(server: str, what: str) -> None:
    if problem := server_problem(server):
        raise KubeconfigError(f"{what}: {problem}")


def _namespace(path: Path) -> str:
    try:
        return read_file(path).decode(errors="replace").strip() or "default"
    except UnreadableError:
        return "default"
