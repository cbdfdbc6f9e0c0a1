"""Build the agent's HTTPS server: certificate, token, authorization, pods."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from podstatus.agent.compose.held_back_phases import HeldBackPhases
from podstatus.agent.compose.node_services import node_settings
from podstatus.agent.compose.serving_certificate import (
    certificate_names,
    ensure_agent_token,
    ensure_certificate,
    server_context,
)
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.client.api_client import ApiClient
from podstatus.client.kubeconfig.server_url import local_url
from podstatus.client.typed.reviews import HttpReviews
from podstatus.kube.objects.pod import Pod
from podstatus.node.machine.node_addresses import node_addresses
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
    """The files and the token of the HTTPS server."""

    certificate: Path
    """The serving certificate; clients must trust it unless a trusted CA signed it."""
    key: Path
    token: str
    """Bearer token with all permissions."""
    client_ca: Path | None = None
    """CA bundle for client certificates."""

    def __repr__(self) -> str:
        return f"KubeletServerFiles(certificate={str(self.certificate)!r}, …)"


def ensure_server_certificate(settings: AgentSettings, pki: Path, now: int) -> tuple[Path, Path]:
    """Return the serving certificate and its key; create them if none are configured.

    Must run before the embedded API server starts, which trusts the certificate.
    Raises AgentError.
    """
    certificate, key = settings.tls_cert_file, settings.tls_private_key_file
    if certificate is not None and key is not None:
        return certificate, key
    if certificate is not None or key is not None:
        missing = "--tls-cert-file" if certificate is None else "--tls-private-key-file"
        message = f"{missing} is missing; pass a certificate and its key, or none"
        raise AgentError(message, code=EXIT_CONFIG)
    addresses = [it.address for it in node_addresses(node_settings(settings, None))]
    return ensure_certificate(pki, settings.node_name, addresses, now)


def ensure_server_files(
    settings: AgentSettings,
    pki: Path,
    now: int,
    *,
    token: str = "",
    own_client_ca: Path | None = None,
) -> KubeletServerFiles:
    """Return the files and the token of the HTTPS server. Raises AgentError.

    `token` and `own_client_ca` belong to the embedded API server, if there is one; it
    authenticates to the agent with a client certificate.
    """
    certificate, key = ensure_server_certificate(settings, pki, now)
    return KubeletServerFiles(
        certificate=certificate,
        key=key,
        token=token or ensure_agent_token(pki),
        client_ca=settings.client_ca_file or own_client_ca,
    )


class KubeletServer:
    """The agent's HTTPS server, listening from `start` to `stop`."""

    def __init__(
        self,
        settings: AgentSettings,
        files: KubeletServerFiles,
        client: ApiClient,
        clock: Clock,
        *,
        node_name: str,
    ) -> None:
        """`client` sends TokenReviews and SubjectAccessReviews.

        Requests are authorized for the Node `node_name`, or for all nodes if it is empty.
        """
        self._settings = settings
        self._files = files
        self._options = _server_options(settings, files.token, node_name)
        self._reviews = HttpReviews(client)
        self._clock = clock
        self._server: NodeServer | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """The port for the Node's `kubeletEndpoint`; 0 before `start`."""
        return self._port

    @property
    def url(self) -> str:
        """The URL for clients on this machine; empty before `start`."""
        return local_url(self._settings.address, self._port) if self._port else ""

    async def start(self, dependencies: HandlerDependencies) -> str:
        """Start to listen, and return the URL. Raises AgentError."""
        files, settings = self._files, self._settings
        server = NodeServer(
            Handlers(dependencies, self._options, self._clock),
            Authorizer(self._options, self._reviews, self._clock),
            ssl_context=server_context(files.certificate, files.key, files.client_ca),
            host=settings.address,
            port=settings.port,
            names=(settings.node_name, *certificate_names(files.certificate)),
        )
        try:
            self._port = await server.start()
        except OSError as error:
            reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
            raise AgentError(
                f"cannot listen on {settings.address} port {settings.port}: {reason}; stop the "
                "process that uses it, or pass another --port (0 picks a free one) or --address"
            ) from error
        self._server = server
        return self.url

    async def stop(self) -> None:
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
    """The pods that the HTTPS server serves: desired pods with their status, runtime pods."""

    def __init__(
        self,
        pod_manager: PodManager,
        status_manager: StatusManager,
        held_back_phases: HeldBackPhases,
        pleg: Pleg,
    ) -> None:
        self._pod_manager = pod_manager
        self._status_manager = status_manager
        self._held_back_phases = held_back_phases
        self._pleg = pleg

    def pods(self) -> list[Pod]:
        """Return all pods of the pod manager, each with its newest status as it is sent."""
        return [self._with_status(pod) for pod in self._pod_manager.pods()]

    def find_pod(self, namespace: str, name: str, uid: str = "") -> Pod | None:
        """Return a pod by name, None if there is none.

        If `uid` is given, it must be the UID of the pod or of its mirror pod.
        """
        pod = self._pod_manager.pod_by_name(namespace, name)
        if pod is None or (uid and self._pod_manager.translate_pod_uid(uid) != pod.uid):
            return None
        return self._with_status(pod)

    def running_pods(self) -> Sequence[RuntimePod]:
        return list(self._pleg.pods().values())

    def _with_status(self, pod: Pod) -> Pod:
        status = self._status_manager.pod_status(pod.uid)
        # Just after a start, the status from the API server is the newest one.
        if status is None:
            return pod
        return self._held_back_phases.apply(structs.replace(pod, status=status))
