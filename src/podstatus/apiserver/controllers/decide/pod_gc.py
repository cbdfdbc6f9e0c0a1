"""Which pods no node will ever terminate.

Upstream: gcOrphaned, gcTerminating and gcUnscheduledTerminating, pkg/controller/podgc/
gc_controller.go v1.36.4. Not implemented: gcTerminated, which deletes finished pods above a number.
"""

from collections.abc import Iterable, Mapping

import msgspec

from podstatus.apiserver.controllers.decide.node_health import TRUE, ready_condition
from podstatus.kube.objects.node import Node

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
CHECK_SECONDS = 20.0
QUARANTINE_SECONDS = 40.0
"""A Node that was deleted and is registered again within this time loses no pods."""


class PodPlace(msgspec.Struct, frozen=True, kw_only=True):
    """What decides about a pod."""

    node: str
    """Empty if it was never bound."""
    terminating: bool


def quarantine(
    missing: Mapping[str, int], nodes_of_pods: Iterable[str], nodes: Iterable[str], now: int
) -> dict[str, int]:
    """Return since when each Node of a pod has been missing (monotonic, in nanoseconds)."""
    gone = set(nodes_of_pods) - {"", *nodes}
    return {node: missing.get(node, now) for node in gone}


def is_orphan(pod: PodPlace, missing: Mapping[str, int], now: int) -> bool:
    """Return whether the Node of the pod has been missing for longer than the quarantine."""
    since = missing.get(pod.node)
    return since is not None and now - since >= QUARANTINE_SECONDS * 1e9


def is_abandoned(pod: PodPlace, out_of_service: Iterable[str]) -> bool:
    """Return whether a terminating pod has no node that terminates it."""
    return pod.terminating and (not pod.node or pod.node in out_of_service)


def is_out_of_service(node: Node) -> bool:
    """Return whether an admin has declared that the node, which is not Ready, will not return."""
    ready = ready_condition(node.status.conditions)
    is_ready = ready is not None and ready.status == TRUE
    return not is_ready and any(it.key == OUT_OF_SERVICE for it in node.spec.taints or ())
