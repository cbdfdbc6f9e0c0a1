"""Have limits of containers hold where the machine lets us; where not, somebody is told."""

import logging
from collections.abc import Callable, Collection
from contextlib import suppress

from podstatus.kube.codec import from_document
from podstatus.kube.containers import Container
from podstatus.kube.cri import ResourceFacts
from podstatus.kube.pod import Pod, PodUID
from podstatus.kube.resources import ResourceRequirements
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.cgroups import (
    CannotLimitError,
    CgroupInUseError,
    CgroupPlace,
    Cgroups,
)
from podstatus.runtime.process.records import Launch

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

    def in_force(self, uid: PodUID, launch: Launch) -> ResourceFacts | None:
        """What holds for an attempt now."""
        asked = from_document(launch.resources, ResourceRequirements)
        return self._cgroups.in_force(uid, launch.id, asked)

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
