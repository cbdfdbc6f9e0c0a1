"""Our client, the reflector and a node of one's own, against both servers."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podstatus import Pod, PodManager, StatusManager, decode
from podstatus.client import (
    CONFIG_MAPS,
    NODES,
    PODS,
    Added,
    ApiClient,
    HttpPodApi,
    ObjectChange,
    Reflector,
    Removed,
    Updated,
    kubeconfig_config,
    pod_reflector,
)
from podstatus.client.informer.list_watch_calls import ObjectSelection
from podstatus.kube.api_errors import ConflictError, GoneError, RejectedError
from podstatus.kube.conditions import is_condition_true
from podstatus.kube.objects.cluster import ConfigMap
from podstatus.kube.objects.pod import ApiUID
from podstatus.testing.builders import make_status, running
from podstatus.testing.fakes import FakeDeletionSafety
from podstatus.testing.servers.access import ServerAccess
from tests.support.processes.api_servers import NODES as NAMES
from tests.support.processes.api_servers import RealServer, Server

OWN_NODE = Path(__file__).parents[3] / "examples" / "own_node.py"
OTHER = ApiUID("11111111-2222-3333-4444-555555555555")


@asynccontextmanager
async def client_of(access: ServerAccess) -> AsyncIterator[ApiClient]:
    async with ApiClient(kubeconfig_config(access.kubeconfig)) as client, asyncio.timeout(90):
        yield client


def config_map(name: str, **data: str) -> bytes:
    return json.dumps({"metadata": {"name": name}, "data": data}).encode()


def pod(name: str, node: str = "nobodys-node") -> bytes:
    spec = {"nodeName": node, "containers": [{"name": "app", "image": "app:1"}]}
    return json.dumps({"metadata": {"name": name}, "spec": spec}).encode()


class Story:
    """What a reflector has told, and a way to wait for it."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self._more = asyncio.Event()

    def __call__(self, change: ObjectChange[ConfigMap]) -> None:
        match change:
            case Added(new) | Updated(_, new):
                told = new
            case Removed(told):
                pass
        self.told.append((type(change).__name__, told.metadata.name))
        self._more.set()

    async def has(self, count: int) -> None:
        while len(self.told) < count:
            self._more.clear()
            await self._more.wait()


@pytest.mark.own_server
async def test_a_reflector_tells_what_happens_and_goes_on_after_everything_is_forgotten(
    server: Server, namespace: str
) -> None:
    async with client_of(server.access) as client:
        story = Story()
        reflector = Reflector(client, ObjectSelection(CONFIG_MAPS, namespace), ConfigMap, story)
        await client.create(CONFIG_MAPS, config_map("old"), namespace=namespace)
        following = asyncio.create_task(reflector.run())
        await reflector.wait_synced()
        await client.create(CONFIG_MAPS, config_map("new"), namespace=namespace)
        await story.has(2)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await client.replace(CONFIG_MAPS, "new", config_map("new", x="1"), namespace=namespace)
        await client.delete(CONFIG_MAPS, "old", namespace=namespace)
        await asyncio.to_thread(server.forget)
        following = asyncio.create_task(reflector.run())
        await story.has(4)
        assert reflector.counts.expired == 1
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        listed = json.loads(await client.list(CONFIG_MAPS, namespace=namespace))["items"]
        assert {m.metadata.name: m.metadata.resource_version for m in reflector.objects()} == {
            item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed
        }
    assert story.told == [
        ("Added", "old"),
        ("Added", "new"),
        ("Removed", "old"),
        ("Updated", "new"),
    ]


