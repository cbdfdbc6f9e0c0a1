"""Load the client configuration of a pod in a cluster: its service account."""

import os
from collections.abc import Mapping
from pathlib import Path

from podstatus.base.clock import Clock
from podstatus.base.system_clock import SystemClock
from podstatus.client.auth.config import ResolvedClientConfig
from podstatus.client.auth.file_credentials import FileCredentials, TokenFile
from podstatus.client.auth.files import UnreadableError, read_file
from podstatus.client.auth.proxy import select_proxy
from podstatus.client.auth.tls import TlsFiles
from podstatus.client.config_errors import KubeconfigError
from podstatus.client.kubeconfig.model import Pem
from podstatus.client.kubeconfig.server_url import host_and_port, validate_server_url

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a cluster mounts the service account of a pod."""


def in_cluster_config(
    folder: Path | str = SERVICE_ACCOUNT,
    *,
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> ResolvedClientConfig:
    """Load the service account of the pod in which this process runs.

    Upstream: InClusterConfig, rest/config.go, client-go v0.36.4.
    """
    environment = os.environ if environment is None else environment
    if not is_in_cluster(environment):
        raise KubeconfigError(
            "not running in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
            "set; pass a kubeconfig"
        )
    folder = Path(folder)
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    server = f"https://{host_and_port(host, port)}"
    source = f"the service account in {folder}"
    if problem := validate_server_url(server):
        raise KubeconfigError(f"KUBERNETES_SERVICE_HOST and _PORT: {problem}")
    authority = Pem(field="CA of the cluster", path=str(folder / "ca.crt"))
    credentials = FileCredentials(
        TokenFile(str(folder / "token")), TlsFiles(authority=authority), clock or SystemClock()
    )
    credentials.validate(source)
    return ResolvedClientConfig(
        server=server,
        source=source,
        namespace=environment.get("POD_NAMESPACE") or _namespace(folder / "namespace"),
        credential_provider=credentials,
        proxy=select_proxy(server, "", environment),
    )


def is_in_cluster(environment: Mapping[str, str]) -> bool:
    """Whether the environment has the variables that a cluster sets in its pods."""
    variables = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
    return all(environment.get(name) for name in variables)


def _namespace(path: Path) -> str:
    try:
        return read_file(path).decode(errors="replace").strip() or "default"
    except UnreadableError:
        return "default"
