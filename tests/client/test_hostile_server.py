"""Whatever a server answers: one of our errors, bounded memory, and linear cost."""

import asyncio
import gzip
import json
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from random import Random
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs podstatus[agent]")

from podstatus.base.system_clock import SystemClock
from podstatus.client.api_client import ApiClient
from podstatus.client.informer.list_watch_calls import ObjectSelection
from podstatus.client.informer.lister import Lister
from podstatus.client.informer.object_store import Added, ObjectChange, Removed, Updated
from podstatus.client.informer.reflector_state import ReflectorState
from podstatus.client.rest.http_transport import Timeouts
from podstatus.client.rest.resources import PODS
from podstatus.client.rest.watch_events import MAX_EVENT_BYTES, WatchEvent, WatchStream
from podstatus.client.typed.events import HttpEventSink
from podstatus.client.typed.nodes import HttpNodeApi
from podstatus.client.typed.pod_references import HttpPodObjects
from podstatus.client.typed.pods import HttpPodApi
from podstatus.client.typed.reviews import HttpReviews
from podstatus.kube.api_errors import ApiError, RejectedError, UnavailableError
from podstatus.kube.objects.authentication import SubjectAccessReviewSpec, TokenReviewSpec
from podstatus.kube.objects.event import Event
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.pod import Pod
from podstatus.node.lease import LeaseService
from podstatus.testing.builders import make_pod
from tests.client.raw_server import Say, answer, chunk, chunked_head, raw_server
from tests.support.plain_access import PlainAccess
from tests.support.processes.mutations import LINES, RAW, encoded, mutated, whole

Call = Callable[[ApiClient], Awaitable[object]]
TIMING = Timeouts(connect_seconds=30, total_seconds=30)
META = {"name": "a", "namespace": "b", "uid": "u1", "resourceVersion": "7"}
STATUS = {
    "phase": "Running",
    "startTime": "2024-01-01T00:00:00Z",
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [
        {"name": "c", "ready": True, "restartCount": 1, "state": {"running": {}}}
    ],
}
POD = {
    "kind": "Pod",
    "metadata": META,
    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    "status": STATUS,
}
NODE = {
    "kind": "Node",
    "metadata": {"name": "a", "uid": "n1", "resourceVersion": "8"},
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
    "status": {"capacity": {"cpu": "2"}, "conditions": [{"type": "Ready", "status": "True"}]},
}
LEASE = {
    "kind": "Lease",
    "metadata": META,
    "spec": {"holderIdentity": "a", "renewTime": "2024-01-01T00:00:00.000000Z"},
}
TOKEN = {"spec": {}, "status": {"token": "t", "expirationTimestamp": "2024-01-01T00:00:00Z"}}
REVIEW = {"status": {"authenticated": True, "user": {"username": "me", "groups": ["g"]}}}
RIGHT = {"status": {"allowed": True}}
BINARY = {"metadata": META, "data": {"k": "dg=="}, "binaryData": {"b": "dg=="}}
EVENT = {"metadata": META, "reason": "r", "count": 2, "lastTimestamp": "2024-01-01T00:00:00Z"}
LIST = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [POD, POD]}


def node_api(call: Callable[[HttpNodeApi], Awaitable[object]]) -> Call:
    return lambda client: call(HttpNodeApi(client))


