"""A request that cannot be parsed is logged in one line, without its content, on each port."""

import asyncio
import logging
import ssl
from contextlib import suppress

import pytest

from podstatus.apiserver.http.messages import HttpRequest, Response
from podstatus.apiserver.listener import Listener
from podstatus.web.connection_limits import HEALTH_PORT_LIMITS, NODE_PORT_LIMITS
from podstatus.web.kubelet.health import HealthListener
from tests.apiserver.authenticators import authenticator_of
from tests.support.web.node_server import Scene

SECRET = b"s3cr3t\x1b]0;title\x07"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
BAD_REQUESTS = [
    b"Authorization: Bearer " + SECRET + b"\r\n\r\n",
    b"GET /" + SECRET + b" HTTP/9.9\r\n\r\n",
    b"GET /%1b" + SECRET + b" HTTP/1.1\r\n\r\n",
    b"GET http://[" + SECRET + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"G\0T /" + SECRET + b" HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SECRET,
    GET + b"Authorization Bearer " + SECRET + b"\r\n\r\n",
    GET + b"X: \0" + SECRET + b"\r\n\r\n",
    GET + b"X: " + SECRET + b"x" * 2**21 + b"\r\n\r\n",
    GET + b"X: y\r\n" * 200 + b"Y: " + SECRET + b"\r\n\r\n",
    GET + b"Content-Length: " + SECRET + b"\r\n\r\n",
    GET + b"Transfer-Encoding: chunked\r\n\r\n" + SECRET + b"\r\n",
    GET + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n" + SECRET * 10,
    b"\xff" * 999 + SECRET + b"\r\n\r\n",
]


async def send_all(port: int, trust: ssl.SSLContext | None = None) -> None:
    """Send each of them over TLS, and bytes that are not TLS."""
    for sent in (*BAD_REQUESTS, *BAD_REQUESTS):
        for context in {trust, None}:
            with suppress(OSError, TimeoutError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                try:
                    async with asyncio.timeout(0.2):
                        writer.write(sent)
                        writer.write_eof() if writer.can_write_eof() else None
                        await reader.read()
                finally:
                    writer.transport.abort()


def check(caplog: pytest.LogCaptureFixture) -> None:
    records = [it for it in caplog.records if it.levelno >= logging.INFO]
    logged = "".join(map(logging.Formatter().format, records))
    assert "s3cr3t" not in logged
    assert "\x1b" not in logged
    assert "Traceback" not in logged
    assert len(records) <= 2, logged


async def test_health_port(caplog: pytest.LogCaptureFixture) -> None:
    listener = HealthListener("127.0.0.1", 0, dict)
    try:
        await send_all(await listener.start())
    finally:
        await listener.stop()
    check(caplog)


async def test_node_port(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    await send_all(int(scene.url.rpartition(":")[2]), scene.trust())
    check(caplog)


async def test_port_of_the_api_server(caplog: pytest.LogCaptureFixture) -> None:
    async def handle(_: HttpRequest) -> Response:
        return Response(code=200, body=b"ok", content_type="text/plain")

    listener = Listener(handle, authenticator=authenticator_of("t"), ssl_context=None)
    try:
        await send_all(await listener.start())
    finally:
        await listener.stop()
    check(caplog)


def test_an_agent_has_half_of_1024_descriptors_for_its_own_work() -> None:
    assert NODE_PORT_LIMITS.total + HEALTH_PORT_LIMITS.total <= 512
