"""The node services on both API servers: on the real one as its user, under NodeRestriction.

The virtual clock is far ahead of the servers' clocks, which is harmless: no test compares them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from podstatus.client.api_client import ApiClient
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.typed.nodes import HttpNodeApi, node_reflector
from podstatus.kube.api_errors import ConflictError, GoneError
from podstatus.kube.objects.node import Taint
from podstatus.kube.scalars.time import MicroTime
from podstatus.node.decide.conditions import ALERT_CONDITION_PREFIX, AlertCondition
from podstatus.node.settings import NodeSettings
from tests.node.scene import SETTINGS as ANY_NODE
from tests.node.scene import NodeScene
from tests.support.loops import until
from tests.support.processes.api_servers import NODES, Document, Server

NAME = NODES[2]
SETTINGS = structs.replace(ANY_NODE, name=NAME)
NODE = f"/api/v1/nodes/{NAME}"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NAME}"
FOREIGN = {"type": "KernelDeadlock", "status": "False", "reason": "KernelHasNoDeadlock"}

Script = Callable[[NodeScene], Awaitable[None]]


@pytest.fixture
def server(each_server: Server) -> Iterator[Server]:
    """Each of the servers, without this node."""
    yield each_server
    for path in (NODE, LEASE):
        each_server.client.delete(path)


@asynccontextmanager
async def node_api(server: Server) -> AsyncIterator[HttpNodeApi]:
    access = kubeconfig_config(server.node_access(NAME).kubeconfig)
    async with ApiClient(access) as client, asyncio.timeout(90):
        yield HttpNodeApi(client)


def play(server: Server, script: Script, settings: NodeSettings = SETTINGS) -> None:
    async def scene() -> None:
        async with node_api(server) as api:
            await script(NodeScene(settings, api=api))

    asyncio.run(scene())


def node(server: Server) -> Document:
    code, answer = server.client.get(NODE)
    assert code == 200, answer
    found: Document = answer
    return found


def condition(server: Server, kind: str) -> Document:
    conditions = {it["type"]: it for it in node(server)["status"]["conditions"]}
    found: Document = conditions[kind]
    return found


def addresses(server: Server) -> list[str]:
    return [f"{it['type']} {it['address']}" for it in node(server)["status"]["addresses"]]


def test_a_node_registers_itself(server: Server) -> None:
    settings = structs.replace(
        SETTINGS,
        taints=(Taint(key="podstatus.dev/process", effect="NoExecute"),),
        labels={"example.com/a": "b"},
    )

    async def script(scene: NodeScene) -> None:
        assert await scene.status.sync_once()

    play(server, script, settings)
    stored = node(server)
    assert stored["metadata"]["labels"]["kubernetes.io/hostname"] == NAME
    assert stored["metadata"]["labels"]["example.com/a"] == "b"
    assert "podstatus.dev/process" in [it["key"] for it in stored["spec"]["taints"]]
    status = stored["status"]
    assert status["capacity"]["cpu"] == "2"
    assert status["allocatable"]["memory"] == "8092Mi"
    assert status["nodeInfo"]["kubeletVersion"] == "v1.36.4+podstatus.0.1.0"
    assert status["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 10250
    assert [it["type"] for it in status["conditions"]] == [
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
        "Ready",
    ]


def test_what_the_server_has_is_what_we_have_and_is_not_sent_again(server: Server) -> None:
    async def script(scene: NodeScene) -> None:
        await scene.status.sync_once()
        before = node(server)["metadata"]["resourceVersion"]
        await scene.status.sync_once()
        own = scene.own_node.server_copy
        assert own is not None
        assert own.metadata.resource_version == before
        assert node(server)["metadata"]["resourceVersion"] == before

    play(server, script, structs.replace(SETTINGS, node_ips=("10.0.0.7", "fd00::7")))


def test_a_node_that_an_admin_made_is_taken_over(server: Server) -> None:
    taint = {"key": "example.com/theirs", "effect": "NoSchedule"}
    made = {"metadata": {"name": NAME, "labels": {"a": "b"}}, "spec": {"taints": [taint]}}
    assert server.client.create("/api/v1/nodes", made)[0] == 201

    async def script(scene: NodeScene) -> None:
        assert await scene.status.sync_once()

    play(server, script, structs.replace(SETTINGS, taints=(Taint(key="x", effect="NoExecute"),)))
    stored = node(server)
    keys = [it["key"] for it in stored["spec"]["taints"]]
    assert "example.com/theirs" in keys
    assert "x" not in keys
    assert stored["metadata"]["labels"]["a"] == "b"
    assert stored["metadata"]["labels"]["kubernetes.io/hostname"] == NAME
    assert condition(server, "Ready")["status"] == "True"


def test_a_change_of_conditions_arrives_and_those_of_others_stay(server: Server) -> None:
    async def script(scene: NodeScene) -> None:
        await scene.status.sync_once()
        # The cached copy is outdated when the next patch is computed.
        assert (
            server.client.patch(f"{NODE}/status", {"status": {"conditions": [FOREIGN]}})[0] == 200
        )
        scene.problems = ("the runtime is down", "relist is not healthy")
        await scene.clock.advance(10)
        assert await scene.status.sync_once()
        assert condition(server, "Ready")["message"] == (
            "[the runtime is down, relist is not healthy]"
        )
        assert condition(server, "KernelDeadlock")["reason"] == "KernelHasNoDeadlock"
        assert condition(server, "Ready")["lastTransitionTime"] == "2100-01-01T00:00:10Z"
        assert scene.events.reasons()[-1] == "NodeNotReady"

    play(server, script)


def test_a_condition_that_is_stated_comes_and_goes_and_those_of_others_stay(
    server: Server,
) -> None:
    type_ = f"{ALERT_CONDITION_PREFIX}DiskFilling"

    async def script(scene: NodeScene) -> None:
        scene.stated = (AlertCondition(type=type_, reason="DiskFilling", message="in 2 h"),)
        await scene.status.sync_once()
        assert condition(server, type_)["status"] == "True"
        assert (
            server.client.patch(f"{NODE}/status", {"status": {"conditions": [FOREIGN]}})[0] == 200
        )
        scene.stated = ()
        assert await scene.status.sync_once()
        types = [it["type"] for it in node(server)["status"]["conditions"]]
        assert type_ not in types
        assert {"Ready", "KernelDeadlock"} <= set(types)

    play(server, script)


def test_a_heartbeat_arrives_and_changes_nothing_else(server: Server) -> None:
    async def script(scene: NodeScene) -> None:
        await scene.status.sync_once()
        await scene.clock.advance(500)
        await scene.status.sync_once()
        ready = condition(server, "Ready")
        assert ready["lastHeartbeatTime"] == "2100-01-01T00:08:20Z"
        assert ready["lastTransitionTime"] == "2100-01-01T00:00:00Z"
        assert len(node(server)["status"]["conditions"]) == 4

    play(server, script)


def test_addresses_are_replaced_although_their_types_are_not_unique(server: Server) -> None:
    for ips in (("10.0.0.7",), ("10.0.0.8", "fd00::8"), ("fd00::9",)):

        async def script(scene: NodeScene) -> None:
            assert await scene.status.sync_once()

        play(server, script, structs.replace(SETTINGS, node_ips=ips))
        assert addresses(server) == [*(f"InternalIP {ip}" for ip in ips), f"Hostname {NAME}"]


def test_a_node_that_was_deleted_comes_again(server: Server) -> None:
    async def script(scene: NodeScene) -> None:
        await scene.status.sync_once()
        before = scene.own_node.uid
        assert server.client.delete(NODE)[0] == 200
        scene.run_short_of_memory()
        assert await scene.status.sync_once()
        assert scene.own_node.uid == node(server)["metadata"]["uid"] != before
        assert condition(server, "MemoryPressure")["status"] == "True"

    play(server, script)


async def test_a_watch_tells_what_others_do_to_our_node(server: Server) -> None:
    access = kubeconfig_config(server.node_access(NAME).kubeconfig)
    async with ApiClient(access) as client, asyncio.timeout(90), asyncio.TaskGroup() as tasks:
        scene = NodeScene(SETTINGS, api=HttpNodeApi(client))
        own = scene.own_node
        await scene.status.sync_once()
        watching = tasks.create_task(node_reflector(client, NAME, own).run())
        cordon = {"spec": {"unschedulable": True}}
        assert server.client.patch(NODE, cordon)[0] == 200
        await until(lambda: own.current().spec.unschedulable)
        assert server.client.delete(NODE)[0] == 200
        await until(lambda: own.server_copy is None)
        assert await scene.status.sync_once()
        assert own.uid == node(server)["metadata"]["uid"]
        watching.cancel()


def test_a_status_for_a_recreated_node_is_recomputed(
    server: Server,
) -> None:
    async def script(scene: NodeScene) -> None:
        await scene.status.sync_once()
        assert server.client.delete(NODE)[0] == 200
        assert server.client.create("/api/v1/nodes", {"metadata": {"name": NAME}})[0] == 201
        scene.run_short_of_memory()
        assert await scene.status.sync_once()
        reasons = [it["reason"] for it in node(server)["status"]["conditions"]]
        assert reasons == [
            "KubeletHasInsufficientMemory",
            "KubeletHasNoDiskPressure",
            "KubeletHasSufficientPID",
            "KubeletReady",
        ]

    play(server, script)


def test_a_lease_is_created_and_renewed(server: Server) -> None:
    async def script(scene: NodeScene) -> None:
        await scene.status.sync_once()
        assert await scene.lease.renew_once()
        created = server.client.get(LEASE)[1]
        assert created["spec"] == {
            "holderIdentity": NAME,
            "leaseDurationSeconds": 40,
            "renewTime": "2100-01-01T00:00:00.000000Z",
        }
        (owner,) = created["metadata"]["ownerReferences"]
        assert owner == {
            "apiVersion": "v1",
            "kind": "Node",
            "name": NAME,
            "uid": scene.own_node.uid,
        }
        await scene.clock.advance(10.25)
        assert await scene.lease.renew_once()
        renewed = server.client.get(LEASE)[1]
        times = [MicroTime.parse(lease["spec"]["renewTime"]) for lease in (created, renewed)]
        assert times[0] < times[1]
        assert renewed["spec"]["renewTime"].endswith("10.250000Z")
        assert renewed["metadata"]["ownerReferences"] == [owner]

    play(server, script)


def test_a_lease_that_was_written_to_or_deleted_is_renewed_all_the_same(server: Server) -> None:
    async def script(scene: NodeScene) -> None:
        await scene.status.sync_once()
        await scene.lease.renew_once()
        labelled = {"metadata": {"labels": {"a": "b"}}}
        assert server.client.patch(LEASE, labelled)[0] == 200
        await scene.clock.advance(10)
        assert await scene.lease.renew_once()
        found = server.client.get(LEASE)[1]
        assert found["metadata"]["labels"] == {"a": "b"}
        assert found["spec"]["renewTime"].endswith("10.000000Z")
        assert server.client.delete(LEASE)[0] == 200
        await scene.clock.advance(10)
        assert await scene.lease.renew_once()
        assert server.client.get(LEASE)[1]["spec"]["renewTime"].endswith("20.000000Z")

    play(server, script)


async def test_missing_and_existing_objects_raise_distinct_errors(server: Server) -> None:
    scene = NodeScene(SETTINGS)
    async with node_api(server) as api:
        with pytest.raises(GoneError):
            await api.get_node(NAME)
        with pytest.raises(GoneError):
            await api.get_lease("kube-node-lease", NAME)
        made = await api.create_node(scene.own_node.current())
        with pytest.raises(ConflictError):
            await api.create_node(scene.own_node.current())
        patched = await api.patch_node(NAME, b'{"metadata":{"annotations":{"a":"b"}}}')
        assert patched.metadata.annotations == {"a": "b"}
        assert patched.metadata.uid == made.metadata.uid
        assert patched.metadata.managed_fields is None
