"""What the status manager needs from others. Any object with these methods will do."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.meta import ManagedFieldsEntry
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.status.decide.pod_startup import PodStartup
from podstatus.status.decide.update import Termination


class PodApi(Protocol):
    """The API server's pods. Failures are the errors of `podstatus.kube.errors`.

    Every call must come back, so the client has time-outs: a pod that waits for ever takes the
    place of another, or with upstream's policy keeps all others waiting. Calls about different
    pods may overlap, those about one pod do not.
    """

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Read one pod."""

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        """Apply a strategic merge patch to the `status` subresource; the pod afterwards.

        The patch names the pod's UID in `metadata`; if it is another pod by now, the server
        refuses it (`ConflictError`).
        """

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int
    ) -> None:
        """Delete the pod, if it still is the one with this UID."""


@runtime_checkable
class ManagedFieldsReader(Protocol):
    """A client that can say who has written what. One that cannot is a client all the same."""

    async def managed_fields(
        self, namespace: str, name: str, *, uid: ApiUID
    ) -> Sequence[ManagedFieldsEntry]:
        """Who manages which fields of a pod; nothing if it is another one by now."""


class UIDTranslations(Protocol):
    """Which API object stands for which pod, and back."""

    @property
    def pod_to_mirror(self) -> Mapping[PodUID, ApiUID | None]:
        """Every static pod; None while it has no mirror pod."""

    @property
    def mirror_to_pod(self) -> Mapping[ApiUID, PodUID]:
        """Every mirror pod that has its static pod."""


class PodLookup(Protocol):
    """The pods the node is to run, with the status that the API server shows of each.

    Called under the manager's lock: must not block. `podstatus.PodDirectory` is one.
    """

    def pod_by_uid(self, uid: PodUID) -> Pod | None:
        """The pod (never a mirror pod) with this UID."""

    def mirror_pod_by_pod(self, pod: Pod) -> Pod | None:
        """The mirror pod that has the pod's name."""

    def translate_pod_uid(self, uid: str) -> PodUID:
        """The pod's own UID for the UID of its mirror pod; any other UID as it is."""

    def uid_translations(self) -> UIDTranslations:
        """Both maps at one moment."""


class PodDeletionSafetyProvider(Protocol):
    """Who knows whether something of a pod may still be running.

    Called by the sync loop: must not block, but answer from what it knows. The pod is the
    API server's object: for a static pod that is its mirror, and
    `directory.translate_pod_uid(pod.uid)` is the UID under which the node runs it. A phase
    that is held back because of it is sent by the next full sync.
    """

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Whether a container of this API object might run, or be started."""


class PodStartupLatencyStateHelper(Protocol):
    """Who measures how long pods take to start. `podstatus.StartupLatencyTracker` does."""

    def record_status_updated(self, pod: Pod) -> None:
        """The API server has accepted a status of this pod."""

    def delete_pod_startup_state(self, uid: PodUID) -> None:
        """The pod is gone."""


class AllocatedResources(Protocol):
    """What the node has granted to pods."""

    def container_resources(self, uid: PodUID, container: str) -> ResourceRequirements | None:
        """The resources of a container, None if nothing is known about it."""

    def set_pod_resource_info(self, uid: PodUID, info: PodResourceInfo) -> None:
        """Remember this about a pod, and nothing else."""


class AllocationState(Protocol):
    """What is remembered across restarts. `podstatus.FileState` is one.

    Never called under the manager's lock: it may wait for a disk. What it raises comes out
    of the call that asked for it, and then nothing has changed.
    """

    @property
    def allocated(self) -> AllocatedResources:
        """The resources that pods have been granted."""

    def restore(self) -> None:
        """Bring back what was known; if that fails, `start()` and `run()` do."""

    def resize_status(self, uid: PodUID) -> str | None:
        """The last word on the resize of a pod."""

    def set_resize_status(self, uid: PodUID, status: str) -> None:
        """Remember the last word on the resize of a pod; an empty one is none."""

    def remove_pod(self, uid: PodUID) -> None:
        """Forget a pod."""

    def remove_orphaned_pods(self, keep: Collection[str]) -> None:
        """Forget all pods but these."""


class StatusObserver(Protocol):
    """Who counts. Called in the order in which things happened, outside the lock.

    `podstatus.Counters` is one.
    """

    def container_terminated(self, termination: Termination) -> None:
        """A container was seen ended for the first time."""

    def pending_resizes(self, by_reason: Mapping[str, int]) -> None:
        """How many resizes wait now, by reason in lower case."""

    def resizes_in_progress(self, count: int) -> None:
        """How many resizes are under way now."""

    def status_synced(self, duration_seconds: float) -> None:
        """The API server has a pod's status; how long its oldest unsent update had waited."""

    def sync_failed(self, failure: str) -> None:
        """A pod could not be synced, and why: a value of
        `podstatus.status.sync.state.retry.Failure`."""


