"""In-place resize of a running pod: update its cgroups, record it for the next agent."""

import asyncio
from collections.abc import Collection, Mapping

from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.cpu_and_memory_limits import CgroupLimits, pod_limits
from podstatus.runtime.port import CannotResizeError
from podstatus.runtime.process.cgroups.resize import resize_cgroups
from podstatus.runtime.process.records.models import ResizeRecord
from podstatus.runtime.process.shim_control import ShimControl
from podstatus.runtime.process.state.pod_state import PodState, folder_name


async def resize_pod(control: ShimControl, pod: Pod, containers: Mapping[str, str]) -> None:
    """Apply the resources of the pod's spec to the pod and these attempts, given by name.

    Ended attempts are skipped: the next attempt starts with the resources of the spec. Raises
    CannotResizeError.
    """
    pods, limits = control.pods, control.limits
    state = pods.find(pod.uid)
    if state is None or not state.is_ready:
        raise CannotResizeError("the pod's shim is not running")
    resized = _running_containers(pod, state, containers)
    ended = [a.launch.id for a in state.attempts if a.has_ended]
    task = asyncio.ensure_future(asyncio.to_thread(_resize, control, pod, resized, ended))
    try:
        await asyncio.shield(task)
    except BaseException:
        # The thread continues after a cancellation: wait, so that no later resize overtakes it.
        await asyncio.wait([task])
        # A part may be in force by now, and the pod's state reports what is in force.
        _update_state(control, pod)
        raise
    _update_state(control, pod, limits=pod_limits(pod))
    limits.report_unlimited(pod, resized.values())


def _resize(
    control: ShimControl, pod: Pod, containers: Mapping[str, Container], ended: Collection[str]
) -> None:
    resize_cgroups(control.limits.cgroups, pod, containers, ended)
    records = control.records
    for id, container in containers.items():
        folder = records.pod_folder(pod.uid).container(id)
        records.write_resize(folder, ResizeRecord(resources=to_document(container.resources)))
        records.fsync(folder.resized)


def _update_state(control: ShimControl, pod: Pod, limits: CgroupLimits | None = None) -> None:
    pods = control.pods
    state = pods.find(pod.uid)
    if state is None:
        return
    record = state.record
    if limits is not None and limits != record.limits:
        record = structs.replace(record, limits=limits)
        control.records.write_pod(record)
    pods.update_resources(record)


def _running_containers(
    pod: Pod, state: PodState, containers: Mapping[str, str]
) -> dict[str, Container]:
    """Return the containers of the running attempts, by attempt ID."""
    running = {a.launch.id for a in state.attempts if not a.has_ended}
    spec = pod.spec
    specs = (*(spec.init_containers or ()), *(spec.containers or ()))
    ids = {c.name: folder_name(containers[c.name]) for c in specs if c.name in containers}
    return {ids[c.name]: c for c in specs if ids.get(c.name) in running}
