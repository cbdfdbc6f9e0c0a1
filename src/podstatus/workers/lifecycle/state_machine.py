"""The life of a pod on the node, as a value: what became of it, and what is to be done next.

    SYNC ──► TERMINATING ──► TERMINATED ──► FINISHED
     keep it   end its         close its       nothing, until
     running   containers      books           it is to be reclaimed

There is no way back: a pod whose containers were told to end is not started again under the same
UID, unless its life is over and a source brings it anew. A pod that has finished and is deleted
later goes from FINISHED to TERMINATED once more: what it left behind is reclaimed before the
API server may let it go.

Upstream: podSyncStatus and UpdatePod, pkg/kubelet/pod_workers.go v1.36.4.
"""

from enum import Enum

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID, is_terminal_phase

ORPHAN_GRACE_SECONDS = 1
"""Seconds for what nobody knows any more. Upstream's."""


class PodWorkerState(Enum):
    """What is to be done for a pod."""

    SYNC = "sync"
    """Keep its containers running as the spec says."""
    TERMINATING = "terminating"
    """End its containers; none is started any more."""
    TERMINATED = "terminated"
    """Nothing of it runs: close its books, and reclaim what it left if it is deleted."""
    FINISHED = "finished"
    """Nothing, until it is deleted or leaves."""


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod ends, as its status is to tell; empty where its containers tell it."""

    reason: str = ""
    message: str = ""
    is_disruption: bool = False
    """Whether its status says, by DisruptionTarget, that it could go on elsewhere."""


class PodLifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a pod on this node."""

    uid: PodUID
    namespace: str
    name: str
    pod: Pod | None = None
    """As the sources have it, or had it last; None if only the runtime knows it."""
    state: PodWorkerState = PodWorkerState.SYNC
    grace_seconds: int = 0
    """How long its containers have to end; 0 while nobody asked them to."""
    eviction: Eviction = Eviction()
    deleted: bool = False
    """Somebody wants it gone: it was deleted in the API server, or has left its source."""
    source_removed: bool = False
    """It has left its source: there is no API object whose status could be kept."""
    finalized: bool = False
    """Its books were closed once: its last status is told."""
    cleaned_up: bool = False
    """Nothing of it is left on the node."""
    recreated_as: Pod | None = None
    """A source has brought it anew under the same UID, while it was ending."""


def admitted(pod: Pod, *, idle: bool) -> PodLifecycle:
    """The life of a pod that a source has brought.

    `idle`: the runtime runs nothing of it. A pod that had ended before the agent came, and of
    which nothing runs, needs no more than its books closed.
    """
    life = PodLifecycle(uid=pod.uid, namespace=pod.namespace, name=pod.name, pod=pod)
    if idle and is_terminal_phase(pod.status.phase):
        deleted = pod.metadata.deletion_timestamp is not None
        return structs.replace(life, state=PodWorkerState.TERMINATED, deleted=deleted)
    return updated(life, pod)


def orphaned(uid: PodUID, namespace: str, name: str) -> PodLifecycle:
    """The life of a pod that only the runtime knows: it is to end."""
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
    """With the pod as a source has it now."""
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
    """It has left its source."""
    lifecycle = structs.replace(lifecycle, source_removed=True, deleted=True, recreated_as=None)
    return (
        _terminating(lifecycle, None)
        if lifecycle.state is PodWorkerState.SYNC
        else _reopened_for_cleanup(lifecycle)
    )


def evicted(
    lifecycle: PodLifecycle, eviction: Eviction, grace_seconds: int | None = None
) -> PodLifecycle:
    """The node wants it to end, and says why; nothing changes if it is ending already."""
    if lifecycle.state is not PodWorkerState.SYNC:
        return lifecycle
    return structs.replace(_terminating(lifecycle, grace_seconds), eviction=eviction)


def completed(lifecycle: PodLifecycle) -> PodLifecycle:
    """Its containers add up to an end: nothing will be started again."""
    return _terminating(lifecycle, None) if lifecycle.state is PodWorkerState.SYNC else lifecycle


def terminated(lifecycle: PodLifecycle) -> PodLifecycle:
    """Every container of it was seen ended."""
    if lifecycle.state is not PodWorkerState.TERMINATING:
        return lifecycle
    return structs.replace(lifecycle, state=PodWorkerState.TERMINATED)


def finalized(lifecycle: PodLifecycle, *, cleaned_up: bool) -> PodLifecycle:
    """Its last status is told; and what it left behind is gone, or stays for now."""
    if lifecycle.state is not PodWorkerState.TERMINATED:
        return lifecycle
    lifecycle = structs.replace(
        lifecycle, state=PodWorkerState.FINISHED, finalized=True, cleaned_up=cleaned_up
    )
    return _reopened_for_cleanup(lifecycle)


def could_have_running_containers(lifecycle: PodLifecycle) -> bool:
    """Whether the API server must not show its end, or let it go, yet.

    That is until every container was seen ended. A pod whose books were closed before it was
    deleted could go at once then, but what it left behind is reclaimed first.
    """
    if lifecycle.state in (PodWorkerState.SYNC, PodWorkerState.TERMINATING):
        return True
    return lifecycle.finalized and lifecycle.deleted and not lifecycle.cleaned_up


def is_forgettable(lifecycle: PodLifecycle) -> bool:
    """Whether it may be forgotten: it has left, and nothing of it is left."""
    return (
        lifecycle.state is PodWorkerState.FINISHED
        and lifecycle.source_removed
        and lifecycle.cleaned_up
    )


def effective_grace(lifecycle: PodLifecycle, grace_seconds: int | None) -> int:
    """How long its containers have to end: the shortest that anybody asked for, and never none.

    Upstream: calculateEffectiveGracePeriod, pod_workers.go v1.36.4.
    """
    asked = [lifecycle.grace_seconds or None, grace_seconds]
    if lifecycle.pod is not None:
        asked.append(lifecycle.pod.metadata.deletion_grace_period_seconds)
    given = [seconds for seconds in asked if seconds is not None]
    if not given and lifecycle.pod is not None:
        given = [lifecycle.pod.spec.termination_grace_period_seconds or 0]
    return max(1, min(given, default=0))


def _terminating(lifecycle: PodLifecycle, grace_seconds: int | None) -> PodLifecycle:
    return structs.replace(
        lifecycle,
        state=PodWorkerState.TERMINATING,
        grace_seconds=effective_grace(lifecycle, grace_seconds),
    )


def _reopened_for_cleanup(lifecycle: PodLifecycle) -> PodLifecycle:
    """Back to work, if it finished earlier and now has to be reclaimed too."""
    if (
        lifecycle.state is PodWorkerState.FINISHED
        and lifecycle.deleted
        and not lifecycle.cleaned_up
    ):
        return structs.replace(lifecycle, state=PodWorkerState.TERMINATED)
    return lifecycle
