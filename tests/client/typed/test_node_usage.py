"""The usage of nodes as metrics.k8s.io and `/stats/summary` report it."""

import asyncio
import json
from typing import Any

import pytest

from podstatus.client.api_client import ApiClient
from podstatus.client.typed.node_usage import HttpNodeUsage
from podstatus.kube.api_errors import GoneError, UnavailableError
from tests.client.raw_server import answer, raw_server
from tests.support.plain_access import PlainAccess

METRICS = {
    "kind": "NodeMetricsList",
    "items": [
        {
            "metadata": {"name": "a"},
            "timestamp": "2026-11-19T19:00:00Z",
            "window": "10s",
            "usage": {"cpu": "1500m", "memory": "2Gi", "gpu": "?"},
        },
        {"metadata": {"name": "b"}, "usage": {"cpu": "many"}},
    ],
}
SUMMARY = {
    "node": {
        "nodeName": "a",
        "cpu": {"time": "2026-11-19T19:00:00Z", "usageNanoCores": 250_000_000},
        "memory": {"workingSetBytes": 1024, "availableBytes": 4096},
        "fs": {
            "usedBytes": 600,
            "availableBytes": 300,
            "capacityBytes": 1000,
            "inodes": 50,
            "inodesFree": 20,
        },
        "rlimit": {"maxpid": 4096, "curproc": 128},
    },
    "pods": [{"podRef": {"name": "web"}}],
}


class Asked:
    """A server with one response, and the path of the request for it."""

    def __init__(self, body: object, code: str = "200 OK") -> None:
        self._response = answer(json.dumps(body).encode(), code, "Content-Type: application/json")
        self.path = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        self.path = request.split()[1].decode()
        writer.write(self._response)

    async def ask(self, method: str, *given: str) -> Any:
        async with (
            raw_server(self.serve, greets=True) as url,
            ApiClient(PlainAccess(url)) as client,
        ):
            return await getattr(HttpNodeUsage(client), method)(*given)


async def test_metrics_of_all_nodes() -> None:
    asked = Asked(METRICS)
    reports = await asked.ask("metrics")
    assert asked.path == "/apis/metrics.k8s.io/v1beta1/nodes"
    assert reports["a"].used == {"cpu": 1.5, "memory": 2.0**31}
    assert reports["a"].timestamp == "2026-11-19T19:00:00Z"
    assert reports["b"].used == {}


async def test_the_summary_of_a_node_has_its_disk_and_its_processes_too() -> None:
    asked = Asked(SUMMARY)
    report = await asked.ask("summary", "a")
    assert asked.path == "/api/v1/nodes/a/proxy/stats/summary"
    used = {"cpu": 0.25, "memory": 1024.0, "disk": 600.0, "inodes": 30.0, "pids": 128.0}
    assert report.used == used
    assert report.capacity == {"disk": 900.0, "inodes": 50.0, "pids": 4096.0}


async def test_what_a_node_did_not_measure_is_missing() -> None:
    report = await Asked({"node": {"nodeName": "a", "memory": {}}}).ask("summary", "a")
    assert (report.used, report.capacity) == ({}, {})


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("metrics", []),
        ("metrics", {"items": [{"usage": {}}]}),
        ("summary", {"node": {"memory": {"workingSetBytes": -1}}}),
        ("summary", {}),
    ],
)
async def test_another_response_is_an_error(method: str, body: object) -> None:
    given = ("a",) if method == "summary" else ()
    with pytest.raises(UnavailableError, match="not a "):
        await Asked(body).ask(method, *given)


async def test_a_server_without_metrics() -> None:
    status = {"kind": "Status", "message": "the server could not find the requested resource"}
    with pytest.raises(GoneError):
        await Asked(status, "404 Not Found").ask("metrics")
