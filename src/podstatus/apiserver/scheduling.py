"""Which node a pod goes to: the first, by name, that is ready, lets it in and has room.

Filters in upstream's order and words; the first that objects speaks for its node. Not looked
at: preferences, host ports, volumes, other pods (affinity, spreading), preemption.

Upstream: the default plugins of pkg/scheduler v1.36.4 (nodeunschedulable, tainttoleration,
nodeaffinity, noderesources).
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from podstatus.apiserver.node_taints import (
    NO_SCHEDULE,
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    settled_taints,
)
from podstatus.kube.node_selection import is_tolerated, is_wanted_on
from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import pod_requests

Amounts = Mapping[str, int]
"""By resource, in units of 1e-9, so that whole numbers do."""

ONE_POD = 10**9
_CORDONED = Taint(key=UNSCHEDULABLE, effect=NO_SCHEDULE)
_NO_NEWS = ((NOT_READY, NO_SCHEDULE), (UNREACHABLE, NO_SCHEDULE))
"""What the condition Ready says already."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What a node offers."""

    name: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: bool
    allocatable: dict[str, int]


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod asks for."""

    spec: PodSpec
    amounts: dict[str, int]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod goes."""

    node: str = ""
    """Empty if it fits nowhere."""
    message: str = ""
    """Why it fits nowhere, if there is a node that is Ready."""


def room_of(node: Node) -> Room:
    """What a node offers. Raises QuantityError."""
    conditions = node.status.conditions or ()
    # As they are going to be: nobody has to wait until they are written.
    taints = settled_taints(node)
    return Room(
        name=node.metadata.name,
        labels=dict(node.metadata.labels or {}),
        taints=tuple(t for t in taints if (t.key, t.effect) not in _NO_NEWS),
        unschedulable=node.spec.unschedulable,
        ready=any(c.type == "Ready" and c.status == "True" for c in conditions),
        allocatable={name: q.nanos for name, q in (node.status.allocatable or {}).items()},
    )


def need_of(pod: Pod) -> Need:
    """What a pod asks for. Raises QuantityError."""
    amounts = {name: q.nanos for name, q in pod_requests(pod.spec).items()}
    return Need(spec=pod.spec, amounts=amounts | {"pods": ONE_POD})


def choose(need: Need, rooms: Iterable[Room], loads: Mapping[str, Amounts]) -> Choice:
    """The node for a pod; `loads` is what is taken already, by node."""
    reasons: Counter[str] = Counter()
    count, known = 0, False
    for room in sorted(rooms, key=lambda room: room.name):
        count += 1
        closed = _closed(need.spec, room)
        objections = [closed] if closed else _misfits(need, room, loads.get(room.name, {}))
        if not objections:
            return Choice(node=room.name)
        known = known or room.ready
        reasons.update(objections)
    # While no node is Ready it just waits, as in a cluster that is young.
    if not known:
        return Choice()
    told = ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items()))
    return Choice(message=f"0/{count} nodes are available: {told}.")


def _closed(spec: PodSpec, room: Room) -> str:
    """Why a node takes no pods of this kind, however large it is; empty if it does."""
    tolerations = spec.tolerations or ()
    if not room.ready:
        return "node(s) were not ready"
    if room.unschedulable and not is_tolerated(_CORDONED, tolerations):
        return "node(s) were unschedulable"
    hard = (t for t in room.taints if t.effect in ("NoSchedule", "NoExecute"))
    if not all(is_tolerated(taint, tolerations) for taint in hard):
        return "node(s) had untolerated taint(s)"
    return ""


def _misfits(need: Need, room: Room, load: Amounts) -> list[str]:
    if not is_wanted_on(need.spec, room.name, room.labels):
        return ["node(s) didn't match Pod's node affinity/selector"]
    short = [
        name
        for name, amount in need.amounts.items()
        if amount > 0 and amount > room.allocatable.get(name, 0) - load.get(name, 0)
    ]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in short]
