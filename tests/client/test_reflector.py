"""The reflector in virtual time, on a server in memory."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from podstatus.client.reflector import Reflector
from podstatus.client.reflector_policy import ReflectorPolicy
from podstatus.client.replica import Added, Change, Removed, Updated
from podstatus.client.resources import CONFIG_MAPS
from podstatus.client.watch_event import ADDED, BOOKMARK, MODIFIED
from podstatus.kube.errors import BusyError, RejectedError, UnavailableError
from podstatus.kube.records import ConfigMap
from podstatus.testing.clock import FakeClock, settle
from tests.client.fake_source import FakeSource, expired
from tests.client.story import Story

DOWN = UnavailableError("the server is down")


class Scene:
    """A reflector that runs, its server, its clock, and what it told."""

    def __init__(
        self,
        source: FakeSource,
        *,
        chance: float = 0.0,
        page: int = 500,
        versions_grow: bool = True,
    ) -> None:
        self.source = source
        self.clock = FakeClock()
        self._story = Story[ConfigMap](versions_grow=versions_grow)
        self.told: list[str] = []
        self.reflector = Reflector(
            source,
            CONFIG_MAPS,
            ConfigMap,
            self._hear,
            policy=ReflectorPolicy(page=page),
            clock=self.clock,
            random=lambda: chance,
        )

    def _hear(self, change: Change[ConfigMap]) -> None:
        match change:
            case Added(new):
                self.told.append(f"+{new.metadata.name}")
            case Updated(_, new):
                self.told.append(f"~{new.metadata.name}")
            case Removed(last):
                self.told.append(f"-{last.metadata.name}")
        self._story(change)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self.reflector.run())
        try:
            await settle()
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
        assert self.reflector.counts.handler_failures == 0

    async def attempts(self, seconds: float, count: Callable[[], int]) -> list[int]:
        """When the count grew, in seconds from now, to a tenth."""
        seen, times = count(), []
        for tenth in range(round(seconds * 10) + 1):
            if count() > seen:
                times.append(tenth)
                seen = count()
            await self.clock.advance(0.1)
        return times


def run(play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(play(), 30))


def names(scene: Scene) -> list[str]:
    return sorted(found.metadata.name for found in scene.reflector.objects())


def test_it_lists_then_watches_from_there() -> None:
    async def play() -> None:
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
            await settle()
        assert scene.told == ["+a", "+b", "~a", "-b"]
        found = scene.reflector.get("default", "a")
        assert found is not None
        assert found.metadata.resource_version == "13"
        assert scene.reflector.get("default", "b") is None
        counts = scene.reflector.counts
        assert (counts.lists, counts.watches, counts.events, counts.duplicates) == (1, 1, 3, 0)

    run(play)


def test_a_list_asks_for_what_is_newest_in_pages() -> None:
    async def play() -> None:
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

    run(play)


def test_a_list_whose_pages_expire_is_asked_for_as_a_whole() -> None:
    async def play() -> None:
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

    run(play)


@pytest.mark.parametrize("error", [None, UnavailableError("cut")], ids=["in peace", "cut"])
def test_a_stream_that_ended_is_resumed_where_it_was(error: Exception | None) -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            source.put("a")
            source.stream.end(error)
            await settle()
            source.put("b")
            await scene.clock.advance(1)
            assert source.stream.version == "11"
            source.version = 20
            source.bookmark()
            source.stream.end(error)
            await scene.clock.advance(1)
            assert source.stream.version == "20"
        assert scene.told == ["+a", "+b"]
        counts = scene.reflector.counts
        assert (counts.lists, counts.watches, counts.bookmarks) == (1, 3, 1)
        assert counts.failures == (0 if error is None else 2)

    run(play)


@pytest.mark.parametrize("where", ["opening", "stream"])
def test_a_version_that_is_gone_is_listed_anew_at_once(where: str) -> None:
    async def play() -> None:
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
            await settle()
            assert names(scene) == ["b"]
            assert source.stream.version == "13"
            source.bookmark()
            await settle()
        counts = scene.reflector.counts
        assert (counts.expired, counts.failures, counts.missed) == (1, 0, 0)

    run(play)


def test_a_server_that_forgets_every_version_is_not_hammered() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        source.watch_errors.extend(expired() for _ in range(100))
        async with scene.running():
            times = await scene.attempts(20, lambda: scene.reflector.counts.lists)
        assert times == [8, 24, 56, 120]

    run(play)


def test_waits_grow_until_something_works() -> None:
    async def play() -> None:
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

    run(play)


def test_chance_shortens_waits() -> None:
    async def play() -> None:
        source = FakeSource()
        source.list_errors.extend([DOWN] * 3)
        scene = Scene(source, chance=1.0)
        async with scene.running():
            assert await scene.attempts(4, lambda: len(source.list_calls)) == [4, 12, 28]

    run(play)


def test_an_event_ends_a_row_of_failures() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            for _ in range(5):
                source.put("a")
                await settle()
                source.stream.end(DOWN)
                assert await scene.attempts(2, lambda: scene.reflector.counts.watches) == [8]

    run(play)


def test_a_busy_server_says_when_to_come_back() -> None:
    async def play() -> None:
        source = FakeSource()
        source.list_errors.append(BusyError("later", retry_after=7))
        scene = Scene(source)
        async with scene.running():
            assert await scene.attempts(10, lambda: len(source.list_calls)) == [70]

    run(play)


def test_streams_that_end_as_they_begin_are_not_opened_in_a_hurry() -> None:
    async def play() -> None:
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

    run(play)


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 300), (1.0, 240)])
def test_a_full_list_is_taken_now_and_then_beside_the_watch(chance: float, seconds: int) -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource(), chance=chance)
        source.put("a")
        async with scene.running():
            await scene.clock.advance(seconds - 1)
            assert scene.reflector.counts.lists == 1
            await scene.clock.advance(2)
            assert scene.reflector.counts.lists == 2
            await scene.clock.advance(seconds)
            assert scene.reflector.counts.lists == 3
            assert len(source.streams) == 1
            before = scene.reflector.get("default", "a")
            await scene.clock.advance(seconds)
            assert scene.reflector.get("default", "a") is before, "not decoded again"
        assert scene.told == ["+a"]

    run(play)


def test_a_full_list_that_fails_is_tried_again() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            await scene.clock.advance(299)
            source.list_errors.extend([DOWN] * 2)
            assert await scene.attempts(5, lambda: len(source.list_calls)) == [10, 18, 34]
            assert len(source.streams) == 1
        assert scene.reflector.counts.failures == 2

    run(play)


def test_what_the_watch_missed_is_repaired_and_counted() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        for name in "abc":
            source.put(name)
        async with scene.running():
            source.put("new", silently=True)
            source.put("a", silently=True)
            source.delete("b", silently=True)
            source.delete("c", silently=True)
            source.put("c", silently=True)
            await scene.clock.advance(301)
            assert scene.told[3:] == ["-b", "~a", "-c", "+c", "+new"]
            assert scene.reflector.counts.missed == 0, "it may yet come"
            source.bookmark()
            await settle()
            assert scene.reflector.counts.missed == 4
            source.put("a")
            await scene.clock.advance(301)
        assert scene.reflector.counts.missed == 4

    run(play)


def test_what_the_watch_had_come_past_is_missed_at_once() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            source.put("a", silently=True)
            source.put("b")
            await scene.clock.advance(301)
        assert scene.told == ["+b", "+a"]
        assert scene.reflector.counts.missed == 1

    run(play)


def test_what_was_just_on_its_way_is_not_missed() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        for name in "abc":
            source.put(name)
        async with scene.running():
            source.stream.is_held = True
            source.put("a")
            source.put("a")
            source.delete("b")
            source.delete("c")
            source.put("c")
            source.put("new")
            await scene.clock.advance(301)
            assert names(scene) == ["a", "c", "new"]
            source.stream.release()
            source.bookmark()
            source.put("a")
            await settle()
        counts = scene.reflector.counts
        assert (counts.missed, counts.duplicates) == (0, 6)

    run(play)


def test_part_of_what_was_on_its_way_is_not_all_of_it() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        for name in "ab":
            source.put(name)
        async with scene.running():
            source.stream.is_held = True
            source.put("a")
            source.put("b")
            source.put("a", silently=True)
            source.delete("b", silently=True)
            await scene.clock.advance(301)
            source.stream.release()
            source.bookmark()
            await settle()
        assert scene.told == ["+a", "+b", "-b", "~a"]
        assert scene.reflector.counts.missed == 2

    run(play)


def test_a_stream_that_broke_before_it_caught_up_is_asked_for_the_rest() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            source.stream.is_held = True
            source.put("a")
            await scene.clock.advance(301)
            assert scene.told == ["+a"]
            source.stream.end(DOWN)
            await scene.clock.advance(1)
            assert source.stream.version == "10", "where the watch was, not the list"
            assert scene.reflector.counts.missed == 0
            assert scene.reflector.counts.duplicates == 1

    run(play)


def test_a_stream_with_nothing_in_doubt_is_resumed_at_the_last_list() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            source.version = 50
            await scene.clock.advance(301)
            source.stream.end()
            await settle()
            assert source.stream.version == "50"

    run(play)


def test_differences_are_forgotten_when_the_watch_has_to_begin_anew() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            source.put("a", silently=True)
            await scene.clock.advance(301)
            source.stream.end(expired())
            await settle()
            source.bookmark()
            await settle()
        assert scene.told == ["+a"]
        assert scene.reflector.counts.missed == 0

    run(play)


def test_it_tells_how_stale_it_is() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            await scene.clock.advance(30)
            assert scene.reflector.staleness() == 30
            source.bookmark()
            await settle()
            assert scene.reflector.staleness() == 0
            await scene.clock.advance(20)
            source.put("a")
            await settle()
            assert scene.reflector.staleness() == 0
            source.stream.end(DOWN)
            source.watch_errors.extend([DOWN] * 100)
            await scene.clock.advance(245)
            assert scene.reflector.staleness() == 245
            await scene.clock.advance(10)
            assert scene.reflector.staleness() == 5, "the list"

    run(play)


def test_a_list_is_as_old_as_the_question() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        source.answers.clear()
        async with scene.running():
            await scene.clock.advance(12)
            source.answers.set()
            await settle()
            assert scene.reflector.staleness() == 12

    run(play)


def test_a_slow_list_makes_nothing_older() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            await scene.clock.advance(299)
            source.answers.clear()
            await scene.clock.advance(11)
            source.bookmark()
            await scene.clock.advance(2)
            source.answers.set()
            await settle()
            assert scene.reflector.counts.lists == 2
            assert scene.reflector.staleness() == 2

    run(play)


def test_what_cannot_be_decoded_is_counted_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        for name in "ab":
            source.put(name)
        async with scene.running():
            source.put("a", data="secret words")
            source.put("c", data=5)
            source.put("b")
            source.stream.tell(MODIFIED, {"metadata": {"namespace": "default"}})
            source.stream.tell(ADDED, "nothing")
            source.stream.tell("NEW", source.objects["a"])
            source.stream.tell(BOOKMARK, [])
            await settle()
            assert scene.told == ["+a", "+b", "~b"]
            assert scene.reflector.counts.undecodable == 5
            await scene.clock.advance(301)
            assert names(scene) == ["a", "b"], "it is in the list, so it is there"
            assert scene.reflector.counts.undecodable == 7
            source.delete("a")
            source.put("c", data={"k": "v"})
            await settle()
        assert scene.told[3:] == ["-a", "+c"]
        assert len(source.streams) == 1
        assert scene.reflector.counts.missed == 0

    run(play)
    assert "namespace=default name=a" in caplog.text
    assert "secret" not in caplog.text


def test_an_item_without_a_name_does_no_harm() -> None:
    async def play() -> None:
        source = FakeSource()
        source.put("a")
        items = [{"metadata": {}}, 5, source.objects["a"]]
        page = {"metadata": {"resourceVersion": "11"}, "items": items}
        source.list_errors.append(msgspec.json.encode(page))
        scene = Scene(source)
        async with scene.running():
            assert names(scene) == ["a"]
        assert scene.reflector.counts.undecodable == 2

    run(play)


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"items": []}', b'{"metadata": 5}'])
def test_an_answer_that_is_no_list_is_a_failure(answer: bytes) -> None:
    async def play() -> None:
        source = FakeSource()
        source.list_errors.append(answer)
        scene = Scene(source)
        async with scene.running():
            assert scene.reflector.counts.lists == 0
            await scene.clock.advance(1)
            assert scene.reflector.has_synced
        assert scene.reflector.counts.failures == 1

    run(play)


def test_a_list_without_end_is_a_failure() -> None:
    async def play() -> None:
        source = FakeSource()
        page = b'{"metadata": {"continue": "x"}, "items": []}'
        source.list_errors.extend([page] * 2)
        scene = Scene(source)
        async with scene.running():
            await scene.clock.advance(2)
            assert scene.reflector.has_synced
        assert scene.reflector.counts.failures == 1

    run(play)


def test_what_has_no_version_is_no_place_to_resume_at() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource(), versions_grow=False)
        async with scene.running():
            source.stream.tell(ADDED, {"metadata": {"name": "a", "uid": "u"}})
            source.stream.tell(BOOKMARK, {"metadata": {}})
            await settle()
            source.stream.end(DOWN)
            await scene.clock.advance(1)
            assert source.stream.version == "10"
        assert scene.told == ["+a"]

    run(play)


@pytest.mark.parametrize("wrong", [{"list_seconds": 0}, {"silence_seconds": -1}, {"page": -1}])
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        ReflectorPolicy(**wrong)  # type: ignore[arg-type]


def test_a_handler_that_raises_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def handler(change: Change[ConfigMap]) -> None:
        match change:
            case Added(new):
                heard.append(new.metadata.name)
                raise RuntimeError("no")

    async def play() -> None:
        source = FakeSource()
        source.put("a", data={"k": "private"})
        source.put("b")
        reflector = Reflector(source, CONFIG_MAPS, ConfigMap, handler, clock=FakeClock())
        task = asyncio.ensure_future(reflector.run())
        await settle()
        source.put("c")
        await settle()
        task.cancel()
        await asyncio.wait({task})
        assert heard == ["a", "b", "c"]
        assert len(reflector.objects()) == 3
        assert reflector.counts.handler_failures == 3

    run(play)
    assert "change=Added namespace=default name=a" in caplog.text
    assert "private" not in caplog.text


def test_a_server_that_was_begun_anew_is_taken_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource(version=100), versions_grow=False)
        source.put("a")
        source.put("b", uid="same")
        async with scene.running():
            source.begin_anew(3)
            source.put("b", uid="same", silently=True)
            source.put("c", silently=True)
            too_large = UnavailableError("Too large resource version", code=504)
            source.watch_errors.append(too_large)
            source.stream.end(DOWN)
            await scene.clock.advance(5)
            assert names(scene) == ["b", "c"]
            assert source.stream.version == "5"
            source.put("c")
            source.delete("b")
            await settle()
        assert scene.told == ["+a", "+b", "-a", "~b", "+c", "~c", "-b"]
        assert scene.reflector.counts.missed == 0

    run(play)
    assert "resource versions went back" in caplog.text


def test_a_watch_of_what_was_before_is_left_when_a_list_shows_it() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource(version=100), versions_grow=False)
        source.put("a")
        async with scene.running():
            source.begin_anew(3)
            source.put("b", silently=True)
            late = {"metadata": {"name": "z", "uid": "z", "resourceVersion": "150"}}
            source.before_list = lambda: source.streams[0].tell(ADDED, late)
            await scene.clock.advance(301)
            assert names(scene) == ["b"]
            assert [stream.version for stream in source.streams] == ["101", "4"]
            assert [stream.is_open for stream in source.streams] == [False, True]
        assert scene.reflector.counts.failures == 0

    run(play)


def test_versions_that_are_no_numbers_are_followed_in_order() -> None:
    async def play() -> None:
        source = FakeSource()
        source.spell = lambda number: f"v{number}"
        source.put("a")
        scene = Scene(source, versions_grow=False)
        async with scene.running():
            source.put("a")
            source.put("b")
            await settle()
            source.stream.end(DOWN)
            await scene.clock.advance(1)
            assert source.stream.version == "v13"
            source.delete("a")
            source.put("c", silently=True)
            await scene.clock.advance(300)
            assert source.stream.version == "v15", "a list cannot be put beside such a watch"
            assert names(scene) == ["b", "c"]
        assert scene.told == ["+a", "~a", "+b", "-a", "+c"]

    run(play)


def test_a_refused_watch_is_begun_anew_from_a_list() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            source.watch_errors.append(RejectedError("invalid resource version", code=400))
            source.stream.end(DOWN)
            await scene.clock.advance(5)
        assert (scene.reflector.counts.lists, scene.reflector.counts.watches) == (2, 2)

    run(play)


def test_one_outage_is_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "podstatus.client")

    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            source.watch_errors.extend([DOWN] * 6)
            source.stream.end(DOWN)
            await scene.clock.advance(100)
            source.put("a")
            await settle()

    run(play)
    first, last = caplog.records
    assert (first.levelname, last.levelname) == ("WARNING", "INFO")
    assert first.getMessage() == (
        "watch of configmaps failed, will retry: error=the server is down"
    )
    assert last.getMessage() == "watch of configmaps works again: seconds=100.0 failures=7"


def test_what_no_port_names_is_logged_with_its_place_and_survived(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play() -> None:
        source = FakeSource()
        source.list_errors.append(ZeroDivisionError("a mistake"))
        scene = Scene(source)
        async with scene.running():
            await scene.clock.advance(1)
            assert scene.reflector.has_synced

    run(play)
    assert "Traceback" in caplog.text


def test_it_can_be_stopped_and_go_on_later() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        async with scene.running():
            source.put("a")
            await settle()
        source.put("b")
        async with scene.running():
            await settle()
            assert source.stream.version == "11"
        assert scene.told == ["+a", "+b"]
        assert scene.reflector.counts.lists == 1

    run(play)


def test_deleted_while_listing_stays_away() -> None:
    async def play() -> None:
        scene = Scene(source := FakeSource())
        source.put("a")
        async with scene.running():
            page = await source.list(CONFIG_MAPS, limit=0, continue_token="")
            source.list_errors.append(page)
            source.before_list = lambda: source.delete("a") if source.objects else None
            await scene.clock.advance(301)
        assert scene.told == ["+a", "-a"]
        assert scene.reflector.counts.missed == 0

    run(play)
