"""The embedded server between clients and kubelets, where no real server is the reference."""

import asyncio
import ssl
import time
from asyncio.trsock import TransportSocket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from podstatus.apiserver import listener
from podstatus.apiserver import listener as listener_module
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import HttpRequest, Message, WebSocketProxy
from podstatus.apiserver.kubelet import kubelet_client
from podstatus.apiserver.kubelet.address import kubelet_address, split_node_name
from podstatus.apiserver.kubelet.response_checker import upgrade_error
from podstatus.apiserver.kubelet.stream_options import choose_protocol, stream_query
from podstatus.apiserver.kubelet.websocket_relay import proxy
from podstatus.apiserver.listener import Listener
from podstatus.base.net.sockets import transport_socket
from podstatus.testing.apiserver import running_api_server
from podstatus.testing.servers.access import ServerAccess
from tests.apiserver.authenticators import authenticator_of
from tests.servers.pods import pods
from tests.servers.streams.node_scene import NodeScene
from tests.support.processes.api_servers import EmbeddedServer, Server
from tests.support.processes.kubectl import HOW_TO_GET_IT, KUBECTL, Kubectl
from tests.support.processes.programs import api_server
from tests.support.processes.stand_in_node import (
    V5,
    make_node_certificates,
    running_node,
    wait_until,
)
from tests.support.web.aiohttp_transport import transport_of

PATIENCE_SECONDS = 60.0


@pytest.fixture
def scene(embedded_server: EmbeddedServer, node_certificates: Path) -> Iterator[NodeScene]:
    with running_node(node_certificates, embedded_server.access.authority) as thread:
        yield NodeScene(embedded_server, embedded_server.new_namespace(), thread)


def message(answer: tuple[int, Any]) -> tuple[int, str]:
    code, status = answer
    return code, status["message"]


def test_a_node_that_never_answers_is_given_up(
    scene: NodeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_client, "RESPONSE_HEADER_SECONDS", 0.2)
    scene.add_pod()
    scene.node.silent = True
    code, text = message(scene.log())
    assert code == 504
    assert text.endswith("timeout awaiting response headers")


async def test_talk_with_a_node_that_never_answers_ends_with_a_status(
    scene: NodeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_client, "RESPONSE_HEADER_SECONDS", 0.2)
    scene.add_pod()
    scene.node.silent = True

    async with scene.socket(["echo"], stdout="true") as socket:
        [received] = [frame.data async for frame in socket]
    assert received[:1] == b"\x03"
    assert b"timeout awaiting response headers" in received


def test_without_an_authority_the_missing_flag_is_named(
    tmp_path: Path, node_certificates: Path
) -> None:
    with running_api_server(tmp_path / "apiserver") as running:
        server = EmbeddedServer(running)
        with running_node(node_certificates, server.access.authority) as thread:
            scene = NodeScene(server, server.new_namespace(), thread)
            scene.add_pod()
            paths = [
                pods(scene.namespace, "web", "log"),
                pods(scene.namespace, "web", "exec") + "?command=x",
                f"/api/v1/nodes/{scene.name}/proxy/healthz",
            ]
            for path in paths:
                code, text = message(server.client.get(path))
                assert code == 503
                assert "--node-certificate-authority FILE" in text
            assert not thread.node.asked
        server.close()


def test_a_replaced_authority_is_used_by_the_next_request(
    tmp_path: Path, node_certificates: Path
) -> None:
    authority = tmp_path / "nodes.crt"
    ours = (node_certificates / "ca.crt").read_bytes()
    foreign = make_node_certificates(tmp_path / "foreign").read_bytes()
    authority.write_bytes(ours)
    with running_api_server(tmp_path / "apiserver", node_authority=authority) as running:
        server = EmbeddedServer(running)
        with running_node(node_certificates, server.access.authority) as thread:
            scene = NodeScene(server, server.new_namespace(), thread)
            path = f"/api/v1/nodes/{scene.name}/proxy/healthz"
            assert server.client.get(path) == (200, "ok")
            authority.write_bytes(foreign)
            code, text = message(server.client.get(path))
            assert code == 500
            assert text.endswith("x509: certificate signed by unknown authority")
            authority.write_bytes(ours)
            assert server.client.get(path) == (200, "ok")
        server.close()


