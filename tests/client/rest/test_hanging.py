"""What hangs on the way, or stops making sense, is given up within the time that is promised."""

import asyncio

import pytest

from podstatus.base.system_clock import SystemClock
from podstatus.client.api_client import ApiClient
from podstatus.client.auth.config import ResolvedClientConfig
from podstatus.client.auth.file_credentials import FileCredentials, StaticHeader
from podstatus.client.auth.tls import TlsFiles
from podstatus.client.rest.http_transport import Timeouts
from podstatus.client.rest.resources import NODES
from podstatus.kube.api_errors import UnavailableError
from tests.client.raw_server import chunk, chunked_head, hang, raw_server
from tests.support.plain_access import PlainAccess


async def test_a_proxy_that_never_answers_is_given_up_by_a_watch_too() -> None:
    async with raw_server(hang, greets=True) as proxy:
        access = ResolvedClientConfig(
            server="https://127.0.0.1:1",
            source="the test",
            namespace="default",
            credential_provider=FileCredentials(
                StaticHeader(None), TlsFiles(insecure=True), SystemClock()
            ),
            proxy=proxy,
        )
        async with ApiClient(access, timeouts=Timeouts(connect_seconds=0.1)) as client:
            with pytest.raises(UnavailableError, match="timeout waiting for"):
                async with asyncio.timeout(60), client.watch(NODES):
                    pass


async def test_a_stream_that_is_no_proper_one_any_more_is_given_up() -> None:
    parsed = asyncio.Event()

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head() + chunk(b'{"type":"BOOKMARK","object":{}}\n'))
        await parsed.wait()
        writer.write(b"no chunk at all\r\n")
        await reader.read()

    async with (
        raw_server(say) as address,
        ApiClient(PlainAccess(address)) as client,
        client.watch(NODES, idle_timeout_seconds=2.0) as events,
    ):
        await anext(events)
        parsed.set()
        with pytest.raises(UnavailableError):
            await asyncio.wait_for(anext(events), 60)
