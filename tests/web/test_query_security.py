"""Hostile requests to the query API, over real sockets."""

import asyncio
import json
import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from podstatus.base.net import accept_loop
from podstatus.web import server
from tests.support.web.node_server import TOKEN, Scene, other_address, play

ANN, BOB, EVE = "token-of-ann", "token-of-bob", "token-of-eve"
T = TypeVar("T")
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


def test_remote_clients_need_credentials(tmp_path: Path) -> None:
    async def act(scene: Scene) -> dict[str, tuple[int, str]]:
        return {path: await scene.get(path, token="") for path in (*PATHS, *STATUS, "/v1/nope")}

    for path, (code, text) in play(
        tmp_path, act, address=other_address(), token_webhook=True
    ).items():
        assert code == 401, path
        if path.startswith("/v1"):
            assert json.loads(text)["reason"] == "Unauthorized", path
        assert "uid" not in text, path


def send_all(folder: Path, requests: Mapping[T, bytes]) -> dict[T, bytes]:
    """Send each request on a connection of its own; return the responses."""

    async def act(scene: Scene) -> dict[T, bytes]:
        return {case: await raw(scene, sent) for case, sent in requests.items()}

    return play(folder, act)


@pytest.mark.parametrize("path", PATHS)
def test_from_elsewhere_the_right_to_pods_is_asked_for(tmp_path: Path, path: str) -> None:
    async def act(scene: Scene) -> tuple[list[int], list[str]]:
        scene.reviews.rights = {("ann", "get", "pods")}
        codes = [(await scene.get(path, token=token))[0] for token in (ANN, BOB)]
        about = [spec.resource_attributes for spec in scene.reviews.rights_asked]
        return codes, [it.subresource for it in about if it is not None]

    codes, asked = play(
        tmp_path, act, address=other_address(), token_webhook=True, authorization_webhook=True
    )
    assert codes[0] in (200, 404)
    assert codes[1] == 403
    assert asked == ["pods", "pods", "proxy"]


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:10250", "node-2"])
def test_a_name_that_is_made_to_mean_this_machine_opens_nothing(tmp_path: Path, host: str) -> None:
    """Also with the token: its owner knows the name of the node."""
    paths = (*PATHS, *STATUS, "/healthz", "/v1/nope", "/logs/")
    requests = {path: head(path, f"Authorization: Bearer {TOKEN}", host=host) for path in paths}
    for path, answer in send_all(tmp_path, requests).items():
        assert code_of(answer) == 421, path
        assert host.encode() not in answer, path


CROSS_ORIGIN = (
    "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Site: same-site",
    "Origin: https://evil.example",
    "Origin: null",
)


def test_cross_origin_requests_are_rejected(tmp_path: Path) -> None:
    requests = {
        (path, header): head(path, header, f"Authorization: Bearer {TOKEN}")
        for path in ("/v1/pods", "/pods", "/healthz", "/drain")
        for header in CROSS_ORIGIN
    }
    for case, answer in send_all(tmp_path, requests).items():
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


def test_too_large_requests_are_rejected_and_the_next_is_served(tmp_path: Path) -> None:
    async def act(scene: Scene) -> dict[str, tuple[bytes, int]]:
        return {
            case: (await raw(scene, sent, seconds=25.0), (await scene.get("/v1/pods"))[0])
            for case, (sent, _) in TOO_LARGE.items()
        }

    for case, (answer, after) in play(tmp_path, act).items():
        # A client that is disconnected while it sends may not receive the reason.
        assert not answer or code_of(answer) in TOO_LARGE[case][1], case
        assert len(answer) < 4_000, case
        assert after == 200, case


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


def test_a_slow_request_is_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default = accept_loop.FIRST_REQUEST_SECONDS
    monkeypatch.setattr(accept_loop, "FIRST_REQUEST_SECONDS", 2.0)

    async def act(scene: Scene) -> tuple[list[float], int]:
        slow = [asyncio.create_task(dribble(scene)) for _ in range(20)]
        answered = (await scene.get("/v1/pods"))[0]
        return await asyncio.gather(*slow), answered

    slow, answered = play(tmp_path, act)
    assert answered == 200
    assert all(1.9 < seconds < default for seconds in slow)


def test_a_slow_second_request_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server._KEEP_ALIVE_SECONDS > SLOW_SECONDS
    monkeypatch.setattr(server, "_KEEP_ALIVE_SECONDS", 0.3)

    async def act(scene: Scene) -> float:
        first = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        return await dribble(scene, first)

    assert play(tmp_path, act) < SLOW_SECONDS


def test_no_token_is_in_any_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def act(scene: Scene) -> list[int]:
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
        return codes

    codes = play(tmp_path, act, token_webhook=True, authorization_webhook=True)
    assert codes == [401, 500]
    assert caplog.records
    for secret in SECRETS:
        assert secret not in caplog.text
