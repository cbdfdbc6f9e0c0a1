"""Objects, servers and handlers that are not as they should be."""

import asyncio
import time
from typing import Any

import msgspec
import pytest

from podstatus.client.informer.list_watch_calls import ObjectSelection
from podstatus.client.informer.object_store import Added, ObjectChange
from podstatus.client.informer.reflector import Reflector
from podstatus.client.informer.reflector_timing import ReflectorPolicy
from podstatus.client.informer.resource_version import ResourceVersion
from podstatus.client.rest.resources import CONFIG_MAPS
from podstatus.client.rest.watch_events import ADDED, BOOKMARK, MODIFIED
from podstatus.kube.api_errors import UnavailableError
from podstatus.kube.objects.cluster import ConfigMap
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.client.informer.reflecting import DOWN, Scene, names
from tests.support.fake_source import FakeSource
from tests.support.loops import in_background


async def test_what_cannot_be_decoded_is_counted_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
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
        await run_ready_tasks()
        assert scene.changes == ["+a", "+b", "~b"]
        assert scene.reflector.counts.undecodable == 5
        lists = await scene.attempts(300, lambda: scene.reflector.counts.lists)
        assert lists == [20, 60, 140, 300, 620, 1260, 2540], "not every 2 s"
        assert names(scene) == ["a", "b"], "it is in the list, so it is there"
        assert scene.reflector.counts.undecodable == 5 + 2 * 7
        source.delete("a")
        source.put("c", data={"k": "v"})
        await run_ready_tasks()
    assert scene.changes[3:] == ["-a", "+c"]
    assert len(source.streams) == 1
    assert scene.reflector.counts.missed == 0
    assert "namespace=default name=a" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("damage", [{"data": 5}, {"metadata": {}}, {"kind": 5}])
async def test_an_event_that_was_damaged_on_its_way_is_repaired_within_seconds(
    damage: dict[str, Any], *, is_known: bool
) -> None:
    scene = Scene(source := FakeSource())
    if is_known:
        source.put("a")
    async with scene.running():
        source.put("a", silently=True, data={"k": "new"})
        source.stream.tell(MODIFIED if is_known else ADDED, source.objects["a"] | damage)
        await run_ready_tasks()
        assert scene.changes == (["+a"] if is_known else [])
        await scene.clock.advance(2)
        assert scene.changes[-1] == ("~a" if is_known else "+a")
        assert [found.data for found in scene.reflector.objects()] == [{"k": "new"}]
        assert await scene.attempts(250, lambda: scene.reflector.counts.lists) == []


async def test_a_version_that_was_damaged_on_its_way_is_repaired_within_seconds() -> None:
    scene = Scene(source := FakeSource(), versions_grow=False)
    source.put("a")
    async with scene.running():
        metadata = source.objects["a"]["metadata"] | {"resourceVersion": "9" * 30}
        source.stream.tell(MODIFIED, source.objects["a"] | {"metadata": metadata})
        await run_ready_tasks()
        source.put("a", data={"k": "new"})
        source.put("b")
        await run_ready_tasks()
        await scene.clock.advance(2)
        assert [found.data for found in scene.reflector.objects()] == [{"k": "new"}, None]
        source.put("a", data={"k": "newest"})
        await run_ready_tasks()
        assert [found.data for found in scene.reflector.objects()] == [{"k": "newest"}, None]


async def test_an_item_without_a_name_does_no_harm() -> None:
    source = FakeSource()
    source.put("a")
    items = [{"metadata": {}}, 5, source.objects["a"]]
    page = {"metadata": {"resourceVersion": "11"}, "items": items}
    source.list_errors.append(msgspec.json.encode(page))
    scene = Scene(source)
    async with scene.running():
        assert names(scene) == ["a"]
    assert scene.reflector.counts.undecodable == 2


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"items": []}', b'{"metadata": 5}'])
async def test_an_answer_that_is_no_list_is_a_failure(answer: bytes) -> None:
    source = FakeSource()
    source.list_errors.append(answer)
    scene = Scene(source)
    async with scene.running():
        assert scene.reflector.counts.lists == 0
        await scene.clock.advance(1)
        assert scene.reflector.has_synced
    assert scene.reflector.counts.failures == 1


async def test_a_list_without_end_is_a_failure() -> None:
    source = FakeSource()
    page = b'{"metadata": {"continue": "x"}, "items": []}'
    source.list_errors.extend([page] * 2)
    scene = Scene(source)
    async with scene.running():
        await scene.clock.advance(2)
        assert scene.reflector.has_synced
    assert scene.reflector.counts.failures == 1


