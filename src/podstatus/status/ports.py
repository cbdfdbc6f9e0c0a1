"""The ports of the status manager. Any object with the methods of a port implements it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.meta import ManagedFieldsEntry
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.status.decide.startup_measurement import PodStartup
from podstatus.status.decide.update import Termination


class PodApi(Protocol):
    """The API server's pods. Methods raise the errors of `podstatus.kube.api_errors`.

    Every call must return, so the client needs timeouts: a call that hangs occupies one slot in
    flight, or with the upstream policy blocks all pods. Calls for different pods may overlap;
    calls for one pod do not.
    """

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Return the pod with this name."""

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        """Apply a strategic merge patch to the `status` subresource and return the patched pod.

        The patch has the pod's UID in `metadata`. If another pod has the name by now, the server
        rejects the patch (`ConflictError`).
        """

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int
    ) -> None:
        """Delete the pod if it still has this UID."""


@runtime_checkable
class ManagedFieldsReader(Protocol):
    """Optional port of a client: reads the managed fields of a pod."""

    async def managed_fields(
        self, namespace: str, name: str, *, uid: ApiUID
    ) -> Sequence[ManagedFieldsEntry]:
        """Return the pod's managed fields; empty if another pod has the name by now."""


class UIDTranslations(Protocol):
    """Maps the UIDs of static pods to those of their mirror pods, and back."""

    @property
    def pod_to_mirror(self) -> Mapping[PodUID, ApiUID | None]:
        """Return all static pods; the value is None while a pod has no mirror pod."""

    @property
    def mirror_to_pod(self) -> Mapping[ApiUID, PodUID]:
        """Return all mirror pods that belong to a static pod."""


class PodLookup(Protocol):
    """The pods that the node runs, each with the status that the API server shows.

    Called with the manager's lock held: must not block. Implemented by `podstatus.PodManager`.
    """

    def pod_by_uid(self, uid: PodUID) -> Pod | None:
        """Return the pod (never a mirror pod) with this UID."""

    def mirror_pod_by_pod(self, pod: Pod) -> Pod | None:
        """Return the mirror pod with the pod's name."""

    def translate_pod_uid(self, uid: str) -> PodUID:
        """Return the UID of the static pod for a mirror pod's UID; any other UID unchanged."""

    def uid_translations(self) -> UIDTranslations:
        """Return a consistent snapshot of both maps."""


class PodDeletionSafetyProvider(Protocol):
    """Reports whether containers of a pod may still be running.

    Called by the sync loop: must not block, and answers from memory. The pod is the API object.
    For a static pod that is its mirror, and `pod_manager.translate_pod_uid(pod.uid)` is the UID
    under which the node runs it. A held-back phase is sent by the next full sync.
    """

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Whether a container of this API object may be running or may be started."""


class PodStartupLatencyStateHelper(Protocol):
    """Measures pod startup. Implemented by `podstatus.StartupLatencyTracker`."""

    def record_status_updated(self, pod: Pod) -> None:
        """Record that the API server accepted a status of this pod."""

    def delete_pod_startup_state(self, uid: PodUID) -> None:
        """Remove the state of a deleted pod."""


class AllocatedResources(Protocol):
    """The resources that the node has allocated to pods."""

    def container_resources(self, uid: PodUID, container: str) -> ResourceRequirements | None:
        """Return the container's allocated resources, or None if unknown."""

    def set_pod_resource_info(self, uid: PodUID, info: PodResourceInfo) -> None:
        """Replace the allocation of a pod."""


class AllocationState(Protocol):
    """State that survives restarts. Implemented by `podstatus.FileState`.

    Never called with the manager's lock held: it may block on disk I/O. Its errors are raised by
    the manager's method, and then nothing has changed.
    """

    @property
    def allocated(self) -> AllocatedResources:
        """Return the resources allocated to pods."""

    @property
    def stores_requests_only(self) -> bool:
        """Whether only requests of regular containers can be stored, as in the file of v1.28."""

    def restore(self) -> None:
        """Load the stored state; an error makes `start()` and `run()` fail."""

    def resize_status(self, uid: PodUID) -> str | None:
        """Return the pod's last resize status, or None."""

    def set_resize_status(self, uid: PodUID, status: str) -> None:
        """Store the pod's resize status; "" removes it."""

    def remove_pod(self, uid: PodUID) -> None:
        """Remove the state of one pod."""

    def remove_orphaned_pods(self, keep: Collection[str]) -> None:
        """Remove all pods except those with these UIDs."""


