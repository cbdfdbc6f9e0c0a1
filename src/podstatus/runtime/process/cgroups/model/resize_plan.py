"""The order of writes of a resize, so that no cgroup is limited below its children. Pure.

A pod is raised before its containers and lowered after them: version 1 rejects a quota above that
of the parent, and in both versions a memory limit below the usage kills processes. Memory comes
before CPU.

Upstream: doPodResizeAction and validateMemoryResizeAction, kuberuntime_manager.go v1.36.4.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from podstatus.runtime.cpu_and_memory_limits import CgroupLimits
from podstatus.runtime.process.cgroups.model.interface_files import (
    CgroupSetting,
    CgroupVersion,
    cpu_settings,
    memory_settings,
)

POD = ""
"""Key of the pod's cgroup, beside those of its containers by ID."""


class CgroupResize(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a cgroup: those in force, and the desired ones."""

    desired: CgroupLimits
    cpu_quota: int | None = None
    """None: unlimited."""
    memory_bytes: int | None = None
    memory_used: int | None = None
    """None: not counted."""

    @property
    def lowers_cpu(self) -> bool:
        """Whether the CPU limit decreases."""
        return _is_lower(self.desired.cpu_quota, self.cpu_quota)

    @property
    def lowers_memory(self) -> bool:
        """Whether the memory limit decreases."""
        return _is_lower(self.desired.memory_bytes, self.memory_bytes)


class CgroupWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A setting to write to a cgroup."""

    container_id: str
    setting: CgroupSetting


def plan_writes(
    version: CgroupVersion, pod: CgroupResize, containers: Mapping[str, CgroupResize]
) -> Sequence[CgroupWrite]:
    """Return all writes in order. A limit that is no longer requested stays in force."""
    return (
        *_order_writes(
            pod, containers, partial(_memory_settings, version), pod_last=pod.lowers_memory
        ),
        *_order_writes(pod, containers, partial(_cpu_settings, version), pod_last=pod.lowers_cpu),
    )


def memory_decrease_error(pod: CgroupResize, containers: Mapping[str, CgroupResize]) -> str:
    """Return why memory cannot be lowered that far; empty if it can. Containers are by name."""
    resizes = {"pod": pod} | {f'container "{name}"': resize for name, resize in containers.items()}
    errors = [
        f"attempting to set {name} memory limit ({resize.desired.memory_bytes}) "
        f"below current usage ({resize.memory_used})"
        for name, resize in resizes.items()
        if _is_below_usage(resize)
    ]
    summary = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return f"cannot decrease memory limits: {summary}" if errors else ""


def _order_writes(
    pod: CgroupResize,
    containers: Mapping[str, CgroupResize],
    settings: Callable[[CgroupResize], Sequence[CgroupSetting]],
    *,
    pod_last: bool,
) -> Sequence[CgroupWrite]:
    pod_writes = [CgroupWrite(container_id=POD, setting=setting) for setting in settings(pod)]
    container_writes = [
        CgroupWrite(container_id=id, setting=setting)
        for id, resize in containers.items()
        for setting in settings(resize)
    ]
    return container_writes + pod_writes if pod_last else pod_writes + container_writes


def _cpu_settings(version: CgroupVersion, resize: CgroupResize) -> Sequence[CgroupSetting]:
    return cpu_settings(version, resize.desired)


def _memory_settings(version: CgroupVersion, resize: CgroupResize) -> Sequence[CgroupSetting]:
    settings = memory_settings(version, resize.desired)
    # The limit of memory may at no time exceed that of memory and swap.
    return settings if resize.lowers_memory else tuple(reversed(settings))


def _is_lower(desired: int | None, now: int | None) -> bool:
    return desired is not None and (now is None or desired < now)


def _is_below_usage(resize: CgroupResize) -> bool:
    limit, used = resize.desired.memory_bytes, resize.memory_used
    return resize.lowers_memory and limit is not None and used is not None and used >= limit
