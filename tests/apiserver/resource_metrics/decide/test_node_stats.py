"""What is read from the stats summary of a node."""

import json
from typing import Any

import pytest

from podstatus.apiserver.resource_metrics.decide.node_stats import (
    NodeStats,
    NodeStatsError,
    UsagePoint,
    parse_node_stats,
)
from podstatus.kube.scalars.time import Time

AT = "2024-01-31T09:30:00Z"
CPU = {"time": AT, "usageNanoCores": 250, "usageCoreNanoSeconds": 10**12}
MEMORY = {"time": AT, "workingSetBytes": 4096, "usageBytes": 8192}
KNOWN = {"cpu": CPU, "memory": MEMORY}
POINT = UsagePoint(at=Time.parse(AT), cpu_nanocores=250, memory_bytes=4096)


def parsed(*containers: dict[str, Any], node: dict[str, Any] | None = None) -> NodeStats:
    pod = {
        "podRef": {"name": "web", "namespace": "ns", "uid": "u"},
        "containers": list(containers),
        "cpu": CPU,
    }
    summary = {"node": {"nodeName": "n", **(node or {})}, "pods": [pod]}
    return parse_node_stats(json.dumps(summary).encode())


def test_the_usage_of_node_and_containers_is_read() -> None:
    stats = parsed({"name": "a", **KNOWN}, {"name": "b", **KNOWN}, node=KNOWN)
    assert stats.node == POINT
    assert stats.pods["ns", "web"].uid == "u"
    assert stats.pods["ns", "web"].containers == {"a": POINT, "b": POINT}


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"cpu": CPU},
        {"memory": MEMORY},
        {"cpu": {"time": AT, "usageCoreNanoSeconds": 5}, "memory": MEMORY},
        {"cpu": CPU, "memory": {"time": AT, "usageBytes": 5}},
        {"cpu": None, "memory": None},
    ],
    ids=json.dumps,
)
def test_what_was_not_measured_is_a_gap(part: dict[str, Any]) -> None:
    assert parsed(node=part).node is None
    assert parsed({"name": "a", **KNOWN}, {"name": "b", **part}).pods == {}


def test_an_idle_container_uses_nothing_and_is_known() -> None:
    idle = {"cpu": CPU | {"usageNanoCores": 0}, "memory": MEMORY}
    assert parsed({"name": "a", **idle}).pods["ns", "web"].containers["a"].cpu_nanocores == 0


def test_a_container_without_memory_has_just_ended() -> None:
    gone = {"cpu": CPU, "memory": MEMORY | {"workingSetBytes": 0}}
    assert parsed({"name": "a", **KNOWN}, {"name": "b", **gone}).pods == {}


def test_a_pod_without_running_containers_is_not_listed() -> None:
    assert parsed().pods == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{}",
        b"[]",
        json.dumps({"node": KNOWN | {"cpu": CPU | {"time": "soon"}}}).encode(),
        b'{"node": {"cpu": {"time": "2024-01-31T09:30:00Z", "usageNanoCores": -1}}}',
        b'{"node": {"memory": {"workingSetBytes": 9223372036854775808}}}',
        b'{"node": {}, "pods": [{"podRef": {"name": "a"}}]}',
        b"[" * 100_000,
    ],
    ids=lambda body: body[:30],
)
def test_another_body_is_an_error(body: bytes) -> None:
    with pytest.raises(NodeStatsError, match="not a stats summary"):
        parse_node_stats(body)
