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

ORPHAN_GRACE = 1
"""Seconds for what nobody knows any more. Upstream's."""


class Stage(Enum):
    """What is to be done for a pod."""

    SYNC = "sync"
    """Keep its containers running as the spec says."""
    TERMINATING = "terminating"
    """End its containers; none is started any more."""
    TERMINATED = "terminated"
    """Nothing of it runs: close its books, and reclaim what it left if it is deleted."""
    FINISHED = "finished"
    """Nothing, until it is deleted or leaves."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod ends, as its status is to tell; empty where its containers tell it."""

    reason: str = ""
    message: str = ""
    disrupts: bool = False
    """Whether its status says, by DisruptionTarget, that it could go on elsewhere."""


class PodLife(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a pod on this node."""

    uid: PodUID
    namespace: str
    name: str
    pod: Pod | None = None
    """As the sources have it, or had it last; None if only the runtime knows it."""
    stage: Stage = Stage.SYNC
    grace_seconds: int = 0
    """How long its containers have to end; 0 while nobody asked them to."""
    ending: Ending = Ending()
    deleted: bool = False
    """Somebody wants it gone: it was deleted in the API server, or has left its source."""
    gone: bool = False
    """It has left its source: there is no API object whose status could be kept."""
    closed: bool = False
    """Its books were closed once: its last status is told."""
    reclaimed: bool = False
    """Nothing of it is left on the node."""
    returns: Pod | None = None
    """A source has brought it anew under the same UID, while it was ending."""


def begun(pod: Pod, *, quiet: bool) -> PodLife:
    """The life of a pod that a source has brought.

    `quiet`: the runtime runs nothing of it. A pod that had ended before the agent came, and of
    which nothing runs, needs no more than its books closed.
    """
    life = PodLife(uid=pod.uid, namespace=pod.namespace, name=pod.name, pod=pod)
    if quiet and is_terminal_phase(pod.status.phase):
        deleted = pod.metadata.deletion_timestamp is not None
        return structs.replace(life, stage=Stage.TERMINATED, deleted=deleted)
    return updated(life, pod)


def orphaned(uid: PodUID, namespace: str, name: str) -> PodLife:
    """The life of a pod that only the runtime knows: it is to end."""
    return PodLife(
        uid=uid,
        namespace=namespace,
        name=name,
        stage=Stage.TERMINATING,
        grace_seconds=ORPHAN_GRACE,
        deleted=True,
        gone=True,
    )


def updated(life: PodLife, pod: Pod) -> PodLife:
    """With the pod as a source has it now."""
    if life.gone:
        return structs.replace(life, returns=pod)
    deleting = pod.metadata.deletion_timestamp is not None
    life = structs.replace(life, pod=pod, deleted=life.deleted or deleting)
    if life.stage is Stage.SYNC and (deleting or is_terminal_phase(pod.status.phase)):
        return _ending(life, None)
    if life.stage is Stage.TERMINATING:
        return structs.replace(life, grace_seconds=effective_grace(life, None))
    return _with_rest_to_do(life)


def removed(life: PodLife) -> PodLife:
    """It has left its source."""
    life = structs.replace(life, gone=True, deleted=True, returns=None)
    return _ending(life, None) if life.stage is Stage.SYNC else _with_rest_to_do(life)


def killed(life: PodLife, ending: Ending, grace_seconds: int | None = None) -> PodLife:
    """The node wants it to end, and says why; nothing changes if it is ending already."""
    if life.stage is not Stage.SYNC:
        return life
    return structs.replace(_ending(life, grace_seconds), ending=ending)


def completed(life: PodLife) -> PodLife:
    """Its containers add up to an end: nothing will be started again."""
    return _ending(life, None) if life.stage is Stage.SYNC else life


def stopped(life: PodLife) -> PodLife:
    """Every container of it was seen ended."""
    if life.stage is not Stage.TERMINATING:
        return life
    return structs.replace(life, stage=Stage.TERMINATED)


def books_closed(life: PodLife, *, reclaimed: bool) -> PodLife:
    """Its last status is told; and what it left behind is gone, or stays for now."""
    if life.stage is not Stage.TERMINATED:
        return life
    life = structs.replace(life, stage=Stage.FINISHED, closed=True, reclaimed=reclaimed)
    return _with_rest_to_do(life)


def could_have_running_containers(life: PodLife) -> bool:
    """Whether the API server must not show its end, or let it go, yet.

    That is until every container was seen ended. A pod whose books were closed before it was
    deleted could go at once then, but what it left behind is reclaimed first.
    """
    if life.stage in (Stage.SYNC, Stage.TERMINATING):
        return True
    return life.closed and life.deleted and not life.reclaimed


def is_over(life: PodLife) -> bool:
    """Whether it may be forgotten: it has left, and nothing of it is left."""
    return life.stage is Stage.FINISHED and life.gone and life.reclaimed


def effective_grace(life: PodLife, wanted: int | None) -> int:
    """How long its containers have to end: the shortest that anybody asked for, and never none.

    Upstream: calculateEffectiveGracePeriod, pod_workers.go v1.36.4.
    """
    asked = [life.grace_seconds or None, wanted]
    if life.pod is not None:
        asked.append(life.pod.metadata.deletion_grace_period_seconds)
    given = [seconds for seconds in asked if seconds is not None]
    if not given and life.pod is not None:
        given = [life.pod.spec.termination_grace_period_seconds or 0]
    return max(1, min(given, default=0))


def _ending(life: PodLife, grace_seconds: int | None) -> PodLife:
    return structs.replace(
        life, stage=Stage.TERMINATING, grace_seconds=effective_grace(life, grace_seconds)
    )


def _with_rest_to_do(life: PodLife) -> PodLife:
    """Back to work, if it finished earlier and now has to be reclaimed too."""
    if life.stage is Stage.FINISHED and life.deleted and not life.reclaimed:
        return structs.replace(life, stage=Stage.TERMINATED)
    return life
