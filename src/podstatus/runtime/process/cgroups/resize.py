"""Give running containers other limits, by telling their cgroups."""

from collections.abc import Collection, Mapping
from contextlib import suppress

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
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
from podstatus.runtime.process.cgroups.tree import Cgroups
from podstatus.runtime.resource_limits import CgroupLimits, container_limits, pod_limits

_NO_QUOTA = CgroupSetting(controller="cpu", file="cpu.cfs_quota_us", text="-1")


def resize_cgroups(
    cgroups: Cgroups, pod: Pod, containers: Mapping[str, Container], ended: Collection[str]
) -> None:
    """Have what the pod asks for now hold for it, and for these containers by their IDs.

    `ended` are the IDs of attempts that run no more. Cgroups that are not there, or that nobody
    can limit, are passed over. This may take a while if memory is lowered: call it in a thread.
    Raises CannotResizeError.
    """
    whole = _cgroup_resize(cgroups, pod_limits(pod), pod.uid)
    if whole is None:
        return
    found = {
        id: held
        for id, container in containers.items()
        if (held := _cgroup_resize(cgroups, container_limits(container.resources), pod.uid, id))
    }
    names = {containers[id].name: held for id, held in found.items()}
    if why := memory_decrease_error(whole, names):
        raise CannotResizeError(why)
    _lift_ended_quotas(cgroups, pod.uid, ended)
    for change in plan_writes(cgroups.version, whole, found):
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
    """With version 1, what is kept of one that ran must not have more than the pod is to have."""
    if cgroups.version is CgroupVersion.V1:
        for id in ended:
            with suppress(OSError):  # gone, most often
                cgroups.write(uid, id, setting=_NO_QUOTA)


def _write(cgroups: Cgroups, uid: PodUID, change: CgroupWrite) -> None:
    setting, id = change.setting, (change.container_id,) if change.container_id else ()
    try:
        cgroups.write(uid, *id, setting=setting)
    except FileNotFoundError:
        pass  # it has just ended, or this kernel has no such limit
    except OSError as error:
        # Only that of swap may fail: it is nothing that was asked for.
        if setting.required or setting.controller == "cpu":
            where = f"container {change.container_id}" if change.container_id else "the pod"
            why = f"{setting.file} of {where} cannot be {setting.text}: {error.strerror}"
            raise CannotResizeError(why) from error
