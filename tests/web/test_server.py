"""The HTTPS server over real TLS: routes, hostile paths, pods, health, shutdown."""

import asyncio
import json
import ssl
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from podstatus.base.net import accept_loop
from podstatus.base.net.connection_eviction import StageLimits
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.testing.builders import make_pod
from podstatus.web import server
from podstatus.web.routes import ROUTES, RouteMatch, match_route
from tests.support.web.node_server import Scene, app_pod, serve, until

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
}


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("/healthz", 200, "ok"),
        ("/healthz/", 200, "ok"),
        ("/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n"),
        ("/healthz/ping", 200, "ok"),
        ("/healthz/nope", 404, "404 page not found; the checks below /healthz are ping\n"),
    ],
)
async def test_health_needs_no_credentials(scene: Scene, path: str, code: int, text: str) -> None:
    assert await scene.get(path, token="") == (code, text)


@pytest.mark.parametrize("path", ["/pods", "/pods/"])
async def test_pods_are_a_list_with_their_newest_status(scene: Scene, path: str) -> None:
    code, text = await scene.get(path, token="")
    document = json.loads(text)
    assert code == 200
    assert (document["kind"], document["apiVersion"]) == ("PodList", "v1")
    (pod,) = document["items"]
    assert pod["metadata"]["name"] == "p"
    assert "kind" not in pod
    assert pod["status"]["containerStatuses"][0]["containerID"] == "fake://app"


async def test_running_pods_are_what_the_runtime_has(tmp_path: Path) -> None:
    async with serve(tmp_path, make_pod("other", namespace="ns")) as scene:
        running = json.loads((await scene.get("/runningpods/"))[1])
        scene.pods.running = {}
        none = json.loads((await scene.get("/runningpods/"))[1])
    (pod,) = running["items"]
    assert pod["metadata"]["namespace"] == "ns"
    assert [it["name"] for it in pod["spec"]["containers"]] == ["app"]
    assert none["items"] is None


async def test_what_is_not_there_is_404_with_what_is(scene: Scene, tmp_path: Path) -> None:
    paths = (
        "/",
        "/metrics/nope",
        "/containerLogs/ns/p",
        "/containerLogs/ns/p/app/more",
        "/containerLogs//p/app",
        "/containerLogs/ns/../app",
        "/containerLogs/ns/%2e%2e/app",
        "/containerLogs/ns%2fp/app/x",
        "/logs/../pki/agent.key",
        "/logs/%2e%2e/pki/agent.key",
        "/logs/..%2fpki%2fagent.key",
        "/logs/%00",
        "/logs//etc/passwd",
        "/logs/.",
        "//pods",
        "/PODS",
    )
    (tmp_path / "logs" / ".hidden").write_text("secret")
    for path in paths:
        code, text = await _raw_get(scene, path)
        assert code == 404, path
        assert "404 page not found" in text, path


async def _raw_get(scene: Scene, path: str) -> tuple[int, str]:
    """Send a path unchanged: HTTP clients normalize it."""
    host, port = scene.url.removeprefix("https://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=scene.trust())
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    writer.write(f"{head}Authorization: Bearer the-token-of-the-agent\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return int(answer.split()[1]), answer.partition("\r\n\r\n")[2]


async def test_all_routes_are_named_in_the_404(scene: Scene) -> None:
    _, text = await scene.get("/nope")
    assert all(f"  {route.pattern}\n" in text for route in ROUTES)


@pytest.mark.parametrize(
    ("raw", "pattern"),
    [
        ("/exec/ns/p/app", "/exec/{namespace}/{pod}/{container}"),
        ("/exec/ns/p/uid/app", "/exec/{namespace}/{pod}/{uid}/{container}"),
        ("/logs", "/logs/"),
        ("/logs/a%20b", "/logs/{file}"),
        ("/exec/ns/p/uid/app/x", None),
        ("exec/ns/p/app", None),
        ("*", None),
        ("", None),
    ],
)
def test_a_path_has_one_route_or_none(raw: str, pattern: str | None) -> None:
    found = match_route(raw)
    assert (None if found is None else found.route.pattern) == pattern


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/pods", "GET"),
        ("DELETE", "/healthz", "GET, HEAD"),
        ("PUT", "/exec/ns/p/app", "GET, POST"),
        ("POST", "/containerLogs/ns/p/app", "GET"),
        ("PUT", "/drain", "GET, POST, DELETE"),
    ],
)
async def test_other_methods_are_rejected(
    scene: Scene, method: str, path: str, allowed: str
) -> None:
    async with scene.client() as session, session.request(method, path) as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, allowed)


async def test_old_tls_is_rejected(scene: Scene) -> None:
    context = scene.trust()
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(f"{scene.url}/healthz")


async def test_a_taken_port_is_an_error_and_can_be_tried_again(scene: Scene) -> None:
    port = int(scene.url.rpartition(":")[2])
    second = scene.new_server(port=port)
    with pytest.raises(OSError, match="address already in use"):
        await second.start()
    await scene.server.stop()
    assert await second.start() == port
    await second.stop()


