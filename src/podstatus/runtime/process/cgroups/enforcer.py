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
    CgroupInUseError,
    CgroupPaths,
    Cgroups,
    LimitError,
)
from podstatus.runtime.resource_limits import (
    CgroupLimits,
    container_facts,
    container_limits,
    limits_to_facts,
)

logger = logging.getLogger(__name__)

OnUnlimited = Callable[[Pod, str | None, str], None]
"""Told the pod, the container (None: the pod as a whole) and why its limits do not hold."""


class LimitEnforcer:
    """The cgroups of pods and containers."""

    def __init__(self, cgroups: Cgroups, on_unlimited: OnUnlimited) -> None:
        self._cgroups = cgroups
        self._on_unlimited = on_unlimited

    def create_pod(self, pod: Pod) -> None:
        """Have the limits of a pod hold."""
        try:
            self._cgroups.create_pod(pod)
        except LimitError as error:
            self._on_unlimited(pod, None, error.reason)

    def create(self, pod: Pod, container: Container, id: str) -> CgroupPaths:
        """Have the limits of an attempt hold; where its processes belong."""
        try:
            return self._cgroups.create(pod.uid, id, container.resources)
        except LimitError as error:
            self._on_unlimited(pod, container.name, error.reason)
            return error.paths

    def resize(self, pod: Pod, containers: Mapping[str, Container], ended: Collection[str]) -> None:
        """Have what the pod asks for now hold, for it and for these attempts by their IDs.

        This may take a while: call it in a thread. Raises CannotResizeError.
        """
        resize_cgroups(self._cgroups, pod, containers, ended)

    def report_unlimited(self, pod: Pod, containers: Iterable[Container]) -> None:
        """Tell of limits that were asked for while containers run, and cannot hold."""
        for container in containers:
            limited = container_limits(container.resources).limited_resources
            missing = {name: self._cgroups.missing.get(name) for name in limited}
            why = [f"{name} is not limited: {told}" for name, told in missing.items() if told]
            if why:
                self._on_unlimited(pod, container.name, "; ".join(why))

    def actuated_resources(
        self, uid: PodUID, id: str, requested: ResourceRequirements
    ) -> ResourceFacts:
        """What holds for an attempt that was given these.

        What no cgroup can say is as it was told: nothing else is known of it.
        """
        given = container_facts(requested)
        known = self._fill_missing(self._cgroups.actuated_resources(uid, id, requested), given)
        return structs.replace(known, memory_request=given.memory_request)

    def actuated_pod_resources(
        self, uid: PodUID, requested: CgroupLimits | None
    ) -> ResourceFacts | None:
        """What holds for a pod as a whole that was given these."""
        read = self._cgroups.actuated_pod_resources(uid, requested)
        return read if requested is None else self._fill_missing(read, limits_to_facts(requested))

    def _fill_missing(self, read: ResourceFacts | None, requested: ResourceFacts) -> ResourceFacts:
        if read is None:
            return requested
        if "cpu" in self._cgroups.missing:
            read = structs.replace(
                read, cpu_request=requested.cpu_request, cpu_limit=requested.cpu_limit
            )
        if "memory" in self._cgroups.missing:
            read = structs.replace(read, memory_limit=requested.memory_limit)
        return read

    def kill(self, uid: PodUID, id: str) -> None:
        """Kill what is left of an attempt. Raises RuntimeDownError."""
        try:
            self._cgroups.kill(uid, id)
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

    def retain_only(self, keep: Collection[PodUID]) -> None:
        """Remove those of all pods but these, that agents before this one have left."""
        try:
            self._cgroups.retain_only(keep)
        except CgroupInUseError as error:
            logger.warning("cgroups of earlier pods are left: %s", error)

    def close(self) -> None:
        """Let go of the cgroup of all pods, if there are none."""
        with suppress(OSError):  # another one is being made in it; the next end removes it
            self._cgroups.close()
