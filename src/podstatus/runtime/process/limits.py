"""Limits of containers where the machine lets us set any; where not, whoever wants to know is told."""

from collections.abc import Callable, Collection

from podstatus.kube.containers import Container
from podstatus.kube.cri import ResourceFacts
from podstatus.kube.pod import Pod, PodUID
from podstatus.runtime.process.cgroups import CannotLimitError, CgroupPlace, Cgroups

OnUnlimited = Callable[[Pod, str, str], None]
"""Told the pod, the container and why its limits are not enforced."""


class Limits:
    """The cgroups of containers, or the reason why there are none."""

    def __init__(
        self,
        cgroups: Cgroups | None = None,
        *,
        why_not: str = "there are no cgroups",
        on_unlimited: OnUnlimited | None = None,
    ) -> None:
        self._cgroups = cgroups
        self._why_not = why_not
        self._on_unlimited = on_unlimited

    def make(self, pod: Pod, container: Container, id: str) -> CgroupPlace | None:
        """Where the processes of an attempt belong; None: nowhere, and it runs all the same."""
        try:
            if self._cgroups is None:
                raise CannotLimitError(self._why_not)
            return self._cgroups.make(pod.uid, id, container.resources)
        except CannotLimitError as error:
            if container.resources.limits and self._on_unlimited is not None:
                self._on_unlimited(pod, container.name, str(error))
            return None

    def in_force(self, uid: PodUID, id: str) -> ResourceFacts | None:
        """The limits an attempt has now."""
        return self._cgroups.in_force(uid, id) if self._cgroups is not None else None

    def remove(self, uid: PodUID, id: str) -> None:
        """An attempt needs none any more."""
        if self._cgroups is not None:
            self._cgroups.remove(uid, id)

    def remove_pod(self, uid: PodUID) -> None:
        """A pod needs none any more."""
        if self._cgroups is not None:
            self._cgroups.remove_pod(uid)

    def sweep(self, keep: Collection[PodUID]) -> None:
        """Remove those of all pods but these."""
        if self._cgroups is not None:
            self._cgroups.sweep(keep)
