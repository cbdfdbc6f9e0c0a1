from typing import Any

import msgspec
import pytest
from msgspec import structs

from podstatus.kube.conditions import DISRUPTION_TARGET, find_condition
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import (
    NodeAllocatableResourceClaimStatus,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodIP,
    PodResourceClaimStatus,
    PodStatus,
)
from podstatus.kube.patch import POD, apply_patch
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.merge import (
    MergeResult,
    StatusPatch,
    hold_back_phase,
    is_ending,
    merge_pod_status,
    prepare_status_patch,
)
from podstatus.testing.builders import ended, make_pod, make_status, running
from tests.support.status_node import condition_of, of_generation

BEFORE = Time.parse("2024-01-01T00:00:00Z")
NOW = Time.parse("2024-01-01T00:01:00Z")


def merge(
    old: PodStatus,
    new: PodStatus,
    *,
    pod: Pod | None = None,
    could_run: bool = False,
    gates: FeatureGates | None = None,
) -> MergeResult:
    return merge_pod_status(
        pod or make_pod(),
        old,
        new,
        could_have_running_containers=could_run,
        now=NOW,
        gates=gates or FeatureGates(),
    )


def types(status: PodStatus) -> list[str]:
    return [condition.type for condition in status.conditions or ()]


def stamped(condition_type: str, status: str, at: Time) -> PodCondition:
    return PodCondition(type=condition_type, status=status, last_transition_time=at)


# Ownership of conditions and fields


def test_surprise_10_the_foreign_conditions_of_the_server_come_first_then_ours() -> None:
    old = make_status("Running", Ready="False", Theirs="True", Initialized="True", Gate="False")
    new = make_status("Running", Initialized="True", Ready="True")
    merged = merge(old, new).status
    assert types(merged) == ["Theirs", "Gate", "Initialized", "Ready"]
    assert condition_of(merged, "Ready").status == "True"


def test_a_condition_of_ours_that_we_no_longer_have_goes() -> None:
    old = make_status("Running", PodResizePending="True", Theirs="True")
    assert types(merge(old, make_status("Running")).status) == ["Theirs"]


def test_surprise_11_foreign_conditions_in_our_status_are_never_sent() -> None:
    old = make_status("Running", Theirs="True")
    new = make_status("Running", Theirs="False", Others="True", Ready="True")
    merged = merge(old, new).status
    assert types(merged) == ["Theirs", "Ready"]
    assert condition_of(merged, "Theirs").status == "True"


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        (None, "True"),
        (FeatureGates(pod_ready_to_start_containers_condition=False), "False"),
    ],
)
def test_surprise_11_a_gated_condition_counts_as_foreign_while_its_gate_is_off(
    gates: FeatureGates | None, expected: str
) -> None:
    old = make_status("Running", PodReadyToStartContainers="False")
    new = make_status("Running", PodReadyToStartContainers="True")
    merged = merge(old, new, gates=gates).status
    assert types(merged) == ["PodReadyToStartContainers"]
    assert condition_of(merged, "PodReadyToStartContainers").status == expected


def test_claim_statuses_are_those_of_the_server() -> None:
    theirs: dict[str, Any] = {
        "resource_claim_statuses": (PodResourceClaimStatus(name="theirs"),),
        "extended_resource_claim_status": PodExtendedResourceClaimStatus(
            resource_claim_name="theirs"
        ),
        "node_allocatable_resource_claim_statuses": (
            NodeAllocatableResourceClaimStatus(resource_claim_name="theirs"),
        ),
    }
    ours = PodStatus(phase="Running", resource_claim_statuses=(PodResourceClaimStatus(name="o"),))
    merged = merge(PodStatus(**theirs), ours).status
    assert {name: getattr(merged, name) for name in theirs} == theirs
    assert merged.phase == "Running"


# Terminal phases


def test_surprise_2_terminal_phase_is_held_back_while_containers_could_run() -> None:
    old = structs.replace(
        make_status("Running", running("app"), Ready="True"), reason="Old", message="old"
    )
    new = structs.replace(
        make_status("Failed", ended("app", 1), Ready="False"), reason="Evicted", message="new"
    )
    merged = merge(old, new, could_run=True).status
    assert (merged.phase, merged.reason, merged.message) == ("Running", "Old", "old")
    assert merged.container_statuses == new.container_statuses
    assert condition_of(merged, "Ready").status == "False"


@pytest.mark.parametrize(
    ("old", "new", "could_run", "expected"),
    [
        ("Running", "Failed", False, "Failed"),
        ("Pending", "Succeeded", True, "Pending"),
        ("", "Failed", True, ""),
        ("Failed", "Succeeded", True, "Succeeded"),
        ("Pending", "Running", True, "Running"),
        ("Failed", "Running", True, "Running"),
        ("Succeeded", "Pending", False, "Pending"),
    ],
)
def test_only_the_step_into_a_terminal_phase_is_held_back(
    *, old: str, new: str, could_run: bool, expected: str
) -> None:
    merged = merge(make_status(old), make_status(new), could_run=could_run)
    assert merged.status.phase == expected


