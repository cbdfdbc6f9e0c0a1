"""Merge our status into the server's copy, and create the patch between the two.

Fields and conditions that others own come from the server's copy. Upstream: mergePodStatus,
status_manager.go v1.36.4; preparePatchBytesForPodStatus, pkg/util/pod/pod.go v1.36.4.
"""

import msgspec
from msgspec import structs

from podstatus.kube.conditions import (
    CONTAINERS_READY,
    DISRUPTION_TARGET,
    READY,
    conditions_by_kubelet,
    find_condition,
    is_condition_true,
    replace_or_append_pod_condition,
    restamp_conditions,
    update_pod_condition,
)
from podstatus.kube.encoding.go_json import Document, encode_document
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.patch.schema import POD
from podstatus.kube.patch.values import create_value_patch
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.generate import (
    generate_containers_ready_condition_for_terminal_phase,
    generate_pod_ready_condition_for_terminal_phase,
)


class MergeResult(msgspec.Struct, frozen=True):
    """The outcome of a merge."""

    status: PodStatus
    """What to send."""
    restamped: PodStatus | None
    """Our status with the transition time that the merge gave to DisruptionTarget.

    Upstream writes it through into its cache; None when the merge stamped nothing.
    """


def merge_pod_status(
    pod: Pod,
    old: PodStatus,
    new: PodStatus,
    *,
    could_have_running_containers: bool,
    now: Time,
    gates: FeatureGates,
) -> MergeResult:
    """Merge our new status into the server's old one.

    Foreign conditions stay; a terminal phase waits until nothing can be running; a pod
    in a terminal phase is not ready.
    """
    ending = not is_terminal_phase(old.phase) and is_terminal_phase(new.phase)
    held_back = ending and could_have_running_containers
    restamped = None
    if ending and not held_back and find_condition(new.conditions, DISRUPTION_TARGET):
        # The cached stamp is from when the disruption was decided; what others should see
        # is when the pod ended.
        restamped = restamp_conditions(new, old, (DISRUPTION_TARGET,), now)
    merged = structs.replace(
        new,
        conditions=_merge_conditions(old, restamped or new, gates, disruption=bool(restamped)),
        resource_claim_statuses=old.resource_claim_statuses,
        extended_resource_claim_status=old.extended_resource_claim_status,
        node_allocatable_resource_claim_statuses=old.node_allocatable_resource_claim_statuses,
    )
    if held_back:
        merged = structs.replace(merged, phase=old.phase, reason=old.reason, message=old.message)
    return MergeResult(_clear_readiness_if_terminal(pod, old, merged, now), restamped)


def _merge_conditions(
    old: PodStatus, new: PodStatus, gates: FeatureGates, *, disruption: bool
) -> tuple[PodCondition, ...]:
    """The server's foreign conditions, then ours; DisruptionTarget only when it is due."""
    ours = conditions_by_kubelet(gates)
    conditions = tuple([c for c in old.conditions or () if c.type not in ours])
    target = find_condition(new.conditions, DISRUPTION_TARGET) if disruption else None
    for condition in new.conditions or ():
        if condition.type in ours:
            conditions = (*conditions, condition)
        elif condition.type == DISRUPTION_TARGET and target is not None:
            conditions = replace_or_append_pod_condition(conditions, target)
    return conditions


def _clear_readiness_if_terminal(
    pod: Pod, old: PodStatus, merged: PodStatus, now: Time
) -> PodStatus:
    """A terminal phase and Ready=True are never seen together (kubernetes#108594)."""
    if not is_terminal_phase(merged.phase) or not (
        is_condition_true(merged.conditions, READY)
        or is_condition_true(merged.conditions, CONTAINERS_READY)
    ):
        return merged
    for generate in (
        generate_containers_ready_condition_for_terminal_phase,
        generate_pod_ready_condition_for_terminal_phase,
    ):
        merged, _ = update_pod_condition(merged, generate(pod, old, merged.phase), now)
    return merged


_STATUS = POD.field("status").schema


class StatusPatch(msgspec.Struct, frozen=True):
    """A strategic merge patch of a pod's status."""

    body: bytes
    unchanged: bool
    """The patch holds the UID only: there is nothing to send."""


def prepare_status_patch(uid: str, old: PodStatus, new: PodStatus) -> StatusPatch:
    """Create the patch; the UID in it is the precondition that it is still the same pod."""
    status = create_value_patch(old, new, _STATUS)
    patch: Document = {"metadata": {"uid": uid}} if uid else {}
    body = encode_document(patch | {"status": status} if status else patch)
    return StatusPatch(body, not status and _is_uid_only(uid, body))


def _is_uid_only(uid: str, body: bytes) -> bool:
    # Upstream compares texts, so a UID that JSON spells differently is never unchanged.
    return body == f'{{"metadata":{{"uid":{go_quoted(uid)}}}}}'.encode()
