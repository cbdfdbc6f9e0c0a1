"""What is remembered about the resources of pods, so that a restart does not forget it.

*Allocated* is what the node has granted to a pod, *actuated* what was last asked of the
runtime; a resize is over when the two agree. Upstream: PodResourceInfo,
allocation/state/state.go v1.36.4; the resize status: status/state/state.go v1.28.0.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec
from msgspec import field, structs

from podstatus.kube.encoding.wire import FrozenMap, Wire, nil
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID

V = TypeVar("V")


class PodResourceInfo(Wire, frozen=True, kw_only=True, rename="pascal"):
    """The resources of one pod: of its containers by name, and of the pod as a whole."""

    container_resources: dict[str, ResourceRequirements] = field(default_factory=dict)
    pod_level_resources: ResourceRequirements | None = field(default_factory=nil)


PodResources = Mapping[PodUID, PodResourceInfo]
ResizeStatuses = Mapping[PodUID, str]


class Allocations(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is remembered, at one moment. The maps are never written."""

    allocated: PodResources = field(default_factory=dict)
    actuated: PodResources = field(default_factory=dict)
    resize_statuses: ResizeStatuses = field(default_factory=dict)
    """The last word on each pod's resize: Proposed, InProgress, Deferred or Infeasible."""


def with_container_resources(
    pods: PodResources, uid: PodUID, container: str, resources: ResourceRequirements
) -> PodResources:
    """The resources of all pods, with those of this container replaced."""
    info = pods.get(uid, PodResourceInfo())
    containers = FrozenMap({**info.container_resources, container: resources})
    return {**pods, uid: structs.replace(info, container_resources=containers)}


def with_pod_level_resources(
    pods: PodResources, uid: PodUID, resources: ResourceRequirements | None
) -> PodResources:
    """The resources of all pods, with those of this pod as a whole replaced."""
    info = pods.get(uid, PodResourceInfo())
    return {**pods, uid: structs.replace(info, pod_level_resources=resources)}


def with_resize_status(statuses: ResizeStatuses, uid: PodUID, status: str) -> ResizeStatuses:
    """The resize statuses of all pods, with this one replaced; an empty one is none."""
    others = without_pods(statuses, {uid})
    return {**others, uid: status} if status else others


def without_pods(entries: Mapping[PodUID, V], gone: Collection[PodUID]) -> Mapping[PodUID, V]:
    """The entries of all pods but these; the map itself if there is nothing to drop."""
    if entries.keys().isdisjoint(gone):
        return entries
    return {uid: entry for uid, entry in entries.items() if uid not in gone}
