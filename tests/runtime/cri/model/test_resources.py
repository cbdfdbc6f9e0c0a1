"""Limits and OOM scores are those that the kubelet computes.

Upstream: TestCalculateLinuxResources, kuberuntime_container_linux_test.go, and
TestGetContainerOOMScoreAdjust, qos/policy_test.go, v1.36.4.
"""

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.cri.model.resources import linux_resources, oom_score_adj
from podstatus.testing.builders import make_pod

CAPACITY = 8_000_000_000
Amounts = dict[str, str]


def container(requests: Amounts, limits: Amounts, name: str = "app") -> Container:
    return Container(
        name=name,
        resources=ResourceRequirements(
            requests={key: Quantity(text) for key, text in requests.items()},
            limits={key: Quantity(text) for key, text in limits.items()},
        ),
    )


def a_pod(*containers: Container, init: tuple[Container, ...] = (), priority: str = "") -> Pod:
    critical = 2_000_001_000 if priority else None
    spec = PodSpec(
        containers=containers,
        init_containers=init,
        priority_class_name=priority,
        priority=critical,
    )
    return structs.replace(make_pod("pod"), spec=spec)


@pytest.mark.parametrize(
    ("requests", "limits", "quota", "shares", "memory"),
    [
        ({"cpu": "1"}, {"cpu": "2", "memory": "128Mi"}, 200_000, 1024, 134_217_728),
        ({"cpu": "1"}, {"cpu": "2"}, 200_000, 1024, 0),
        ({}, {"cpu": "2"}, 200_000, 2048, 0),
        ({"cpu": "0"}, {"cpu": "2"}, 200_000, 2, 0),
        ({}, {}, 0, 2, 0),
        ({"memory": "1Gi"}, {}, 0, 2, 0),
        ({"cpu": "1m"}, {"cpu": "5m"}, 1000, 2, 0),
    ],
)
def test_limits(requests: Amounts, limits: Amounts, quota: int, shares: int, memory: int) -> None:
    app = container(requests, limits)
    resources = linux_resources(a_pod(app), app, memory_capacity=CAPACITY)
    assert resources.cpu_period == 100_000
    assert (resources.cpu_quota, resources.cpu_shares) == (quota, shares)
    assert resources.memory_limit_in_bytes == memory


@pytest.mark.parametrize(
    ("requests", "limits", "score"),
    [
        ({}, {}, 1000),
        ({"cpu": "1"}, {}, 999),
        ({"memory": "4000000000"}, {}, 500),
        ({"memory": "8000"}, {"memory": "4Gi"}, 999),
        ({"memory": "9000000000"}, {}, 3),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, -997),
    ],
)
def test_the_more_is_requested_the_later_it_is_killed(
    requests: Amounts, limits: Amounts, score: int
) -> None:
    app = container(requests, limits)
    assert oom_score_adj(a_pod(app), app, CAPACITY) == score


def test_a_sidecar_lives_as_long_as_the_containers_that_need_it() -> None:
    sidecar = structs.replace(
        container({"memory": "80000000"}, {}, "sidecar"), restart_policy="Always"
    )
    app, larger = container({"memory": "800000000"}, {}), container({"memory": "4Gi"}, {}, "b")
    pod = a_pod(app, larger, init=(sidecar,))
    assert oom_score_adj(pod, sidecar, CAPACITY) == oom_score_adj(pod, app, CAPACITY) == 900


def test_a_plain_init_container_has_its_own_score() -> None:
    init = container({"memory": "80000000"}, {}, "init")
    pod = a_pod(container({"memory": "800000000"}, {}), init=(init,))
    assert oom_score_adj(pod, init, CAPACITY) == 990


def test_a_node_critical_pod_is_killed_last() -> None:
    app = container({"cpu": "1"}, {})
    pod = a_pod(app, priority="system-node-critical")
    assert oom_score_adj(pod, app, CAPACITY) == -997
