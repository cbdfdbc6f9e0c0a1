"""The watch cache: history, selections, bounded queues."""

import asyncio

import pytest

from podstatus.apiserver.storage import watch_cache as module
from podstatus.apiserver.storage.store import StorageKey, Store, StoreChange, StoredObject
from podstatus.apiserver.storage.watch_cache import (
    ResourceVersionTooOldError,
    WatchCache,
    WatchCacheEvent,
)

A, B = StorageKey("default", "a"), StorageKey("other", "b")


class Rig:
    """A store with a watch cache."""

    def __init__(self) -> None:
        self.store = Store.open(None, lambda _, document: {"word": document.get("word", "")})
        self.watch_cache = WatchCache(self.store.version)
        self.store.listener = self.watch_cache.publish

    def put(self, key: StorageKey, word: str = "") -> StoredObject:
        document = {"metadata": {"name": key.name, "namespace": key.namespace}, "word": word}
        return self.store.put("pods", key, document)

    def delete(self, key: StorageKey) -> StoredObject:
        stored = self.store.get("pods", key)
        assert stored is not None
        return self.store.delete("pods", key, stored.document())


def everything(_: StoredObject) -> bool:
    return True


def is_chosen(stored: StoredObject) -> bool:
    return stored.fields["word"] == "chosen"


def summaries(events: list[WatchCacheEvent]) -> list[tuple[str, str, int]]:
    return [(type_, stored.key.name, stored.version) for type_, stored in events]


def versions(changes: list[StoreChange]) -> list[int]:
    return [change.version for change in changes]


def test_changes_since_a_version_are_known() -> None:
    rig = Rig()
    for word in "xyz":
        rig.put(A, word)
    assert versions(rig.watch_cache.events_since("pods", 1)) == [2, 3]
    assert versions(rig.watch_cache.events_since("pods", 3)) == []
    assert versions(rig.watch_cache.events_since("nodes", 0)) == []


def test_what_is_forgotten_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHANGES", 2)
    rig = Rig()
    for word in "wxyz":
        rig.put(A, word)
    assert versions(rig.watch_cache.events_since("pods", 2)) == [3, 4]
    with pytest.raises(ResourceVersionTooOldError):
        rig.watch_cache.events_since("pods", 1)


def test_what_came_before_a_restart_is_too_old() -> None:
    watch_cache = WatchCache(7)
    assert watch_cache.events_since("pods", 7) == []
    with pytest.raises(ResourceVersionTooOldError):
        watch_cache.events_since("pods", 6)


def test_compaction_forgets_everything_of_every_resource() -> None:
    rig = Rig()
    rig.put(A)
    rig.put(A, "x")
    rig.watch_cache.compact()
    assert rig.watch_cache.events_since("pods", 2) == []
    for resource in ("pods", "nodes"):
        with pytest.raises(ResourceVersionTooOldError):
            rig.watch_cache.events_since(resource, 1)


def test_the_state_at_a_version_can_be_had_again() -> None:
    rig = Rig()
    rig.put(A, "1")
    rig.put(B, "2")
    rig.put(A, "3")
    rig.delete(B)
    now = {stored.key: stored for stored in rig.store.objects("pods")}
    words = [
        {key.name: s.fields["word"] for key, s in rig.watch_cache.state_at("pods", v, now).items()}
        for v in range(5)
    ]
    assert words == [{}, {"a": "1"}, {"a": "1", "b": "2"}, {"a": "3", "b": "2"}, {"a": "3"}]


async def test_a_watcher_sees_its_namespace_in_order() -> None:
    rig = Rig()
    all_, one = (rig.watch_cache.watch("pods", everything, namespace=n) for n in (None, "other"))
    rig.put(A)
    rig.put(B)
    rig.delete(A)
    assert summaries(await all_.next_events()) == [
        ("ADDED", "a", 1),
        ("ADDED", "b", 2),
        ("DELETED", "a", 3),
    ]
    assert summaries(await one.next_events()) == [("ADDED", "b", 2)]


async def test_what_comes_into_a_selection_is_added_and_what_leaves_it_deleted() -> None:
    rig = Rig()
    watcher = rig.watch_cache.watch("pods", is_chosen, namespace=None)
    for word in ("no", "chosen", "chosen", "no", "no"):
        rig.put(A, word)
    rig.delete(A)
    events = await watcher.next_events()
    assert summaries(events) == [("ADDED", "a", 2), ("MODIFIED", "a", 3), ("DELETED", "a", 4)]
    last = events[-1][1].document()
    assert (last["word"], last["metadata"]["resourceVersion"]) == ("chosen", "4")


async def test_a_watcher_that_does_not_read_is_cut_off_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", 1000)
    rig = Rig()
    lazy, eager = (rig.watch_cache.watch("pods", everything, namespace=None) for _ in range(2))
    seen = 0
    for number in range(50):
        rig.put(A, f"{number:050}")
        seen += len(await eager.next_events())
    assert (seen, lazy.is_terminated, eager.is_terminated) == (50, True, False)
    assert await lazy.next_events() == []
    assert await lazy.next_events() == []


async def test_who_has_gone_hears_no_more() -> None:
    rig = Rig()
    watcher = rig.watch_cache.watch("pods", everything, namespace=None)
    rig.watch_cache.unwatch("pods", watcher)
    rig.put(A)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await watcher.next_events()


def test_large_changes_are_forgotten_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CACHED_BYTES", 2500)
    rig = Rig()
    for letter in "wxyz":
        rig.put(A, letter * 1000)
    assert versions(rig.watch_cache.events_since("pods", 2)) == [3, 4]
    with pytest.raises(ResourceVersionTooOldError):
        rig.watch_cache.events_since("pods", 1)


async def test_the_overflow_callback_is_called_when_a_watcher_is_terminated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", 100)
    rig, calls = Rig(), list[str]()
    rig.watch_cache.watch(
        "pods", everything, namespace=None, on_overflow=lambda: calls.append("overflow")
    )
    rig.put(A, "x" * 200)
    rig.put(A, "y" * 200)
    assert calls == ["overflow"]
