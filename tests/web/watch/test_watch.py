"""The watch over real sockets: initial state, changes, resumption and disconnects."""

import asyncio
import socket
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import aiohttp
import pytest

from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.metrics.watch_counters import WatchCounts
from podstatus.observe.ports import HistoryCounts
from podstatus.observe.summary.pod import PodSummary
from podstatus.observe.transitions.compare_statuses import Transition
from podstatus.web.watch.pod_stream import WatchTiming
from podstatus.web.watch.serve_watch import WatchLimits, WatchService
from tests.support.web.node_server import TOKEN, Scene, serve, until
from tests.support.web.sse_client import Copy, Event, Parser, watching


def pod(name: str, phase: str = "Running", message: str = "", **labels: str) -> PodSummary:
    return PodSummary(
        uid=PodUID(f"uid-{name}"),
        namespace="default",
        name=name,
        phase=phase,
        message=message,
        labels=labels,
    )


def make_entry(id: int, name: str = "a") -> HistoryEntry:
    return HistoryEntry(
        id=id,
        at=1_800_000_000_123_456_789,
        uid=PodUID(f"uid-{name}"),
        namespace=name,
        name=name,
        transition=Transition(kind="phase", after=f"Phase{id}"),
    )


def write(scene: Scene, *entries: HistoryEntry) -> None:
    view = scene.view
    view.entries += entries
    written = view.counts.written + len(entries)
    view.counts = HistoryCounts(written=written)


def names(events: list[Event]) -> list[str]:
    return [event.name for event in events]


async def test_what_is_there_comes_first_and_then_what_changes(scene: Scene) -> None:
    cache = scene.view.snapshot_cache
    cache.put(pod("a", "Pending"))
    cache.put(pod("b"))
    async with watching(scene) as stream:
        assert stream.answer.headers["Content-Type"] == "text/event-stream"
        assert stream.answer.headers["Cache-Control"] == "no-store"
        assert stream.answer.headers["X-Content-Type-Options"] == "nosniff"
        first = await stream.until("synced")
        assert names(first) == ["pod", "pod", "synced"]
        assert first[0].data["name"] == "a"
        assert first[0].data["health"]["state"] == "starting"
        assert [event.id for event in first] == [f"{cache.epoch}-{n}" for n in (1, 2, 2)]
        assert first[-1].data == {"resumed": False}
        cache.put(pod("a", "Running"))
        cache.remove(PodUID("uid-b"))
        gone, changed = await stream.until("pod")
        assert (gone.name, gone.data["name"]) == ("deleted", "b")
        assert changed.data["phase"] == "Running"
        assert changed.id == f"{cache.epoch}-4", "with it, both have been seen"


async def test_changes_that_come_together_are_sent_once(scene: Scene) -> None:
    counts = WatchCounts()
    limit(scene, counts=counts)
    async with watching(scene) as stream:
        await stream.until("synced")
        for number in range(100):
            scene.view.snapshot_cache.put(pod("a", message=str(number)))
        event = await stream.next()
        assert event is not None
        assert event.data["message"] == "99"
        assert counts.events == 2, "that it was synced, and the pod"


async def test_a_pod_that_leaves_the_filter_is_deleted(scene: Scene) -> None:
    cache = scene.view.snapshot_cache
    cache.put(pod("a", app="web"))
    cache.put(pod("b", app="db"))
    async with watching(scene, "?labelSelector=app%3Dweb&phase=Running") as stream:
        assert [event.data.get("name") for event in await stream.until("synced")] == ["a", None]
        cache.put(pod("b", "Failed", app="db"))
        cache.put(pod("a", "Failed", app="web"))
        event = await stream.next()
        assert event is not None
        assert (event.name, event.data["name"]) == ("deleted", "a")


async def test_a_resumed_watch_gets_only_the_changes(scene: Scene) -> None:
    cache = scene.view.snapshot_cache
    for name in "abc":
        cache.put(pod(name))
    async with watching(scene) as stream:
        last = (await stream.until("synced"))[-1].id
    cache.put(pod("b", "Failed"))
    cache.remove(PodUID("uid-c"))
    for query, header in ((f"?after={last}", ""), ("", last), ("?after=0-0", last)):
        async with watching(scene, query, header) as stream:
            events = await stream.until("synced")
            received = [(event.name, event.data.get("name")) for event in events]
            assert received == [("deleted", "c"), ("pod", "b"), ("synced", None)]
            assert events[-1].data == {"resumed": True}


