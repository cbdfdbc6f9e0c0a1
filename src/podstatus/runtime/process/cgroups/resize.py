"""Give running containers other limits, by telling their cgroups."""

from collections.abc import Collection, Mapping
from contextlib import suppress

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.runtime.port import CannotResizeError
from podstatus.runtime.process.cgroups.model.interface_files import (
    Setting,
    Version,
    memory_from,
    memory_used,
    quota_from,
)
from podstatus.runtime.process.cgroups.model.resize_plan import Change, Held, changes, too_low
from podstatus.runtime.process.cgroups.tree import Cgroups
from podstatus.runtime.resource_limits import Limits, container_limits, pod_limits

_NO_QUOTA = Setting(controller="cpu", file="cpu.cfs_quota_us", text="-1")


def resize_cgroups(
    cgroups: Cgroups, pod: Pod, containers: Mapping[str, Container], ended: Collection[str]
) -> None:
    """Have what the pod asks for now hold for it, and for these containers by their IDs.

    `ended` are the IDs of attempts that run no more. Cgroups that are not there, or that nobody
    can limit, are passed over. This may take a while if memory is lowered: call it in a thread.
    Raises CannotResizeError.
    """
    whole = _held(cgroups, pod_limits(pod), pod.uid)
    if whole is None:
        return
    found = {
        id: held
        for id, container in containers.items()
        if (held := _held(cgroups, container_limits(container.resources), pod.uid, id))
    }
    names = {containers[id].name: held for id, held in found.items()}
    if why := too_low(whole, names):
        raise CannotResizeError(why)
    _make_room(cgroups, pod.uid, ended)
    for change in changes(cgroups.version, whole, found):
        if change.setting.controller not in cgroups.missing:
            _apply(cgroups, pod.uid, change)


def _held(cgroups: Cgroups, wanted: Limits, uid: PodUID, *id: str) -> Held | None:
    read = cgroups.reader(uid, *id)
    if read is None:
        return None
    return Held(
        wanted=wanted,
        cpu_quota=quota_from(cgroups.version, read),
        memory_bytes=memory_from(cgroups.version, read),
        memory_used=memory_used(cgroups.version, read),
    )


def _make_room(cgroups: Cgroups, uid: PodUID, ended: Collection[str]) -> None:
    """With version 1, what is kept of one that ran must not have more than the pod is to have."""
    if cgroups.version is Version.V1:
        for id in ended:
            with suppress(OSError):  # gone, most often
                cgroups.write(uid, id, setting=_NO_QUOTA)


def _apply(cgroups: Cgroups, uid: PodUID, change: Change) -> None:
    setting, id = change.setting, (change.whose,) if change.whose else ()
    try:
        cgroups.write(uid, *id, setting=setting)
    except FileNotFoundError:
        pass  # it has just ended, or this kernel has no such limit
    except OSError as error:
        # Only that of swap may fail: it is nothing that was asked for.
        if setting.needed or setting.controller == "cpu":
            where = f"container {change.whose}" if change.whose else "the pod"
            why = f"{setting.file} of {where} cannot be {setting.text}: {error.strerror}"
            raise CannotResizeError(why) from error
