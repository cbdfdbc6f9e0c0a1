"""A folder of manifests, the watch, and the mirror pods between them, at both servers."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="sources need podstatus[agent]")

from podstatus.base.backoff import Backoff
from podstatus.base.system_clock import SystemClock
from podstatus.client import ApiClient, ReflectorPolicy, kubeconfig_config
from podstatus.kube.objects.pod import Pod, is_mirror_pod, is_static_pod
from podstatus.sources.api_source import ApiSource
from podstatus.sources.decide.pod_changes import PodConfigChange
from podstatus.sources.file_source import FileSource
from podstatus.sources.mirror_client import MirrorClient
from podstatus.sources.mirror_controller import MirrorController, MirrorInputs
from podstatus.sources.mux import Mux
from podstatus.testing.servers.access import ServerAccess
from tests.servers.pods import pod, pods
from tests.support.loops import until
from tests.support.manifests import named
from tests.support.pod_services import ignore
from tests.support.processes.api_servers import NODES, RealServer, Server
from tests.support.processes.mortal_server import Mortal, mortal

NODE = NODES[0]
QUICK = ReflectorPolicy(backoff=Backoff(initial_seconds=0.1, max_seconds=0.5))


class Scene:
    """The sources of a node, and its mirror pods."""

    def __init__(self, access: ServerAccess, folder: Path, namespace: str, node_uid: str) -> None:
        self.access = access
        self.folder = folder
        self.namespace = namespace
        self.node_uid = node_uid
        self.problems: list[str] = []
        self.mux = Mux(["api", "file"], self._hear, on_rejected=ignore)
        self.mirrors: MirrorController

    def _hear(self, _: PodConfigChange) -> None:
        self.mirrors.wake()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with (
            ApiClient(kubeconfig_config(self.access.kubeconfig)) as client,
            asyncio.timeout(120),
        ):
            clock = SystemClock()
            self.mirrors = MirrorController(
                MirrorClient(client, NODE),
                MirrorInputs(
                    static_pods=lambda: [pod for pod in self.mux.pods() if is_static_pod(pod)],
                    mirror_pods=lambda: [pod for pod in self.mux.pods() if is_mirror_pod(pod)],
                    may_remove=lambda _: self.mux.all_sources_ready,
                    node_uid=lambda: self.node_uid,
                ),
                clock=clock,
                on_problem=lambda _, why: self.problems.append(why),
                heartbeat=ignore,
            )
            folder = FileSource(
                self.folder,
                NODE,
                lambda pods: self.mux.deliver("file", pods),
                clock=clock,
                on_problem=ignore,
                heartbeat=ignore,
            )
            api = ApiSource(client, NODE, self.mux, clock=clock, heartbeat=ignore, policy=QUICK)
            async with asyncio.TaskGroup() as tasks:
                services = [api.run(), folder.run(), self.mirrors.run()]
                running = [tasks.create_task(service) for service in services]
                yield
                for task in running:
                    task.cancel()

    def write(self, name: str, **more: str) -> None:
        """Put a manifest into the folder."""
        where = f"name: {name}\n  namespace: {self.namespace}"
        text = named(name, **more).replace(f"name: {name}", where, 1)
        (self.folder / f"{name}.yaml").write_text(text)

    def _mirror(self, name: str) -> Pod | None:
        full_name = self.namespace, f"{name}-{NODE}"
        mirrors = filter(is_mirror_pod, self.mux.pods())
        return next((mirror for mirror in mirrors if mirror.full_name == full_name), None)

    async def mirror(self, name: str, *, not_uid: str = "") -> Pod:
        """The mirror pod, when the watch shows it."""
        await until(lambda: (found := self._mirror(name)) is not None and found.uid != not_uid)
        found = self._mirror(name)
        assert found is not None
        return found

    async def gone(self, name: str) -> None:
        await until(lambda: self._mirror(name) is None)

    async def ask(self, method: str, name: str, body: Any = None) -> tuple[int, Any]:
        """Be a user."""
        path = pods(self.namespace, name)
        return await asyncio.to_thread(self.access.request, method, path, body)


@pytest.fixture
def scene(server: Server, namespace: str, tmp_path: Path) -> Scene:
    return Scene(server.access, tmp_path, namespace, "uid-of-the-node")


async def test_a_mirror_pod_comes_and_goes_with_its_file(scene: Scene) -> None:
    async with scene.running():
        scene.write("web")
        mirror = await scene.mirror("web")
        (static,) = [pod for pod in scene.mux.pods() if is_static_pod(pod)]
        annotations = mirror.metadata.annotations or {}
        assert annotations["kubernetes.io/config.mirror"] == static.uid
        assert mirror.uid != static.uid
        (owner,) = mirror.metadata.owner_references or ()
        assert (owner.kind, owner.name, owner.controller) == ("Node", NODE, True)
        scene.write("web", hostname="other")
        newer = await scene.mirror("web", not_uid=mirror.uid)
        assert newer.spec.hostname == "other"
        (scene.folder / "web.yaml").unlink()
        await scene.gone("web")
        assert (await scene.ask("GET", f"web-{NODE}"))[0] == 404


async def test_a_mirror_pod_that_a_user_deletes_is_back(scene: Scene) -> None:
    async with scene.running():
        scene.write("web")
        mirror = await scene.mirror("web")
        code, _ = await scene.ask("DELETE", f"web-{NODE}")
        assert code in (200, 202)
        await scene.mirror("web", not_uid=mirror.uid)


async def test_a_pod_of_somebody_else_is_left_alone(scene: Scene) -> None:
    async with scene.running():
        code, made = await scene.ask("POST", "", pod(f"web-{NODE}", node=NODE))
        assert code == 201
        scene.write("web")
        await until(lambda: bool(scene.problems))
        _, there = await scene.ask("GET", f"web-{NODE}")
        assert there["metadata"]["uid"] == made["metadata"]["uid"]
        await scene.ask("DELETE", f"web-{NODE}", {"gracePeriodSeconds": 0})
        await scene.mirror("web")
    assert len(scene.problems) == 1


@pytest.fixture
def process(each_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    with mortal(each_server, tmp_path_factory.mktemp("mortal")) as process:
        yield process


async def test_mirror_pods_are_right_after_an_outage(
    process: Mortal, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    namespace = f"outage-{time.monotonic_ns()}"
    body = {"metadata": {"name": namespace}}
    assert process.access.request("POST", "/api/v1/namespaces", body)[0] == 201
    scene = Scene(process.access, tmp_path, namespace, "uid-of-the-node")
    async with scene.running():
        for name in ("stays", "changes", "goes"):
            scene.write(name)
        before = {name: await scene.mirror(name) for name in ("stays", "changes", "goes")}
        await asyncio.to_thread(process.kill)
        scene.write("changes", hostname="other")
        scene.write("comes")
        (scene.folder / "goes.yaml").unlink()
        await until(lambda: len([p for p in scene.mux.pods() if is_static_pod(p)]) == 3)
        await until(lambda: "sync of mirror pods failed" in caplog.text)
        await asyncio.to_thread(process.start)
        await scene.mirror("comes")
        newer = await scene.mirror("changes", not_uid=before["changes"].uid)
        assert newer.spec.hostname == "other"
        await scene.gone("goes")
        assert (await scene.mirror("stays")).uid == before["stays"].uid
    assert scene.problems == []


async def test_the_agent_of_a_node_may_do_all_this(real_server: RealServer, tmp_path: Path) -> None:
    node = {"metadata": {"name": NODE}}
    code, made = real_server.client.create("/api/v1/nodes", node)
    assert code == 201, made
    access = real_server.node_access(NODE)
    scene = Scene(access, tmp_path, real_server.new_namespace(), made["metadata"]["uid"])
    try:
        async with scene.running():
            scene.write("web")
            mirror = await scene.mirror("web")
            scene.write("web", hostname="other")
            await scene.mirror("web", not_uid=mirror.uid)
            (scene.folder / "web.yaml").unlink()
            await scene.gone("web")
    finally:
        real_server.client.delete(f"/api/v1/nodes/{NODE}")
    assert scene.problems == []
