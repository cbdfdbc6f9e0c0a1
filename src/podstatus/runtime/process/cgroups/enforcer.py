"""Have limits of containers hold where the machine lets us; where not, somebody is told."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from msgspec import structs

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.cgroups.resize import resize_cgroups
from podstatus.runtime.process.cgroups.tree import (
    CannotLimitError,
    CgroupInUseError,
    CgroupPlace,
    Cgroups,
)
from podstatus.runtime.resource_limits import Limits, container_facts, container_limits, facts_of

logger = logging.getLogger(__name__)

OnUnlimited = Callable[[Pod, str | None, str], None]
"""Told the pod, the container (None: the pod as a whole) and why its limits do not hold."""


class LimitEnforcer:
    """The cgroups of pods and containers."""

    def __init__(self, cgroups: Cgroups, on_unlimited: OnUnlimited) -> None:
        self._cgroups = cgroups
        self._on_unlimited = on_unlimited

    def make_pod(self, pod: Pod) -> None:
        """Have the limits of a pod hold."""
        try:
            self._cgroups.make_pod(pod)
        except CannotLimitError as error:
            self._on_unlimited(pod, None, error.why)

    def make(self, pod: Pod, container: Container, id: str) -> CgroupPlace:
        """Have the limits of an attempt hold; where its processes belong."""
        try:
            return self._cgroups.make(pod.uid, id, container.resources)
        except CannotLimitError as error:
            self._on_unlimited(pod, container.name, error.why)
            return error.place

    def resize(self, pod: Pod, containers: Mapping[str, Container], ended: Collection[str]) -> None:
        """Have what the pod asks for now hold, for it and for these attempts by their IDs.

        This may take a while: call it in a thread. Raises CannotResizeError.
        """
        resize_cgroups(self._cgroups, pod, containers, ended)

    def tell_unlimited(self, pod: Pod, containers: Iterable[Container]) -> None:
        """Tell of limits that were asked for while containers run, and cannot hold."""
        for container in containers:
            limited = container_limits(container.resources).limited
            missing = {name: self._cgroups.missing.get(name) for name in limited}
            why = [f"{name} is not limited: {told}" for name, told in missing.items() if told]
            if why:
                self._on_unlimited(pod, container.name, "; ".join(why))

    def in_force(self, uid: PodUID, id: str, told: ResourceRequirements) -> ResourceFacts:
        """What holds for an attempt that was given these.

        What no cgroup can say is as it was told: nothing else is known of it.
        """
        given = container_facts(told)
        known = self._known(self._cgroups.in_force(uid, id, told), given)
        return structs.replace(known, memory_request=given.memory_request)

    def pod_in_force(self, uid: PodUID, told: Limits | None) -> ResourceFacts | None:
        """What holds for a pod as a whole that was given these."""
        read = self._cgroups.pod_in_force(uid, told)
        return read if told is None else self._known(read, facts_of(told))

    def _known(self, read: ResourceFacts | None, given: ResourceFacts) -> ResourceFacts:
        if read is None:
            return given
        if "cpu" in self._cgroups.missing:
            read = structs.replace(read, cpu_request=given.cpu_request, cpu_limit=given.cpu_limit)
        if "memory" in self._cgroups.missing:
            read = structs.replace(read, memory_limit=given.memory_limit)
        return read

    def end(self, uid: PodUID, id: str) -> None:
        """Kill what is left of an attempt. Raises RuntimeDownError."""
        try:
            self._cgroups.empty(uid, id)
        except CgroupInUseError as error:
            raise RuntimeDownError(str(error)) from error

    def remove(self, uid: PodUID, id: str) -> None:
        """An attempt needs none any more. Raises RuntimeDownError."""
        try:
            self._cgroups.remove(uid, id)
        except CgroupInUseError as error:
            raise RuntimeDownError(str(error)) from error

    def remove_pod(self, uid: PodUID) -> None:
        """A pod needs none any more. Raises RuntimeDownError."""
        try:
            self._cgroups.remove_pod(uid)
        except CgroupInUseError as error:
            raise RuntimeDownError(str(error)) from error

    def sweep(self, keep: Collection[PodUID]) -> None:
        """Remove those of all pods but these, that agents before this one have left."""
        try:
            self._cgroups.sweep(keep)
        except CgroupInUseError as error:
            logger.warning("cgroups of earlier pods are left: %s", error)

    def close(self) -> None:
        """Let go of the cgroup of all pods, if there are none."""
        with suppress(OSError):  # another one is being made in it; the next end removes it
            self._cgroups.close()
