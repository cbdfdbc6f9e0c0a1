"""The CPU and memory usage in a kubelet's `/stats/summary`.

A value that a node did not measure is unknown, not zero. A pod is known if all of its containers
are: the sum of some of them would look like the usage of the pod.

Upstream: Summary, kubelet/pkg/apis/stats/v1alpha1/types.go v0.36.4; checkContainerMetrics,
pkg/scraper/client/resource/decode.go of metrics-server.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.scalars.time import Time, TimeError


class NodeStatsError(ValueError):
    """The response is not a stats summary."""


class UsagePoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """CPU and memory usage of a node or container."""

    at: Time
    """When the CPU usage was measured."""
    cpu_nanocores: int
    memory_bytes: int
    """The working set."""


class MeasuredPod(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of the running containers of a pod."""

    uid: str
    containers: Mapping[str, UsagePoint]


class NodeStats(msgspec.Struct, frozen=True, kw_only=True):
    """The usage that one node reported."""

    node: UsagePoint | None = None
    """None if it was not measured."""
    pods: Mapping[tuple[str, str], MeasuredPod] = {}
    """By namespace and name; without those that were not measured completely."""


_Amount = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class _Cpu(msgspec.Struct, rename="camel"):
    time: str
    usage_nano_cores: _Amount | None = None


class _Memory(msgspec.Struct, rename="camel"):
    working_set_bytes: _Amount | None = None


class _Stats(msgspec.Struct):
    name: str = ""
    cpu: _Cpu | None = None
    memory: _Memory | None = None


class _PodReference(msgspec.Struct):
    name: str
    namespace: str
    uid: str


class _Pod(msgspec.Struct, rename="camel"):
    pod_ref: _PodReference
    containers: list[_Stats] | None = None


class _Summary(msgspec.Struct):
    node: _Stats
    pods: list[_Pod] | None = None


def parse_node_stats(body: bytes) -> NodeStats:
    """Return the usage in a stats summary. Raises NodeStatsError."""
    try:
        summary = decode_json(body, _Summary)
        pods = {(it.pod_ref.namespace, it.pod_ref.name): _pod(it) for it in summary.pods or ()}
        return NodeStats(
            node=_point(summary.node),
            pods={key: pod for key, pod in pods.items() if pod is not None},
        )
    except (msgspec.DecodeError, UnicodeError, RecursionError, TimeError) as error:
        raise NodeStatsError(f"not a stats summary: {error}") from error


def _pod(pod: _Pod) -> MeasuredPod | None:
    points = {stats.name: _point(stats) for stats in pod.containers or ()}
    known = {name: point for name, point in points.items() if point is not None}
    # A container without memory has no process: it ended between two readings.
    if not points or len(known) < len(points) or not _all_have_memory(known.values()):
        return None
    return MeasuredPod(uid=pod.pod_ref.uid, containers=known)


def _all_have_memory(points: Iterable[UsagePoint]) -> bool:
    return all(point.memory_bytes for point in points)


def _point(stats: _Stats) -> UsagePoint | None:
    cpu, memory = stats.cpu, stats.memory
    if cpu is None or cpu.usage_nano_cores is None:
        return None
    if memory is None or memory.working_set_bytes is None:
        return None
    return UsagePoint(
        at=Time.parse(cpu.time),
        cpu_nanocores=cpu.usage_nano_cores,
        memory_bytes=memory.working_set_bytes,
    )