async def test_an_id_of_another_epoch_resets_the_client(scene: Scene, tmp_path: Path) -> None:
    scene.view.snapshot_cache.put(pod("a"))
    scene.view.snapshot_cache.put(pod("b"))
    async with watching(scene) as stream:
        seen = (await stream.until("synced"))[-1]
    (tmp_path / "2").mkdir()
    async with serve(tmp_path / "2") as second:
        second.view.snapshot_cache.put(pod("b"))
        async with watching(second, last=seen.id) as stream:
            events = await stream.until("synced")
            assert names(events) == ["reset", "pod", "synced"]
            assert "restarted" in events[0].data["reason"]


async def test_silence_has_a_heartbeat(scene: Scene) -> None:
    cache = scene.view.snapshot_cache
    limit(scene, pace=WatchTiming(heartbeat_seconds=0.05))
    async with watching(scene, "?namespace=elsewhere") as stream:
        await stream.until("synced")
        cache.put(pod("a"))
        task = asyncio.create_task(stream.next())
        await until(lambda: stream.parser.comments >= 3)
        assert stream.parser.last_id == f"{cache.epoch}-1", "one gets on without events, too"
        task.cancel()


async def test_clients_above_the_limit_are_rejected(scene: Scene) -> None:
    watches = limit(scene, WatchLimits(max_clients=1))
    async with watching(scene) as stream:
        await stream.until("synced")
        async with scene.client() as session, session.get("/v1/watch") as refused:
            assert refused.status == 429
            assert refused.headers["Retry-After"] == "5"
            assert "1 watch clients are connected" in await refused.text()
    await until(lambda: watches.count == 0)
    async with watching(scene) as stream:
        await stream.until("synced")


async def test_anonymous_clients_leave_places_for_others(tmp_path: Path) -> None:
    async with serve(tmp_path, token_webhook=True) as scene:
        counts = WatchCounts()
        limit(scene, WatchLimits(max_clients=4, max_clients_per_user=2), counts=counts)
        async with AsyncExitStack() as stack:

            async def come(token: str) -> int:
                session = await stack.enter_async_context(scene.client(token))
                answer = await stack.enter_async_context(session.get("/v1/watch"))
                return answer.status

            assert [await come("") for _ in range(3)] == [200, 200, 429]
            assert await come("an-unknown-token") == 429
            assert await come(TOKEN) == 200
            assert await come("token-of-ann") == 200
            assert await come("token-of-bob") == 429, "all places are taken"
            assert counts.connected == 4
            assert counts.rejections.snapshot() == {("client",): 2, ("all",): 1}
        await until(lambda: counts.connected == 0)


async def test_a_hanging_token_review_blocks_no_watch(tmp_path: Path) -> None:
    async with serve(tmp_path, token_webhook=True) as scene:
        scene.reviews.down = True
        async with scene.client("token-of-ann") as session, session.get("/v1/watch") as answer:
            assert answer.status == 200


async def test_clients_learn_that_the_agent_stops(scene: Scene) -> None:
    counts = WatchCounts()
    limit(scene, counts=counts)
    async with watching(scene) as stream:
        await stream.until("synced")
        stopping = asyncio.create_task(scene.server.stop())
        (event,) = await stream.until("closing")
        assert event.data["reason"] == "the server is stopping; reconnect later"
        await stopping
        assert counts.closes.snapshot() == {("stop",): 1}


async def test_a_stalled_client_is_disconnected_with_a_reason_and_resumes(
    scene: Scene,
) -> None:
    cache, counts = scene.view.snapshot_cache, WatchCounts()
    limits = WatchLimits(stall_seconds=1, linger_seconds=60)
    watches = limit(scene, limits, counts=counts)
    for number in range(3_000):
        cache.put(pod(f"p{number}", message="x" * 500))
    copy = Copy()
    async with slow_client(scene) as session, session.get("/v1/watch") as answer:
        # The client does not read: all data waits in the buffers of kernel and server.
        await until(lambda: watches.count == 1)
        await until(lambda: watches.count == 0)
        last = await read_all(answer, copy)
    assert copy.close_reason == "the client has read nothing for 1 s; reconnect to resume"
    assert counts.closes.snapshot() == {("slow",): 1}
    assert 0 < len(copy.pods) < 3_000
    cache.remove(PodUID("uid-p0"))
    cache.put(pod("p1", "Failed"))
    async with watching(scene, last=last) as stream:
        events = await stream.until("synced")
        assert events[-1].data == {"resumed": True}
        for event in events:
            copy.take(event)
    assert copy.phases == {pod.name: pod.phase for pod in cache.pods().values()}


async def test_a_slow_client_that_reads_is_not_disconnected(scene: Scene) -> None:
    cache = scene.view.snapshot_cache
    limit(scene, WatchLimits(stall_seconds=3))
    for number in range(1_000):
        cache.put(pod(f"p{number}", message="x" * 500))
    copy = Copy()
    async with slow_client(scene) as session, session.get("/v1/watch") as answer:
        await read_all(answer, copy, pause=0.03, until_synced=True)
    assert not copy.close_reason
    assert len(copy.pods) == 1_000


