"""An observer in this process, on an API server in memory."""

import asyncio
import json
import socket
import threading
from pathlib import Path

import pytest

from podstatus.agent.errors import AgentError
from podstatus.agent.observer.cluster_view import ObserverScope
from podstatus.agent.observer.observed_scope import SCOPE_FILE
from podstatus.agent.observer.observer import ClusterObserver
from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.meta import ObjectReference
from podstatus.observe.history.sqlite_store import History, HistoryError
from podstatus.testing.apiserver import ApiServerThread
from tests.agent.observer.observing import create, observing, until
from tests.support.data.deployment_pods import pod, status

SECONDS = 90
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE = "application/merge-patch+json"


def name_of(number: int) -> str:
    return str(pod(number)["metadata"]["name"])


def set_status(server: ApiServerThread, number: int, **more: object) -> None:
    patch = {"status": status(number) | more}
    code, answer = server.request("PATCH", f"{PODS}/{name_of(number)}/status", patch, MERGE)
    assert code == 200, answer


def delete(server: ApiServerThread, number: int) -> None:
    code, answer = server.request("DELETE", f"{PODS}/{name_of(number)}", {"gracePeriodSeconds": 0})
    assert code == 200, answer


async def kinds(observer: ClusterObserver, number: int) -> list[str]:
    """What was noted of a pod, once nothing waits to be."""
    await until(lambda: not observer.status_view.history.counts.waiting)
    moments = await observer.status_view.history.timeline("default", name_of(number))
    return [moment.transition.kind for moment in moments]


async def test_what_the_server_has_is_there_when_it_can_be_asked_and_followed_then(
    tmp_path: Path, server: ApiServerThread
) -> None:
    for number in range(3):
        create(server, PODS, pod(number))

    async with observing(tmp_path, server) as observer:
        assert len(observer.status_view.snapshot_cache.pods()) == 3
        assert observer.status_view.freshness().server_reachable
        set_status(server, 1)
        await until(
            lambda: any(it.ready for it in observer.status_view.snapshot_cache.pods().values())
        )
        delete(server, 1)
        await until(lambda: len(observer.status_view.snapshot_cache.pods()) == 2)
        found = await kinds(observer, 1)
        assert (found[0], found.count("phase"), found[-1]) == ("seen", 2, "finished")


async def test_nodes_have_what_pods_ask_for_and_the_age_of_their_lease(
    tmp_path: Path, server: ApiServerThread
) -> None:
    create(server, "/api/v1/nodes", {"metadata": {"name": "worker-000"}})
    create(server, "/api/v1/nodes", {"metadata": {"name": "idle"}})
    lease = {
        "metadata": {"name": "worker-000"},
        "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"},
    }
    create(server, LEASES, lease)
    for number in range(3):
        create(server, PODS, pod(number, nodes=1))
    set_status(server, 2, phase="Succeeded")

    async with observing(tmp_path, server) as observer:
        nodes = observer.status_view.nodes
        await until(lambda: len(nodes()) == 2 and nodes()["worker-000"].lease_age_seconds)
        busy, idle = nodes()["worker-000"], nodes()["idle"]
        assert (busy.pods, busy.requested) == (2, {"cpu": "600m", "memory": "640Mi"})
        assert (idle.pods, idle.requested, idle.lease_age_seconds) == (0, {}, None)
        # This server measures no nodes.
        assert busy.used == {"pods": 2}


async def test_what_happens_to_nodes_is_recorded(tmp_path: Path, server: ApiServerThread) -> None:
    path = "/api/v1/nodes/worker"
    create(server, "/api/v1/nodes", {"metadata": {"name": "worker"}})

    async with observing(tmp_path, server) as observer:
        history = observer.status_view.history

        async def changes() -> list[str]:
            entries = (await history.node_timeline("worker")).entries
            return [f"{it.transition.kind} {it.transition.subject}" for it in entries]

        async def recorded(kind: str) -> None:
            while not any(it.startswith(kind) for it in await changes()):
                await SystemClock().wait(0.05)

        await recorded("seen")
        ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        patch = {"status": {"conditions": [ready]}}
        assert server.request("PATCH", f"{path}/status", patch, MERGE)[0] == 200
        taints = {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}}
        assert server.request("PATCH", path, taints, MERGE)[0] == 200
        await recorded("taint broken:NoExecute")
        assert "condition Ready" in await changes()
        assert server.request("DELETE", path)[0] == 200
        await recorded("finished")


async def test_only_what_is_asked_for_is_observed(tmp_path: Path, server: ApiServerThread) -> None:
    for number in range(4):
        create(server, PODS, pod(number, nodes=2, per_deployment=2))
    for name in ("worker-000", "worker-001"):
        create(server, "/api/v1/nodes", {"metadata": {"name": name}})
    asked = ObserverScope(
        namespace="default", selector="app.kubernetes.io/name=shop-0001", node="worker-001"
    )

    async with observing(tmp_path, server, asked) as observer:
        (found,) = observer.status_view.snapshot_cache.pods().values()
        assert (found.name, found.node) == (
            pod(3, per_deployment=2)["metadata"]["name"],
            "worker-001",
        )
        await until(lambda: list(observer.status_view.nodes()) == ["worker-001"])


