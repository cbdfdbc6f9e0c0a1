"""Hostile requests to the query API, over real sockets."""

import asyncio
import json
import logging
import ssl
from itertools import product
from pathlib import Path

import pytest

from podstatus.base.net import accept_loop
from podstatus.web import server
from tests.support.web.node_server import TOKEN, Scene, other_address, serve

ANN, BOB, EVE = "token-of-ann", "token-of-bob", "token-of-eve"
SECRETS = (TOKEN, ANN, BOB, EVE)
PATHS = ("/v1/pods", "/v1/pods/ns/p", "/v1/pods/ns/p/timeline", "/v1/node", "/v1/events")
SLOW_SECONDS = 25
"""A busy machine needs this long for what takes one or two seconds."""
STATUS = ("/v1/status", "/pods", "/stats/summary", "/openapi.json")


async def raw(scene: Scene, data: bytes, *, seconds: float = 60.0) -> bytes:
    """Send bytes, and return everything until the server closes the connection."""
    host, port = scene.url.removeprefix("https://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=scene.trust())
    try:
        async with asyncio.timeout(seconds):
            writer.write(data)
            return await reader.read()
    except (ConnectionError, ssl.SSLError):
        return b""
    finally:
        writer.transport.abort()


def head(path: str, *headers: str, host: str = "localhost", method: str = "GET") -> bytes:
    lines = (f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers)
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def code_of(answer: bytes) -> int:
    return int(answer.split(maxsplit=2)[1])


async def test_remote_clients_need_credentials(tmp_path: Path) -> None:
    async with serve(tmp_path, address=other_address(), token_webhook=True) as scene:
        for path in (*PATHS, *STATUS, "/v1/nope"):
            code, text = await scene.get(path, token="")
            assert code == 401, path
            if path.startswith("/v1"):
                assert json.loads(text)["reason"] == "Unauthorized", path
            assert "uid" not in text, path


@pytest.mark.parametrize("path", PATHS)
async def test_from_elsewhere_the_right_to_pods_is_asked_for(tmp_path: Path, path: str) -> None:
    async with serve(
        tmp_path, address=other_address(), token_webhook=True, authorization_webhook=True
    ) as scene:
        scene.reviews.rights = {("ann", "get", "pods")}
        codes = [(await scene.get(path, token=token))[0] for token in (ANN, BOB)]
        about = [spec.resource_attributes for spec in scene.reviews.rights_asked]
    asked = [it.subresource for it in about if it is not None]
    assert codes[0] in (200, 404)
    assert codes[1] == 403
    assert asked == ["pods", "pods", "proxy"]


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:10250", "node-2"])
async def test_a_name_that_is_made_to_mean_this_machine_opens_nothing(
    scene: Scene, host: str
) -> None:
    """Also with the token: its owner knows the name of the node."""
    paths = (*PATHS, *STATUS, "/healthz", "/v1/nope", "/logs/")
    for path in paths:
        answer = await raw(scene, head(path, f"Authorization: Bearer {TOKEN}", host=host))
        assert code_of(answer) == 421, path
        assert host.encode() not in answer, path


CROSS_ORIGIN = (
    "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Site: same-site",
    "Origin: https://evil.example",
    "Origin: null",
)


async def test_cross_origin_requests_are_rejected(scene: Scene) -> None:
    for case in product(("/v1/pods", "/pods", "/healthz", "/drain"), CROSS_ORIGIN):
        answer = await raw(scene, head(*case, f"Authorization: Bearer {TOKEN}"))
        assert code_of(answer) == 403, case
        assert b"access-control-allow" not in answer.lower(), case


TOO_LARGE = {
    "header": (head("/v1/pods", f"X-Large: {'x' * 100_000}"), {400}),
    "headers": (head("/v1/pods", *(f"X-{number}: x" for number in range(100))), {400}),
    "query": (head(f"/v1/pods?labelSelector={'x' * 2_000_000}"), {400}),
    "path": (head(f"/v1/{'x' * 2_000_000}"), {400}),
    "long query": (head(f"/v1/pods?labelSelector={'x' * 100_000}"), {414}),
    "long name": (head(f"/v1/pods/ns/{'x' * 100_000}"), {404}),
    "parameters": (head("/v1/pods?" + "&".join(f"a{n}=1" for n in range(1500))), {400, 414}),
    "body": (head("/v1/pods", "Content-Length: 1000000000", method="POST"), {405}),
}


async def test_too_large_requests_are_rejected_and_the_next_is_served(scene: Scene) -> None:
    for case, (sent, codes) in TOO_LARGE.items():
        answer = await raw(scene, sent, seconds=25.0)
        # A client that is disconnected while it sends may not receive the reason.
        assert not answer or code_of(answer) in codes, case
        assert len(answer) < 4_000, case
        assert (await scene.get("/v1/pods"))[0] == 200, case


async def dribble(scene: Scene, first: bytes = b"") -> float:
    """Send a request byte by byte without end, and return after how many seconds it was closed."""
    host, port = scene.url.removeprefix("https://").split(":")
    began = asyncio.get_running_loop().time()
    reader, writer = await asyncio.open_connection(host, int(port), ssl=scene.trust())
    try:
        if first:
            writer.write(first)
            await reader.readuntil(b"\r\n\r\nok")
        writer.write(b"GET /v1/pods HTTP/1.1\r\nHost: localhost\r\n")
        while not reader.at_eof():
            writer.write(b"X")
            await writer.drain()
            await asyncio.sleep(0.02)
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.transport.abort()
    return asyncio.get_running_loop().time() - began


async def test_a_slow_request_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = accept_loop.FIRST_REQUEST_SECONDS
    monkeypatch.setattr(accept_loop, "FIRST_REQUEST_SECONDS", 2.0)
    async with serve(tmp_path) as scene:
        slow = [asyncio.create_task(dribble(scene)) for _ in range(20)]
        assert (await scene.get("/v1/pods"))[0] == 200
        assert all(1.9 < seconds < default for seconds in await asyncio.gather(*slow))


async def test_a_slow_second_request_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.KEEP_ALIVE_SECONDS > SLOW_SECONDS
    monkeypatch.setattr(server, "KEEP_ALIVE_SECONDS", 0.3)
    async with serve(tmp_path) as scene:
        first = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert await dribble(scene, first) < SLOW_SECONDS


async def test_no_token_is_in_any_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serve(tmp_path, token_webhook=True, authorization_webhook=True) as scene:
        for path in (*PATHS, *STATUS, "/v1/nope", "/configz"):
            for token in SECRETS:
                await scene.get(path, token=token)
        scene.reviews.down = True
        codes = [(await scene.get("/configz", token=f"{EVE}-2"))[0]]
        for broken in ("GET /v1/pods HTTP/1.1\r\nAuthorization Bearer ", "\0"):
            await raw(scene, f"{broken}{TOKEN}\r\n\r\n".encode())
        await raw(scene, head("/v1/pods", f"Authorization: Bearer {TOKEN}", host="evil.example"))
        scene.view.age = None  # type: ignore[assignment]
        codes.append((await scene.get("/v1/pods"))[0])
    assert codes == [401, 500]
    assert caplog.records
    for secret in SECRETS:
        assert secret not in caplog.text