CALLS: dict[str, tuple[dict[str, Any], Call]] = {
    "pod": (POD, lambda it: HttpPodApi(it).get_pod("b", "a")),
    "status": (POD, lambda it: HttpPodApi(it).patch_pod_status("b", "a", b"{}")),
    "managers": (POD, lambda it: HttpPodApi(it).managed_fields("b", "a", uid="u1")),  # type: ignore[arg-type]
    "node": (NODE, node_api(lambda it: it.get_node("a"))),
    "node status": (NODE, node_api(lambda it: it.patch_node_status("a", b"{}"))),
    "lease": (LEASE, node_api(lambda it: it.get_lease("b", "a"))),
    "token": (TOKEN, lambda it: HttpPodObjects(it).service_account_token(make_pod(), "", 600)),
    "configMap": (BINARY, lambda it: HttpPodObjects(it).config_map("b", "a")),
    "secret": (BINARY, lambda it: HttpPodObjects(it).secret("b", "a")),
    "review": (REVIEW, lambda it: HttpReviews(it).review_token(TokenReviewSpec(token="t"))),  # noqa: S106
    "right": (RIGHT, lambda it: HttpReviews(it).review_access(SubjectAccessReviewSpec())),
    "event": (
        EVENT,
        lambda it: HttpEventSink(it).create(Event(metadata=ObjectMeta(name="a", namespace="b"))),
    ),
    "list": (LIST, lambda it: lister(it).read(lambda _: None)),
}


def lister(source: Any) -> Lister[Pod]:
    return Lister(source, ObjectSelection(resource=PODS), Pod, page=10, max_objects=1000)


def saying(answers: Iterator[bytes]) -> Say:
    async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(next(answers))
        await writer.drain()

    return say


@asynccontextmanager
async def client_of(say: Say) -> AsyncIterator[ApiClient]:
    async with raw_server(say) as url, ApiClient(PlainAccess(url), timeouts=TIMING) as client:
        yield client


async def survives(call: Awaitable[object]) -> bool:
    """Whether the call succeeded; the only alternative is a short ApiError."""
    try:
        await call
    except ApiError as error:
        if len(str(error)) > 5000:
            raise
        return False
    return True


@pytest.mark.parametrize("name", CALLS)
async def test_answers_with_a_field_that_is_wrong_are_survived(name: str) -> None:
    document, call = CALLS[name]
    random = Random(19)
    texts = (whole(mutated(json.loads(encoded(document)), random)) for _ in range(60))
    async with client_of(saying(texts)) as client:
        good = [await survives(call(client)) for _ in range(30)]
    assert any(good)


@pytest.mark.parametrize("name", ["pod", "lease", "list"])
async def test_answers_that_are_none_are_survived(name: str) -> None:
    document, call = CALLS[name]
    for what, make in RAW.items():
        said = make(encoded(document))
        async with client_of(saying(iter([said] * 3))) as client:
            good = await survives(call(client))
        assert good or what not in ("gzip", "an odd date"), what


@pytest.mark.parametrize("what", LINES)
async def test_lines_that_are_no_events_are_survived(what: str) -> None:
    line = b'{"type":"ADDED","object":' + encoded(POD) + b"}\n"
    said = chunked_head() + chunk(LINES[what](line)) + chunk(line) + chunk(b"")
    async with client_of(saying(iter([said]))) as client:
        await survives(read_watch(client))


async def read_watch(client: ApiClient) -> None:
    async with client.watch(PODS) as events:
        async for _ in events:
            pass


@cache
def gzip_bomb(size: int) -> bytes:
    """Return this many spaces, compressed."""
    packer = zlib.compressobj(9, wbits=31)
    part = b" " * (1 << 20)
    parts = [packer.compress(part) for _ in range(size >> 20)]
    return b"".join([*parts, packer.flush()])


@pytest.mark.parametrize(("code", "message"), [("200 OK", "more than 16 mib"), ("500 Oh", "500 ")])
async def test_what_is_decompressed_is_bounded(code: str, message: str) -> None:
    said = answer(gzip_bomb(128 << 20), code, "Content-Encoding: gzip")
    async with client_of(saying(iter([said] * 2))) as client:
        with pytest.raises(UnavailableError, match=message):
            await client.get(PODS, "a", namespace="b")
        with pytest.raises(UnavailableError):
            async with client.watch(PODS) as events:
                await anext(events)


async def test_compressed_answers_are_read() -> None:
    said = answer(gzip.compress(encoded(POD)), "200 OK", "Content-Encoding: gzip")
    async with client_of(saying(iter([said]))) as client:
        assert (await HttpPodApi(client).get_pod("b", "a")).uid == "u1"


