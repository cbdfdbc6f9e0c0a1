"""A client converges to the selected pods, wherever it was disconnected."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.snapshot_cache import PodTombstone, SnapshotCache
from podstatus.observe.summary.pod import PodSummary
from podstatus.testing.clock import FakeClock
from podstatus.web.v1.filters import PodFilter
from podstatus.web.watch import pod_stream as watch_pods
from podstatus.web.watch.pod_stream import (
    PodEventCache,
    PodSelection,
    PodStream,
    WatchAction,
    WatchTiming,
)
from podstatus.web.watch.request import ResumePoint, WatchRequest
from tests.support.web.sse_client import Copy, Parser

NOW = Time.parse("2026-11-15T12:00:00Z")
AT_ONCE = WatchTiming(batch_seconds=0.0, heartbeat_seconds=0.001)


def pod(name: str, phase: str = "Running", namespace: str = "default") -> PodSummary:
    return PodSummary(uid=PodUID(f"uid-{name}"), namespace=namespace, name=name, phase=phase)


class Client:
    """Reads some events at a time, and may be disconnected after any of them."""

    def __init__(self, cache: SnapshotCache, pod_filter: PodFilter) -> None:
        self._cache, self._filter = cache, pod_filter
        self._bodies = PodEventCache(SystemClock())
        self._parser = Parser()
        self._pieces: AsyncGenerator[bytes, None] | None = None
        self._last = ""
        self.copy = Copy()

    async def take(self, most: int | None = None) -> None:
        """Read this many events, or all until a heartbeat."""
        if self._pieces is None:
            self._pieces = self._connect()
        self._parser.comments = 0
        while most != 0 and not self._parser.comments:
            events = self._parser.feed(await anext(self._pieces))
            assert len(events) < 2, "each is a piece of its own here"
            for event in events:
                self.copy.take(event)
                most = None if most is None else most - 1

    async def cut(self) -> None:
        """Drop the events that were not read."""
        if self._pieces is not None:
            await self._pieces.aclose()
            self._pieces = None

    def _connect(self) -> AsyncGenerator[bytes, None]:
        life, _, number = self._parser.last_id.rpartition("-")
        after = ResumePoint(life, int(number)) if life else None
        request = WatchRequest(filter=self._filter, after=after)
        watch = PodStream(self._cache, request, self._bodies, SystemClock(), AT_ONCE)
        return watch.chunks()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["Pending", "Running", "gone"])),
        st.tuples(st.sampled_from(["take", "cut"]), st.integers(0, 3)),
        st.tuples(st.just("cut"), st.none()),
    ),
    max_size=40,
)
FILTERS = st.sampled_from([PodFilter(), PodFilter(namespace="one"), PodFilter(phases=("Running",))])


@given(STEPS, FILTERS, st.integers(0, 3))
@settings(max_examples=300)
def test_a_client_converges_wherever_it_was_disconnected(
    steps: list[tuple[str, str | int | None]], pod_filter: PodFilter, max_deleted: int
) -> None:
    async def run() -> None:
        cache = SnapshotCache(max_deleted=max_deleted)
        client = Client(cache, pod_filter)
        for what, how in steps:
            if not isinstance(how, str):
                await client.take(how)
                if what == "cut":
                    await client.cut()
            elif how == "gone":
                cache.remove(PodUID(f"uid-{what}"))
            else:
                cache.put(pod(what, how, "one" if what in "ab" else "two"))
        await client.take()
        await client.cut()
        pods = [pod for pod in cache.pods().values() if pod_filter.matches(pod, NOW)]
        assert client.copy.phases == {pod.name: pod.phase for pod in pods}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch_pods, "_CHUNK_BYTES", 1)
        asyncio.run(run())


async def test_a_pod_that_changes_while_others_are_sent_is_sent_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_pods, "_CHUNK_BYTES", 1)

    async def run() -> list[str]:
        cache = SnapshotCache()
        for name in "abcd":
            cache.put(pod(name, "Pending"))
        watch = PodStream(
            cache, WatchRequest(), PodEventCache(SystemClock()), SystemClock(), AT_ONCE
        )
        parser, seen = Parser(), []
        async with aclosing(watch.chunks()) as pieces:
            async for piece in pieces:
                for event in parser.feed(piece):
                    if event.name == "pod":
                        seen.append(event.data["name"] + event.id.partition("-")[2])
                    if event.data.get("name") == "a" and len(seen) == 1:
                        cache.put(pod("c", "Running"))
                        cache.put(pod("e"))
                if parser.comments:
                    return seen
        raise AssertionError

    # Until d has been sent, no client may resume after the later change of c.
    assert await run() == ["a1", "b2", "c2", "d4", "c5", "e6"]


@pytest.mark.parametrize("resumed", [False, True])
def test_a_pod_that_stops_matching_is_deleted_once(resumed: bool) -> None:
    expected = WatchAction.DELETED if resumed else WatchAction.NOTHING
    selection = PodSelection(PodFilter(phases=("Running",)), resumed=resumed)
    assert selection.on_pod(pod("a", "Pending"), NOW) is expected
    assert selection.on_pod(pod("a", "Failed"), NOW) is WatchAction.NOTHING
    assert selection.on_pod(pod("a", "Running"), NOW) is WatchAction.POD
    assert selection.on_pod(pod("a", "Failed"), NOW) is WatchAction.DELETED
    assert (
        selection.on_deleted(PodTombstone(PodUID("uid-a"), "default", "a")) is WatchAction.NOTHING
    )
    assert selection.on_deleted(PodTombstone(PodUID("uid-b"), "default", "b")) is expected


async def test_all_clients_get_the_same_bytes() -> None:
    clock = FakeClock()
    bodies = PodEventCache(clock)
    first = bodies.get(1, pod("a"))
    assert bodies.get(1, pod("a")) is first
    await clock.advance(3)
    assert bodies.get(1, pod("a")) is first
    await clock.advance(3)
    assert bodies.get(1, pod("a")) is not first, "its health is old by now"
