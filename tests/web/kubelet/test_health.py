"""`/healthz` over a real socket."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp
import pytest

from podstatus.base.service_heartbeats import Heartbeats
from podstatus.testing.clock import FakeClock
from podstatus.web.kubelet.health import HealthCheck, HealthListener, healthy, heartbeat_checks

T = TypeVar("T")
Ask = Callable[[str], Awaitable[tuple[int, str]]]


def served(checks: dict[str, HealthCheck], talk: Callable[[Ask], Awaitable[T]]) -> T:
    """Run `act` against a listener with these checks, and return its result."""

    async def run() -> T:
        listener = HealthListener("127.0.0.1", 0, lambda: checks)
        port = await listener.start()
        try:
            async with aiohttp.ClientSession() as session:

                async def ask(path: str) -> tuple[int, str]:
                    async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                        return answer.status, await answer.text()

                return await talk(ask)
        finally:
            await listener.stop()

    return asyncio.run(run())


def broken() -> str:
    return "it is broken"


def faulty() -> str:
    raise KeyError("oops")


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("/healthz", 200, "ok"),
        ("/healthz/", 200, "ok"),
        ("/healthz/ping", 200, "ok"),
        ("/healthz?verbose", 200, "[+]log ok\n[+]ping ok\nhealthz check passed\n"),
        ("/healthz/nope", 404, "404 page not found; the checks below /healthz are log, ping\n"),
        ("/", 404, "404 page not found; the checks below /healthz are log, ping\n"),
    ],
)
def test_all_is_well(path: str, code: int, text: str) -> None:
    checks: dict[str, HealthCheck] = {"ping": healthy, "log": healthy}
    assert served(checks, lambda ask: ask(path)) == (code, text)


ALL = (
    "[-]faulty failed: the check itself failed: KeyError: 'oops'\n[+]ping ok\n"
    "[-]relist failed: it is broken\nhealthz check failed\n"
)


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        (
            "/healthz",
            500,
            ALL,
        ),
        ("/healthz/relist", 500, "internal server error: it is broken\n"),
        ("/healthz/ping", 200, "ok"),
    ],
)
def test_what_is_not_well_is_named(path: str, code: int, text: str) -> None:
    checks: dict[str, HealthCheck] = {"relist": broken, "ping": healthy, "faulty": faulty}
    assert served(checks, lambda ask: ask(path)) == (code, text)


async def test_only_reading_is_allowed() -> None:
    async def post() -> int:
        listener = HealthListener("127.0.0.1", 0, dict)
        port = await listener.start()
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"http://127.0.0.1:{port}/healthz") as answer,
            ):
                return answer.status
        finally:
            await listener.stop()

    assert await post() == 405


async def test_a_heartbeat_that_begins_later_is_there_and_fails_when_it_stalls() -> None:
    clock = FakeClock()
    heartbeats = Heartbeats(clock)
    listener = HealthListener("127.0.0.1", 0, lambda: heartbeat_checks(heartbeats))
    port = await listener.start()
    answers = []
    async with aiohttp.ClientSession() as session:

        async def ask() -> None:
            async with session.get(f"http://127.0.0.1:{port}/healthz/lease") as answer:
                answers.append((answer.status, await answer.text()))

        await ask()
        heartbeats.register("lease", max_silent_seconds=10)
        await ask()
        await clock.advance(11)
        await ask()
    await listener.stop()
    missing, fine, stalled = answers
    assert missing[0] == 404
    assert fine == (200, "ok")
    text = "internal server error: lease was last active 11 s ago; threshold is 10 s\n"
    assert stalled == (500, text)


async def test_a_taken_port_is_an_error_and_can_be_tried_again() -> None:
    first = HealthListener("127.0.0.1", 0, dict)
    port = await first.start()
    second = HealthListener("127.0.0.1", port, dict)
    with pytest.raises(OSError, match="address already in use"):
        await second.start()
    await first.stop()
    assert await second.start() == port
    await second.stop()
