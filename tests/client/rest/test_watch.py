"""Watches, as they come and as they break."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

pytest.importorskip("aiohttp", reason="the client needs podstatus[agent]")

from podstatus.client.api_client import ApiClient
from podstatus.client.config_errors import WatchIdleError
from podstatus.client.rest.resources import CONFIG_MAPS, PODS
from podstatus.client.rest.watch_events import WatchEvent
from podstatus.kube.api_errors import ApiError, GoneError, UnavailableError
from podstatus.testing.apiserver import ApiServerThread
from tests.client.config_maps import config_map
from tests.client.raw_server import answer, chunk, chunked_head, raw_server
from tests.support.plain_access import PlainAccess

Say = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def type_and_name(event: WatchEvent) -> tuple[str, str]:
    return event.type, json.loads(bytes(event.object))["metadata"].get("name", "")


async def test_changes_after_a_version_arrive_in_order(api_server: ApiServerThread) -> None:
    async with ApiClient(PlainAccess.of(api_server)) as client:
        page = json.loads(await client.list(CONFIG_MAPS, namespace="default"))
        version = page["metadata"]["resourceVersion"]
        for name in "ab":
            await client.create(CONFIG_MAPS, config_map(name), namespace="default")
        await client.delete(CONFIG_MAPS, "a", namespace="default")
        seen = []
        async with client.watch(
            CONFIG_MAPS, namespace="default", resource_version=version
        ) as events:
            async for event in events:
                seen.append(type_and_name(event))
                if len(seen) == 3:
                    break
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_ends_in_peace_when_its_time_is_over(api_server: ApiServerThread) -> None:
    async with (
        ApiClient(PlainAccess.of(api_server)) as client,
        client.watch(CONFIG_MAPS, timeout_seconds=1) as events,
    ):
        assert {event.type async for event in events} <= {"ADDED", "BOOKMARK"}


async def test_a_version_that_is_too_old_is_gone(api_server: ApiServerThread) -> None:
    api_server.inject({"verb": "watch", "action": "compact", "times": 1})
    async with ApiClient(PlainAccess.of(api_server)) as client:
        with pytest.raises(GoneError) as caught:
            async with client.watch(CONFIG_MAPS, resource_version="1") as events:
                await anext(events)
    assert caught.value.code == 410


async def test_refused_credentials_are_renewed_for_a_watch_too(api_server: ApiServerThread) -> None:
    async with (
        ApiClient(PlainAccess.of(api_server, "old")) as client,
        client.watch(PODS, timeout_seconds=1) as events,
    ):
        async for _ in events:
            pass


EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"%b"}}}\n'


async def watch(
    say: Say, silence_seconds: float = 30.0
) -> tuple[list[tuple[str, str]], ApiError | None]:
    """Return the events that a client gets from a server, and how the watch ends."""
    seen: list[tuple[str, str]] = []
    async with raw_server(say) as address, ApiClient(PlainAccess(address)) as client:
        try:
            async with client.watch(PODS, idle_timeout_seconds=silence_seconds) as events:
                async for event in events:
                    seen += [type_and_name(event)]
        except ApiError as error:
            return seen, error
        return seen, None


def saying(*parts: bytes) -> Say:
    async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return say


async def test_events_may_come_in_any_pieces() -> None:
    text = EVENT % b"a" + EVENT % (b"b" * 300_000) + b"\n" + EVENT % b"c"
    pieces = [chunk(text[at : at + 7001]) for at in range(0, len(text), 7001)]
    seen, error = await watch(saying(chunked_head(), *pieces, chunk(b"")))
    assert error is None
    assert [name[:1] for _, name in seen] == ["a", "b", "c"]
    assert len(seen[1][1]) == 300_000


async def test_a_stream_that_ends_in_the_middle_of_an_event_was_cut() -> None:
    seen, error = await watch(
        saying(chunked_head(), chunk(EVENT % b"a"), chunk((EVENT % b"b")[:20]), chunk(b""))
    )
    assert seen == [("ADDED", "a")]
    assert isinstance(error, UnavailableError)
    assert "middle of an event" in str(error)


async def test_a_connection_that_ends_without_the_last_chunk_was_cut() -> None:
    seen, error = await watch(saying(chunked_head(), chunk(EVENT % b"a")))
    assert seen == [("ADDED", "a")]
    assert isinstance(error, UnavailableError)


async def test_a_stream_that_falls_silent_is_given_up() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head() + chunk(EVENT % b"a"))
        await reader.read()

    seen, error = await watch(say, silence_seconds=1.5)
    assert seen == [("ADDED", "a")]
    assert isinstance(error, WatchIdleError)
    assert "no data for 1.5 s" in str(error)


async def test_an_error_event_is_raised_as_what_it_says() -> None:
    status = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}'
    line = b'{"type":"ERROR","object":%b}\n' % status
    seen, error = await watch(saying(chunked_head(), chunk(EVENT % b"a" + line), chunk(b"")))
    assert seen == [("ADDED", "a")]
    assert isinstance(error, GoneError)
    assert (error.code, error.reason) == (410, "Expired")
    assert str(error) == "watch /api/v1/pods: too old"


async def test_what_is_no_event_is_an_error() -> None:
    _, error = await watch(saying(chunked_head(), chunk(b"<html>\n"), chunk(b"")))
    assert isinstance(error, UnavailableError)
    assert "invalid watch event" in str(error)


async def test_an_error_of_the_reader_stays_its_own(api_server: ApiServerThread) -> None:
    with pytest.raises(OSError, match="the disk is full"):
        async with ApiClient(PlainAccess.of(api_server)) as client, client.watch(PODS):
            raise OSError("the disk is full")


async def test_a_refused_watch_is_an_error_of_the_tree() -> None:
    body = b'{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}'
    _, error = await watch(saying(answer(body, "403 Forbidden")))
    assert error is not None
    assert (error.code, error.reason) == (403, "Forbidden")
    assert "(RBAC)" in str(error)
