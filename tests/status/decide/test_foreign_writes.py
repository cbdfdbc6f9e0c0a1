"""What others have written, by tables."""

from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.meta import ManagedFieldsEntry
from podstatus.kube.objects.pod_status import (
    NodeAllocatableResourceClaimStatus,
    PodCondition,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    PodStatus,
)
from podstatus.status.decide.foreign_writes import (
    ForeignWrite,
    StatusPart,
    find_writer,
    foreign_write_message,
    foreign_writes,
    with_own_parts,
)
from podstatus.testing.builders import ended, make_status, running

GATES = FeatureGates()
OURS = make_status("Running", running("app"), Ready="True", ContainersReady="True")
CONDITION = StatusPart("Ready", is_condition=True)
OF_OTHERS: dict[str, Any] = {
    "nominated_node_name": "n",
    "resource_claim_statuses": (PodResourceClaimStatus(name="gpu"),),
    "extended_resource_claim_status": PodExtendedResourceClaimStatus(),
    "node_allocatable_resource_claim_statuses": (NodeAllocatableResourceClaimStatus(),),
}
YES, NO = ("True", "", ""), ("False", "Meddling", "because")


def condition(status: PodStatus, name: str, /, **fields: Any) -> PodStatus:
    """Return the status with one condition changed or added."""
    known = [c for c in status.conditions or () if c.type != name]
    return structs.replace(status, conditions=(*known, PodCondition(type=name, **fields)))


def without(status: PodStatus, name: str) -> PodStatus:
    return structs.replace(
        status, conditions=tuple(c for c in status.conditions or () if c.type != name)
    )


@pytest.mark.parametrize(
    ("shown", "parts"),
    [
        (OURS, []),
        (condition(OURS, "Ready", status="False", reason="Meddling"), ["Condition Ready"]),
        (condition(OURS, "Ready", status="True", reason="Meddling"), ["Condition Ready"]),
        (condition(OURS, "Ready", status="True", message="hm"), ["Condition Ready"]),
        (without(OURS, "Ready"), ["Condition Ready"]),
        (structs.replace(OURS, conditions=None), ["Condition ContainersReady", "Condition Ready"]),
        (condition(OURS, "PodResizePending", status="True"), ["Condition PodResizePending"]),
        (structs.replace(OURS, phase="Failed"), ["Field phase"]),
        (structs.replace(OURS, pod_ip="10.0.0.1"), ["Field podIP"]),
        (structs.replace(OURS, container_statuses=(ended("app"),)), ["Field containerStatuses"]),
        (structs.replace(OURS, container_statuses=None), ["Field containerStatuses"]),
        # Parts of other owners, shared conditions, and equal parts.
        (condition(OURS, "example.com/mine", status="True"), []),
        (condition(OURS, "DisruptionTarget", status="True", reason="EvictionByEvictionAPI"), []),
        (structs.replace(OURS, **OF_OTHERS), []),
        (condition(OURS, "Ready", status="True", observed_generation=7), []),
        (structs.replace(OURS, conditions=tuple(reversed(OURS.conditions or ()))), []),
    ],
)
def test_only_owned_parts_count_as_foreign_writes(shown: PodStatus, parts: list[str]) -> None:
    found = foreign_writes(OURS, shown, GATES)
    assert sorted(str(write.part) for write in found) == parts


def test_a_condition_whose_gate_is_off_is_not_ours() -> None:
    shown = condition(OURS, "PodReadyToStartContainers", status="True")
    off = FeatureGates(pod_ready_to_start_containers_condition=False)
    assert foreign_writes(OURS, shown, GATES)
    assert not foreign_writes(OURS, shown, off)


