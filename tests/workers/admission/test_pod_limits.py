"""Size limits of admitted pods."""

from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.sources.decide.pod_changes import PodUpdated
from podstatus.workers.admission.pod_limits import (
    MAX_CONTAINERS,
    MAX_LIST_ENTRIES,
    MAX_PER_CONTAINER,
    MAX_PER_POD,
    MAX_VOLUMES,
    find_limit_violation,
)
from tests.support.node_in_memory import NodeInMemory, a_pod

ONE = [{"name": "a"}]
VARIABLE = {"name": "A"}


def named(count: int, prefix: str = "c") -> list[dict[str, Any]]:
    return [{"name": f"{prefix}{number}"} for number in range(count)]


def of(metadata: dict[str, Any] | None = None, **spec: Any) -> Pod:
    return from_document({"metadata": metadata or {}, "spec": {"containers": ONE, **spec}}, Pod)


@pytest.mark.parametrize(
    ("pod", "reason", "message"),
    [
        (of(initContainers=named(MAX_CONTAINERS - 1)), None, None),
        (
            of(initContainers=named(MAX_CONTAINERS)),
            "TooManyContainers",
            "Pod has 1001 containers, this node takes at most 1000",
        ),
        (
            of(containers=named(600), ephemeralContainers=named(401, "e")),
            "TooManyContainers",
            "Pod has 1001 containers, this node takes at most 1000",
        ),
        (of(volumes=named(MAX_VOLUMES)), None, None),
        (
            of(volumes=named(MAX_VOLUMES + 1)),
            "TooManyVolumes",
            "Pod has 1001 volumes, this node takes at most 1000",
        ),
        (
            of(containers=[{"name": "a", "env": [VARIABLE] * (MAX_PER_CONTAINER + 1)}]),
            "PodTooLarge",
            (
                "Pod has 10001 variables, mounts, ports, arguments and resources in one container, "
                "this node takes at most 10000"
            ),
        ),
        (
            of(
                containers=[
                    {"name": f"c{number}", "args": ["x"] * 5001}
                    for number in range(MAX_PER_POD // 5000)
                ]
            ),
            "PodTooLarge",
            (
                "Pod has 100020 variables, mounts, ports, arguments and resources, "
                "this node takes at most 100000"
            ),
        ),
        (
            of(tolerations=[{"operator": "Exists"}] * (MAX_LIST_ENTRIES + 1)),
            "PodTooLarge",
            "Pod has 10001 tolerations, this node takes at most 10000",
        ),
        (
            of({"labels": {str(number): "" for number in range(MAX_LIST_ENTRIES + 1)}}),
            "PodTooLarge",
            "Pod has 10001 labels, this node takes at most 10000",
        ),
    ],
)
def test_what_is_too_much_is_named(pod: Pod, reason: str | None, message: str | None) -> None:
    excess = find_limit_violation(pod)
    assert (excess and excess.reason, excess and excess.message) == (reason, message)


def with_containers(pod: Pod, count: int) -> Pod:
    containers = tuple(Container(name=f"c{number}", image="a:1") for number in range(count))
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=containers))


async def test_a_pod_of_too_many_containers_is_rejected(node: NodeInMemory) -> None:
    node.create(with_containers(a_pod("p"), 60_000))
    await node.passes(5)
    assert node.looks("p") == "Failed/TooManyContainers"
    pod = node.pod("p")
    assert pod is not None
    why = "Pod has 60000 containers, this node takes at most 1000"
    assert pod.status.message == f"Pod was rejected: {why}"
    assert not pod.status.container_statuses
    assert node.events("p") == [f"TooManyContainers: {why}"]
    assert node.calls() == []


async def test_a_pod_that_outgrows_the_node_goes_on_as_it_was(node: NodeInMemory) -> None:
    node.create(a_pod("p"))
    await node.passes(1)
    shown = node.pod("p")
    assert shown is not None
    calls = node.calls("start")
    node.agent.dispatcher.handle(PodUpdated(with_containers(shown, 60_000)))
    await node.passes(5)
    assert node.looks("p") == "Running a:running+"
    assert node.calls("start") == calls