class StatusObserver(Protocol):
    """Receives counts, in the order of the events and outside the lock.

    Implemented by `podstatus.Counters`.
    """

    def container_terminated(self, termination: Termination) -> None:
        """Count a container's first observed termination."""

    def pending_resizes(self, by_reason: Mapping[str, int]) -> None:
        """Set the number of pending resizes by lower-case reason."""

    def resizes_in_progress(self, count: int) -> None:
        """Set the number of resizes in progress."""

    def status_synced(self, duration_seconds: float) -> None:
        """Record an acknowledged status; the duration is the age of its oldest unsent update."""

    def sync_failed(self, failure: str) -> None:
        """Count a failed sync by a value of `podstatus.status.sync.state.retry.Failure`."""


@runtime_checkable
class SyncLatencyObserver(Protocol):
    """Optional port of an observer: also receives the pod of each acknowledged status."""

    def pod_synced(self, uid: PodUID, namespace: str, name: str, duration_seconds: float) -> None:
        """Record the pod's acknowledged status and the age of its oldest unsent update."""


class PodReference(msgspec.Struct, frozen=True):
    """Identifies a pod on the API server."""

    namespace: str
    name: str
    uid: ApiUID


class OutboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An unacknowledged status with a terminated container or pod."""

    uid: PodUID
    namespace: str
    name: str
    status: PodStatus
    finished: bool = True
    """Whether it is the pod's final status; otherwise a container of the pod has terminated."""


class Outbox(Protocol):
    """Durable storage of undelivered terminations; survives a crash of the agent.

    Called in threads, never with the manager's lock held: it may block on disk I/O. Its errors
    are logged, and the status is sent anyway.
    """

    def load(self) -> Iterable[OutboxEntry]:
        """Return the entries that were not delivered before a restart."""

    def store(self, entry: OutboxEntry) -> None:
        """Store a status, replacing the pod's previous entry."""

    def drop(self, uid: PodUID) -> None:
        """Remove the pod's entry: it was delivered, or the pod is gone."""


class PodEvents(Protocol):
    """Records events about a pod. Called by the sync loop: must not block."""

    def warn(self, pod: PodReference, reason: str, message: str) -> None:
        """Record an event of type Warning."""


class StartupObserver(Protocol):
    """Receives pod startup durations. Called outside the tracker's lock."""

    def pod_started(self, startup: PodStartup) -> None:
        """Record a pod that was first observed started."""


class PodUpdateNotifier(Protocol):
    """Receives all new statuses. Called outside the lock; may call the manager.

    Must not wait for another thread that calls the manager.
    """

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        """Handle a new status; `is_added` if it is the pod's first one."""

    def on_pod_removed(self, pod: Pod) -> None:
        """Handle the pod's final status."""


def check_port(port: object, protocol: type, role: str) -> None:
    """Raise TypeError if `port` lacks a method of `protocol`; `role` names it in the message."""
    methods = [name for name, value in vars(protocol).items() if _is_public_method(name, value)]
    missing = [name for name in methods if not callable(getattr(port, name, None))]
    if missing:
        raise TypeError(
            f"{role} is a {type(port).__name__}, which lacks {', '.join(missing)}; "
            f"see podstatus.status.ports.{protocol.__name__}"
        )


def _is_public_method(name: str, value: object) -> bool:
    return not name.startswith("_") and callable(value)


class NoAllocationState:
    """Null implementation of `AllocationState`: stores nothing.

    Upstream has the same while its feature gate is off.
    """

    @property
    def allocated(self) -> "NoAllocationState":
        """Return this object: it has no allocations."""
        return self

    @property
    def stores_requests_only(self) -> bool:
        """Return False: nothing is stored."""
        return False

    def restore(self) -> None:
        """Do nothing: there is no stored state."""

    def container_resources(self, uid: PodUID, container: str) -> None:
        """Return None: no allocation is stored."""

    def set_pod_resource_info(self, uid: PodUID, info: PodResourceInfo) -> None:
        """Do nothing: allocations are not stored."""

    def resize_status(self, uid: PodUID) -> None:
        """Return None: no resize status is stored."""

    def set_resize_status(self, uid: PodUID, status: str) -> None:
        """Do nothing: resize statuses are not stored."""

    def remove_pod(self, uid: PodUID) -> None:
        """Do nothing: there is no state."""

    def remove_orphaned_pods(self, keep: Collection[str]) -> None:
        """Do nothing: there is no state."""