class Endless:
    """Send a body without end."""

    def __init__(self, head: bytes, part: bytes) -> None:
        self._head = head
        self._part = part
        self.said = 0

    async def __call__(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self._head)
        while True:
            writer.write(self._part)
            self.said += len(self._part)
            await writer.drain()


async def test_bodies_without_end_are_cut_off() -> None:
    endless = Endless(chunked_head(), chunk(b"x" * 60_000))
    async with client_of(endless) as client:
        with pytest.raises(UnavailableError, match="more than 16 mib"):
            await client.get(PODS, "a", namespace="b")
        with pytest.raises(UnavailableError, match="longer than 16 MiB"):
            async with client.watch(PODS) as events:
                await anext(events)
    assert endless.said < 6 * MAX_EVENT_BYTES


async def test_interim_answers_without_end_are_cut_off() -> None:
    endless = Endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)
    async with raw_server(endless) as url:
        timing = Timeouts(connect_seconds=30, total_seconds=1.0)
        async with ApiClient(PlainAccess(url), timeouts=timing) as client:
            with pytest.raises(UnavailableError):
                async with client.watch(PODS) as events:
                    await anext(events)


class Drops:
    """A body that arrives byte by byte, from memory."""

    def __init__(self, body: bytes) -> None:
        self._bytes = iter([body[at : at + 1] for at in range(len(body))])

    async def read(self) -> bytes:
        return next(self._bytes, b"")


async def seconds_to_read(size: int) -> float:
    line = b'{"type":"ADDED","object":"' + b"x" * size + b'"}\n'
    began = time.process_time()
    (event,) = [it async for it in WatchStream(Drops(line), "watch", "test")]
    assert len(event.object) == size + 2
    return time.process_time() - began


async def test_a_line_that_comes_byte_by_byte_costs_no_more_than_its_length() -> None:
    await seconds_to_read(1000)
    small, large = await seconds_to_read(1 << 14), await seconds_to_read(1 << 18)
    assert large < 16 * 4 * small


@pytest.mark.parametrize("odd", [{}, {"namespace": ""}, {"name": ".."}, {"namespace": "a/b"}])
async def test_a_lease_is_renewed_under_our_names_whatever_the_answer_says(
    odd: dict[str, str],
) -> None:
    metadata = {"resourceVersion": "7"} | odd
    paths: list[bytes] = []

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        paths.append(b" ".join(head.split(b" ")[:2]))
        writer.write(whole(encoded(LEASE | {"metadata": metadata})))

    async with (
        raw_server(say, greets=True) as url,
        ApiClient(PlainAccess(url), timeouts=TIMING) as client,
    ):
        api, clock = HttpNodeApi(client), SystemClock()
        lease = LeaseService(
            api,
            "us",
            clock=clock,
            node_uid=lambda: "u",
            duration=40,
            on_recovered=lambda: None,
            random=lambda: 0.5,
            heartbeat=lambda: None,
        )
        assert await lease.renew_once()
        assert await lease.renew_once()
    ours = b"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/us"
    assert paths == [b"GET " + ours, b"PUT " + ours, b"PUT " + ours]


@pytest.mark.parametrize(
    "status", [{}, {"token": "", "expirationTimestamp": "2100-01-01T00:00:00Z"}, {"token": "t"}]
)
async def test_a_token_without_its_end_is_none(status: dict[str, str]) -> None:
    async with client_of(saying(iter([whole(encoded({"status": status}))]))) as client:
        with pytest.raises(RejectedError, match="has no token, or no expiration time"):
            await HttpPodObjects(client).service_account_token(make_pod(), "", 600)


class Pages:
    """Returns these pages as lists."""

    def __init__(self, pages: Iterator[bytes]) -> None:
        self._pages = pages
        self.asked = 0

    async def list(self, *_: object, **__: object) -> bytes:
        self.asked += 1
        return next(self._pages)


