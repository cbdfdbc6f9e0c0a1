"""A TLS server that asks who its clients are, and tells them."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.certificates import Authority, Pair


@asynccontextmanager
async def tls_server(
    authority: Authority, *, clients: Authority | None = None, pair: Pair | None = None
) -> AsyncIterator[int]:
    """Yield the port of a server that requires client certificates of `trusted`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=(clients or authority).pem.decode())
    with tempfile.TemporaryDirectory() as folder:
        pair = pair or authority.pair("server")
        certificate, key = Path(folder) / "crt", Path(folder) / "key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(_tell, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _tell(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    subject = writer.get_extra_info("peercert")["subject"]
    writer.write(dict(part[0] for part in subject)["commonName"].encode())
    writer.close()


async def peer_name(port: int, context: ssl.SSLContext) -> str:
    """Return the client's user name on the server."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()
