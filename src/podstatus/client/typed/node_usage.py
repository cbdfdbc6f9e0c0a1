"""The observer's port `NodeUsageSource` over HTTP: the usage of nodes, from one of two APIs.

metrics.k8s.io has CPU and memory of all nodes in one response. A node's `/stats/summary`, by the
proxy of the API server, also has its disk, inodes and processes.

Upstream: NodeMetrics, metrics v0.36.4, pkg/apis/metrics/v1beta1/types.go; Summary, kubelet v0.36.4,
pkg/apis/stats/v1alpha1/types.go.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from podstatus.base.msgspec_json import decode_json
from podstatus.client.api_client import ApiClient
from podstatus.client.rest.resources import NODES, ApiResource
from podstatus.kube.api_errors import UnavailableError
from podstatus.kube.objects.usage import NodeUsageReport
from podstatus.kube.scalars.quantity import Quantity, QuantityError

_NODE_METRICS = ApiResource("nodes", "metrics.k8s.io", "v1beta1", namespaced=False)
_NANO = 1_000_000_000
_Amount = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class _Metadata(msgspec.Struct):
    name: str


class _NodeMetrics(msgspec.Struct):
    metadata: _Metadata
    timestamp: str = ""
    usage: dict[str, str] = {}


class _NodeMetricsList(msgspec.Struct):
    items: list[_NodeMetrics] | None = None


class _Cpu(msgspec.Struct, rename="camel"):
    time: str = ""
    usage_nano_cores: _Amount | None = None


class _Memory(msgspec.Struct, rename="camel"):
    working_set_bytes: _Amount | None = None


class _Filesystem(msgspec.Struct, rename="camel"):
    used_bytes: _Amount | None = None
    available_bytes: _Amount | None = None
    inodes: _Amount | None = None
    inodes_free: _Amount | None = None


class _Limits(msgspec.Struct):
    maxpid: _Amount | None = None
    curproc: _Amount | None = None


class _NodeStats(msgspec.Struct):
    cpu: _Cpu = msgspec.field(default_factory=_Cpu)
    memory: _Memory = msgspec.field(default_factory=_Memory)
    fs: _Filesystem = msgspec.field(default_factory=_Filesystem)
    rlimit: _Limits = msgspec.field(default_factory=_Limits)


class _Summary(msgspec.Struct):
    node: _NodeStats


class HttpNodeUsage:
    """Reads the usage of nodes; values that were not measured are missing. Raises ApiError."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def metrics(self) -> Mapping[str, NodeUsageReport]:
        """Return the reports of metrics.k8s.io by node; GoneError if it is not served."""
        body = await self._client.list(_NODE_METRICS)
        try:
            items = decode_json(body, _NodeMetricsList).items or ()
        except (msgspec.DecodeError, UnicodeError) as error:
            raise UnavailableError(f"not a list of node metrics: {error}") from error
        return {it.metadata.name: _metrics_report(it) for it in items}

    async def summary(self, node: str) -> NodeUsageReport:
        """Return the report in the stats summary of a node."""
        body = await self._client.get(NODES, node, subresource="proxy/stats/summary")
        try:
            stats = decode_json(body, _Summary).node
        except (msgspec.DecodeError, UnicodeError) as error:
            raise UnavailableError(f"not a stats summary of node {node}: {error}") from error
        return _summary_report(stats)


def _metrics_report(metrics: _NodeMetrics) -> NodeUsageReport:
    used = {}
    for resource in ("cpu", "memory"):
        try:
            used[resource] = Quantity(metrics.usage[resource]).nanos / _NANO
        except (KeyError, QuantityError, OverflowError):
            continue
    return NodeUsageReport(timestamp=metrics.timestamp, used=used)


def _summary_report(stats: _NodeStats) -> NodeUsageReport:
    cpu, disk, limits = stats.cpu.usage_nano_cores, stats.fs, stats.rlimit
    used: dict[str, float | None] = {
        "cpu": None if cpu is None else cpu / _NANO,
        "memory": stats.memory.working_set_bytes,
        "disk": disk.used_bytes,
        "pids": limits.curproc,
    }
    capacity: dict[str, float | None] = {"pids": limits.maxpid}
    if disk.used_bytes is not None and disk.available_bytes is not None:
        # As df does: space reserved for root counts neither as used nor as available.
        capacity["disk"] = disk.used_bytes + disk.available_bytes
    if disk.inodes and disk.inodes_free is not None:
        used["inodes"] = max(0, disk.inodes - disk.inodes_free)
        capacity["inodes"] = disk.inodes
    return NodeUsageReport(timestamp=stats.cpu.time, used=_known(used), capacity=_known(capacity))


def _known(amounts: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(amount) for name, amount in amounts.items() if amount is not None}
