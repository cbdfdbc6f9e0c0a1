"""Build the agent's HTTPS server: certificate, token, authorization, and the pods that it
serves."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from podstatus.agent.compose.node import node_settings
from podstatus.agent.compose.serving_certificate import (
    KubeletServerError,
    certificate_names,
    ensure_agent_token,
    ensure_certificate,
    server_context,
)
from podstatus.agent.daemon.apiserver_main import reachable_host
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.client.api_client import ApiClient
from podstatus.client.typed.reviews import HttpReviews
from podstatus.kube.objects.pod import Pod
from podstatus.node.machine.addresses import node_addresses
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import RuntimePod
from podstatus.status.manager import StatusManager
from podstatus.web.auth.authorizer import Authorizer
from podstatus.web.handlers import HandlerDependencies, Handlers
from podstatus.web.ports import ServerOptions
from podstatus.web.server import NodeServer

WEBHOOK_MODE = "Webhook"


class KubeletServerFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What the port needs of the disk."""

    certificate: Path
    """What clients have to trust, unless it is signed by whom they trust anyway."""
    key: Path
    token: str
    """Who has it may everything."""
    client_ca: Path | None = None
    """Whose certificates make a client known."""

    def __repr__(self) -> str:
        return f"PortFiles(certificate={str(self.certificate)!r}, …)"


def ensure_server_certificate(settings: AgentSettings, pki: Path, now: int) -> tuple[Path, Path]:
    """The certificate that the port will show, and its key; made if there is none.

    To be called before an API server is started that is to trust it. Raises CannotServeNodeError.
    """
    given, key = settings.tls_cert_file, settings.tls_private_key_file
    if given is not None and key is not None:
        return given, key
    if given is not None or key is not None:
        missing = "--tls-cert-file" if given is None else "--tls-private-key-file"
        raise KubeletServerError(f"{missing} is missing; pass a certificate with its key, or none")
    addresses = [it.address for it in node_addresses(node_settings(settings))]
    return ensure_certificate(pki, settings.node_name, addresses, now)


def ensure_server_files(
    settings: AgentSettings,
    pki: Path,
    now: int,
    *,
    token: str = "",
    own_client_ca: Path | None = None,
) -> KubeletServerFiles:
    """What the port needs of the disk. Raises CannotServeNodeError.

    `token` and `own_client_ca` are those of our own API server, if we have one: it speaks to us
    with a certificate of its own.
    """
    certificate, key = ensure_server_certificate(settings, pki, now)
    return KubeletServerFiles(
        certificate=certificate,
        key=key,
        token=token or ensure_agent_token(pki),
        client_ca=settings.client_ca_file or own_client_ca,
    )


class KubeletServer:
    """The port, from `start` to `stop`."""

    def __init__(
        self,
        settings: AgentSettings,
        files: KubeletServerFiles,
        sources: HandlerDependencies,
        client: ApiClient,
        clock: Clock,
        *,
        node_name: str | None = None,
    ) -> None:
        """`client` asks the API server who others are and what they may.

        That of the node `node_name`: our own if it is None, that of any if it is empty.
        """
        self._settings = settings
        self._files = files
        self._sources = sources
        name = settings.node_name if node_name is None else node_name
        self._options = _server_options(settings, files.token, name)
        self._reviews = HttpReviews(client)
        self._clock = clock
        self._server: NodeServer | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """Where it listens; 0 before it does. For the Node's `kubeletEndpoint`."""
        return self._port

    @property
    def url(self) -> str:
        """Where it is asked from this machine."""
        host = reachable_host(self._settings.address)
        return f"https://[{host}]:{self._port}" if ":" in host else f"https://{host}:{self._port}"

    async def start(self) -> int:
        """Begin to listen; the port. Raises CannotServeNodeError."""
        files, settings = self._files, self._settings
        server = NodeServer(
            Handlers(self._sources, self._options, self._clock),
            Authorizer(self._options, self._reviews),
            ssl_context=server_context(files.certificate, files.key, files.client_ca),
            host=settings.address,
            port=settings.port,
            names=(settings.node_name, *certificate_names(files.certificate)),
        )
        try:
            self._port = await server.start()
        except OSError as error:
            why = (os.strerror(error.errno) if error.errno else str(error)).lower()
            raise KubeletServerError(
                f"cannot listen on {settings.address} port {settings.port}: {why}; stop what uses "
                "it, or pass another --port (0 for any) or --address"
            ) from error
        self._server = server
        return self._port

    async def stop(self) -> None:
        """End all streams and connections."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()


def _server_options(settings: AgentSettings, token: str, node_name: str) -> ServerOptions:
    return ServerOptions(
        node_name=node_name,
        token=token,
        token_webhook=settings.authentication_token_webhook,
        authorization_webhook=settings.authorization_mode == WEBHOOK_MODE,
        token_cache_seconds=settings.authentication_token_webhook_cache_ttl,
        allowed_cache_seconds=settings.authorization_webhook_cache_authorized_ttl,
        denied_cache_seconds=settings.authorization_webhook_cache_unauthorized_ttl,
        idle_timeout_seconds=settings.streaming_connection_idle_timeout,
        max_streams=settings.max_streams,
    )


class AgentPods:
    """Pods of the directory with what is decided about them; and those of the runtime."""

    def __init__(self, pod_manager: PodManager, status_manager: StatusManager, pleg: Pleg) -> None:
        self._pod_manager = pod_manager
        self._status_manager = status_manager
        self._pleg = pleg

    def pods(self) -> list[Pod]:
        """All that are to run here, each with its newest status."""
        return [self._with_status(pod) for pod in self._pod_manager.pods()]

    def find_pod(self, namespace: str, name: str, uid: str = "") -> Pod | None:
        """One of them; if a UID is given, only if it has that one, or its mirror pod has."""
        pod = self._pod_manager.pod_by_name(namespace, name)
        if pod is None or (uid and self._pod_manager.translate_pod_uid(uid) != pod.uid):
            return None
        return self._with_status(pod)

    def running_pods(self) -> Sequence[RuntimePod]:
        """Those of which the runtime has something."""
        return list(self._pleg.pods().values())

    def _with_status(self, pod: Pod) -> Pod:
        status = self._status_manager.pod_status(pod.uid)
        # Just after a start, what the API server shows is the newest there is.
        return pod if status is None else structs.replace(pod, status=status)
