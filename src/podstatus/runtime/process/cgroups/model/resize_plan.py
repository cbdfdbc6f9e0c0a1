"""In which order cgroups are told other limits, so that none is below what it holds; pure.

A pod is raised before its containers and lowered after them: with version 1 the kernel refuses a
quota above the one around it, and with both a limit of memory kills who is above it. Memory comes
before the processors.

Upstream: doPodResizeAction and validateMemoryResizeAction, kuberuntime_manager.go v1.36.4.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from podstatus.runtime.process.cgroups.model.interface_files import (
    CgroupSetting,
    CgroupVersion,
    cpu_settings,
    memory_settings,
)
from podstatus.runtime.resource_limits import CgroupLimits

POD = ""
"""The cgroup of the pod, beside those of its containers by their IDs."""


class CgroupResize(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for a cgroup now, and what it is to be told."""

    desired: CgroupLimits
    cpu_quota: int | None = None
    """None: no limit."""
    memory_bytes: int | None = None
    memory_used: int | None = None
    """None: nobody counts."""

    @property
    def lowers_cpu(self) -> bool:
        """Whether less of the processors may be used from now on."""
        return _is_lower(self.desired.cpu_quota, self.cpu_quota)

    @property
    def lowers_memory(self) -> bool:
        """Whether less memory may be used from now on."""
        return _is_lower(self.desired.memory_bytes, self.memory_bytes)


class CgroupWrite(msgspec.Struct, frozen=True, kw_only=True):
    """What to write into which cgroup."""

    container_id: str
    setting: CgroupSetting


def plan_writes(
    version: CgroupVersion, pod: CgroupResize, containers: Mapping[str, CgroupResize]
) -> Sequence[CgroupWrite]:
    """All that is to be written, in this order. A limit that is not wanted any more stays."""
    return (
        *_order_writes(
            pod, containers, partial(_memory_settings, version), pod_last=pod.lowers_memory
        ),
        *_order_writes(pod, containers, partial(_cpu_settings, version), pod_last=pod.lowers_cpu),
    )


def memory_decrease_error(pod: CgroupResize, containers: Mapping[str, CgroupResize]) -> str:
    """Why memory cannot be lowered so far; empty if it can. Containers by their names."""
    called = {"pod": pod} | {f'container "{name}"': held for name, held in containers.items()}
    told = [
        f"attempting to set {whose} memory limit ({held.desired.memory_bytes}) "
        f"below current usage ({held.memory_used})"
        for whose, held in called.items()
        if _is_below_usage(held)
    ]
    listed = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    return f"cannot decrease memory limits: {listed}" if told else ""


def _order_writes(
    pod: CgroupResize,
    containers: Mapping[str, CgroupResize],
    settings: Callable[[CgroupResize], Sequence[CgroupSetting]],
    *,
    pod_last: bool,
) -> Sequence[CgroupWrite]:
    of_pod = [CgroupWrite(container_id=POD, setting=setting) for setting in settings(pod)]
    inside = [
        CgroupWrite(container_id=id, setting=setting)
        for id, held in containers.items()
        for setting in settings(held)
    ]
    return inside + of_pod if pod_last else of_pod + inside


def _cpu_settings(version: CgroupVersion, held: CgroupResize) -> Sequence[CgroupSetting]:
    return cpu_settings(version, held.desired)


def _memory_settings(version: CgroupVersion, held: CgroupResize) -> Sequence[CgroupSetting]:
    settings = memory_settings(version, held.desired)
    # Memory alone is never more than memory and swap together, not even for a moment.
    return settings if held.lowers_memory else tuple(reversed(settings))


def _is_lower(desired: int | None, now: int | None) -> bool:
    return desired is not None and (now is None or desired < now)


def _is_below_usage(held: CgroupResize) -> bool:
    most, used = held.desired.memory_bytes, held.memory_used
    return held.lowers_memory and most is not None and used is not None and used >= most
