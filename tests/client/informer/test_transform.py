"""A reflector that keeps what is made of objects, and nothing else of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from podstatus.client.informer import managed_fields
from podstatus.client.informer.list_watch_calls import ObjectSelection
from podstatus.client.informer.object_store import Added, ObjectChange, Removed, Updated
from podstatus.client.informer.reflector import Reflector
from podstatus.client.informer.transform import Transform
from podstatus.client.rest.resources import CONFIG_MAPS
from podstatus.kube.objects.cluster import ConfigMap
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.support.fake_source import FakeSource
from tests.support.loops import in_background


class Which(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str
    resource_version: str


class Kept(msgspec.Struct, frozen=True):
    metadata: Which
    keys: tuple[str, ...]


class Scene:
    def __init__(self, source: FakeSource) -> None:
        self.made = 0
        self.changes: list[ObjectChange[Kept]] = []
        self.reflector = Reflector(
            source,
            ObjectSelection(CONFIG_MAPS),
            Transform(ConfigMap, self.make),
            self.changes.append,
            clock=FakeClock(),
        )

    def make(self, config: ConfigMap) -> Kept:
        self.made += 1
        meta = config.metadata
        which = Which(meta.namespace, meta.name, meta.uid, meta.resource_version)
        return Kept(which, tuple(config.data or ()))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with in_background(self.reflector.run()):
            await run_ready_tasks()
            yield


async def test_the_result_of_the_transform_is_kept_and_reported() -> None:
    source = FakeSource()
    source.put("a")
    scene = Scene(source)
    async with scene.running():
        source.put("b")
        source.put("a")
        source.delete("b")
        await run_ready_tasks()
    kinds = [type(change) for change in scene.changes]
    assert kinds == [Added, Added, Updated, Removed]
    assert all(isinstance(it, Kept) for it in scene.reflector.objects())
    found = scene.reflector.get("default", "a")
    assert found is not None
    assert found.metadata.resource_version == "13"


async def test_a_list_that_shows_nothing_new_makes_nothing() -> None:
    source = FakeSource()
    for name in "abc":
        source.put(name)
    scene = Scene(source)
    async with scene.running():
        assert scene.made == 3
        await scene.reflector.resync_once()
        assert (scene.made, len(scene.changes)) == (3, 3)
        source.streams[-1].is_held = True
        source.put("b")
        await scene.reflector.resync_once()
        assert (scene.made, len(scene.changes)) == (4, 4)


async def test_no_object_is_remembered_for_who_may_ask_again() -> None:
    source = FakeSource()
    for number in range(5):
        source.put(f"config-{number}")
    before = managed_fields.decode_with_cache.cache_info()
    scene = Scene(source)
    async with scene.running():
        source.put("config-3")
        await run_ready_tasks()
    assert scene.made == 6
    assert managed_fields.decode_with_cache.cache_info() == before


def test_a_kind_that_is_none_is_refused_in_a_digest_too() -> None:
    digest: Any = Transform(dict, lambda it: it)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="is not a kind"):
        Reflector(FakeSource(), ObjectSelection(CONFIG_MAPS), digest, print, clock=FakeClock())