@pytest.mark.parametrize(
    ("old", "new", "could_run", "sent"),
    [
        pytest.param("Running", "Failed", False, True, id="the pod ends"),
        pytest.param("Running", "Failed", True, False, id="held back"),
        pytest.param("Failed", "Failed", False, False, id="had ended"),
        pytest.param("Running", "Running", False, False, id="goes on"),
    ],
)
def test_surprise_11_disruption_target_is_sent_only_when_the_pod_ends(
    *, old: str, new: str, could_run: bool, sent: bool
) -> None:
    ours = make_status(new, DisruptionTarget="True")
    merged = merge(make_status(old), ours, could_run=could_run)
    assert types(merged.status) == (["DisruptionTarget"] if sent else [])
    assert (merged.restamped is not None) is sent


@pytest.mark.parametrize(
    "old",
    [
        make_status("Pending"),
        make_status("Running", Ready="True"),
        structs.replace(make_status("Running", DisruptionTarget="False"), reason="r", message="m"),
    ],
)
def test_a_phase_that_is_held_back_is_shown_as_it_is_sent(old: PodStatus) -> None:
    conditions = {"Ready": "True", "DisruptionTarget": "True"}
    new = structs.replace(make_status("Failed", running("a"), **conditions), reason="Terminated")
    assert is_ending(old, new)
    sent, shown = merge(old, new, could_run=True).status, hold_back_phase(old, new)
    for part in ("phase", "reason", "message", "container_statuses"):
        assert getattr(shown, part) == getattr(sent, part)
    assert find_condition(shown.conditions, DISRUPTION_TARGET) == find_condition(
        sent.conditions, DISRUPTION_TARGET
    )
    assert condition_of(shown, "Ready") == condition_of(sent, "Ready")


def test_disruption_target_of_others_keeps_its_place_and_is_overwritten_at_the_end() -> None:
    old = make_status("Running", DisruptionTarget="False", Theirs="True")
    held = merge(old, make_status("Running", DisruptionTarget="True")).status
    assert condition_of(held, "DisruptionTarget").status == "False"
    merged = merge(old, make_status("Failed", DisruptionTarget="True")).status
    assert types(merged) == ["DisruptionTarget", "Theirs"]
    assert condition_of(merged, "DisruptionTarget").status == "True"


def test_surprise_9_disruption_target_is_stamped_when_it_is_sent() -> None:
    new = PodStatus(
        phase="Failed",
        conditions=(stamped("Ready", "False", BEFORE), stamped("DisruptionTarget", "True", BEFORE)),
    )
    merged = merge(PodStatus(phase="Running"), new)
    assert condition_of(merged.status, "DisruptionTarget").last_transition_time == NOW
    assert merged.restamped == structs.replace(
        new,
        conditions=(stamped("Ready", "False", BEFORE), stamped("DisruptionTarget", "True", NOW)),
    )


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"Ready": "True", "ContainersReady": "True"}, ["Ready", "ContainersReady"]),
        ({"Ready": "True", "ContainersReady": "False"}, ["Ready", "ContainersReady"]),
        ({"ContainersReady": "True"}, ["ContainersReady", "Ready"]),
        ({"Ready": "True"}, ["Ready", "ContainersReady"]),
    ],
)
def test_surprise_12_a_terminal_pod_with_either_ready_condition_true_gets_both_overwritten(
    conditions: dict[str, str], expected: list[str]
) -> None:
    pod = of_generation(make_pod(), 5)
    merged = merge(make_status("Running"), make_status("Failed", **conditions), pod=pod).status
    assert types(merged) == expected
    for condition in merged.conditions or ():
        assert (condition.status, condition.reason) == ("False", "PodFailed")
        assert condition.observed_generation == 5


def test_surprise_12_ready_conditions_that_are_false_stay_as_they_are() -> None:
    new = make_status("Failed", Ready="False")
    assert merge(make_status("Running"), new).status.conditions == new.conditions


def test_a_pod_whose_end_is_held_back_may_still_be_ready() -> None:
    new = make_status("Failed", Ready="True")
    merged = merge(make_status("Running"), new, could_run=True).status
    assert condition_of(merged, "Ready").status == "True"


