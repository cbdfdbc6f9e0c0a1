"""The lifecycles of all pods of the node."""

from collections.abc import Callable, Collection
from typing import Protocol, runtime_checkable

from podstatus.kube.objects.pod import Pod, PodUID, is_static_pod
from podstatus.status.ports import PodLookup
from podstatus.workers.lifecycle.state_machine import (
    PodLifecycle,
    PodWorkerState,
    could_have_running_containers,
)


@runtime_checkable
class DynamicResources(Protocol):
    """Resources that are prepared for pods by drivers (dynamic resource allocation)."""

    def pod_might_need_to_unprepare_resources(self, uid: PodUID) -> bool:
        """Return whether resources of the pod may still be prepared. Must not block."""


class NoDynamicResources:
    """Dynamic resources of a node without drivers: none."""

    def pod_might_need_to_unprepare_resources(self, uid: PodUID) -> bool:  # noqa: ARG002
        return False


class PodRegistry:
    """The lifecycle of each pod. Also the status manager's deletion safety provider.

    `all_sources_ready`: whether every source has delivered once; an unknown pod then does not
    exist on this node.
    """

    def __init__(
        self,
        pods: PodLookup,
        *,
        all_sources_ready: Callable[[], bool],
        dynamic_resources: DynamicResources,
    ) -> None:
        self._dynamic_resources = dynamic_resources
        self._pods = pods
        self._all_sources_ready = all_sources_ready
        self._lifecycles: dict[PodUID, PodLifecycle] = {}
        self._listeners: list[Callable[[PodUID], object]] = []

    def add_listener(self, listener: Callable[[PodUID], object]) -> None:
        """Call `listener` with the UID of each pod whose lifecycle changes."""
        self._listeners.append(listener)

    def get(self, uid: PodUID) -> PodLifecycle | None:
        """The lifecycle of a pod; None if it is unknown."""
        return self._lifecycles.get(uid)

    def put(self, lifecycle: PodLifecycle) -> None:
        """Store the new lifecycle of a pod."""
        self._lifecycles[lifecycle.uid] = lifecycle
        self._notify(lifecycle.uid)

    def forget(self, uid: PodUID) -> None:
        """Remove a pod that has left its source and is cleaned up."""
        self._lifecycles.pop(uid, None)
        self._notify(uid)

    def _notify(self, uid: PodUID) -> None:
        for listener in self._listeners:
            listener(uid)

    def all(self) -> Collection[PodLifecycle]:
        """A snapshot of all lifecycles."""
        return tuple(self._lifecycles.values())

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Whether the terminal phase and the deletion of this pod must be held back.

        True for an unknown pod until all sources have delivered, and while resources of the pod may
        be prepared. Upstream: PodCouldHaveRunningContainers, kubelet_pods.go v1.36.4.
        """
        uid = PodUID(self._pods.translate_pod_uid(pod.uid))
        lifecycle = self._lifecycles.get(uid)
        could_run = (
            not self._all_sources_ready()
            if lifecycle is None
            else could_have_running_containers(lifecycle)
        )
        return could_run or self._dynamic_resources.pod_might_need_to_unprepare_resources(uid)

    def active_pods(self) -> list[Pod]:
        """The pods that hold, or are about to hold, resources of the node."""
        return [
            pod
            for lifecycle in self._lifecycles.values()
            if (pod := _active_pod(lifecycle)) is not None
        ]

    def active_pod(self, uid: PodUID) -> Pod | None:
        """The pod, if it is one of `active_pods`."""
        lifecycle = self._lifecycles.get(uid)
        return None if lifecycle is None else _active_pod(lifecycle)

    def has_unfinished(self, full_name: tuple[str, str]) -> bool:
        """Whether a pod of this namespace and name is not finished."""
        return any(
            (lifecycle.namespace, lifecycle.name) == full_name
            and lifecycle.state is not PodWorkerState.FINISHED
            for lifecycle in self._lifecycles.values()
        )

    def waits_for_static_pod(self, lifecycle: PodLifecycle) -> bool:
        """Whether this static pod must wait until an earlier one of the same name is finished.

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