async def test_pods_removed_during_downtime_are_recorded_once(
    tmp_path: Path, server: ApiServerThread
) -> None:
    create(server, PODS, pod(0))
    create(server, PODS, pod(1))

    async with observing(tmp_path, server) as observer:
        assert (await kinds(observer, 0))[0] == "seen"
    delete(server, 0)
    for _ in range(2):
        async with observing(tmp_path, server) as observer:
            await until(lambda: observer.view.pods.has_synced)
            found = await kinds(observer, 0)
            assert (found.count("seen"), found.count("finished")) == (1, 1)
            assert "finished" not in await kinds(observer, 1)


async def test_what_another_observed_has_not_ended_because_this_one_does_not_see_it(
    tmp_path: Path, server: ApiServerThread
) -> None:
    create(server, PODS, pod(0))

    async with observing(tmp_path, server) as observer:
        assert await kinds(observer, 0)
    for _ in range(2):
        async with observing(tmp_path, server, ObserverScope(namespace="other")) as observer:
            assert not observer.status_view.snapshot_cache.pods()
            assert await kinds(observer, 0)
    async with observing(tmp_path, server) as observer:
        assert "finished" not in await kinds(observer, 0)


async def test_ends_are_recorded_in_a_new_history(tmp_path: Path, server: ApiServerThread) -> None:
    create(server, PODS, pod(0))
    root = tmp_path / "root"

    async with observing(tmp_path, server):
        pass
    (root / "history.db").unlink()
    place = json.loads((root / SCOPE_FILE).read_bytes())
    (root / SCOPE_FILE).write_text(json.dumps(place | {"after": 12}))
    async with observing(tmp_path, server) as observer:
        assert (await kinds(observer, 0))[0] == "seen"
    delete(server, 0)
    async with observing(tmp_path, server) as observer:
        await until(lambda: observer.view.pods.has_synced)
        assert (await kinds(observer, 0))[-1] == "finished"


async def test_a_change_outside_of_the_summary_is_not_recorded(
    tmp_path: Path, server: ApiServerThread
) -> None:
    create(server, PODS, pod(0))

    async with observing(tmp_path, server) as observer:
        before, number = await kinds(observer, 0), observer.status_view.snapshot_cache.revision
        patch = {"metadata": {"annotations": {"checked": "yes"}}}
        server.request("PATCH", f"{PODS}/{name_of(0)}", patch, MERGE)
        create(server, PODS, pod(1))
        await until(lambda: len(observer.status_view.snapshot_cache.pods()) == 2)
        assert observer.status_view.snapshot_cache.revision == number + 1
        assert await kinds(observer, 0) == before
        shown = observer.status_view.snapshot_cache.pods()
        for seen in observer.view.pods.objects():
            assert seen.summary is shown[seen.summary.uid], "it is kept twice"


async def test_a_port_in_use_is_reported_before_the_first_list(
    tmp_path: Path, server: ApiServerThread
) -> None:
    lists = {"verb": "list", "resource": "pods"}
    server.inject(lists | {"latency": 0.001, "times": 1}, lists | {"action": "drop"})

    async def play(port: int) -> None:
        async with asyncio.timeout(60), observing(tmp_path, server, port=str(port)):
            raise AssertionError("it runs without its port")

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(AgentError, match=f"cannot listen on .* port {port}"):
            await play(port)


def test_the_history_is_read_beside_the_loop(
    tmp_path: Path, server: ApiServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[threading.Thread] = []

    def unfinished(_: History, *, after: int) -> list[ObjectReference]:  # noqa: ARG001
        readers.append(threading.current_thread())
        return []

    async def play() -> None:
        monkeypatch.setattr(History, "unfinished_pods", unfinished)
        async with observing(tmp_path, server):
            assert len(readers) == 1
            assert threading.current_thread() not in readers

    asyncio.run(play())


@pytest.mark.parametrize("code", [401, 403])
async def test_a_server_that_was_away_and_refuses_at_first_is_asked_again(
    tmp_path: Path, server: ApiServerThread, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    create(server, PODS, pod(0))
    monkeypatch.setattr("podstatus.agent.observer.observer._RETRY_SECONDS", 0.02)
    looks = {"verb": "list", "resource": "pods", "times": 1}
    server.inject(looks | {"code": 503}, looks | {"code": code})

    async with observing(tmp_path, server) as observer:
        await until(lambda: len(observer.status_view.snapshot_cache.pods()) == 1)


async def test_an_observer_runs_without_a_readable_history(
    tmp_path: Path, server: ApiServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(server, PODS, pod(0))

    def broken(_: History, *, after: int) -> list[ObjectReference]:  # noqa: ARG001
        raise HistoryError("cannot read it: the disk is broken")

    async with observing(tmp_path, server):
        pass
    monkeypatch.setattr(History, "unfinished_pods", broken)
    async with observing(tmp_path, server) as observer:
        assert len(observer.status_view.snapshot_cache.pods()) == 1