def test_ready_overwritten_at_the_end_is_stamped_only_if_it_was_true() -> None:
    new = PodStatus(
        phase="Succeeded",
        conditions=(stamped("Ready", "True", BEFORE), stamped("ContainersReady", "False", BEFORE)),
    )
    merged = merge(make_status("Running"), new).status
    assert condition_of(merged, "Ready").last_transition_time == NOW
    assert condition_of(merged, "ContainersReady").last_transition_time == BEFORE
    assert condition_of(merged, "ContainersReady").reason == "PodCompleted"


# Patches


def patch(old: PodStatus, new: PodStatus, uid: str = "u") -> StatusPatch:
    return prepare_status_patch(uid, old, new)


def status_in(prepared: StatusPatch) -> Any:
    body = msgspec.json.decode(prepared.body)
    assert body["metadata"] == {"uid": "u"}
    return body["status"]


def test_surprise_10_another_order_alone_is_patched() -> None:
    turned = patch(make_status("", A="1", B="1"), make_status("", B="1", A="1"))
    assert not turned.unchanged
    assert status_in(turned) == {"$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}]}


def test_surprise_13_changed_elements_carry_changes_and_key_and_deletions_come_last() -> None:
    changed = PodCondition(type="B", status="1", reason="Why")
    added = PodCondition(type="C", status="1")
    prepared = patch(
        make_status("", A="1", B="1"), PodStatus(conditions=(structs.replace(changed), added))
    )
    assert status_in(prepared) == {
        "$setElementOrder/conditions": [{"type": "B"}, {"type": "C"}],
        "conditions": [
            {"type": "B", "reason": "Why"},
            {"type": "C", "status": "1", "lastProbeTime": None, "lastTransitionTime": None},
            {"type": "A", "$patch": "delete"},
        ],
    }


def test_surprise_13_removed_fields_are_null() -> None:
    old = PodStatus(phase="Running", conditions=(PodCondition(type="A", reason="Why"),))
    assert status_in(patch(old, PodStatus(conditions=(PodCondition(type="A"),)))) == {
        "phase": None,
        "$setElementOrder/conditions": [{"type": "A"}],
        "conditions": [{"type": "A", "reason": None}],
    }


def test_surprise_13_a_new_list_has_no_order_and_an_emptied_list_is_null() -> None:
    assert list(status_in(patch(PodStatus(), make_status("", A="1")))) == ["conditions"]
    assert status_in(patch(make_status("", A="1"), PodStatus())) == {"conditions": None}


def test_surprise_13_container_statuses_are_replaced_whole_and_addresses_are_merged() -> None:
    old = make_status("", running("a"), running("b"))
    new = make_status("", running("a"), running("b", ready=False))
    body = status_in(patch(old, new))
    assert [status["name"] for status in body["containerStatuses"]] == ["a", "b"]
    one, both = (PodIP(ip="1"),), (PodIP(ip="1"), PodIP(ip="2"))
    assert status_in(patch(PodStatus(pod_ips=one), PodStatus(pod_ips=both))) == {
        "$setElementOrder/podIPs": [{"ip": "1"}, {"ip": "2"}],
        "podIPs": [{"ip": "2"}],
    }


def test_surprise_13_elements_appended_by_a_patch_keep_their_nulls() -> None:
    body = msgspec.json.decode(patch(PodStatus(), make_status("", A="1")).body)
    stored = to_document(make_pod(status=make_status("", Z="1")))
    merged: Any = apply_patch(stored, body, POD)
    added = merged["status"]["conditions"][0]
    assert added == {"type": "A", "status": "1", "lastProbeTime": None, "lastTransitionTime": None}


def test_a_patch_may_depend_on_the_resource_version() -> None:
    prepared = prepare_status_patch(
        "uid-1", make_status("Pending"), make_status("Running"), resource_version="7"
    )
    assert msgspec.json.decode(prepared.body) == {
        "metadata": {"resourceVersion": "7", "uid": "uid-1"},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize(
    ("uid", "unchanged"), [("uid-1", True), ("<uid>", False), ("&", False), ("", False)]
)
def test_surprise_14_an_odd_uid_is_never_unchanged(*, uid: str, unchanged: bool) -> None:
    assert patch(make_status("Running"), make_status("Running"), uid).unchanged is unchanged


def test_surprise_14_the_text_of_a_patch_escapes_html() -> None:
    body = patch(PodStatus(), PodStatus(message="a < b && c > d")).body
    assert rb"a \u003c b \u0026\u0026 c \u003e d" in body


@pytest.mark.parametrize(
    ("old", "new", "unchanged"), [("1000m", "1", True), ("1.500", "1500m", False)]
)
def test_surprise_29_equal_amounts_can_still_be_patched(
    *, old: str, new: str, unchanged: bool
) -> None:
    before = PodStatus(allocated_resources={"cpu": Quantity(old)})
    after = PodStatus(allocated_resources={"cpu": Quantity(new)})
    assert patch(before, after).unchanged is unchanged
