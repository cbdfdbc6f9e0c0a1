"""The API watch as a source."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from podstatus.kube.api_errors import UnavailableError
from podstatus.kube.objects.pod import (
    CONFIG_MIRROR,
    CONFIG_SOURCE,
    Pod,
    is_mirror_pod,
    is_static_pod,
)
from podstatus.sources.api_source import ApiSource, mark_api_source
from podstatus.testing.builders import make_pod, make_static_pod
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.support.fake_source import FakeSource
from tests.support.loops import in_background


class Sink:
    """Records its calls."""

    def __init__(self) -> None:
        self._calls: list[str] = []

    def deliver(self, source: str, pods: Iterable[Pod]) -> None:
        self._calls.append(f"{source}[{','.join(sorted(pod.name for pod in pods))}]")

    def update(self, source: str, pod: Pod) -> None:
        self._calls.append(f"{source}~{pod.name}")

    def remove(self, source: str, pod: Pod) -> None:
        self._calls.append(f"{source}-{pod.name}")

    def take_calls(self) -> str:
        calls, self._calls = " ".join(self._calls), []
        return calls


class Scene:
    def __init__(self) -> None:
        self.server = FakeSource()
        self.sink = Sink()
        self.clock = FakeClock()
        self.beats = 0
        self.source = ApiSource(
            self.server, "node-1", self.sink, clock=self.clock, heartbeat=self._beat
        )

    def _beat(self) -> None:
        self.beats += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with in_background(self.source.run()):
            await run_ready_tasks()
            yield


async def test_all_pods_are_delivered_at_once_and_then_every_change() -> None:
    scene = Scene()
    scene.server.put("a")
    scene.server.put("b")
    async with scene.running():
        assert scene.sink.take_calls() == "api[a,b]"
        assert scene.server.list_calls[0]["field_selector"] == "spec.nodeName=node-1"
        scene.server.put("c")
        scene.server.put("a", spec={"hostname": "x"})
        scene.server.delete("b")
        await run_ready_tasks()
        assert scene.sink.take_calls() == "api~c api~a api-b"


async def test_nothing_is_delivered_before_the_first_list() -> None:
    scene = Scene()
    scene.server.put("a")
    scene.server.list_errors.append(UnavailableError("down"))
    scene.server.answers.clear()
    async with scene.running():
        assert scene.sink.take_calls() == ""
        scene.server.answers.set()
        await run_ready_tasks()
        assert scene.sink.take_calls() == ""
        await scene.clock.advance(2)
        assert scene.sink.take_calls() == "api[a]"


async def test_an_empty_node_is_delivered_as_one() -> None:
    scene = Scene()
    async with scene.running():
        assert scene.sink.take_calls() == "api[]"


async def test_a_recreated_pod_is_reported_as_removed_and_added() -> None:
    scene = Scene()
    scene.server.put("a", uid="1")
    async with scene.running():
        scene.sink.take_calls()
        scene.server.put("a", uid="2")
        await run_ready_tasks()
        assert scene.sink.take_calls() == "api-a api~a"


async def test_a_watch_that_has_nothing_to_tell_beats_all_the_same() -> None:
    scene = Scene()
    async with scene.running():
        await scene.clock.advance(60)
        assert scene.beats >= 6


@pytest.mark.parametrize("source", ["file", "http", "anything"])
def test_what_the_api_server_has_is_no_static_pod(source: str) -> None:
    annotations = {CONFIG_SOURCE: source, "note": "1"}
    pod = mark_api_source(make_pod("a", annotations=annotations))
    assert not is_static_pod(pod)
    assert pod.metadata.annotations == {CONFIG_SOURCE: "api", "note": "1"}
    assert annotations[CONFIG_SOURCE] == source


def test_a_mirror_pod_stays_one() -> None:
    mirror = mark_api_source(make_static_pod(mirror=True))
    assert is_mirror_pod(mirror)
    assert not is_static_pod(mirror)
    assert (mirror.metadata.annotations or {})[CONFIG_MIRROR] == "hash"


@pytest.mark.parametrize("annotations", [None, {}, {"note": "1"}, {CONFIG_SOURCE: "api"}])
def test_all_others_are_left_as_they_are(annotations: dict[str, str] | None) -> None:
    pod = make_pod("a", annotations=annotations)
    assert mark_api_source(pod) is pod
