"""Tokens that are replaced while many requests are under way: not one of them fails."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from podstatus.client.api_client import ApiClient
from podstatus.client.auth.config import ClientConfig
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.rest.resources import NODES
from tests.client.auth.plugins import V1BETA1, Plugin, answer
from tests.client.auth.replace_file import replace
from tests.client.kubeconfigs import Document, data, write
from tests.support.certificates import authority

CALLERS = 20
ROTATIONS = 5
CALLS = 100
"""Calls between two rotations, by all callers."""


class StrictServer:
    """Accepts one token at a time, and refuses older ones."""

    def __init__(self) -> None:
        self.token = "token-0"  # noqa: S105 - made up
        self.refused = 0
        self._answered = 0
        self._enough = 0
        self._reached = asyncio.Event()
        self.url = ""

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """200 or 401."""
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            self.refused += 1
            return web.json_response({"code": 401, "reason": "Unauthorized"}, status=401)
        self._answered += 1
        if self._answered >= self._enough:
            self._reached.set()
        return web.json_response({})

    async def answer_more(self) -> None:
        """Wait until more calls have succeeded."""
        self._reached.clear()
        self._enough = self._answered + CALLS
        await self._reached.wait()

    @property
    def cluster(self) -> Document:
        """Return the configuration of a kubeconfig."""
        return {"server": self.url, "certificate-authority-data": data(authority().pem)}


@asynccontextmanager
async def strict_server(folder: Path) -> AsyncIterator[StrictServer]:
    """Run a local server with TLS."""
    pair = authority().pair("server")
    pem = folder / "server.pem"
    pem.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    strict = StrictServer()
    runner = web.ServerRunner(web.Server(strict.answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    strict.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield strict
    finally:
        await runner.cleanup()


async def rotate_under_load(
    server: StrictServer, access: ClientConfig, publish: Callable[[str], object]
) -> None:
    """Send requests continuously while tokens are rotated."""
    ended = False

    async def keep_calling(client: ApiClient) -> None:
        while not ended:
            await client.get(NODES, "n1")

    async with ApiClient(access) as client, asyncio.TaskGroup() as tasks:
        for _ in range(CALLERS):
            tasks.create_task(keep_calling(client))
        for number in range(1, ROTATIONS + 1):
            await server.answer_more()
            publish(f"token-{number}")
            server.token = f"token-{number}"
        await server.answer_more()
        ended = True


async def test_no_call_fails_while_a_token_file_is_replaced(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("token-0")
    async with strict_server(tmp_path) as server:
        config = write(tmp_path / "config", cluster=server.cluster, user={"tokenFile": str(token)})
        access = kubeconfig_config(config)
        await rotate_under_load(server, access, lambda new: replace(token, new.encode()))
    assert 1 <= server.refused <= ROTATIONS * CALLERS


async def test_no_call_fails_while_a_plugin_gives_other_tokens(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path).says("token-0")
    async with strict_server(tmp_path) as server:
        access = plugin.access(cluster=server.cluster)
        await rotate_under_load(server, access, plugin.says)
    assert plugin.runs == ROTATIONS + 1
    assert 1 <= server.refused <= ROTATIONS * CALLERS


async def test_nor_with_the_older_version_of_plugins(tmp_path: Path) -> None:
    def says(token: str) -> None:
        plugin.prints(json.dumps(answer(V1BETA1, token=token)))

    plugin = Plugin(tmp_path)
    says("token-0")
    async with strict_server(tmp_path) as server:
        access = plugin.access(cluster=server.cluster, apiVersion=V1BETA1)
        await rotate_under_load(server, access, says)
    assert plugin.runs == ROTATIONS + 1
