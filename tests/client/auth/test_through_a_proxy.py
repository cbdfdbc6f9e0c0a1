"""Requests through an HTTP proxy that wants to know who we are."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podstatus.client.api_client import ApiClient
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.rest.resources import PODS
from podstatus.kube.api_errors import UnavailableError
from podstatus.testing.apiserver import ApiServerThread
from tests.client.kubeconfigs import data, write

PASSWORD = "sesame-street"  # noqa: S105 - made up


class Proxy:
    """A proxy that requires a password, and records its requests."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client."""
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        known = base64.b64encode(f"me:{PASSWORD}".encode())
        if known not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            writer.close()
            return
        host, _, port = head.split()[1].decode().rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_copy(reader, back))
            tasks.create_task(_copy(there, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while some := await reader.read(1 << 16):
            writer.write(some)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def running_proxy() -> AsyncIterator[Proxy]:
    """Run a local proxy."""
    proxy = Proxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield proxy


async def listed(server: ApiServerThread, folder: Path, proxy_url: str) -> bytes:
    cluster = {
        "server": server.url,
        "certificate-authority-data": data(server.authority.read_bytes()),
        "proxy-url": proxy_url,
    }
    config = write(folder / "config", cluster=cluster, user={"token": server.token})
    async with ApiClient(kubeconfig_config(config)) as client:
        return await client.list(PODS)


async def test_requests_go_through_the_proxy_that_is_named(
    api_server: ApiServerThread, tmp_path: Path
) -> None:
    async with running_proxy() as proxy:
        url = f"http://me:{PASSWORD}@{proxy.address}"
        assert b'"PodList"' in await listed(api_server, tmp_path, url)
    assert len(proxy.heads) == 1
    assert api_server.token.encode() not in proxy.heads[0]


async def test_a_proxy_that_refuses_is_named_without_its_password(
    api_server: ApiServerThread, tmp_path: Path
) -> None:
    async with running_proxy() as proxy:
        with pytest.raises(UnavailableError) as caught:
            await listed(api_server, tmp_path, f"http://me:wrong-{PASSWORD[1:]}@{proxy.address}")
    message = str(caught.value)
    assert "the proxy failed or refused (407 proxy authentication required)" in message
    assert "wrong-" not in message
