"""NodeMetrics and PodMetrics have the form of metrics-server's."""

import pytest

from podstatus.apiserver.resource_metrics.decide.metrics_objects import node_metrics, pod_metrics
from podstatus.apiserver.resource_metrics.decide.node_stats import MeasuredPod, UsagePoint
from podstatus.kube.scalars.time import Time

NOW = Time.parse("2024-01-31T09:30:07Z")
EARLIER, LATER = Time.parse("2024-01-31T09:30:00Z"), Time.parse("2024-01-31T09:30:01Z")


def point(at: Time = EARLIER, cpu: int = 1, memory: int = 1) -> UsagePoint:
    return UsagePoint(at=at, cpu_nanocores=cpu, memory_bytes=memory)


def test_a_node() -> None:
    usage = point(cpu=1_984_735_112, memory=3_759_612 * 1024)
    assert node_metrics("n", {"zone": "a"}, usage, NOW) == {
        "metadata": {
            "name": "n",
            "creationTimestamp": "2024-01-31T09:30:07Z",
            "labels": {"zone": "a"},
        },
        "timestamp": "2024-01-31T09:30:00Z",
        "window": "10s",
        "usage": {"cpu": "1984735112n", "memory": "3759612Ki"},
    }


def test_a_pod_has_the_time_of_its_earliest_container() -> None:
    usage = MeasuredPod(uid="u", containers={"b": point(LATER), "a": point(EARLIER)})
    made = pod_metrics("ns", "web", {}, usage, NOW)
    assert made["metadata"] == {
        "name": "web",
        "namespace": "ns",
        "creationTimestamp": "2024-01-31T09:30:07Z",
    }
    assert made["timestamp"] == "2024-01-31T09:30:00Z"
    assert [container["name"] for container in made["containers"]] == ["b", "a"]


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        (0, 0, {"cpu": "0", "memory": "0"}),
        (123_456, 5000, {"cpu": "123456n", "memory": "5000"}),
        (1, 1000, {"cpu": "1n", "memory": "1k"}),
        (1500, 4096, {"cpu": "1500n", "memory": "4Ki"}),
        (15_000, 1 << 20, {"cpu": "15u", "memory": "1Mi"}),
        (250_000_000, 3 << 30, {"cpu": "250m", "memory": "3Gi"}),
        (2_000_000_000, 2**63 - 1, {"cpu": "2", "memory": "9223372036854775807"}),
    ],
)
def test_quantities_are_printed_as_go_does(cpu: int, memory: int, expected: dict[str, str]) -> None:
    assert node_metrics("n", {}, point(cpu=cpu, memory=memory), NOW)["usage"] == expected