@runtime_checkable
class SyncLatencyObserver(Protocol):
    """An observer that wants to know which pod it was. One that does not is one all the same."""

    def pod_synced(self, uid: PodUID, namespace: str, name: str, duration_seconds: float) -> None:
        """The API server has this pod's status; how long its oldest unsent update had waited."""


class PodReference(msgspec.Struct, frozen=True):
    """Which pod is meant, as the API server knows it."""

    namespace: str
    name: str
    uid: ApiUID


class OutboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A status that tells of an end, which the API server has not acknowledged yet."""

    uid: PodUID
    namespace: str
    name: str
    status: PodStatus
    finished: bool = True
    """Whether it is the pod's last; otherwise a container of it has ended."""


class Outbox(Protocol):
    """Where statuses that tell of an end are kept until they have arrived, also over a crash.

    Called in threads, never under the manager's lock: it may wait for a disk. What it raises
    is logged, and the status is sent all the same.
    """

    def load(self) -> Iterable[OutboxEntry]:
        """What an earlier life of this node could not deliver."""

    def store(self, entry: OutboxEntry) -> None:
        """Keep a status, in place of what was kept of this pod."""

    def drop(self, uid: PodUID) -> None:
        """Let go of a pod's status: it has arrived, or the pod is gone."""


class PodEvents(Protocol):
    """Who tells users what happened to a pod. Called by the sync loop: must not block."""

    def warn(self, pod: PodReference, reason: str, message: str) -> None:
        """Record an event of type Warning."""


class StartupObserver(Protocol):
    """Who counts how long pods take to start. Called outside the tracker's lock."""

    def pod_started(self, startup: PodStartup) -> None:
        """A pod was seen started for the first time."""


class PodUpdateNotifier(Protocol):
    """Who wants to know. Called outside the lock; may call the manager.

    Must not wait for another thread that calls the manager.
    """

    def on_pod_updated(self, pod: Pod, status: PodStatus, *, is_added: bool) -> None:
        """The pod has a new status; `is_added` the first time it has one."""

    def on_pod_removed(self, pod: Pod) -> None:
        """The pod has reached the end of its life."""


def check_port(port: object, protocol: type, role: str) -> None:
    """Raise TypeError if an object lacks a method of the port it is given for."""
    methods = [name for name, value in vars(protocol).items() if _is_public_method(name, value)]
    missing = [name for name in methods if not callable(getattr(port, name, None))]
    if missing:
        raise TypeError(
            f"{role} is a {type(port).__name__}, which lacks {', '.join(missing)}; "
            f"see podstatus.status.ports.{protocol.__name__}"
        )


def _is_public_method(name: str, value: object) -> bool:
    return not name.startswith("_") and callable(value)


class NoStartupLatency:
    """Measures nothing."""

    def record_status_updated(self, pod: Pod) -> None:
        """Ignore it."""

    def delete_pod_startup_state(self, uid: PodUID) -> None:
        """Ignore it."""


class NoStatusObserver:
    """Counts nothing."""

    def container_terminated(self, termination: Termination) -> None:
        """Ignore it."""

    def pending_resizes(self, by_reason: Mapping[str, int]) -> None:
        """Ignore it."""

    def resizes_in_progress(self, count: int) -> None:
        """Ignore it."""

    def status_synced(self, duration_seconds: float) -> None:
        """Ignore it."""

    def sync_failed(self, failure: str) -> None:
        """Ignore it."""


class NoPodEvents:
    """Tells nobody."""

    def warn(self, pod: PodReference, reason: str, message: str) -> None:
        """Ignore it."""


class NoAllocationState:
    """Remembers nothing, as upstream does while its feature gate is off."""

    @property
    def allocated(self) -> "NoAllocationState":
        """Nothing."""
        return self

    def restore(self) -> None:
        """Nothing to bring back."""

    def container_resources(self, uid: PodUID, container: str) -> None:
        """Nothing is known."""

    def set_pod_resource_info(self, uid: PodUID, info: PodResourceInfo) -> None:
        """Ignore it."""

    def resize_status(self, uid: PodUID) -> None:
        """Nothing is known."""

    def set_resize_status(self, uid: PodUID, status: str) -> None:
        """Ignore it."""

    def remove_pod(self, uid: PodUID) -> None:
        """Ignore it."""

    def remove_orphaned_pods(self, keep: Collection[str]) -> None:
        """Ignore it."""
