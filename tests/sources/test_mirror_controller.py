"""Mirror pods in virtual time, with an in-memory server whose watch may lag."""

import asyncio
import json
from collections import deque
from typing import Any, cast

import pytest

from podstatus.client import ApiClient, ApiResource
from podstatus.kube.api_errors import (
    BusyError,
    ConflictError,
    DeniedError,
    GoneError,
    UnavailableError,
)
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import CONFIG_MIRROR, Pod, is_mirror_pod
from podstatus.sources.mirror_client import MirrorClient
from podstatus.sources.mirror_controller import MirrorController, MirrorInputs
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.support.manifests import WEB, read

DOWN = UnavailableError("the server is down")


class FakeServer:
    """The part of an API server that mirror pods need."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[str] = []
        self.errors: deque[Exception] = deque()
        self.down: Exception | None = None
        self._made = 0

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.down is not None:
            raise self.down
        if self.errors:
            raise self.errors.popleft()

    def put(self, document: dict[str, Any], namespace: str = "default") -> None:
        self._made += 1
        meta = document["metadata"] | {"namespace": namespace, "uid": f"api-{self._made}"}
        self.pods[namespace, meta["name"]] = document | {"metadata": meta}

    async def create(self, _: ApiResource, body: bytes, *, namespace: str) -> bytes:
        self._ask("create")
        document = json.loads(body)
        if (namespace, document["metadata"]["name"]) in self.pods:
            raise ConflictError("already exists", code=409, reason="AlreadyExists")
        self.put(document, namespace)
        return body

    async def get(self, _: ApiResource, name: str, *, namespace: str) -> bytes:
        self._ask("get")
        if (namespace, name) not in self.pods:
            raise GoneError("not found", code=404)
        return json.dumps(self.pods[namespace, name]).encode()

    async def delete(self, _: ApiResource, name: str, *, namespace: str, options: bytes) -> bytes:
        self._ask("delete")
        asked = json.loads(options)
        assert asked["gracePeriodSeconds"] == 0
        found = self.pods.get((namespace, name))
        if found is None:
            raise GoneError("not found", code=404)
        if found["metadata"]["uid"] != asked["preconditions"]["uid"]:
            raise ConflictError("another one", code=409)
        del self.pods[namespace, name]
        return b"{}"


class Scene:
    """Mirror pods of one static pod, and a watch that may lag."""

    def __init__(self, *, static: bool = True) -> None:
        self.server = FakeServer()
        self.clock = FakeClock()
        self.static = list(read(WEB).pods) if static else []
        self.shown: list[Pod] | None = None
        self.node_uid: str | None = "node-uid"
        self.removable = True
        self.problems: list[str] = []
        self.mirrors = MirrorController(
            MirrorClient(cast(ApiClient, self.server), "node-1"),
            MirrorInputs(
                static_pods=lambda: self.static,
                mirror_pods=self.watched,
                may_remove=lambda _: self.removable,
                node_uid=lambda: self.node_uid,
            ),
            clock=self.clock,
            heartbeat=lambda: None,
            on_problem=lambda pod, why: self.problems.append(f"{pod.name}: {why}"),
            random=lambda: 0.0,
        )

    def stored(self) -> list[Pod]:
        pods = [from_document(document, Pod) for document in self.server.pods.values()]
        return [pod for pod in pods if is_mirror_pod(pod)]

    def watched(self) -> list[Pod]:
        return self.stored() if self.shown is None else self.shown

    async def look(self, *, after: float = 0.0) -> list[str]:
        """Reconcile; return the requests to the server."""
        before = len(self.server.asked)
        await self.clock.advance(after)
        await self.mirrors.reconcile_once()
        return self.server.asked[before:]

    def is_right(self) -> bool:
        return [mirror.full_name for mirror in self.stored()] == [
            pod.full_name for pod in self.static
        ]


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_static_pod_gets_its_mirror_once(scene: Scene) -> None:
    assert await scene.look() == ["create"]
    assert scene.is_right()
    assert await scene.look(after=10) == []


async def test_a_watch_that_is_late_is_waited_for_longer_and_longer(scene: Scene) -> None:
    scene.shown = []
    assert await scene.look() == ["create"]
    asked = [len(await scene.look(after=0.5)) for _ in range(30)]
    assert sum(asked) == 2 * 4, "after 1, 2, 4, 8 s"
    assert scene.problems == []
    scene.shown = None
    assert await scene.look() == []


async def test_a_deleted_mirror_is_created_again_after_its_end_was_visible(scene: Scene) -> None:
    await scene.look()
    await scene.look()
    scene.server.pods.clear()
    assert await scene.look() == []
    await scene.clock.advance(0.4)
    assert await scene.look() == []
    await scene.clock.advance(0.1)
    assert await scene.look() == ["create"]


async def test_a_mirror_that_is_being_deleted_is_replaced(scene: Scene) -> None:
    await scene.look()
    (document,) = scene.server.pods.values()
    document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert await scene.look() == ["delete"]
    assert await scene.look() == []
    await scene.clock.advance(0.5)
    assert await scene.look() == ["create"]
    (mirror,) = scene.stored()
    assert mirror.uid == "api-2"


async def test_the_mirror_of_an_older_manifest_is_replaced(scene: Scene) -> None:
    await scene.look()
    scene.static = list(read(WEB.replace("busybox", "busybox:2")).pods)
    assert await scene.look(after=1) == ["delete", "create"]
    (mirror,) = scene.stored()
    assert (mirror.metadata.annotations or {})[CONFIG_MIRROR] == scene.static[0].uid


async def test_an_older_mirror_that_the_watch_has_not_shown_is_replaced(scene: Scene) -> None:
    await scene.look()
    scene.shown = []
    scene.static = list(read(WEB.replace("busybox", "busybox:2")).pods)
    assert await scene.look(after=1) == ["create", "get", "delete", "create"]
    assert scene.is_right()


async def test_an_orphan_is_removed_when_its_pod_is_over(scene: Scene) -> None:
    await scene.look()
    scene.static, scene.removable = [], False
    assert await scene.look(after=5) == []
    scene.removable = True
    assert await scene.look() == ["delete"]
    assert scene.stored() == []


async def test_a_mirror_pod_that_another_client_removed_is_no_problem(scene: Scene) -> None:
    await scene.look()
    scene.shown, scene.static = scene.stored(), []
    scene.server.pods.clear()
    assert await scene.look(after=1) == ["delete"]
    assert scene.problems == []


async def test_a_foreign_pod_of_the_name_is_left_alone_and_reported_once(scene: Scene) -> None:
    scene.server.put({"metadata": {"name": "web-node-1"}})
    for _ in range(20):
        await scene.look(after=1)
    assert next(iter(scene.server.pods.values()))["metadata"]["uid"] == "api-1"
    assert scene.problems == [
        (
            "web-node-1: pod default/web-node-1 exists and is not a mirror pod of this node; "
            "delete it, or rename the static pod"
        )
    ]
    assert len(scene.server.asked) <= 2 * 5
    scene.server.pods.clear()
    await scene.look(after=10)
    assert scene.is_right()


async def test_the_mirror_of_another_node_is_left_alone(scene: Scene) -> None:
    annotations = {CONFIG_MIRROR: "x"}
    meta = {"name": "web-node-1", "annotations": annotations}
    scene.shown = []
    scene.server.put({"metadata": meta, "spec": {"nodeName": "web-node"}})
    await scene.look()
    assert scene.server.asked == ["create", "get"]
    assert len(scene.problems) == 1


async def test_a_refusal_is_reported_once_and_tried_again_later(scene: Scene) -> None:
    scene.server.errors.extend([DeniedError("forbidden", code=403)] * 3)
    for _ in range(20):
        await scene.look(after=1)
    assert scene.problems == ["web-node-1: forbidden"]
    assert scene.server.asked == ["create"] * 4
    assert scene.is_right()


async def test_nothing_is_created_before_the_node_is_known(scene: Scene) -> None:
    scene.node_uid = None
    assert await scene.look(after=5) == []
    scene.node_uid = "node-uid"
    assert await scene.look() == ["create"]


async def test_an_outage_is_probed_once_for_all_pods_with_growing_waits(scene: Scene) -> None:
    scene.static += read(WEB.replace("web", "other")).pods
    scene.server.down = DOWN
    for _ in range(600):
        await scene.look(after=0.1)
    assert len(scene.server.asked) == 9, "after 1, 2, 4, 8 and then every 10 s"
    scene.server.down = None
    await scene.look(after=10)
    assert scene.is_right()
    assert scene.problems == []


async def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(scene: Scene) -> None:
    scene.server.errors.append(BusyError("busy", code=429, retry_after=5))
    assert await scene.look() == ["create"]
    assert await scene.look(after=4) == []
    assert await scene.look(after=1.1) == ["create"]


async def test_one_pod_that_is_refused_does_not_hold_up_the_others(scene: Scene) -> None:
    scene.static += read(WEB.replace("web", "other")).pods
    scene.server.errors.append(GoneError('namespaces "x" not found', code=404))
    await scene.look()
    assert [mirror.name for mirror in scene.stored()] == ["other-node-1"]


async def test_run_restores_a_deleted_mirror_within_two_seconds(scene: Scene) -> None:
    task = asyncio.create_task(scene.mirrors.run())
    await run_ready_tasks()
    assert scene.is_right()
    await scene.clock.advance(2)
    scene.server.pods.clear()
    await scene.clock.advance(2)
    assert scene.is_right()
    await scene.clock.advance(2)
    scene.server.pods.clear()
    scene.mirrors.wake()
    await scene.clock.advance(1)
    assert scene.is_right()
    task.cancel()


async def test_a_clock_that_is_set_back_holds_nothing_up(scene: Scene) -> None:
    scene.shown = []
    assert await scene.look() == ["create"]
    scene.clock.step(-3600)
    assert await scene.look() == []
    assert await scene.look(after=1.1) == ["create", "get"]
    scene.server.down = DOWN
    assert await scene.look(after=10) == ["create"]
    scene.server.down = None
    scene.clock.step(-3600)
    assert await scene.look() == []
    assert await scene.look(after=10) == ["create", "get"]