async def test_an_internal_error_hides_its_details(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.pods.pods = None  # type: ignore[assignment, method-assign]
    assert await scene.get("/pods") == (500, "Internal error occurred; see the agent's log\n")
    assert "request failed: method=GET path=/pods" in caplog.text


@pytest.mark.parametrize("path", ["/v1/watch", "/exec/ns/p/app?command=both&output=1"])
async def test_a_client_that_goes_before_it_is_answered_is_no_fault(
    path: str, scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("DEBUG", "podstatus")
    answer, is_over = scene.answers.handle, asyncio.Event()

    async def answer_late(
        request: web.BaseRequest, match: RouteMatch, user: str
    ) -> web.StreamResponse:
        # As the event loop does when the client has disconnected.
        assert request.transport is not None
        request.transport.close()
        try:
            return await answer(request, match, user)
        finally:
            is_over.set()

    monkeypatch.setattr(scene.answers, "handle", answer_late)
    async with scene.client() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(path, headers=UPGRADE)
    await is_over.wait()
    assert "client disconnected: path=" in caplog.text
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []


async def test_garbage_does_not_hurt_and_is_not_logged(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = scene.url.removeprefix("https://").split(":")
    for garbage in (b"Bearer secret\r\n\r\n", b"GET / HTTP/9.9\r\nsecret\r\n\r\n", b"\0" * 99):
        reader, writer = await asyncio.open_connection(host, int(port), ssl=scene.trust())
        writer.write(garbage)
        await reader.read(100)
        writer.close()
    _, plain = await asyncio.open_connection(host, int(port))
    plain.write(b"GET /pods HTTP/1.1\r\n\r\n")
    plain.close()
    assert await scene.get("/healthz") == (200, "ok")
    assert "secret" not in caplog.text


async def test_only_so_many_streams_at_once(tmp_path: Path) -> None:
    async with serve(tmp_path, app_pod(), max_streams=2) as scene:
        path = "/exec/ns/p/app?command=sleep&output=1"
        codes = []
        async with scene.websocket(path), scene.websocket(path):
            await until(lambda: scene.answers.streams == 2)
            codes.append((await scene.get("/containerLogs/ns/p/app"))[0])
            codes.append((await scene.get("/pods"))[0])
        await until(lambda: scene.answers.streams == 0)
        codes.append((await scene.get("/logs/none"))[0])
        assert codes == [429, 200, 404]


async def test_a_pod_without_containers_has_none_to_talk_to(tmp_path: Path) -> None:
    pod = app_pod(PodStatus(phase="Pending"))
    async with serve(tmp_path, pod) as scene:
        scene.pods.running = {}
        assert [
            await scene.get("/containerLogs/ns/p/app"),
            await scene.get("/exec/ns/p/app?command=ls&output=1"),
            await scene.get("/exec/ns/p/other-uid/app?command=ls&output=1"),
        ] == [
            (400, 'container "app" in pod "p" is not available\n'),
            (500, 'container not found ("app")\n'),
            (404, "pod does not exist\n"),
        ]


async def _connected(scene: Scene) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = scene.url.removeprefix("https://").split(":")
    return await asyncio.open_connection(host, int(port), ssl=scene.trust())


class _Unscaled:
    """Limits that do not scale with the number of descriptors."""

    def __init__(self, limits: StageLimits) -> None:
        self._limits = limits

    def scaled(self, _descriptors: int) -> StageLimits:
        return self._limits


async def test_clients_that_only_connect_are_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept_loop, "FIRST_REQUEST_SECONDS", 2.0)
    async with serve(tmp_path) as scene:
        silent, slow = await _connected(scene), await _connected(scene)
        slow[1].write(b"GET /pods HT")
        async with scene.websocket("/exec/ns/p/app?command=sleep&output=1"):
            for reader, writer in (silent, slow):
                with suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()
            assert scene.answers.streams == 1


async def test_idle_clients_without_a_token_do_not_lock_the_owner_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = StageLimits(silent=2, handshake=2, head=2, unauthenticated=2, authenticated=1)
    monkeypatch.setattr(server, "NODE_PORT_LIMITS", _Unscaled(limits))
    async with serve(tmp_path) as scene:
        async with scene.websocket("/exec/ns/p/app?command=sleep&output=1"):
            idle = [await _connected(scene) for _ in range(6)]
            for _, writer in idle:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            # An active connection has the only place for authenticated clients, and keeps it.
            refused = (await scene.get("/configz"))[0]
            assert scene.answers.streams == 1
        await until(lambda: scene.answers.streams == 0)
        answered = (await scene.get("/configz"))[0]
        for _, writer in idle:
            writer.transport.abort()
        assert (refused, answered) == (503, 200)


async def test_a_drain_is_begun_looked_at_and_cancelled(scene: Scene) -> None:
    states = ["off", "on", "on", "on", "off", "off"]
    received = []
    async with scene.client() as session:
        for method in ("GET", "POST", "POST", "GET", "DELETE", "GET"):
            async with session.request(method, "/drain") as answer:
                received.append((answer.status, (await answer.json())["state"]))
    assert received == [(200, state) for state in states]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(("token", "code"), [("", 401), ("wrong", 401), ("token-of-bob", 403)])
async def test_an_unauthorized_drain_does_nothing(
    tmp_path: Path, method: str, token: str, code: int
) -> None:
    async with serve(tmp_path, token_webhook=True, authorization_webhook=True) as scene:
        scene.drain.state = "as it was"
        async with scene.client(token) as session, session.request(method, "/drain") as answer:
            assert (answer.status, scene.drain.state) == (code, "as it was")
