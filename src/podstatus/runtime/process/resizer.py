"""Give a running pod other resources: tell its cgroups, and remember it for the next agent."""

import asyncio
from collections.abc import Collection, Mapping

from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotResizeError
from podstatus.runtime.process.records.models import Resized
from podstatus.runtime.process.shim_control import Machinery
from podstatus.runtime.process.state.pod_state import PodState, folder_name
from podstatus.runtime.resource_limits import Limits, pod_limits


class Resizer:
    """Resizes pods. For one event loop."""

    def __init__(self, machinery: Machinery) -> None:
        self._machinery = machinery

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        """Have what the pod asks for now hold, for it and for these attempts by name.

        One that has ended is passed over: the next attempt is given what the pod asks for then.
        Raises CannotResizeError.
        """
        book, limits = self._machinery.book, self._machinery.limits
        state = book.find(pod.uid)
        if state is None or not state.is_ready:
            raise CannotResizeError("the pod has no shim any more")
        given = _running(pod, state, containers)
        ended = [found.launch.id for found in state.attempts if found.has_ended]
        doing = asyncio.ensure_future(asyncio.to_thread(self._resize, pod, given, ended))
        try:
            await asyncio.shield(doing)
        except BaseException:
            # A thread goes on when its caller is cancelled: nobody is to overtake it.
            await asyncio.wait([doing])
            # Some of it may hold by now, and what holds is told.
            self._look_again(pod)
            raise
        self._look_again(pod, limits=pod_limits(pod))
        limits.tell_unlimited(pod, given.values())

    def _resize(self, pod: Pod, given: Mapping[str, Container], ended: Collection[str]) -> None:
        self._machinery.limits.resize(pod, given, ended)
        shelf = self._machinery.shelf
        for id, container in given.items():
            place = shelf.folder(pod.uid).container(id)
            shelf.write_resized(place, Resized(resources=to_document(container.resources)))
            shelf.force(place.resized)

    def _look_again(self, pod: Pod, limits: Limits | None = None) -> None:
        book = self._machinery.book
        state = book.find(pod.uid)
        if state is None:
            return
        record = state.record
        if limits is not None and limits != record.limits:
            record = structs.replace(record, limits=limits)
            self._machinery.shelf.write_pod(record)
        book.resized(record)


def _running(pod: Pod, state: PodState, containers: Mapping[str, str]) -> dict[str, Container]:
    """What these attempts are to be given, by ID; those alone that run."""
    running = {found.launch.id for found in state.attempts if not found.has_ended}
    spec = pod.spec
    wanted = (*(spec.init_containers or ()), *(spec.containers or ()))
    ids = {c.name: folder_name(containers[c.name]) for c in wanted if c.name in containers}
    return {ids[c.name]: c for c in wanted if ids.get(c.name) in running}
