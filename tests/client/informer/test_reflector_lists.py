"""Full lists beside the watch, what they show that it missed, and how stale a copy is."""

import pytest

from podstatus.client.rest.resources import CONFIG_MAPS
from podstatus.testing.clock import run_ready_tasks
from tests.client.informer.reflecting import DOWN, Scene, names
from tests.support.fake_source import FakeSource, expired


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 300), (1.0, 240)])
async def test_a_full_list_is_taken_now_and_then_beside_the_watch(
    chance: float, seconds: int
) -> None:
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
    assert scene.changes == ["+a"]


async def test_a_full_list_that_fails_is_tried_again() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        await scene.clock.advance(299)
        source.list_errors.extend([DOWN] * 2)
        assert await scene.attempts(5, lambda: len(source.list_calls)) == [10, 18, 34]
        assert len(source.streams) == 1
    assert scene.reflector.counts.failures == 2


async def test_what_the_watch_missed_is_repaired_and_counted() -> None:
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
        assert scene.changes[3:] == ["-b", "~a", "-c", "+c", "+new"]
        assert scene.reflector.counts.missed == 0, "it may yet come"
        source.bookmark()
        await run_ready_tasks()
        assert scene.reflector.counts.missed == 4
        source.put("a")
        await scene.clock.advance(301)
    assert scene.reflector.counts.missed == 4


async def test_what_the_watch_had_come_past_is_missed_at_once() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        source.put("a", silently=True)
        source.put("b")
        await scene.clock.advance(301)
    assert scene.changes == ["+b", "+a"]
    assert scene.reflector.counts.missed == 1


async def test_what_was_just_on_its_way_is_not_missed() -> None:
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
        await run_ready_tasks()
    counts = scene.reflector.counts
    assert (counts.missed, counts.duplicates) == (0, 6)


async def test_part_of_what_was_on_its_way_is_not_all_of_it() -> None:
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
        await run_ready_tasks()
    assert scene.changes == ["+a", "+b", "-b", "~a"]
    assert scene.reflector.counts.missed == 2


async def test_a_stream_that_broke_before_it_caught_up_is_asked_for_the_rest() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        source.stream.is_held = True
        source.put("a")
        await scene.clock.advance(301)
        assert scene.changes == ["+a"]
        source.stream.end(DOWN)
        await scene.clock.advance(1)
        assert source.stream.version == "10", "where the watch was, not the list"
        assert scene.reflector.counts.missed == 0
        assert scene.reflector.counts.duplicates == 1


async def test_a_stream_with_nothing_in_doubt_is_resumed_at_the_last_list() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        source.version = 50
        await scene.clock.advance(301)
        source.stream.end()
        await run_ready_tasks()
        assert source.stream.version == "50"


async def test_differences_are_dropped_when_the_watch_has_to_restart() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        source.put("a", silently=True)
        await scene.clock.advance(301)
        source.stream.end(expired())
        await run_ready_tasks()
        source.bookmark()
        await run_ready_tasks()
    assert scene.changes == ["+a"]
    assert scene.reflector.counts.missed == 0


async def test_it_tells_how_stale_it_is() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        await scene.clock.advance(30)
        assert scene.reflector.staleness() == 30
        source.bookmark()
        await run_ready_tasks()
        assert scene.reflector.staleness() == 0
        await scene.clock.advance(20)
        source.put("a")
        await run_ready_tasks()
        assert scene.reflector.staleness() == 0
        source.stream.end(DOWN)
        source.watch_errors.extend([DOWN] * 100)
        await scene.clock.advance(245)
        assert scene.reflector.staleness() == 245
        await scene.clock.advance(10)
        assert scene.reflector.staleness() == 5, "the list"


async def test_a_list_is_as_old_as_the_question() -> None:
    scene = Scene(source := FakeSource())
    source.answers.clear()
    async with scene.running():
        await scene.clock.advance(12)
        source.answers.set()
        await run_ready_tasks()
        assert scene.reflector.staleness() == 12


async def test_a_slow_list_makes_nothing_older() -> None:
    scene = Scene(source := FakeSource())
    async with scene.running():
        await scene.clock.advance(299)
        source.answers.clear()
        await scene.clock.advance(11)
        source.bookmark()
        await scene.clock.advance(2)
        source.answers.set()
        await run_ready_tasks()
        assert scene.reflector.counts.lists == 2
        assert scene.reflector.staleness() == 2


async def test_deleted_while_listing_stays_away() -> None:
    scene = Scene(source := FakeSource())
    source.put("a")
    async with scene.running():
        page = await source.list(CONFIG_MAPS, limit=0, continue_token="")
        source.list_errors.append(page)
        source.before_list = lambda: source.delete("a") if source.objects else None
        await scene.clock.advance(301)
    assert scene.changes == ["+a", "-a"]
    assert scene.reflector.counts.missed == 0
