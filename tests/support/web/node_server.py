"""The HTTPS server on a real TLS socket, and clients for it."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import psutil
import pytest

from podstatus.agent.compose.serving_certificate import ensure_certificate, server_context
from podstatus.base.clock import Clock
from podstatus.base.system_clock import SystemClock
from podstatus.kube.api_errors import UnavailableError
from podstatus.kube.objects.authentication import (
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
    TokenReviewSpec,
    TokenReviewStatus,
    UserInfo,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.observe.metrics.exposition import CollectSamples, MetricPages
from podstatus.testing.builders import make_pod, running
from podstatus.web.auth.authorizer import Authorizer
from podstatus.web.handlers import HandlerDependencies, Handlers
from podstatus.web.kubelet.health import healthy
from podstatus.web.ports import ServerOptions
from podstatus.web.server import NodeServer
from tests.support.certificates import authority
from tests.support.web.fake_alerts import FakeAlerts
from tests.support.web.fake_runtime import FakePods, FakeRuntime
from tests.support.web.fake_status_view import ABOUT, FakeMachine, FakeStatusView

TOKEN = "the-token-of-the-agent"  # noqa: S105 - of a test
NODE = "node-1"


class FakeReviews:
    """Reviews fixed tokens and rights, and records the requests."""

    def __init__(self) -> None:
        self.users = {"token-of-ann": "ann", "token-of-bob": "bob"}
        parts = ("proxy", "log", "stats", "configz", "statusz", "metrics")
        verbs = ("get", "create", "delete")
        self.rights = {("ann", verb, part) for verb in verbs for part in parts}
        self.tokens_asked: list[str] = []
        self.rights_asked: list[SubjectAccessReviewSpec] = []
        self.down = False

    async def review_token(self, spec: TokenReviewSpec) -> TokenReviewStatus:
        if self.down:
            raise UnavailableError("no answer")
        self.tokens_asked.append(spec.token)
        name = self.users.get(spec.token)
        if name is None:
            return TokenReviewStatus(error="unknown")
        return TokenReviewStatus(authenticated=True, user=UserInfo(username=name))

    async def review_access(self, spec: SubjectAccessReviewSpec) -> SubjectAccessReviewStatus:
        if self.down:
            raise UnavailableError("no answer")
        self.rights_asked.append(spec)
        about = spec.resource_attributes
        assert about is not None
        assert (about.resource, about.name) == ("nodes", NODE)
        return SubjectAccessReviewStatus(
            allowed=(spec.user, about.verb, about.subresource) in self.rights
        )


class Progress(msgspec.Struct):
    """The progress of a drain."""

    state: str


class FakeDrain:
    """A drain that is on or off."""

    def __init__(self) -> None:
        self.state = "off"

    def begin(self) -> None:
        self.state = "on"

    def cancel(self) -> None:
        self.state = "off"

    def progress(self) -> Progress:
        return Progress(state=self.state)


class Scene:
    """A server with its fake dependencies."""

    def __init__(
        self,
        folder: Path,
        wishes: ServerOptions,
        clock: Clock,
        *pods: Pod,
        address: str = "127.0.0.1",
        sources: Mapping[str, object] = {},
    ) -> None:
        """`sources` replace fields of the HandlerDependencies."""
        self.folder = folder
        self.runtime = FakeRuntime()
        self.reviews = FakeReviews()
        self.pods = FakePods(*(pods or (app_pod(),)))
        self.drain = FakeDrain()
        self.view = FakeStatusView()
        self.alerts = FakeAlerts()
        self.logs = folder / "logs"
        self.logs.mkdir()
        certificate, key = ensure_certificate(folder / "pki", NODE, (address,), SystemClock().now())
        self.certificate = certificate
        client_ca = folder / "client-ca.crt"
        client_ca.write_bytes(authority("clients").pem)
        self.pages: dict[str, CollectSamples] = {}
        dependencies = HandlerDependencies(
            pods=self.pods,
            runtime=self.runtime,
            checks=lambda: {"ping": healthy},
            logs=self.logs,
            drain=self.drain,
            metrics=MetricPages(self.pages),
            view=self.view,
            alerts=self.alerts,
            usage=FakeMachine(),
            agent_info=ABOUT,
        )
        self.sources = msgspec.structs.replace(dependencies, **sources)
        self.answers = Handlers(self.sources, wishes, clock)
        self.authorizer = Authorizer(wishes, self.reviews, clock)
        self.ssl_context = server_context(certificate, key, client_ca)
        self.server = self.new_server(address=address)
        self.url = ""

    def new_server(self, *, address: str = "127.0.0.1", port: int = 0) -> NodeServer:
        """A server with the same handlers."""
        return NodeServer(
            self.answers,
            self.authorizer,
            ssl_context=self.ssl_context,
            host=address,
            port=port,
            names=(NODE,),
        )

    def trust(self, client: str = "", by: str = "clients") -> ssl.SSLContext:
        """The TLS context of a client, with a client certificate if one is given."""
        context = ssl.create_default_context(cafile=self.certificate)
        if client:
            pair = authority(by).pair(client)
            chain = self.folder / f"{client}.pem"
            chain.write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(chain)
        return context

    @asynccontextmanager
    async def client(
        self, token: str = TOKEN, *, certificate: str = "", by: str = "clients"
    ) -> AsyncIterator[aiohttp.ClientSession]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(ssl=self.trust(certificate, by))
        async with aiohttp.ClientSession(self.url, headers=headers, connector=connector) as session:
            yield session

    async def get(self, path: str, token: str = TOKEN) -> tuple[int, str]:
        async with self.client(token) as session, session.get(path) as answer:
            return answer.status, await answer.text()

    @asynccontextmanager
    async def websocket(
        self, path: str, *, method: str = "GET", protocols: tuple[str, ...] = ("v5.channel.k8s.io",)
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        async with (
            self.client() as session,
            session.ws_connect(path, method=method, protocols=protocols) as socket,
        ):
            yield socket


def app_pod(status: PodStatus | None = None) -> Pod:
    """A pod with one running container."""
    statuses = (running("app"),)
    return make_pod("p", namespace="ns", status=status or PodStatus(container_statuses=statuses))


@asynccontextmanager
async def serve(
    folder: Path,
    *pods: Pod,
    clock: Clock | None = None,
    address: str = "127.0.0.1",
    sources: Mapping[str, object] = {},
    **wanted: object,
) -> AsyncIterator[Scene]:
    """A running server with these pods."""
    wishes = msgspec.structs.replace(ServerOptions(node_name=NODE, token=TOKEN), **wanted)
    scene = Scene(folder, wishes, clock or SystemClock(), *pods, address=address, sources=sources)
    port = await scene.server.start()
    scene.url = f"https://{address}:{port}"
    try:
        yield scene
    finally:
        await scene.server.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - of another task
            await asyncio.sleep(0.005)


def other_address() -> str:
    """A non-loopback address of this machine; skips the test if there is none."""
    for found in psutil.net_if_addrs().values():
        for each in found:
            if each.family == socket.AF_INET and not each.address.startswith("127."):
                return each.address
    pytest.skip("this machine has no address but that of loopback")
