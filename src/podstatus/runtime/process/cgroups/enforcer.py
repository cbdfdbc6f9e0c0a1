"""Enforces resource limits through cgroups; reports limits that cannot be enforced."""

import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from msgspec import structs

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.runtime.cpu_and_memory_limits import (
    CgroupLimits,
    container_facts,
    container_limits,
    limits_to_facts,
)
from podstatus.runtime.process.cgroups.pod_cgroups import (
    CgroupInUseError,
    CgroupPaths,
    Cgroups,
    LimitError,
)

logger = logging.getLogger(__name__)

OnUnlimited = Callable[[Pod, str | None, str], None]
"""Receives the pod, the container (None: the pod as a whole) and why it is not limited."""


class LimitEnforcer:
    """Applies limits to the cgroups of pods and containers."""

    def __init__(self, cgroups: Cgroups, on_unlimited: OnUnlimited) -> None:
        self.cgroups = cgroups
        self._on_unlimited = on_unlimited

    def create_pod(self, pod: Pod) -> None:
        """Create the pod's cgroup with its limits; failures go to `on_unlimited`."""
        try:
            self.cgroups.create_pod(pod)
        except LimitError as error:
            self._on_unlimited(pod, None, error.reason)

    def create(self, pod: Pod, container: Container, id: str) -> CgroupPaths:
        """Create an attempt's cgroup with its limits; return where its processes belong."""
        try:
            return self.cgroups.create(pod.uid, id, container.resources)
        except LimitError as error:
            self._on_unlimited(pod, container.name, error.reason)
            return error.paths

    def report_unlimited(self, pod: Pod, containers: Iterable[Container]) -> None:
        """Report limits that were requested by a resize and cannot be enforced."""
        for container in containers:
            limited = container_limits(container.resources).limited_resources
            missing = {name: self.cgroups.missing.get(name) for name in limited}
            reasons = [f"{name} is not limited: {why}" for name, why in missing.items() if why]
            if reasons:
                self._on_unlimited(pod, container.name, "; ".join(reasons))

    def actuated_resources(
        self, uid: PodUID, id: str, requested: ResourceRequirements
    ) -> ResourceFacts:
        """Return the resources in force for an attempt, given its requested ones.

        Values that no cgroup reports are those that were requested.
        """
        facts = container_facts(requested)
        actuated = self._fill_missing(self.cgroups.actuated_resources(uid, id, requested), facts)
        return structs.replace(actuated, memory_request=facts.memory_request)

    def actuated_pod_resources(
        self, uid: PodUID, requested: CgroupLimits | None
    ) -> ResourceFacts | None:
        read = self.cgroups.actuated_pod_resources(uid, requested)
        return read if requested is None else self._fill_missing(read, limits_to_facts(requested))

    def _fill_missing(self, read: ResourceFacts | None, requested: ResourceFacts) -> ResourceFacts:
        if read is None:
            return requested
        if "cpu" in self.cgroups.missing:
            read = structs.replace(
                read, cpu_request=requested.cpu_request, cpu_limit=requested.cpu_limit
            )
        if "memory" in self.cgroups.missing:
            read = structs.replace(read, memory_limit=requested.memory_limit)
        return read

    def retain_only(self, keep: Collection[PodUID]) -> None:
        """Remove the cgroups of all other pods, which previous agents left behind."""
        try:
            self.cgroups.retain_only(keep)
        except CgroupInUseError as error:
            logger.warning("cannot remove cgroups of earlier pods: error=%s", error)

    def close(self) -> None:
        """Remove the parent cgroup of all pods, if it is empty."""
        with suppress(OSError):  # a cgroup is being created in it; it is removed at the next close
            self.cgroups.close()
