"""What the status manager offers, as protocols to code against.

Take `PodStatusProvider` where statuses are only read and `Manager` where they are set: a function
that does works with a `StatusManager`, with a wrapper around one and with a test double. The sync
loop (`run`, `start`, `stop`), allocations and metrics are not part of `Manager`: they belong to the
program that creates the `StatusManager`.

Upstream: PodStatusProvider and Manager, status_manager.go v1.36.4.
"""

from collections.abc import Iterable
from typing import Protocol

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.status.ports import PodUpdateNotifier


class PodStatusProvider(Protocol):
    """Read access to cached pod statuses."""

    def pod_status(self, uid: str) -> PodStatus | None:
        """Return the cached status, or None; accepts the UID of a mirror pod."""


class Manager(PodStatusProvider, Protocol):
    """Read and write access to the statuses of a node's pods. Safe to call from any thread."""

    def set_pod_status(self, pod: Pod, status: PodStatus) -> tuple[PodStatus, bool]:
        """Cache a status and queue it for the API server.

        Returns the cached status and whether it is new. An unchanged status and one with an
        illegal transition are not.
        """

    def set_container_readiness(self, pod_uid: str, container_id: str, *, ready: bool) -> None:
        """Record a readiness probe result and recompute Ready and ContainersReady."""

    def set_container_startup(self, pod_uid: str, container_id: str, *, started: bool) -> None:
        """Record a startup probe result in the container's status."""

    def terminate_pod(self, pod: Pod) -> None:
        """Set the final status of a pod: no container of it runs or will be started again."""

    def remove_orphaned_statuses(self, pod_uids: Iterable[str]) -> None:
        """Remove the statuses of all pods whose UIDs are not in `pod_uids`."""

    def add_notifier(self, notifier: PodUpdateNotifier) -> None:
        """Call the notifier for every status that is cached from now on."""

    def pod_resize_conditions(self, uid: str) -> tuple[PodCondition, ...]:
        """Return the resize conditions of a pod: pending, then in progress."""

    def set_pod_resize_pending_condition(
        self, uid: str, reason: str, message: str, observed_generation: int
    ) -> bool:
        """Set PodResizePending; returns whether reason or generation changed."""

    def set_pod_resize_in_progress_condition(
        self, uid: str, reason: str, message: str, observed_generation: int
    ) -> tuple[int, bool]:
        """Set PodResizeInProgress; returns its generation and whether anything changed."""

    def clear_pod_resize_pending_condition(self, uid: str) -> None:
        """Remove PodResizePending from the conditions of a pod."""

    def clear_pod_resize_in_progress_condition(self, uid: str) -> int | None:
        """Remove PodResizeInProgress; returns the generation it had, or None."""

    def is_pod_resize_deferred(self, uid: str) -> bool:
        """Return whether a resize of the pod waits for resources on the node."""

    def is_pod_resize_infeasible(self, uid: str) -> bool:
        """Return whether this node can never perform the requested resize."""

    def backfill_pod_resize_conditions(self, pods: Iterable[Pod]) -> None:
        """Restore resize conditions from the pods' statuses, after a restart."""
