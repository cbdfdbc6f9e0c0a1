"""Merge the node's status into the server's copy, and create the patch between the two.

Fields and conditions of other owners come from the server's copy. Upstream: mergePodStatus,
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
from podstatus.kube.patch.create_from_structs import create_value_patch
from podstatus.kube.patch.schema import POD
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.generate_conditions import (
    generate_containers_ready_condition_for_terminal_phase,
    generate_pod_ready_condition_for_terminal_phase,
)


class MergeResult(msgspec.Struct, frozen=True):
    """The result of merging two statuses."""

    status: PodStatus
    """The merged status to send."""
    restamped: PodStatus | None
    """The node's status with the transition time that the merge set on DisruptionTarget.

    Upstream also writes it to its cache. None if the merge set no time.
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
    """Merge the node's `new` status into the server's `old` one.

    Conditions of other owners stay. A terminal phase is held back while containers could be
    running. A pod in a terminal phase is never ready.
    """
    ending = is_ending(old, new)
    held_back = ending and could_have_running_containers
    restamped = None
    if ending and not held_back and find_condition(new.conditions, DISRUPTION_TARGET):
        # The cached time is when the disruption was decided; the API must show when the pod ended.
        restamped = restamp_conditions(new, old, (DISRUPTION_TARGET,), now)
    merged = structs.replace(
        new,
        conditions=_merge_conditions(old, restamped or new, gates, disruption=bool(restamped)),
        resource_claim_statuses=old.resource_claim_statuses,
        extended_resource_claim_status=old.extended_resource_claim_status,
        node_allocatable_resource_claim_statuses=old.node_allocatable_resource_claim_statuses,
    )
    if held_back:
        merged = _with_phase(merged, old)
    if is_terminal_phase(merged.phase):
        merged = _clear_readiness(pod, old, merged, now)
    return MergeResult(merged, restamped)


def is_ending(old: PodStatus, new: PodStatus) -> bool:
    """Whether `new` ends the pod: held back while containers of the pod could be running."""
    return not is_terminal_phase(old.phase) and is_terminal_phase(new.phase)


def hold_back_phase(old: PodStatus, new: PodStatus) -> PodStatus:
    """Return `new` as it is sent while its phase is held back: without DisruptionTarget, too."""
    target = find_condition(old.conditions, DISRUPTION_TARGET)
    conditions = tuple([c for c in new.conditions or () if c.type != DISRUPTION_TARGET])
    if target is not None:
        conditions = replace_or_append_pod_condition(conditions, target)
    return _with_phase(structs.replace(new, conditions=conditions), old)


def _with_phase(status: PodStatus, old: PodStatus) -> PodStatus:
    return structs.replace(status, phase=old.phase, reason=old.reason, message=old.message)


def _merge_conditions(
    old: PodStatus, new: PodStatus, gates: FeatureGates, *, disruption: bool
) -> tuple[PodCondition, ...]:
    """Return the server's conditions of other owners, then the node's.

    `disruption`: include the node's DisruptionTarget.
    """
    ours = conditions_by_kubelet(gates)
    conditions = tuple([c for c in old.conditions or () if c.type not in ours])
    target = find_condition(new.conditions, DISRUPTION_TARGET) if disruption else None
    for condition in new.conditions or ():
        if condition.type in ours:
            conditions = (*conditions, condition)
        elif condition.type == DISRUPTION_TARGET and target is not None:
            conditions = replace_or_append_pod_condition(conditions, target)
    return conditions


def _clear_readiness(pod: Pod, old: PodStatus, merged: PodStatus, now: Time) -> PodStatus:
    """Never show a terminal phase together with Ready=True (kubernetes#108594)."""
    is_ready = is_condition_true(merged.conditions, READY)
    if not is_ready and not is_condition_true(merged.conditions, CONTAINERS_READY):
        return merged
    for generate in (
        generate_containers_ready_condition_for_terminal_phase,
        generate_pod_ready_condition_for_terminal_phase,
    ):
        merged, _ = update_pod_condition(merged, generate(pod, old, merged.phase), now)
    return merged


_STATUS = POD.field("status").schema


class StatusPatch(msgspec.Struct, frozen=True):
    """A strategic merge patch for a pod's status."""

    body: bytes
    unchanged: bool
    """The patch has only the UID, so it does not have to be sent."""


def prepare_status_patch(
    uid: str, old: PodStatus, new: PodStatus, *, resource_version: str = ""
) -> StatusPatch:
    """Create the patch from `old` to `new`; its UID is a precondition on the pod's identity.

    With a resource version, the patch fails with 409 if the pod has changed since.
    """
    status = create_value_patch(old, new, _STATUS)
    patch: Document = {"metadata": {"uid": uid}} if uid else {}
    if not status:
        body = encode_document(patch)
        return StatusPatch(body, _is_uid_only(uid, body))
    if resource_version:
        patch = {"metadata": {"resourceVersion": resource_version, "uid": uid}}
    return StatusPatch(encode_document(patch | {"status": status}), unchanged=False)


def _is_uid_only(uid: str, body: bytes) -> bool:
    # Upstream compares the text, so a UID that JSON has to escape never counts as unchanged.
    return body == f'{{"metadata":{{"uid":{go_quoted(uid)}}}}}'.encode()