@pytest.fixture
def a_server_with_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the grace period for open connections long."""
    monkeypatch.setattr(listener, "CLOSE_SECONDS", PATIENCE_SECONDS)


@pytest.mark.usefixtures("a_server_with_patience")
def test_a_server_that_stops_ends_the_streams(tmp_path: Path, node_certificates: Path) -> None:
    authority = node_certificates / "ca.crt"
    with ExitStack() as stack:
        with running_api_server(tmp_path / "apiserver", node_authority=authority) as running:
            server = EmbeddedServer(running)
            nodes = running_node(node_certificates, server.access.authority)
            scene = NodeScene(server, server.new_namespace(), stack.enter_context(nodes))
            scene.thread.write(scene.add_pod(), "one")
            response = stack.enter_context(scene.followed())
            assert response.readline() == b"one\n"
            server.close()
            begun = time.monotonic()
        assert time.monotonic() - begun < PATIENCE_SECONDS
        assert response.read() == b""


@pytest.mark.usefixtures("a_server_with_patience")
async def test_a_server_that_stops_ends_conversations(
    tmp_path: Path, node_certificates: Path
) -> None:
    authority = node_certificates / "ca.crt"
    with ExitStack() as stack:
        started = running_api_server(tmp_path / "apiserver", node_authority=authority)
        server = EmbeddedServer(started.__enter__())
        nodes = running_node(node_certificates, server.access.authority)
        scene = NodeScene(server, server.new_namespace(), stack.enter_context(nodes))
        scene.add_pod()

        def stop() -> float:
            wait_until(lambda: scene.node.open_streams == 1)
            server.close()
            begun = time.monotonic()
            started.__exit__(None, None, None)
            return time.monotonic() - begun

        async with scene.socket(["wait"], stdin="true") as socket:
            stopping = asyncio.create_task(asyncio.to_thread(stop))
            assert [frame async for frame in socket] == []
            assert await stopping < PATIENCE_SECONDS
        wait_until(lambda: scene.node.open_streams == 0)


class TestProxy:
    def test_whatever_a_node_answers_is_passed_on(self, scene: NodeScene) -> None:
        client = scene.server.client
        assert client.get(f"/api/v1/nodes/{scene.name}/proxy/healthz") == (200, "ok")
        assert client.get(f"/api/v1/nodes/{scene.name}/proxy/nothing")[0] == 404
        assert scene.node.asked[0].user == "podstatus-apiserver"

    def test_path_and_query_are_passed_on_as_they_are(self, scene: NodeScene) -> None:
        path_and_query = "containerLogs/a%20b/..%2Fc/d?tailLines=1&x=%26&follow"
        scene.server.client.get(
            f"/api/v1/nodes/{scene.name}/proxy/{path_and_query}".replace("&follow", "")
        )
        [received] = scene.node.asked
        assert received.raw == "/" + path_and_query.replace("&follow", "")

    def test_the_port_of_the_agent_may_be_named(self, scene: NodeScene) -> None:
        client = scene.server.client
        for name in (f"{scene.name}:{scene.node.port}", f"https:{scene.name}:{scene.node.port}"):
            assert client.get(f"/api/v1/nodes/{name}/proxy/healthz") == (200, "ok")

    def test_no_other_port_is_asked(self, scene: NodeScene) -> None:
        code, text = message(
            scene.server.client.get(f"/api/v1/nodes/{scene.name}:22/proxy/healthz")
        )
        assert code == 400
        assert "is not the kubelet's" in text

    def test_the_root_is_a_folder(self, scene: NodeScene) -> None:
        assert scene.server.client.get(f"/api/v1/nodes/{scene.name}/proxy")[0] == 301

    def test_a_node_that_is_not_there(self, scene: NodeScene) -> None:
        answer = scene.server.client.get("/api/v1/nodes/absent/proxy/healthz")
        assert message(answer) == (404, 'nodes "absent" not found')

    def test_only_get_requests_are_proxied_to_nodes(self, scene: NodeScene) -> None:
        path = f"/api/v1/nodes/{scene.name}/proxy/run/a/b/c"
        assert scene.server.client.ask("POST", path)[0] == 405
        assert not scene.node.asked


class TestFaults:
    @contextmanager
    def fault(self, scene: NodeScene, **rule: Any) -> Iterator[None]:
        server = scene.server
        assert isinstance(server, EmbeddedServer)
        server.inject(rule)
        try:
            yield
        finally:
            server.inject()

    def test_a_log_can_be_made_to_fail(self, scene: NodeScene) -> None:
        scene.add_pod()
        with self.fault(scene, resource="pods/log", code=503):
            assert scene.log()[0] == 503
        assert scene.log() == (200, "")

    def test_a_log_that_is_lost_is_not_kept_open(self, scene: NodeScene) -> None:
        scene.add_pod()
        with (
            self.fault(scene, resource="pods/log", action="lose"),
            pytest.raises(RemoteDisconnected),
        ):
            scene.log(follow="true")
        wait_until(lambda: bool(scene.node.asked) and scene.node.open_streams == 0)

    def test_exec_can_be_made_to_fail(self, scene: NodeScene) -> None:
        scene.add_pod()
        with self.fault(scene, resource="pods/exec", code=429):
            path = pods(scene.namespace, "web", "exec")
            assert scene.server.client.get(f"{path}?command=x")[0] == 429


class FakeSocket:
    """One end of a WebSocket: messages to receive, and those that were sent."""

    def __init__(self, says: list[Message], *, takes: int = 10**9, code: int | None = 1000) -> None:
        self._says = says
        self._takes = takes
        self.received = 0
        self.sent: list[Message] = []
        self.closed: int | None = None
        self.close_code = code
        self.stays = False
        self.stuck = asyncio.Event()

    async def receive(self) -> Message | None:
        await asyncio.sleep(0)
        if not self._says:
            if self.stays:
                await asyncio.Event().wait()
            return None
        self.received += 1
        return self._says.pop(0)

    async def send(self, message: Message) -> None:
        if len(self.sent) == self._takes:
            self.stuck.set()
            await asyncio.Event().wait()
        self.sent.append(message)

    async def close(self, code: int, reason: bytes = b"") -> None:
        self.closed = code


async def stay() -> None:
    """Never return."""
    await asyncio.Event().wait()


async def test_a_client_that_goes_while_the_node_holds_it_up_is_noticed() -> None:
    near, far = FakeSocket([b"x"] * 10), FakeSocket([], takes=3)
    far.stays = True

    async def goes() -> None:
        await far.stuck.wait()

    async with asyncio.timeout(10):
        await proxy(near, far, goes())
    assert far.closed == 1001


async def test_nothing_is_read_that_the_other_side_does_not_take() -> None:
    near, far = FakeSocket([], takes=3), FakeSocket([b"x"] * 1000)
    near.stays = True
    task = asyncio.create_task(proxy(near, far, stay()))
    await near.stuck.wait()
    assert far.received == 4
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert far.closed is not None


async def test_a_server_stops_though_a_conversation_has_let_go_of_its_connection(
    node_certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transports: list[asyncio.BaseTransport] = []

    def record(transport: asyncio.BaseTransport) -> TransportSocket | None:
        transports.append(transport)
        return transport_socket(transport)

    monkeypatch.setattr(listener_module, "transport_socket", record)

    async def connect() -> FakeSocket:
        far = FakeSocket([])
        far.stays = True
        return far

    async def handle(_: HttpRequest) -> WebSocketProxy:
        return WebSocketProxy(protocol=V5, connect=connect)

    async with asyncio.timeout(30):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(node_certificates / "server.crt", node_certificates / "server.key")
        trust = ssl.create_default_context(cafile=node_certificates / "ca.crt")
        listener = Listener(handle, authenticator=authenticator_of("t"), ssl_context=context)
        url = f"https://127.0.0.1:{await listener.start()}/"
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer t"}) as session:
            socket = await session.ws_connect(url, protocols=(V5,), ssl=trust)
            client_transport = transport_of(socket)
            (transport,) = transports
            # Closed by its WebSocket and by its server: then TLS drops its socket.
            transport.close()
            transport.close()
            await listener.stop()
            client_transport.abort()
            await socket.close()
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(url, ssl=trust)


@pytest.mark.parametrize(("code", "expected"), [(1000, 1000), (1006, 1011), (None, 1011)])
async def test_the_client_learns_whether_the_node_closed_normally(
    code: int | None, expected: int
) -> None:
    async def relayed() -> tuple[int | None, list[Message]]:
        near, far = FakeSocket([]), FakeSocket([b"a", "b"], code=code)
        near.stays = True
        await proxy(near, far, stay())
        return near.closed, near.sent

    assert await relayed() == (expected, [b"a", "b"])


def http_request(raw_query: str = "", **fields: Any) -> HttpRequest:
    query = dict(pair.split("=") for pair in raw_query.split("&") if pair)
    return HttpRequest(method="GET", path="/", query=query, raw_query=raw_query, **fields)


def test_a_command_keeps_its_order_among_other_parameters() -> None:
    query = stream_query(http_request("command=b&stdin=1&command=a&tty=0&stdout=true"))
    assert query == "command=b&command=a&input=1&output=1"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Upgrade request required"),
        ({"upgrade": "SPDY/3.1"}, "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true"),
        ({"upgrade": "websocket", "protocols": ("soap",)}, "use one of v5.channel.k8s.io"),
    ],
)
def test_an_unsupported_upgrade_is_rejected(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(StatusError, match=message):
        choose_protocol(http_request(**fields))


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (("v4.channel.k8s.io", "v5.channel.k8s.io"), "v4.channel.k8s.io"),
        (("soap", "base64.channel.k8s.io"), "base64.channel.k8s.io"),
        ((), ""),
    ],
)
def test_the_first_supported_protocol_of_the_client_is_used(
    offered: tuple[str, ...], chosen: str
) -> None:
    assert choose_protocol(http_request(upgrade="WebSocket", protocols=offered)) == chosen


def node(port: Any, *addresses: tuple[str, str]) -> dict[str, Any]:
    listed = [{"type": kind, "address": address} for kind, address in addresses]
    endpoint = {"kubeletEndpoint": {"Port": port}}
    return {"status": {"addresses": listed, "daemonEndpoints": endpoint}}


@pytest.mark.parametrize(
    ("document", "address", "place"),
    [
        (node(7, ("Hostname", "n"), ("InternalIP", "10.0.0.1")), "", "10.0.0.1:7"),
        (node(0, ("InternalIP", "10.0.0.1")), "", "10.0.0.1:10250"),
        (node(None, ("InternalIP", "fd00::1")), "", "[fd00::1]:10250"),
        (node(7, ("InternalIP", "10.0.0.1")), "127.0.0.1", "127.0.0.1:7"),
        (node(7), "127.0.0.1", "127.0.0.1:7"),
    ],
)
def test_where_a_node_is(document: dict[str, Any], address: str, place: str) -> None:
    assert str(kubelet_address(document, address=address)) == place


def test_a_node_that_has_other_addresses_only_is_not_reached() -> None:
    with pytest.raises(StatusError, match=r"known addresses: \[\{Hostname n\}\]"):
        kubelet_address(node(7, ("Hostname", "n")))


@pytest.mark.parametrize("name", ["", ":", "a:b:c", "http:a:1", "a:1:2:3", ":1"])
def test_names_of_nodes_that_make_no_sense(name: str) -> None:
    with pytest.raises(StatusError, match="invalid node request"):
        split_node_name(name)


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        (400, "pod is gone\n", (400, "unable to upgrade connection: pod is gone")),
        (
            502,
            "",
            (500, "Internal error occurred: unable to upgrade connection: status code 502"),
        ),
        (403, '{"kind":"Status","message":"not you","reason":"Forbidden"}', (403, "not you")),
        (400, "[" * 100_000, (400, "unable to upgrade connection: [")),
        (400, '{"kind":"Status","message":7}', (400, "unable to upgrade connection: {")),
    ],
)
def test_a_refused_upgrade_is_translated(code: int, body: str, expected: tuple[int, str]) -> None:
    problem = upgrade_error(code, body)
    assert (problem.code, problem.message[: len(expected[1])]) == expected


def test_nodes_can_tell_the_server_by_its_certificate(scene: NodeScene) -> None:
    folder = scene.server.access.folder
    certificate = x509.load_pem_x509_certificate((folder / "client.crt").read_bytes())
    authority = x509.load_pem_x509_certificate(scene.server.access.authority.read_bytes())
    certificate.verify_directly_issued_by(authority)
    groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [group.value for group in groups] == ["system:masters"]
    assert (folder / "client.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(KUBECTL is None, reason=HOW_TO_GET_IT)
def test_the_command_takes_whom_to_trust_and_where_nodes_are(
    tmp_path: Path, node_certificates: Path
) -> None:
    root, authority = tmp_path / "root", node_certificates / "ca.crt"
    options = ["--root-dir", str(root), "--node-certificate-authority", str(authority)]
    with (
        api_server(*options, "--node-address", "127.0.0.1") as server,
        running_node(node_certificates, root / "ca.crt") as thread,
    ):
        kubectl = Kubectl(server, tmp_path)
        embedded = Server("embedded", ServerAccess(root))
        scene = NodeScene(embedded, embedded.new_namespace(), thread)
        # An address that no host has: the configured one is used instead.
        key = scene.add_pod(node=scene.add_node(thread.node.port, address="192.0.2.1"))
        thread.write(key, "hello")
        namespace = f"--namespace={scene.namespace}"
        assert kubectl(namespace, "logs", "web") == "hello\n"
        assert kubectl(namespace, "exec", "web", "--", "echo", "hi") == "hi\n"
        embedded.close()
