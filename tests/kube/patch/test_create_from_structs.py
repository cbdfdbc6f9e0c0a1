"""A patch between two values equals the patch between their documents."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.encoding.codec import decode, to_document
from podstatus.kube.encoding.go_json import encode_document
from podstatus.kube.objects.pod_status import ContainerStatus, PodCondition, PodIP, PodStatus
from podstatus.kube.patch import create_two_way_patch
from podstatus.kube.patch.create_from_structs import create_value_patch
from podstatus.kube.patch.schema import POD
from podstatus.kube.scalars.time import Time
from tests.support.data.strategies import statuses

STATUS = POD.field("status").schema
NOON, LATER = Time.parse("2026-11-15T12:00:00Z"), Time.parse("2026-11-15T12:00:01Z")


def by_documents(old: PodStatus, new: PodStatus) -> dict[str, Any]:
    return create_two_way_patch(to_document(old), to_document(new), STATUS)


@given(statuses(), statuses())
def test_of_any_two_statuses(old: PodStatus, new: PodStatus) -> None:
    assert create_value_patch(old, new, STATUS) == by_documents(old, new)


CONDITIONS = st.builds(
    PodCondition,
    type=st.sampled_from(["Ready", "Initialized", "Custom", "", "\udce9t\xe9"]),
    status=st.sampled_from(["True", "False", ""]),
    reason=st.sampled_from(["", "Because"]),
    message=st.sampled_from(["", "caf\xe9 \udce9"]),
    last_transition_time=st.sampled_from([Time(), NOON, LATER, Time(NOON + 1)]),
)


@given(st.lists(CONDITIONS, max_size=3), st.lists(CONDITIONS, max_size=3))
def test_of_any_two_lists_of_conditions_also_with_odd_types(
    old: list[PodCondition], new: list[PodCondition]
) -> None:
    before, after = PodStatus(conditions=tuple(old)), PodStatus(conditions=tuple(new))
    assert create_value_patch(before, after, STATUS) == by_documents(before, after)


READY = PodCondition(type="Ready", status="True", last_transition_time=NOON)
SCHEDULED = PodCondition(type="PodScheduled", status="True", last_transition_time=NOON)
WAITING = PodCondition(
    type="Ready", status="False", reason="Waits", message="for", last_transition_time=LATER
)
APP = ContainerStatus(name="app", ready=True)


@pytest.mark.parametrize(
    ("old", "new", "body"),
    [
        (PodStatus(phase="Running"), PodStatus(phase="Running"), "{}"),
        (PodStatus(), PodStatus(phase="Running"), '{"phase":"Running"}'),
        (PodStatus(reason="Evicted"), PodStatus(), '{"reason":null}'),
        (
            PodStatus(conditions=(READY, SCHEDULED)),
            PodStatus(conditions=(WAITING, SCHEDULED)),
            (
                '{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"PodScheduled"}],'
                '"conditions":[{"lastTransitionTime":"2026-11-15T12:00:01Z","message":"for",'
                '"reason":"Waits","status":"False","type":"Ready"}]}'
            ),
        ),
        (
            PodStatus(pod_ips=(PodIP(ip="10.0.0.1"),)),
            PodStatus(pod_ips=(PodIP(ip="10.0.0.2"),)),
            (
                '{"$setElementOrder/podIPs":[{"ip":"10.0.0.2"}],'
                '"podIPs":[{"ip":"10.0.0.2"},{"$patch":"delete","ip":"10.0.0.1"}]}'
            ),
        ),
        (
            PodStatus(container_statuses=(APP,)),
            PodStatus(container_statuses=(ContainerStatus(name="app"),)),
            (
                '{"containerStatuses":[{"image":"","imageID":"","lastState":{},"name":"app",'
                '"ready":false,"restartCount":0,"state":{}}]}'
            ),
        ),
        (  # Values that differ, but are printed alike.
            PodStatus(start_time=NOON, conditions=(READY,), container_statuses=()),
            PodStatus(start_time=Time(NOON + 1), conditions=(READY,)),
            "{}",
        ),
    ],
)
def test_what_it_says(old: PodStatus, new: PodStatus, body: str) -> None:
    patch = create_value_patch(old, new, STATUS)
    assert encode_document(patch) == body.encode()
    assert patch == by_documents(old, new)


def test_both_copies_as_a_server_sends_them() -> None:
    old = decode(b'{"conditions":[{"type":"Ready","status":"True"}]}', PodStatus)
    new = decode(
        b'{"conditions":[{"type":"Ready","status":"True","lastProbeTime":null}]}', PodStatus
    )
    assert create_value_patch(old, new, STATUS) == by_documents(old, new) == {}
