"""In-place resize of running containers through their cgroups."""

from collections.abc import Collection, Mapping
from contextlib import suppress

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.runtime.cpu_and_memory_limits import CgroupLimits, container_limits, pod_limits
from podstatus.runtime.port import CannotResizeError
from podstatus.runtime.process.cgroups.model.interface_files import (
    CgroupSetting,
    CgroupVersion,
    read_cpu_quota,
    read_memory_limit,
    read_memory_usage,
)
from podstatus.runtime.process.cgroups.model.resize_plan import (
    CgroupResize,
    CgroupWrite,
    memory_decrease_error,
    plan_writes,
)
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups

_NO_QUOTA = CgroupSetting(controller="cpu", file="cpu.cfs_quota_us", text="-1")


def resize_cgroups(
    cgroups: Cgroups, pod: Pod, containers: Mapping[str, Container], ended: Collection[str]
) -> None:
    """Apply the resources of the pod's spec to the pod and these containers, given by ID.

    `ended` are the IDs of ended attempts. Cgroups that do not exist or cannot be limited are
    skipped. May block for a while if memory is lowered: call it in a thread. Raises
    CannotResizeError.
    """
    pod_resize = _cgroup_resize(cgroups, pod_limits(pod), pod.uid)
    if pod_resize is None:
        return
    resizes = {
        id: resize
        for id, container in containers.items()
        if (resize := _cgroup_resize(cgroups, container_limits(container.resources), pod.uid, id))
    }
    names = {containers[id].name: resize for id, resize in resizes.items()}
    if error := memory_decrease_error(pod_resize, names):
        raise CannotResizeError(error)
    _lift_ended_quotas(cgroups, pod.uid, ended)
    for change in plan_writes(cgroups.version, pod_resize, resizes):
        if change.setting.controller not in cgroups.missing:
            _write(cgroups, pod.uid, change)


def _cgroup_resize(
    cgroups: Cgroups, desired: CgroupLimits, uid: PodUID, *id: str
) -> CgroupResize | None:
    read = cgroups.reader(uid, *id)
    if read is None:
        return None
    return CgroupResize(
        desired=desired,
        cpu_quota=read_cpu_quota(cgroups.version, read),
        memory_bytes=read_memory_limit(cgroups.version, read),
        memory_used=read_memory_usage(cgroups.version, read),
    )


def _lift_ended_quotas(cgroups: Cgroups, uid: PodUID, ended: Collection[str]) -> None:
    """Version 1: remove the quotas of ended attempts, which could exceed the pod's new quota."""
    if cgroups.version is CgroupVersion.V1:
        for id in ended:
            with suppress(OSError):  # usually gone
                cgroups.write(uid, id, setting=_NO_QUOTA)


def _write(cgroups: Cgroups, uid: PodUID, change: CgroupWrite) -> None:
    setting, id = change.setting, (change.container_id,) if change.container_id else ()
    try:
        cgroups.write(uid, *id, setting=setting)
    except FileNotFoundError:
        pass  # it has just ended, or this kernel lacks this limit
    except OSError as error:
        # Only the swap limit may fail: it was not requested.
        if setting.required or setting.controller == "cpu":
            where = f"container {change.container_id}" if change.container_id else "the pod"
            message = f"{setting.file} of {where} cannot be set to {setting.text}: {error.strerror}"
            raise CannotResizeError(message) from error
