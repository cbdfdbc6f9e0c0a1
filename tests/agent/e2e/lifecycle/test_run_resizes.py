"""Resizes by `podstatus run`, decided, done, waiting and failing; the same after a kill."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes.agent_process import (
    AgentProcess,
    Cluster,
    Document,
    agent_on,
    condition,
    container,
    until,
)
from tests.support.processes.agent_process import make_pod as plain_pod
from tests.support.processes.api_servers import NODES, Server
from tests.support.processes.mortal_node import pod_of, ready_node

pytestmark = pytest.mark.slow

NODE = NODES[24]
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
RESTARTS = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


@contextmanager
def a_node(server: Server, folder: Path) -> Iterator[tuple[AgentProcess, Cluster]]:
    """An agent with two processors, and what an admin sees of it."""
    with agent_on(server, folder, NODE) as (started, cluster):
        yield started, cluster
        assert "Traceback" not in started.log()


def a_pod(name: str, cpu: str, script: str = "", policy: object = ()) -> Document:
    app = {
        "name": "app",
        "image": "busybox",
        "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}},
        "resizePolicy": policy,
    }
    return plain_pod(name, script, NODE, containers=[app])


def resize(server: Server, cluster: Cluster, name: str, cpu: str) -> tuple[int, Document]:
    """As `kubectl patch pod … --subresource resize`."""
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{name}/resize"
    asked = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
    return server.client.patch(path, {"spec": {"containers": [asked]}})


def shows(pod: Document) -> str:
    """What it has been granted, what is in force, its conditions, as in `300m/200m Pending`."""
    status = container(pod) if pod["status"].get("containerStatuses") else {}
    granted = status.get("allocatedResources", {}).get("cpu")
    has = status.get("resources", {}).get("requests", {}).get("cpu")
    conditions = (condition(pod, kind) for kind in (PENDING, IN_PROGRESS))
    words = (
        f"{it['type'].removeprefix('PodResize')}={it.get('reason', '')}@{it['observedGeneration']}"
        for it in conditions
        if it
    )
    return " ".join([f"{granted}/{has}", *words])


def wait(cluster: Cluster, name: str, shown: str) -> Document:
    return cluster.wait_for(name, lambda pod: shows(pod) == shown)


def resize_events(cluster: Cluster) -> list[tuple[str, str, int]]:
    """The events of resizes, with their counts."""
    return sorted(
        (e["involvedObject"]["name"], e["reason"], e.get("count", 1))
        for e in cluster.events()
        if e["involvedObject"].get("namespace") == cluster.namespace
        and e.get("reason", "").startswith("Resize")
    )


EXPECTED = {
    "changed": "300m/300m",
    "restarted": "300m/300m",
    "waiting": "100m/100m Pending=Deferred@2",
    "failing": "200m/100m InProgress=Error@2",
}


def test_resizes_are_as_before_after_a_kill(each_server: Server, tmp_path: Path) -> None:
    with a_node(each_server, tmp_path) as (started, cluster):
        cluster.create(
            a_pod("big", "1"),
            a_pod("changed", "100m"),
            a_pod("restarted", "100m", policy=RESTARTS),
            a_pod("waiting", "100m"),
            a_pod("failing", "100m", "resize=fail"),
        )
        first = {pod["metadata"]["name"]: pod for pod in cluster.wait_ready("big", *EXPECTED)}
        wanted = {"changed": "300m", "restarted": "300m", "waiting": "900m", "failing": "200m"}
        for name, cpu in wanted.items():
            code, answer = resize(each_server, cluster, name, cpu)
            assert code == 200, answer
        before = {name: wait(cluster, name, shown) for name, shown in EXPECTED.items()}
        restarts = {name: container(pod)["restartCount"] for name, pod in before.items()}
        assert restarts == {"changed": 0, "restarted": 1, "waiting": 0, "failing": 0}
        until(lambda: len(resize_events(cluster)) == 7, lambda: resize_events(cluster))
        events = resize_events(cluster)
        started.kill()
        started.start()
        started.wait_ready(cluster)
        # By now it has said something about all of them.
        cluster.create(a_pod("later", "100m"))
        cluster.wait_ready("later")
        for name, shown in EXPECTED.items():
            after = wait(cluster, name, shown)
            assert container(after) == container(before[name])
            assert condition(after, "Ready") == condition(before[name], "Ready")
        assert [event for event in resize_events(cluster) if event not in events] == []
        cluster.delete("big")
        wait(cluster, "waiting", "900m/900m")
        assert (
            container(first["changed"])["containerID"]
            == container(before["changed"])["containerID"]
        )


def test_a_kill_amid_a_resize_loses_nothing(each_server: Server, tmp_path: Path) -> None:
    with a_node(each_server, tmp_path) as (started, cluster):
        cluster.create(
            a_pod("slow", "100m", "resize=10s"), a_pod("stops", "100m", "stop=10s", RESTARTS)
        )
        cluster.wait_ready("slow", "stops")
        for name in ("slow", "stops"):
            assert resize(each_server, cluster, name, "300m")[0] == 200
        for name in ("slow", "stops"):
            wait(cluster, name, "300m/100m InProgress=@2")
        started.kill()
        started.start()
        started.wait_ready(cluster)
        wait(cluster, "slow", "300m/300m")
        stopped = wait(cluster, "stops", "300m/300m")
        assert container(stopped)["restartCount"] == 1
        cluster.wait_for_event("ResizeCompleted", "slow")
        cluster.wait_for_event("ResizeCompleted", "stops")


def test_what_is_larger_than_the_node_is_refused_by_the_server(
    each_server: Server, tmp_path: Path
) -> None:
    with a_node(each_server, tmp_path) as (_, cluster):
        cluster.create(a_pod("large", "100m"))
        cluster.wait_ready("large")
        code, answer = resize(each_server, cluster, "large", "64")
        assert (code, "node didn't have enough allocatable" in answer["message"]) == (403, True)
        assert shows(cluster.wait_ready("large")[0]) == "100m/100m"


def test_a_process_is_resized_while_it_runs(each_server: Server, tmp_path: Path) -> None:
    with ready_node(each_server, tmp_path, "none", NODE) as (node, cluster):
        for name, policy in (("runs", []), ("restarts", RESTARTS)):
            pod = pod_of(name, "/bin/sleep", "1000", node=NODE)
            app = {"name": "app", "resources": {"requests": {"cpu": "100m"}}}
            (only,) = pod["spec"]["containers"]
            pod["spec"]["containers"] = [only | app | {"resizePolicy": policy}]
            cluster.create(pod)
        first = dict(zip(("runs", "restarts"), cluster.wait_ready("runs", "restarts"), strict=True))
        for name in first:
            assert resize(each_server, cluster, name, "300m")[0] == 200
        before = {name: wait(cluster, name, "300m/300m") for name in first}
        assert container(before["runs"])["containerID"] == container(first["runs"])["containerID"]
        assert container(before["restarts"])["restartCount"] == 1
        node.kill()
        node.start()
        node.wait_ready(cluster)
        for name in first:
            assert container(wait(cluster, name, "300m/300m")) == container(before[name])
