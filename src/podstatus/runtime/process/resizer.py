"""Give a running pod other resources: tell its cgroups, and remember it for the next agent."""

import asyncio
from collections.abc import Collection, Mapping

from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotResizeError
from podstatus.runtime.process.records.models import ResizeRecord
from podstatus.runtime.process.shim_control import ShimControl
from podstatus.runtime.process.state.pod_state import PodState, folder_name
from podstatus.runtime.resource_limits import CgroupLimits, pod_limits


class Resizer:
    """Resizes pods. For one event loop."""

    def __init__(self, shim_control: ShimControl) -> None:
        self._shim_control = shim_control

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        """Have what the pod asks for now hold, for it and for these attempts by name.

        One that has ended is passed over: the next attempt is given what the pod asks for then.
        Raises CannotResizeError.
        """
        book, limits = self._shim_control.pods, self._shim_control.limits
        state = book.find(pod.uid)
        if state is None or not state.is_ready:
            raise CannotResizeError("the pod has no shim any more")
        given = _running_containers(pod, state, containers)
        ended = [found.launch.id for found in state.attempts if found.has_ended]
        doing = asyncio.ensure_future(asyncio.to_thread(self._resize, pod, given, ended))
        try:
            await asyncio.shield(doing)
        except BaseException:
            # A thread goes on when its caller is cancelled: nobody is to overtake it.
            await asyncio.wait([doing])
            # Some of it may hold by now, and what holds is told.
            self._update_state(pod)
            raise
        self._update_state(pod, limits=pod_limits(pod))
        limits.report_unlimited(pod, given.values())

    def _resize(
        self, pod: Pod, containers: Mapping[str, Container], ended: Collection[str]
    ) -> None:
        self._shim_control.limits.resize(pod, containers, ended)
        shelf = self._shim_control.records
        for id, container in containers.items():
            place = shelf.pod_folder(pod.uid).container(id)
            shelf.write_resize(place, ResizeRecord(resources=to_document(container.resources)))
            shelf.fsync(place.resized)

    def _update_state(self, pod: Pod, limits: CgroupLimits | None = None) -> None:
        book = self._shim_control.pods
        state = book.find(pod.uid)
        if state is None:
            return
        record = state.record
        if limits is not None and limits != record.limits:
            record = structs.replace(record, limits=limits)
            self._shim_control.records.write_pod(record)
        book.update_resources(record)


def _running_containers(
    pod: Pod, state: PodState, containers: Mapping[str, str]
) -> dict[str, Container]:
    """What these attempts are to be given, by ID; those alone that run."""
    running = {found.launch.id for found in state.attempts if not found.has_ended}
    spec = pod.spec
    wanted = (*(spec.init_containers or ()), *(spec.containers or ()))
    ids = {c.name: folder_name(containers[c.name]) for c in wanted if c.name in containers}
    return {ids[c.name]: c for c in wanted if ids.get(c.name) in running}
