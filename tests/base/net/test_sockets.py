"""Connection state of transports in every stage of closing."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from podstatus.base.net.sockets import enable_keepalive, is_connected, transport_socket
from tests.support.certificates import authority


def test_no_transport_is_not_connected() -> None:
    enable_keepalive(None)
    assert (is_connected(None), transport_socket(None)) == (False, None)


async def test_a_disconnect_is_detected_without_reading() -> None:
    ours, theirs = _pair()
    _, writer = await asyncio.open_connection(sock=ours)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    enable_keepalive(writer.transport)
    before = is_connected(writer.transport)
    theirs.close()
    after = is_connected(writer.transport)
    writer.transport.abort()
    await asyncio.sleep(0)
    assert (before, after) == (True, False)


@pytest.mark.parametrize("times", [1, 2])
async def test_tls_that_was_closed_is_not_connected(tmp_path: Path, times: int) -> None:
    """The second close releases the socket, so it cannot be queried any more."""

    server = await asyncio.start_server(_stay, "127.0.0.1", 0, ssl=_context(tmp_path))
    port = server.sockets[0].getsockname()[1]
    trust = ssl.create_default_context(cadata=authority().pem.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    sock = transport_socket(writer.transport)
    assert sock is not None
    for _ in range(times):
        writer.transport.close()
    enable_keepalive(writer.transport)
    assert (transport_socket(writer.transport) is None) == (times > 1)
    connected = is_connected(writer.transport)
    sock.shutdown(socket.SHUT_RDWR)
    server.close()
    await asyncio.sleep(0.01)
    assert not connected


async def _stay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.transport.abort()


def _context(folder: Path) -> ssl.SSLContext:
    pair = authority().pair("node")
    (folder / "node.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "node.pem")
    return context


def _pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        theirs = socket.create_connection(listening.getsockname())
        ours, _ = listening.accept()
    return ours, theirs
