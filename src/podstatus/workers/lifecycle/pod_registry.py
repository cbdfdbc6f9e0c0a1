"""The lives of all pods of the node: the one place where they are kept."""

from collections.abc import Callable, Collection
from typing import Protocol

from podstatus.kube.objects.pod import Pod, PodUID, is_static_pod
from podstatus.workers.lifecycle.state_machine import (
    PodLifecycle,
    PodWorkerState,
    could_have_running_containers,
)


class UidTranslator(Protocol):
    """Who knows which pod an API object stands for: `podstatus.PodDirectory` does."""

    def translate_pod_uid(self, uid: str) -> PodUID:
        """The pod's own UID for the UID of its mirror pod; any other UID as it is."""


class PodRegistry:
    """What is known of each pod. It is also the status manager's deletion safety.

    `all_known`: whether every source has delivered once, so that who is not known is not there.
    """

    def __init__(self, translator: UidTranslator, *, all_sources_ready: Callable[[], bool]) -> None:
        self._translator = translator
        self._all_sources_ready = all_sources_ready
        self._lifecycles: dict[PodUID, PodLifecycle] = {}
        self._listeners: list[Callable[[PodUID], object]] = []

    def add_listener(self, listener: Callable[[PodUID], object]) -> None:
        """Have somebody told whose life is another one from now on."""
        self._listeners.append(listener)

    def get(self, uid: PodUID) -> PodLifecycle | None:
        """One life."""
        return self._lifecycles.get(uid)

    def put(self, lifecycle: PodLifecycle) -> None:
        """What is known of this pod now."""
        self._lifecycles[lifecycle.uid] = lifecycle
        self._notify(lifecycle.uid)

    def forget(self, uid: PodUID) -> None:
        """It is over, and nobody asks for it any more."""
        self._lifecycles.pop(uid, None)
        self._notify(uid)

    def _notify(self, uid: PodUID) -> None:
        for listener in self._listeners:
            listener(uid)

    def all(self) -> Collection[PodLifecycle]:
        """All lives, at one moment."""
        return tuple(self._lifecycles.values())

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Whether the API server must not show the end of this object, or let it go, yet.

        Of a pod that is not known, nothing is known either until all sources have delivered.
        """
        life = self._lifecycles.get(self._translator.translate_pod_uid(pod.uid))
        if life is None:
            return not self._all_sources_ready()
        return could_have_running_containers(life)

    def active_pods(self) -> list[Pod]:
        """The pods that hold, or are about to hold, resources of the node."""
        return [pod for life in self._lifecycles.values() if (pod := _active_pod(life)) is not None]

    def active_pod(self, uid: PodUID) -> Pod | None:
        """This pod, if it is one of them."""
        life = self._lifecycles.get(uid)
        return None if life is None else _active_pod(life)

    def has_unfinished(self, full_name: tuple[str, str]) -> bool:
        """Whether a pod of this namespace and name is still being looked after."""
        return any(
            (life.namespace, life.name) == full_name and life.state is not PodWorkerState.FINISHED
            for life in self._lifecycles.values()
        )

    def waits_for_static_pod(self, lifecycle: PodLifecycle) -> bool:
        """Whether another static pod of its name has to be over before this one may start.

        Upstream: allowStaticPodStart, pod_workers.go v1.36.4.
        """
        if lifecycle.pod is None or not is_static_pod(lifecycle.pod):
            return False
        for other in self._lifecycles.values():
            if other.uid == lifecycle.uid:
                return False
            is_namesake = (other.namespace, other.name) == (lifecycle.namespace, lifecycle.name)
            is_static = other.pod is not None and is_static_pod(other.pod)
            if is_namesake and is_static and other.state is not PodWorkerState.FINISHED:
                return True
        return False


def _active_pod(lifecycle: PodLifecycle) -> Pod | None:
    return (
        lifecycle.pod
        if lifecycle.state in (PodWorkerState.SYNC, PodWorkerState.TERMINATING)
        else None
    )