async def test_what_has_no_version_is_no_place_to_resume_at() -> None:
    scene = Scene(source := FakeSource(), versions_grow=False)
    async with scene.running():
        source.stream.tell(ADDED, {"metadata": {"name": "a", "namespace": "n", "uid": "u"}})
        source.stream.tell(BOOKMARK, {"metadata": {}})
        await run_ready_tasks()
        source.stream.end(DOWN)
        await scene.clock.advance(1)
        assert source.stream.version == "10"
    assert scene.changes == ["+a"]


@pytest.mark.parametrize("wrong", [{"list_seconds": 0}, {"idle_timeout_seconds": -1}, {"page": -1}])
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ReflectorPolicy(**wrong)  # type: ignore[arg-type]


async def test_a_handler_that_raises_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def handler(change: ObjectChange[ConfigMap]) -> None:
        match change:
            case Added(new):
                heard.append(new.metadata.name)
                raise RuntimeError("no")

    source = FakeSource()
    source.put("a", data={"k": "private"})
    source.put("b")
    reflector = Reflector(
        source, ObjectSelection(CONFIG_MAPS), ConfigMap, handler, clock=FakeClock()
    )
    async with in_background(reflector.run()):
        await run_ready_tasks()
        source.put("c")
        await run_ready_tasks()
    assert heard == ["a", "b", "c"]
    assert len(reflector.objects()) == 3
    assert reflector.counts.handler_failures == 3
    assert "change=Added namespace=default name=a" in caplog.text
    assert "private" not in caplog.text


async def test_a_flood_of_events_leaves_others_their_turn() -> None:
    heard: list[int] = []
    turns = 0

    def slow(_: ObjectChange[ConfigMap]) -> None:
        time.sleep(0.005)
        heard.append(turns)

    source = FakeSource()
    reflector = Reflector(source, ObjectSelection(CONFIG_MAPS), ConfigMap, slow, clock=FakeClock())
    async with in_background(reflector.run()):
        await run_ready_tasks()
        for number in range(40):
            source.put(str(number))
        while len(heard) < 40:
            await asyncio.sleep(0)
            turns += 1
    # 40 events take a fifth of a second: no other task waits that long.
    assert heard[-1] - heard[0] >= 4


async def test_a_recreated_server_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(source := FakeSource(version=100), versions_grow=False)
    source.put("a")
    source.put("b", uid="same")
    async with scene.running():
        source.recreate(3)
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
        await run_ready_tasks()
    assert scene.changes == ["+a", "+b", "-a", "~b", "+c", "~c", "-b"]
    assert scene.reflector.counts.missed == 0
    assert "resource versions decreased" in caplog.text


async def test_a_watch_of_what_was_before_is_left_when_a_list_shows_it() -> None:
    scene = Scene(source := FakeSource(version=100), versions_grow=False)
    source.put("a")
    async with scene.running():
        source.recreate(3)
        source.put("b", silently=True)
        late = {"metadata": {"name": "z", "uid": "z", "resourceVersion": "150"}}
        source.before_list = lambda: source.streams[0].tell(ADDED, late)
        await scene.clock.advance(301)
        assert names(scene) == ["b"]
        assert [stream.version for stream in source.streams] == ["101", "4"]
        assert [stream.is_open for stream in source.streams] == [False, True]
    assert scene.reflector.counts.failures == 0


async def test_versions_that_are_no_numbers_are_followed_in_order() -> None:
    source = FakeSource()
    source.spell = lambda number: f"v{number}"
    source.put("a")
    scene = Scene(source, versions_grow=False)
    async with scene.running():
        source.put("a")
        source.put("b")
        await run_ready_tasks()
        source.stream.end(DOWN)
        await scene.clock.advance(1)
        assert source.stream.version == "v13"
        source.delete("a")
        source.put("c", silently=True)
        await scene.clock.advance(300)
        assert source.stream.version == "v15", "a list cannot be put beside such a watch"
        assert names(scene) == ["b", "c"]
    assert scene.changes == ["+a", "~a", "+b", "-a", "+c"]


async def test_what_no_port_names_is_logged_with_its_place_and_survived(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = FakeSource()
    source.list_errors.append(ZeroDivisionError("a mistake"))
    scene = Scene(source)
    async with scene.running():
        await scene.clock.advance(1)
        assert scene.reflector.has_synced
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("kind", [dict, object, "Pod", ResourceVersion])
def test_what_is_no_kind_of_object_is_refused_at_once(kind: Any) -> None:
    with pytest.raises(TypeError, match="is not a kind"):
        Reflector(FakeSource(), ObjectSelection(CONFIG_MAPS), kind, print)


def test_a_coroutine_function_as_handler_is_refused() -> None:
    async def handle(_: object) -> None: ...

    with pytest.raises(TypeError, match="coroutine function"):
        Reflector(FakeSource(), ObjectSelection(CONFIG_MAPS), ConfigMap, handle)  # type: ignore[arg-type]