@pytest.mark.parametrize(
    ("write", "writer", "now", "message"),
    [
        (
            ForeignWrite(CONDITION, YES, NO),
            "kubectl-edit",
            YES,
            (
                'Condition Ready was set to False (reason Meddling) by "kubectl-edit"; '
                "the node owns it and has set it back to True"
            ),
        ),
        (
            ForeignWrite(CONDITION, YES, NO),
            None,
            ("False", "ContainersNotReady", "containers with unready status: [app]"),
            (
                "Condition Ready was set to False (reason Meddling) by another client; "
                "the node owns it and has recomputed it as False (reason ContainersNotReady)"
            ),
        ),
        (
            ForeignWrite(CONDITION, YES, None),
            None,
            YES,
            (
                "Condition Ready was removed by another client; "
                "the node owns it and has set it back to True"
            ),
        ),
        (
            ForeignWrite(StatusPart("PodResizePending", is_condition=True), None, YES),
            "m",
            None,
            (
                'Condition PodResizePending was set to True by "m"; '
                "the node owns it and has removed it"
            ),
        ),
        (
            ForeignWrite(StatusPart("phase"), "Running", "Failed"),
            "m",
            "Running",
            'Field phase was set to Failed by "m"; the node owns it and has set it back to Running',
        ),
        (
            ForeignWrite(StatusPart("containerStatuses"), (running("a"),), (ended("a"),)),
            "m",
            (running("a"),),
            'Field containerStatuses was changed by "m"; the node owns it and has set it back',
        ),
        (
            ForeignWrite(StatusPart("containerStatuses"), (running("a"),), None),
            "m",
            (ended("a"),),
            'Field containerStatuses was removed by "m"; the node owns it and has recomputed it',
        ),
        (
            ForeignWrite(StatusPart("reason"), "", "x" * 500),
            'a "name"',
            "",
            (
                f'Field reason was set to {"x" * 80} by "a \\"name\\""; '
                "the node owns it and has removed it"
            ),
        ),
    ],
)
def test_event_message(write: ForeignWrite, writer: str | None, now: object, message: str) -> None:
    assert foreign_write_message(write, writer, now) == message


def entry(manager: str, second: int, fields: object) -> ManagedFieldsEntry:
    return from_document(
        {
            "manager": manager,
            "operation": "Update",
            "time": f"2026-01-01T00:00:{second:02}Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": fields},
            "subresource": "status",
        },
        ManagedFieldsEntry,
    )


def ready(*leaves: str) -> object:
    return {"f:conditions": {'k:{"type":"Ready"}': {leaf: {} for leaf in leaves}}}


US = entry("podstatus", 1, ready(".", "f:type", "f:lastTransitionTime"))


@pytest.mark.parametrize(
    ("write", "managed", "writer"),
    [
        (ForeignWrite(CONDITION, YES, NO), [], None),
        (ForeignWrite(CONDITION, YES, NO), [US], None),
        (ForeignWrite(CONDITION, YES, NO), [US, entry("them", 2, ready("f:status"))], "them"),
        (
            ForeignWrite(CONDITION, YES, NO),
            [entry("new", 9, ready("f:status")), entry("old", 2, ready("f:reason"))],
            "new",
        ),
        (
            ForeignWrite(CONDITION, YES, NO),
            [
                structs.replace(entry("undated", 1, ready("f:status")), time=None),
                entry("old", 2, ready("f:reason")),
                entry("new", 9, ready("f:status")),
            ],
            "new",
        ),
        # A manager of unchanged fields did not make the change.
        (
            ForeignWrite(CONDITION, NO, ("False", "Other", "because")),
            [entry("new", 9, ready("f:status")), entry("old", 2, ready("f:reason"))],
            "old",
        ),
        (
            ForeignWrite(CONDITION, NO, (*NO[:2], "other")),
            [entry("new", 9, ready("f:status", "f:reason")), entry("old", 2, ready("f:message"))],
            "old",
        ),
        (ForeignWrite(CONDITION, YES, None), [US], None),
        (
            ForeignWrite(StatusPart("phase"), "Running", "Failed"),
            [entry("m", 1, {"f:phase": {}})],
            "m",
        ),
        (ForeignWrite(StatusPart("phase"), "Running", "Failed"), [entry("m", 1, "odd")], None),
        (ForeignWrite(StatusPart("phase"), "Running", "Failed"), [ManagedFieldsEntry()], None),
    ],
)
def test_the_writer_is_who_manages_what_was_written(
    write: ForeignWrite, managed: list[ManagedFieldsEntry], writer: str | None
) -> None:
    assert find_writer(write, managed) == writer


def test_what_others_own_is_taken_from_the_server_and_ours_from_us() -> None:
    meddled = condition(
        condition(OURS, "Ready", status="False", reason="Meddling"), "gate", status="True"
    )
    shown = structs.replace(meddled, phase="Failed", **OF_OTHERS)
    status = with_own_parts(shown, OURS, GATES)
    assert status.phase == "Running"
    assert {name: getattr(status, name) for name in OF_OTHERS} == OF_OTHERS
    assert {c.type: c.status for c in status.conditions or ()} == {
        "gate": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }
