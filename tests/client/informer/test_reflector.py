"""The reflector in virtual time: it lists, watches, resumes, waits."""

import logging
import math

import pytest

from podstatus.client.rest.resources import CONFIG_MAPS
from podstatus.kube.api_errors import BusyError, RejectedError, UnavailableError
from podstatus.testing.clock import run_ready_tasks
from tests.client.informer.reflecting import DOWN, Scene, names
from tests.support.fake_source import FakeSource, expired


async def test_it_lists_then_watches_from_there() -> None:
    source = FakeSource()
    source.put("a")
    scene = Scene(source)
    assert (scene.reflector.has_synced, scene.reflector.staleness()) == (False, math.inf)
    async with scene.running():
        await scene.reflector.wait_synced()
        assert source.stream.version == "11"
        source.put("b")
        source.put("a")
        source.delete("b")
        await run_ready_tasks()
    assert scene.changes == ["+a", "+b", "~a", "-b"]
    found = scene.reflector.get("default", "a")
    assert found is not None
    assert found.metadata.resource_version == "13"
    assert scene.reflector.get("default", "b") is None
    counts = scene.reflector.counts
    assert (counts.lists, counts.watches, counts.events, counts.duplicates) == (1, 1, 3, 0)


async def test_a_list_asks_for_what_is_newest_in_pages() -> None:
    source = FakeSource()
    for name in "abcde":
        source.put(name)
    scene = Scene(source, page=2)
    async with scene.running():
        assert names(scene) == list("abcde")
    assert [(c["limit"], c["continue_token"]) for c in source.list_calls] == [
        (2, ""),
        (2, "2"),
        (2, "4"),
    ]
    assert all("resource_version" not in call for call in source.list_calls)


async def test_a_list_whose_pages_expire_is_asked_for_as_a_whole() -> None:
    source = FakeSource()
    for name in "abcde":
        source.put(name)
    first = await source.list(CONFIG_MAPS, limit=2, continue_token="")
    source.list_errors.extend([first, expired()])
    scene = Scene(source, page=2)
    async with scene.running():
        assert names(scene) == list("abcde")
    assert source.list_calls[-1]["limit"] == 0
    assert (scene.reflector.counts.expired, scene.reflector.counts.failures) == (0, 0)


@pytest.mark.parametrize("error", [None, UnavailableError("cut")], ids=["in peace", "cut"])
async def test_a_stream_that_ended_is_resumed_where_it_was(error: Exception | None) -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        source.put("a")
        source.stream.end(error)
        await run_ready_tasks()
        source.put("b")
        await scene.clock.advance(1)
        assert source.stream.version == "11"
        source.version = 20
        source.bookmark()
        source.stream.end(error)
        await scene.clock.advance(1)
        assert source.stream.version == "20"
    assert scene.changes == ["+a", "+b"]
    counts = scene.reflector.counts
    assert (counts.lists, counts.watches, counts.bookmarks) == (1, 3, 1)
    assert counts.failures == (0 if error is None else 2)


@pytest.mark.parametrize("where", ["opening", "stream"])
async def test_an_expired_version_is_listed_again_immediately(where: str) -> None:
    scene = Scene(source := FakeSource())
    source.put("a")
    async with scene.running():
        source.delete("a", silently=True)
        source.put("b", silently=True)
        if where == "opening":
            source.watch_errors.append(expired())
            await scene.clock.advance(2)
            source.stream.end()
        else:
            source.stream.end(expired())
        await run_ready_tasks()
        assert names(scene) == ["b"]
        assert source.stream.version == "13"
        source.bookmark()
        await run_ready_tasks()
    counts = scene.reflector.counts
    assert (counts.expired, counts.failures, counts.missed) == (1, 0, 0)


async def test_a_server_that_forgets_every_version_is_not_hammered() -> None:
    scene = Scene(source := FakeSource())
    source.watch_errors.extend(expired() for _ in range(100))
    async with scene.running():
        times = await scene.attempts(20, lambda: scene.reflector.counts.lists)
    assert times == [8, 24, 56, 120]


async def test_waits_grow_until_something_works() -> None:
    source = FakeSource()
    source.list_errors.extend([DOWN] * 8)
    scene = Scene(source)
    async with scene.running():
        times = await scene.attempts(112, lambda: len(source.list_calls))
        assert times == [8, 24, 56, 120, 248, 504, 804, 1104]
        assert scene.reflector.has_synced
        source.stream.end(DOWN)
        assert await scene.attempts(2, lambda: scene.reflector.counts.watches) == [8]
    assert scene.reflector.counts.failures == 9


async def test_chance_shortens_waits() -> None:
    source = FakeSource()
    source.list_errors.extend([DOWN] * 3)
    scene = Scene(source, chance=1.0)
    async with scene.running():
        assert await scene.attempts(4, lambda: len(source.list_calls)) == [4, 12, 28]


async def test_an_event_ends_a_row_of_failures() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        for _ in range(5):
            source.put("a")
            await run_ready_tasks()
            source.stream.end(DOWN)
            assert await scene.attempts(2, lambda: scene.reflector.counts.watches) == [8]


async def test_a_busy_server_says_when_to_come_back() -> None:
    source = FakeSource()
    source.list_errors.append(BusyError("later", retry_after=7))
    scene = Scene(source)
    async with scene.running():
        assert await scene.attempts(10, lambda: len(source.list_calls)) == [70]


async def test_streams_that_end_as_they_begin_are_not_opened_in_a_hurry() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        opened = []
        for tenth in range(130):
            if source.stream.is_open:
                opened.append(tenth)
                source.bookmark()
                source.stream.end()
            await scene.clock.advance(0.1)
    assert opened == [0, 8, 24, 56, 120]


async def test_a_refused_watch_is_restarted_from_a_list() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        source.watch_errors.append(RejectedError("invalid resource version", code=400))
        source.stream.end(DOWN)
        await scene.clock.advance(5)
    assert (scene.reflector.counts.lists, scene.reflector.counts.watches) == (2, 2)


async def test_one_outage_is_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "podstatus.client")

    scene = Scene(source := FakeSource())
    async with scene.running():
        source.watch_errors.extend([DOWN] * 6)
        source.stream.end(DOWN)
        await scene.clock.advance(100)
        source.put("a")
        await run_ready_tasks()
    first, last = caplog.records
    assert (first.levelname, last.levelname) == ("WARNING", "INFO")
    assert first.getMessage() == (
        "watch of configmaps failed, will retry: error=the server is down"
    )
    assert last.getMessage() == "watch of configmaps works again: seconds=81.4 failures=7"


async def test_it_can_be_stopped_and_go_on_later() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        source.put("a")
        await run_ready_tasks()
    source.put("b")
    async with scene.running():
        await run_ready_tasks()
        assert source.stream.version == "11"
    assert scene.changes == ["+a", "+b"]
    assert scene.reflector.counts.lists == 1
