"""Resource allocations of pods, as they are checkpointed.

*Allocated* resources were granted to a pod by the node, *actuated* resources were last passed to
the runtime; a resize is complete when the two agree. Upstream: PodResourceInfo,
allocation/state/state.go v1.36.4; the resize status: status/state/state.go v1.28.0.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec
from msgspec import field, structs

from podstatus.kube.encoding.wire_struct import FrozenMap, Wire, nil
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID

V = TypeVar("V")


class PodResourceInfo(Wire, frozen=True, kw_only=True, rename="pascal"):
    """The resources of one pod: of its containers by name, and pod-level resources."""

    container_resources: dict[str, ResourceRequirements] = field(default_factory=dict)
    pod_level_resources: ResourceRequirements | None = field(default_factory=nil)


PodResources = Mapping[PodUID, PodResourceInfo]
ResizeStatuses = Mapping[PodUID, str]


class Allocations(msgspec.Struct, frozen=True, kw_only=True):
    """A consistent snapshot of the whole state. The maps are never modified."""

    allocated: PodResources = field(default_factory=dict)
    actuated: PodResources = field(default_factory=dict)
    resize_statuses: ResizeStatuses = field(default_factory=dict)
    """The resize status of each pod: Proposed, InProgress, Deferred or Infeasible."""


def with_container_resources(
    pods: PodResources, uid: PodUID, container: str, resources: ResourceRequirements
) -> PodResources:
    """Return the resources of all pods with those of this container replaced."""
    info = pods.get(uid, PodResourceInfo())
    containers = FrozenMap({**info.container_resources, container: resources})
    return {**pods, uid: structs.replace(info, container_resources=containers)}


def with_pod_level_resources(
    pods: PodResources, uid: PodUID, resources: ResourceRequirements | None
) -> PodResources:
    """Return the resources of all pods with the pod-level resources of this pod replaced."""
    info = pods.get(uid, PodResourceInfo())
    return {**pods, uid: structs.replace(info, pod_level_resources=resources)}


def with_resize_status(statuses: ResizeStatuses, uid: PodUID, status: str) -> ResizeStatuses:
    """Return the resize statuses with that of this pod replaced; an empty one removes it."""
    others = without_pods(statuses, {uid})
    return {**others, uid: status} if status else others


def without_container(pods: PodResources, uid: PodUID, container: str) -> PodResources:
    """Return the resources of all pods without those of this container; `pods` if it has none.

    A pod that has no resources left has no entry.
    """
    info = pods.get(uid)
    if info is None or container not in info.container_resources:
        return pods
    others = {name: r for name, r in info.container_resources.items() if name != container}
    if not others and info.pod_level_resources is None:
        return without_pods(pods, {uid})
    return {**pods, uid: structs.replace(info, container_resources=FrozenMap(others))}


def without_pods(entries: Mapping[PodUID, V], uids: Collection[PodUID]) -> Mapping[PodUID, V]:
    """Return the entries of all other pods; `entries` itself if there is nothing to remove."""
    if entries.keys().isdisjoint(uids):
        return entries
    return {pod_uid: entry for pod_uid, entry in entries.items() if pod_uid not in uids}
