"""DNS lookups: callers that wait for a silent DNS server, and callers that do not."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from podstatus.probes.check_tcp import check_tcp
from podstatus.probes.decide.http_target import HttpTarget
from podstatus.probes.http_hook import send_hook_request
from podstatus.probes.resolver import HostResolver


async def test_addresses_are_their_own() -> None:
    names = HostResolver()
    assert await names.resolve("10.0.0.1") == [(socket.AF_INET, "10.0.0.1")]
    assert await names.resolve("fd00::1") == [(socket.AF_INET6, "fd00::1")]


async def test_a_silent_name_server_holds_one_thread_for_a_name_and_none_that_others_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speaks, asked = threading.Event(), list[str]()

    def look_up(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        speaks.wait()
        return [(socket.AF_INET, None, None, None, ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    names = HostResolver()
    checks = [check_tcp("name.test", 1, seconds=0.05, resolver=names) for _ in range(50)]
    for checked in await asyncio.gather(*checks):
        assert checked.output == "dial tcp name.test:1: i/o timeout"
    assert asked == ["name.test"]
    assert await asyncio.to_thread(lambda: "others go on") == "others go on"
    waiting = asyncio.create_task(names.resolve("name.test"))
    speaks.set()
    assert await waiting == [(socket.AF_INET, "127.0.0.1")]
    assert await names.resolve("name.test") == [(socket.AF_INET, "127.0.0.1")]
    assert asked == ["name.test"] * 2


async def test_a_name_is_asked_again_if_there_was_no_thread_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    names = HostResolver()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError):
            await names.resolve("localhost")
    assert await asyncio.wait_for(names.resolve("localhost"), 10)


async def test_hooks_that_wait_for_a_silent_name_server_hold_no_thread_that_others_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speaks = threading.Event()

    def look_up(*_: Any, **__: Any) -> list[Any]:
        speaks.wait()
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    target = HttpTarget(url="http://name.test:1/", headers=())
    hooks = [asyncio.create_task(send_hook_request(target)) for _ in range(50)]
    await asyncio.sleep(0.05)
    others = asyncio.create_task(asyncio.to_thread(lambda: "others go on"))
    done, _ = await asyncio.wait({others}, timeout=10)
    speaks.set()
    assert done == {others}
    assert all(
        isinstance(end, ConnectionError)
        for end in await asyncio.gather(*hooks, return_exceptions=True)
    )
