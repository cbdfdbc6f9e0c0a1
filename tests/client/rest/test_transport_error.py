"""What is said when the way to the server is broken."""

import asyncio
import ssl
import threading
from pathlib import Path

import pytest

from podstatus.client.api_client import ApiClient
from podstatus.client.rest.http_transport import Timeouts
from podstatus.client.rest.resources import NODES
from podstatus.kube.api_errors import UnavailableError
from podstatus.testing.apiserver import ApiServerThread
from podstatus.testing.servers.free_port import free_port
from tests.client.raw_server import Say, hang, hang_up, raw_server
from tests.support.certificates import DAY, authority
from tests.support.plain_access import PlainAccess


async def failing(access: PlainAccess, timing: Timeouts | None = None) -> str:
    """Return the error of a request that fails, within the documented time."""
    async with asyncio.timeout(25), ApiClient(access, timeouts=timing) as client:
        with pytest.raises(UnavailableError) as caught:
            await client.get(NODES, "n1")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("GET /api/v1/nodes/n1: ")
    return message


async def failing_at(say: Say, timing: Timeouts | None = None, *, scheme: str = "http") -> str:
    """Return the error of a request to a server that behaves like this."""
    async with raw_server(say, greets=scheme == "https") as address:
        return await failing(PlainAccess(address.replace("http:", f"{scheme}:")), timing)


async def test_connection_refused() -> None:
    message = await failing(PlainAccess(f"http://127.0.0.1:{free_port()}"))
    assert "cannot connect to http://127.0.0.1" in message
    assert "(connection refused)" in message
    assert message.endswith("check that it runs, and the server of the test")


async def test_a_name_without_an_address() -> None:
    message = await failing(PlainAccess("https://nowhere.invalid:6443"))
    assert "cannot resolve nowhere.invalid" in message
    assert "check the server of the test, and DNS" in message


async def test_a_name_server_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [answered.wait()][:0])
    message = await failing(PlainAccess("https://api.example.com"), Timeouts(connect_seconds=0.1))
    answered.set()
    assert "no response from the name server in 0.1 s" in message


async def test_another_authority(api_server: ApiServerThread) -> None:
    message = await failing(PlainAccess(api_server.url, "t", tls=ssl.create_default_context()))
    assert "signed by an unknown authority" in message
    assert message.endswith("check certificate-authority in the test")


def with_certificate(folder: Path, name: str, *, days: int) -> tuple[ssl.SSLContext, Path]:
    """Return a server's TLS context, valid for this many days, and the client's."""
    pair = authority().pair("server", lasts=days * DAY, hosts=(name,))
    own, trusted = folder / "server.pem", folder / "ca.pem"
    own.write_bytes(pair.certificate + pair.key)
    trusted.write_bytes(authority().pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own)
    return context, trusted


async def failing_with(context: ssl.SSLContext, authority: Path) -> str:
    trust = ssl.create_default_context(cafile=str(authority))
    async with raw_server(hang_up, tls=context, greets=True) as address:
        return await failing(PlainAccess(address, tls=trust))


async def test_a_certificate_that_has_expired(tmp_path: Path) -> None:
    message = await failing_with(*with_certificate(tmp_path, "localhost", days=-1))
    assert "the server's certificate has expired" in message


async def test_a_certificate_for_another_name(tmp_path: Path) -> None:
    message = await failing_with(*with_certificate(tmp_path, "example.com", days=1))
    assert "the server's certificate is for another name" in message
    assert "tls-server-name" in message


async def _bad_request(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def _ssh(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")


async def test_tls_where_there_is_none() -> None:
    assert "TLS failed with https://127.0.0.1" in await failing_at(_bad_request, scheme="https")


async def test_a_server_that_does_not_finish_the_handshake() -> None:
    message = await failing_at(hang, Timeouts(connect_seconds=0.2), scheme="https")
    assert "timeout waiting for https://127.0.0.1" in message


async def test_something_that_does_not_speak_http() -> None:
    assert "invalid HTTP from http://127.0.0.1" in await failing_at(_ssh)


async def test_a_connection_that_breaks() -> None:
    assert (
        "closed the connection (server disconnected); check the server of the test: is it https?"
        in (await failing_at(hang_up))
    )