def endless_pages() -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        item = POD | {"metadata": META | {"name": f"p{number}", "uid": f"u{number}"}}
        yield encoded({"metadata": {"continue": str(number)}, "items": [item]})


async def test_lists_without_end_are_cut_off() -> None:
    pages = Pages(endless_pages())
    with pytest.raises(UnavailableError, match="more than 1000 objects"):
        await lister(pages).read(lambda _: None)
    empty = Pages(
        encoded({"metadata": {"continue": str(number)}, "items": []}) for number in range(20_000)
    )
    with pytest.raises(UnavailableError, match="more than 10000 pages"):
        await lister(empty).read(lambda _: None)


@pytest.mark.parametrize(
    "page",
    [
        {"kind": "Status", "metadata": {}, "status": "Success"},
        {"kind": "Pod", "metadata": {}, "items": []},
        {"kind": "PodList", "metadata": {"resourceVersion": "9"}},
        {"metadata": None, "items": []},
    ],
)
async def test_what_is_no_list_does_not_say_that_all_is_gone(page: dict[str, Any]) -> None:
    with pytest.raises(UnavailableError, match="is not a list"):
        await lister(Pages(iter([encoded(page)]))).read(lambda _: None)


class CheckedChanges:
    """A handler that checks the reported changes."""

    def __init__(self) -> None:
        self.there: dict[tuple[str, str], Pod] = {}

    def __call__(self, change: ObjectChange[Pod]) -> None:
        match change:
            case Removed(last):
                del self.there[last.full_name]
            case Added(new) | Updated(_, new):
                assert new.uid
                assert new.name
                self.there[new.full_name] = new


def honest_pods() -> list[dict[str, Any]]:
    metas = [META | {"name": f"p{n}", "uid": f"u{n}", "resourceVersion": str(n)} for n in range(5)]
    return [POD | {"metadata": meta} for meta in metas]


@pytest.mark.parametrize("seed", range(20))
async def test_a_copy_is_right_again_when_the_server_is(seed: int) -> None:
    random, changes = Random(seed), CheckedChanges()
    reflection = ReflectorState(ObjectSelection(resource=PODS), Pod, changes)
    document = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": honest_pods()}

    async def take(text: bytes) -> None:
        newest = reflection.position.newest
        listing = await lister(Pages(iter([text]))).read(reflection.store.get)
        reflection.apply_list(listing, 1, newest, beside=False)

    for _ in range(20):
        await survives(take(mutated(json.loads(encoded(document)), random)))
        for pod in honest_pods():
            type_ = random.choice(("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "", "FOO"))
            text = mutated(json.loads(encoded(pod)), random)
            reflection.apply_event(WatchEvent(type_, text), 1)
    await take(encoded(document))
    assert sorted(changes.there) == [("b", f"p{n}") for n in range(5)]
    assert reflection.counts.undecodable
    assert reflection.counts.handler_failures == 0


@pytest.mark.parametrize(
    "wrong", [{"uid": ""}, {"uid": None}, {"name": ""}, {"name": "a/b"}, {"namespace": ""}]
)
async def test_objects_without_names_are_skipped_counted_and_take_nothing_away(
    wrong: dict[str, Any],
) -> None:
    changes = CheckedChanges()
    reflection = ReflectorState(ObjectSelection(resource=PODS), Pod, changes)
    pods = honest_pods()

    async def take(items: list[dict[str, Any]], version: str) -> None:
        text = encoded({"metadata": {"resourceVersion": version}, "items": items})
        listing = await lister(Pages(iter([text]))).read(reflection.store.get)
        reflection.apply_list(listing, 1, reflection.position.newest, beside=False)

    await take(pods, "9")
    bad = POD | {"metadata": META | wrong | {"resourceVersion": "10"}}
    await take([bad, *pods[1:]], "10")
    assert len(changes.there) == 5
    assert reflection.counts.undecodable == 1
    assert not reflection.apply_event(WatchEvent("ADDED", encoded(bad)), 1)
    assert reflection.counts.undecodable == 2
    assert len(changes.there) == 5
