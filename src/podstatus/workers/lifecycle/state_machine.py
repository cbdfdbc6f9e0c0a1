"""The lifecycle of a pod on the node, as an immutable value.

    SYNC ──────► TERMINATING ──► TERMINATED ────► FINISHED
    keep it      stop its        report the       nothing, until
    running      containers      final status     it is deleted

A terminating pod never returns to SYNC; the same UID starts again only after the pod has finished
and a source delivers it once more. A finished pod that is deleted later goes from FINISHED back to
TERMINATED, so that its sandbox and files are removed before the API server deletes the object; so
does a finished pod whose disk space the node needs.

Upstream: podSyncStatus and UpdatePod, pkg/kubelet/pod_workers.go v1.36.4.
"""

from enum import Enum

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID, is_terminal_phase

ORPHAN_GRACE_SECONDS = 1
"""Grace period in seconds of a pod that only the runtime knows. Upstream's value."""


class PodWorkerState(Enum):
    """The work that is left for a pod."""

    SYNC = "sync"
    """Keep the containers running as the spec requires."""
    TERMINATING = "terminating"
    """Stop all containers; start none."""
    TERMINATED = "terminated"
    """No containers run. Report the final status; if deleted, remove the sandbox and files."""
    FINISHED = "finished"
    """Nothing to do until the pod is deleted or leaves its source."""


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """Why the node terminates a pod, for its status; empty if the containers decide it."""

    reason: str = ""
    message: str = ""
    is_disruption: bool = False
    """Whether to add the DisruptionTarget condition: the pod could run elsewhere."""


class RequestedEviction(msgspec.Struct, frozen=True, kw_only=True):
    """An eviction that was decided."""

    eviction: Eviction
    grace_seconds: int


class PodLifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """State of a pod on this node; change it through the functions of this module."""

    uid: PodUID
    namespace: str
    name: str
    pod: Pod | None = None
    """As last delivered by a source; None if only the runtime knows the pod."""
    state: PodWorkerState = PodWorkerState.SYNC
    grace_seconds: int = 0
    """Grace period of the termination; 0 while the pod is not terminating."""
    eviction: Eviction = Eviction()
    deleted: bool = False
    """The pod was deleted in the API server, or has left its source."""
    source_removed: bool = False
    """The pod has left its source: there is no API object whose status could be updated."""
    finalized: bool = False
    """The final status was reported, at least once."""
    reclaimed: bool = False
    """The node needs the disk: the sandbox and files are removed before the pod is deleted."""
    cleaned_up: bool = False
    """The sandbox and files are removed from the node."""
    recreated_as: Pod | None = None
    """The pod as a source delivered it again, under the same UID, during termination."""


def admitted(pod: Pod, *, idle: bool, requested: RequestedEviction | None = None) -> PodLifecycle:
    """The lifecycle of a pod that a source delivers for the first time.

    `idle`: the runtime runs no container of it. An idle pod in a terminal phase, which finished
    before the agent started, begins in TERMINATED. `requested`: the eviction that a previous agent
    began; it came before a deletion that the pod shows.
    """
    lifecycle = PodLifecycle(uid=pod.uid, namespace=pod.namespace, name=pod.name, pod=pod)
    if idle and is_terminal_phase(pod.status.phase):
        deleted = pod.metadata.deletion_timestamp is not None
        return structs.replace(lifecycle, state=PodWorkerState.TERMINATED, deleted=deleted)
    if requested is not None:
        lifecycle = evicted(lifecycle, requested.eviction, requested.grace_seconds)
    return updated(lifecycle, pod)


def orphaned(uid: PodUID, namespace: str, name: str) -> PodLifecycle:
    """The lifecycle of a pod that only the runtime knows: it is terminated."""
    return PodLifecycle(
        uid=uid,
        namespace=namespace,
        name=name,
        state=PodWorkerState.TERMINATING,
        grace_seconds=ORPHAN_GRACE_SECONDS,
        deleted=True,
        source_removed=True,
    )


def updated(lifecycle: PodLifecycle, pod: Pod) -> PodLifecycle:
    """Apply a new version of the pod from a source."""
    if lifecycle.source_removed:
        return structs.replace(lifecycle, recreated_as=pod)
    deleting = pod.metadata.deletion_timestamp is not None
    lifecycle = structs.replace(lifecycle, pod=pod, deleted=lifecycle.deleted or deleting)
    if lifecycle.state is PodWorkerState.SYNC and (deleting or is_terminal_phase(pod.status.phase)):
        return _terminating(lifecycle, None)
    if lifecycle.state is PodWorkerState.TERMINATING:
        return structs.replace(lifecycle, grace_seconds=effective_grace(lifecycle, None))
    return _reopened_for_cleanup(lifecycle)