async def test_statuses_and_deletes_are_for_the_pod_they_name(
    server: Server, namespace: str
) -> None:
    async with client_of(server.access) as client:
        created = decode(await client.create(PODS, pod("web"), namespace=namespace), Pod)
        pods = HttpPodApi(client)

        def patch(uid: str) -> bytes:
            return json.dumps({"metadata": {"uid": uid}, "status": {"reason": "Mine"}}).encode()

        with pytest.raises(ConflictError):
            await pods.patch_pod_status(namespace, "web", patch(OTHER))
        patched = await pods.patch_pod_status(namespace, "web", patch(created.uid))
        assert patched.status.reason == "Mine"
        with pytest.raises(ConflictError):
            await pods.delete_pod(namespace, "web", uid=OTHER, grace_period_seconds=0)
        uid = ApiUID(created.uid)
        await pods.delete_pod(namespace, "web", uid=uid, grace_period_seconds=0)
        with pytest.raises(GoneError):
            await pods.get_pod(namespace, "web")


async def test_a_status_that_no_server_takes_is_rejected(server: Server, namespace: str) -> None:
    async with client_of(server.access) as client:
        await client.create(PODS, pod("web"), namespace=namespace)
        patch = b'{"status":{"qosClass":"Guaranteed"}}'
        with pytest.raises(RejectedError) as caught:
            await client.patch(PODS, "web", patch, namespace=namespace, subresource="status")
        assert (caught.value.code, caught.value.reason) == (422, "Invalid")


async def test_the_status_manager_keeps_pods_over_the_client(
    server: Server, namespace: str
) -> None:
    async with client_of(server.access) as client:
        node = f"node-of-{namespace}"
        pods = PodManager()
        shown = pod_reflector(client, node, pods)
        manager = StatusManager(HttpPodApi(client), pods, FakeDeletionSafety())
        created = decode(await client.create(PODS, pod("web", node), namespace=namespace), Pod)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(shown.run())
            syncing = tasks.create_task(manager.run())
            await shown.wait_synced()
            manager.set_pod_status(created, make_status("Running", running("app"), Ready="True"))
            manager.stop()
            await syncing
            following.cancel()
        stored = decode(await client.get(PODS, "web", namespace=namespace), Pod)
        assert stored.status.phase == "Running"
        assert stored.status.container_statuses is not None


@pytest.fixture
def own_node(server: Server) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(OWN_NODE), str(server.access.kubeconfig)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "own-node is ready" in process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()
        server.client.delete("/api/v1/nodes/own-node")


async def test_a_node_of_ones_own_runs_pods(
    server: Server, namespace: str, own_node: subprocess.Popen[str]
) -> None:
    async with client_of(server.access) as client:
        body = await client.create(PODS, pod("web", "own-node"), namespace=namespace)
        version = decode(body, Pod).metadata.resource_version
        async with client.watch(PODS, namespace=namespace, resource_version=version) as events:
            async for event in events:
                status = decode(bytes(event.object), Pod).status
                if is_condition_true(status.conditions, "Ready"):
                    break
            await client.delete(PODS, "web", namespace=namespace)
            async for event in events:
                if event.type == "DELETED":
                    break
        assert json.loads(await client.get(NODES, "own-node"))["status"]["capacity"]["cpu"] == "8"
    own_node.terminate()
    _, complaints = await asyncio.to_thread(own_node.communicate, timeout=90)
    assert (own_node.returncode, complaints) == (0, "")


async def test_an_agent_may_not_write_to_the_pods_of_others(
    real_server: RealServer,
) -> None:
    namespace = real_server.new_namespace()

    async with client_of(real_server.access) as admin:
        await admin.create(PODS, pod("mine", NAMES[0]), namespace=namespace)
        await admin.create(PODS, pod("others", NAMES[1]), namespace=namespace)
    patch = b'{"status":{"reason":"Mine"}}'
    async with client_of(real_server.node_access(NAMES[0])) as agent:
        pods = HttpPodApi(agent)
        assert (await pods.patch_pod_status(namespace, "mine", patch)).status.reason == "Mine"
        with pytest.raises(RejectedError, match="RBAC") as caught:
            await pods.patch_pod_status(namespace, "others", patch)
        assert caught.value.code == 403
