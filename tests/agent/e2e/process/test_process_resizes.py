"""Real processes are resized while they run, and a killed agent finds it done."""

import os
from collections.abc import Callable, Iterator

import pytest

from podstatus.agent.compose.runtime import cgroups_name
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.runtime.process.cgroups.discovery import CgroupsUnavailableError, find_cgroups
from tests.support.processes.agent_process import Cluster, Document, container
from tests.support.processes.process_node import (
    PYTHON,
    ProcessNode,
    command_pod,
    need_nobody,
    process_node,
    skip,
)

pytestmark = pytest.mark.slow

SMALL = {
    "requests": {"cpu": "100m", "memory": "64Mi"},
    "limits": {"cpu": "200m", "memory": "128Mi"},
}
LARGE = {
    "requests": {"cpu": "150m", "memory": "96Mi"},
    "limits": {"cpu": "300m", "memory": "192Mi"},
}
EATS = "import time; eaten = b'x' * (64 << 20); print('full', flush=True); time.sleep(600)"


@pytest.fixture
def limited() -> Iterator[ProcessNode]:
    """An agent whose limits hold."""
    with process_node(isolation="none") as node:
        try:
            found = find_cgroups(cgroups_name(node.node, node.root_dir))
        except CgroupsUnavailableError as error:
            skip(str(error))
        if lacking := {"cpu", "memory"}.intersection(found.missing):
            skip(f"no cgroups for {sorted(lacking)}")
        yield node


def in_force(node: ProcessNode, pod: Document) -> ResourceFacts | None:
    """What the kernel says."""
    cgroups = find_cgroups(cgroups_name(node.node, node.root_dir))
    id = container(pod)["containerID"].removeprefix("process://")
    return cgroups.actuated_resources(PodUID(pod["metadata"]["uid"]), id)


def resize(cluster: Cluster, name: str, resources: Document) -> None:
    body = {"spec": {"containers": [{"name": "app", "resources": resources}]}}
    path = f"/api/v1/namespaces/default/pods/{name}/resize"
    kind = "application/strategic-merge-patch+json"
    code, answer = cluster.access.request("PATCH", path, body, content_type=kind)
    assert code == 200, answer


def resizing(pod: Document) -> list[Document]:
    """The conditions that tell of a resize."""
    return [c for c in pod["status"]["conditions"] if c["type"].startswith("PodResize")]


def has(resources: Document, generation: int) -> Callable[[Document], bool]:
    """Whether a pod has this, and nothing is under way."""

    def look(pod: Document) -> bool:
        status = pod["status"]
        return (
            container(pod).get("resources") == resources
            and container(pod).get("allocatedResources") == resources["requests"]
            and status.get("observedGeneration") == generation
            and not resizing(pod)
        )

    return look


def stable_status(pod: Document) -> Document:
    """The status without the timestamps that a new agent may change."""
    return {key: value for key, value in pod["status"].items() if key != "conditions"}


def resized(cluster: Cluster) -> Document:
    """A pod `web` that was started small, and is large now."""
    cluster.create(command_pod("web", "sleep", "600", container={"resources": SMALL}))
    cluster.wait_ready("web")
    cluster.wait_for("web", has(SMALL, 1))
    resize(cluster, "web", LARGE)
    return cluster.wait_for("web", has(LARGE, 2))


def see_it_after_a_kill(node: ProcessNode, before: Document) -> None:
    node.kill()
    cluster = node.start_ready()
    cluster.create(command_pod("later", "sleep", "600"))
    cluster.wait_ready("later")
    after = cluster.pod("web")
    assert after is not None
    assert (stable_status(after), resizing(after)) == (stable_status(before), [])


def test_a_running_process_is_resized_and_the_next_agent_knows_it(limited: ProcessNode) -> None:
    cluster = limited.start_ready()
    before = resized(cluster)
    cluster.wait_for_event("ResizeCompleted", "web")
    facts = in_force(limited, before)
    assert facts is not None
    assert (facts.cpu_limit, facts.memory_limit) == ("300m", "192Mi")
    limited.kill()
    cluster = limited.start_ready()
    resize(cluster, "web", SMALL)
    after = cluster.wait_for("web", has(SMALL, 3))
    assert container(after)["containerID"] == container(before)["containerID"]
    assert container(after)["restartCount"] == 0
    facts = in_force(limited, after)
    assert facts is not None
    assert (facts.cpu_limit, facts.memory_limit) == ("200m", "128Mi")


def test_a_killed_agent_shows_the_same_when_it_is_back(limited: ProcessNode) -> None:
    cluster = limited.start_ready()
    before = resized(cluster)
    see_it_after_a_kill(limited, before)


def test_memory_that_is_used_is_not_taken_away(limited: ProcessNode) -> None:
    cluster = limited.start_ready()
    cluster.create(command_pod("web", PYTHON, "-c", EATS, container={"resources": SMALL}))
    limited.wait_for_log("web", "full")
    cluster.wait_for("web", has(SMALL, 1))
    resize(cluster, "web", {"limits": {"memory": "64Mi"}})
    pod = cluster.wait_for("web", lambda pod: any("reason" in c for c in resizing(pod)))
    (condition,) = resizing(pod)
    assert (condition["type"], condition["reason"]) == ("PodResizeInProgress", "Error")
    assert "memory limit (67108864) below current usage" in condition["message"]
    assert container(pod)["resources"]["limits"]["memory"] == "128Mi"
    resize(cluster, "web", {"limits": {"memory": "192Mi"}})
    wanted = {**SMALL, "limits": {"cpu": "200m", "memory": "192Mi"}}
    assert container(cluster.wait_for("web", has(wanted, 3)))["restartCount"] == 0


def test_without_cgroups_a_resize_is_remembered_and_an_event_says_what_it_is_worth() -> None:
    user = need_nobody() if os.geteuid() == 0 else None
    with process_node(isolation="none", user=user) as node:
        cluster = node.start_ready()
        before = resized(cluster)
        cluster.wait_for_event("LimitsNotEnforced", "web")
        see_it_after_a_kill(node, before)