def removed(lifecycle: PodLifecycle) -> PodLifecycle:
    """Apply that the pod has left its source."""
    lifecycle = structs.replace(lifecycle, source_removed=True, deleted=True, recreated_as=None)
    return (
        _terminating(lifecycle, None)
        if lifecycle.state is PodWorkerState.SYNC
        else _reopened_for_cleanup(lifecycle)
    )


def evicted(
    lifecycle: PodLifecycle, eviction: Eviction, grace_seconds: int | None = None
) -> PodLifecycle:
    """Terminate the pod on behalf of the node; no change if it is terminating already."""
    if lifecycle.state is not PodWorkerState.SYNC:
        return lifecycle
    return structs.replace(_terminating(lifecycle, grace_seconds), eviction=eviction)


def completed(lifecycle: PodLifecycle) -> PodLifecycle:
    """Apply a terminal phase: no container will start again."""
    return _terminating(lifecycle, None) if lifecycle.state is PodWorkerState.SYNC else lifecycle


def terminated(lifecycle: PodLifecycle) -> PodLifecycle:
    """Apply that every container has exited."""
    if lifecycle.state is not PodWorkerState.TERMINATING:
        return lifecycle
    return structs.replace(lifecycle, state=PodWorkerState.TERMINATED)


def finalized(lifecycle: PodLifecycle, *, cleaned_up: bool) -> PodLifecycle:
    """Apply that the final status is reported; `cleaned_up`: sandbox and files are gone."""
    if lifecycle.state is not PodWorkerState.TERMINATED:
        return lifecycle
    lifecycle = structs.replace(
        lifecycle, state=PodWorkerState.FINISHED, finalized=True, cleaned_up=cleaned_up
    )
    return _reopened_for_cleanup(lifecycle)


def reclaimed(lifecycle: PodLifecycle) -> PodLifecycle:
    """Remove the sandbox and files of a finished pod; no change in any other state."""
    if lifecycle.state is not PodWorkerState.FINISHED or lifecycle.cleaned_up:
        return lifecycle
    return structs.replace(lifecycle, state=PodWorkerState.TERMINATED, reclaimed=True)


def could_have_running_containers(lifecycle: PodLifecycle) -> bool:
    """Whether the terminal phase and the deletion of the pod must be held back.

    True until every container has exited. Also true for a pod that was finalized before it was
    deleted, until its sandbox and files are removed.
    """
    if lifecycle.state in (PodWorkerState.SYNC, PodWorkerState.TERMINATING):
        return True
    return lifecycle.finalized and lifecycle.deleted and not lifecycle.cleaned_up


def is_forgettable(lifecycle: PodLifecycle) -> bool:
    """Whether the pod has left its source and is cleaned up, so its entry can be dropped."""
    return (
        lifecycle.state is PodWorkerState.FINISHED
        and lifecycle.source_removed
        and lifecycle.cleaned_up
    )


def effective_grace(lifecycle: PodLifecycle, grace_seconds: int | None) -> int:
    """Grace period in seconds: the shortest that was requested, at least 1.

    Upstream: calculateEffectiveGracePeriod, pod_workers.go v1.36.4.
    """
    pod = lifecycle.pod
    if pod is None:
        return ORPHAN_GRACE_SECONDS
    deletion = pod.metadata.deletion_grace_period_seconds
    requested = (lifecycle.grace_seconds or None, grace_seconds, deletion)
    periods = [seconds for seconds in requested if seconds is not None]
    return max(1, min(periods or [pod.spec.termination_grace_period_seconds or 1]))


def _terminating(lifecycle: PodLifecycle, grace_seconds: int | None) -> PodLifecycle:
    return structs.replace(
        lifecycle,
        state=PodWorkerState.TERMINATING,
        grace_seconds=effective_grace(lifecycle, grace_seconds),
    )


def _reopened_for_cleanup(lifecycle: PodLifecycle) -> PodLifecycle:
    """Back to TERMINATED if a finished pod was deleted and still has a sandbox or files."""
    if (
        lifecycle.state is PodWorkerState.FINISHED
        and lifecycle.deleted
        and not lifecycle.cleaned_up
    ):
        return structs.replace(lifecycle, state=PodWorkerState.TERMINATED)
    return lifecycle
