"""Open the API server of a kubeconfig, or that of the agent in a root directory."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.client.running_agent import running_endpoints
from podstatus.cli.client.server_objects import ServerObjects, WatchableObjects
from podstatus.client.config_errors import KubeconfigError
from podstatus.client.token_client import TokenClient

if TYPE_CHECKING:
    from podstatus.client.auth.config import ClientConfig

_CONNECT_SECONDS = 3.0
_NAMESPACE = "default"
"""The namespace used when none is given, on the embedded server."""


@contextmanager
def open_server(
    root_dir: Path | None,
    kubeconfig: Path | None,
    environment: Mapping[str, str],
    *,
    watch: bool = False,
) -> Iterator[ServerObjects]:
    """Yield the objects of the server, `WatchableObjects` for a watch. Raises RequestError."""
    endpoints = None
    if kubeconfig is None:
        endpoints = running_endpoints(root_dir, environment, alternative=", or a --kubeconfig")
    is_embedded = endpoints is not None and endpoints.embeds_api_server
    try:
        if endpoints is not None and is_embedded and not watch:
            with TokenClient(
                endpoints.apiserver,
                token=endpoints.token,
                authority=Path(endpoints.certificate_authority),
                connect_seconds=_CONNECT_SECONDS,
            ) as client:
                yield ServerObjects(client, namespace=_NAMESPACE)
            return
        # Imported here: aiohttp takes longer to import than most commands run.
        from podstatus.client.rest.http_transport import Timeouts
        from podstatus.client.sync_client import SyncClient

        config = _client_config(kubeconfig, endpoints)
        timeouts = Timeouts(connect_seconds=_CONNECT_SECONDS)
        with SyncClient(config, timeouts=timeouts) as sync_client:
            yield WatchableObjects(
                sync_client, namespace=_NAMESPACE if is_embedded else sync_client.namespace
            )
    except KubeconfigError as error:
        raise RequestError(str(error)) from error


def _client_config(kubeconfig: Path | None, endpoints: AgentEndpoints | None) -> "ClientConfig":
    """Return the server and the credentials. Raises KubeconfigError."""
    from podstatus.client.auth.in_cluster_config import in_cluster_config
    from podstatus.client.auth.load_config import kubeconfig_config

    if kubeconfig is not None:
        return kubeconfig_config(kubeconfig.expanduser())
    if endpoints is not None and endpoints.kubeconfig:
        return kubeconfig_config(endpoints.kubeconfig)
    return in_cluster_config()