async def test_a_watch_has_a_maximum_duration(scene: Scene) -> None:
    counts, limits = WatchCounts(), WatchLimits(max_seconds=1)
    limit(scene, limits, pace=WatchTiming(heartbeat_seconds=0.02), counts=counts)
    async with watching(scene) as stream:
        await stream.until("synced")
        (event,) = await stream.until("closing")
        assert event.data["reason"] == "a watch lasts at most 1 s; reconnect to resume"
        assert await stream.next() is None
        assert counts.closes.snapshot() == {("long",): 1}


async def test_a_page_is_read_once_for_clients_at_the_same_position(scene: Scene) -> None:
    write(scene, *(make_entry(id) for id in range(1, 11)))
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(watching(scene, "?transitions=1")) for _ in range(5)
        ]
        for stream in streams:
            await stream.until("synced")
        write(scene, make_entry(11))
        for stream in streams:
            assert (await stream.until("transition"))[-1].data["id"] == 11
    assert scene.view.read == 11


async def test_transitions_are_complete_and_in_order(scene: Scene) -> None:
    write(scene, *(make_entry(id) for id in range(1, 502)))
    async with watching(scene, "?transitions=1") as stream:
        events = await stream.until("synced")
        assert [event.data["id"] for event in events[:-1]] == list(range(1, 502))
        assert events[0].data["at"] == "2027-01-15T08:00:00.123Z"
        assert events[0].data["after"] == "Phase1"
        assert events[-1].id == "transitions-501"
        write(scene, make_entry(502))
        assert (await stream.until("transition"))[-1].data["id"] == 502
    write(scene, make_entry(503))
    async with watching(scene, "?transitions=1", last="transitions-502") as stream:
        events = await stream.until("synced")
        assert [event.data.get("id") for event in events] == [503, None]
        assert events[-1].data == {"resumed": True}


async def test_pruned_transitions_are_reported_as_a_gap(scene: Scene) -> None:
    write(scene, *(make_entry(id, "ab"[id % 2]) for id in range(7, 10)))
    async with watching(scene, "?transitions=1&namespace=a&after=transitions-3") as stream:
        missed, only, _ = await stream.until("synced")
        assert missed.data == {"after": 3, "before": 7}
        assert only.data["id"] == 8
    async with watching(scene, "?transitions=1&after=transitions-20") as stream:
        assert names(await stream.until("synced")) == ["reset", *["transition"] * 3, "synced"]


async def test_a_history_that_cannot_be_read_closes_the_watch(scene: Scene) -> None:
    async with watching(scene, "?transitions=1") as stream:
        await stream.until("synced")
        scene.view.broken = True
        write(scene, make_entry(1))
        (event,) = await stream.until("closing")
        assert event.data["reason"] == "the history cannot be read; see the agent's log"
    code, text = await scene.get("/v1/watch?transitions=1")
    assert code == 503
    assert "disk full" in text


@pytest.mark.parametrize("query", ["phase=Nowhere", "health=stuck", "after=x"])
async def test_invalid_parameters_are_rejected(scene: Scene, query: str) -> None:
    code, _ = await scene.get(f"/v1/watch?{query}")
    assert code == 400


def limit(
    scene: Scene,
    limits: WatchLimits | None = None,
    *,
    pace: WatchTiming | None = None,
    counts: WatchCounts | None = None,
) -> WatchService:
    """A server with other watch limits."""
    clock = SystemClock()
    watches = WatchService(scene.view, clock, timing=pace, limits=limits, counts=counts)
    scene.answers.watch_service = watches
    return watches


def slow_client(scene: Scene) -> aiohttp.ClientSession:
    """A client with a small receive buffer."""

    def small(info: aiohttp.AddrInfoType) -> socket.socket:
        made = socket.socket(info[0], info[1])
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 2**10)
        return made

    connector = aiohttp.TCPConnector(ssl=scene.trust(), socket_factory=small)
    return aiohttp.ClientSession(scene.url, connector=connector, read_bufsize=2**12)


async def read_all(
    answer: aiohttp.ClientResponse, copy: Copy, *, pause: float = 0.0, until_synced: bool = False
) -> str:
    """Read to the end, and return the id of the last event."""
    parser = Parser()
    with suppress(aiohttp.ClientPayloadError):
        while not (until_synced and copy.synced) and (data := await answer.content.readany()):
            for event in parser.feed(data):
                copy.take(event)
            await asyncio.sleep(pause)
    return parser.last_id
