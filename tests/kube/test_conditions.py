import pytest

from podstatus.kube.conditions import (
    find_condition,
    is_condition_true,
    pod_condition_by_kubelet,
    pod_condition_shared_by_kubelet,
    replace_or_append_pod_condition,
    restamp_conditions,
    update_pod_condition,
)
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.scalars.time import Time
from tests.support.status_node import condition_of

BEFORE = Time.parse("2024-01-01T00:00:00Z")
NOW = Time.parse("2024-01-01T00:01:00Z")


def condition(condition_type: str, status: str = "True", reason: str = "") -> PodCondition:
    return PodCondition(
        type=condition_type, status=status, reason=reason, last_transition_time=BEFORE
    )


@pytest.mark.parametrize(
    ("condition_type", "ours"),
    [
        ("PodScheduled", True),
        ("Ready", True),
        ("Initialized", True),
        ("ContainersReady", True),
        ("PodReadyToStartContainers", True),
        ("PodResizePending", True),
        ("PodResizeInProgress", True),
        ("AllContainersRestarting", True),
        ("DisruptionTarget", False),
        ("example.com/gate", False),
        ("ready", False),
        ("", False),
    ],
)
def test_the_node_owns_its_conditions_and_no_others(*, condition_type: str, ours: bool) -> None:
    assert pod_condition_by_kubelet(condition_type, FeatureGates()) is ours


@pytest.mark.parametrize(
    ("condition_type", "gates"),
    [
        (
            "PodReadyToStartContainers",
            FeatureGates(pod_ready_to_start_containers_condition=False),
        ),
        ("AllContainersRestarting", FeatureGates(restart_all_containers_on_container_exits=False)),
    ],
)
def test_surprise_11_a_gated_condition_is_foreign_while_its_gate_is_off(
    condition_type: str, gates: FeatureGates
) -> None:
    assert not pod_condition_by_kubelet(condition_type, gates)
    assert pod_condition_by_kubelet("Ready", gates)


def test_only_the_disruption_target_is_shared() -> None:
    assert pod_condition_shared_by_kubelet("DisruptionTarget")
    assert not pod_condition_shared_by_kubelet("Ready")
    assert not pod_condition_shared_by_kubelet("example.com/gate")


def test_the_first_condition_of_a_type_is_found() -> None:
    first, second = condition("Ready", "True"), condition("Ready", "False")
    assert find_condition((condition("Other"), first, second), "Ready") is first
    assert find_condition((first,), "Other") is None
    assert find_condition(None, "Ready") is None


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (None, False),
        ((), False),
        ((condition("Ready", "True"),), True),
        ((condition("Ready", "False"),), False),
        ((condition("Ready", "Unknown"),), False),
        ((condition("Ready", "true"),), False),
        ((condition("Ready", "False"), condition("Ready", "True")), False),
    ],
)
def test_a_condition_is_true_if_its_first_entry_says_so(
    *, conditions: tuple[PodCondition, ...] | None, expected: bool
) -> None:
    assert is_condition_true(conditions, "Ready") is expected


def test_replacing_keeps_the_place_and_leaves_later_duplicates_alone() -> None:
    a, old, b, twin = condition("A"), condition("C", "False"), condition("B"), condition("C")
    new = condition("C", "Unknown")
    assert replace_or_append_pod_condition((a, old, b, twin), new) == (a, new, b, twin)


def test_a_new_type_is_appended() -> None:
    a, new = condition("A"), condition("C")
    assert replace_or_append_pod_condition((a,), new) == (a, new)
    assert replace_or_append_pod_condition(None, new) == (new,)


@pytest.mark.parametrize(
    ("update", "stamp", "expected"),
    [
        pytest.param(PodCondition(type="Ready", status="True"), BEFORE, False, id="same"),
        pytest.param(PodCondition(type="Ready", status="False"), NOW, True, id="status"),
        pytest.param(
            PodCondition(type="Ready", status="True", reason="Why"), BEFORE, True, id="reason"
        ),
        pytest.param(
            PodCondition(type="Ready", status="True", message="Well"), BEFORE, True, id="message"
        ),
        pytest.param(
            PodCondition(type="Ready", status="True", last_probe_time=NOW),
            BEFORE,
            True,
            id="probe time",
        ),
        pytest.param(
            PodCondition(type="Ready", status="True", observed_generation=7),
            BEFORE,
            False,
            id="generation",
        ),
        pytest.param(PodCondition(type="New", status="True"), NOW, True, id="new type"),
    ],
)
def test_an_update_is_stamped_when_the_status_moves_and_reported_when_anything_does(
    *, update: PodCondition, stamp: Time, expected: bool
) -> None:
    status = PodStatus(conditions=(condition("Ready"),))
    updated, changed = update_pod_condition(status, update, NOW)
    assert changed is expected
    updated_condition = find_condition(updated.conditions, update.type)
    assert updated_condition is not None
    assert updated_condition.last_transition_time == stamp


def test_an_update_is_stored_even_when_it_is_not_reported() -> None:
    update = PodCondition(type="Ready", status="True", observed_generation=7)
    status, _ = update_pod_condition(PodStatus(conditions=(condition("Ready"),)), update, NOW)
    assert status.conditions is not None
    assert status.conditions[0].observed_generation == 7


def stamped(condition_type: str, status: str, at: Time) -> PodCondition:
    return PodCondition(type=condition_type, status=status, last_transition_time=at)


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param((), NOW, id="new"),
        pytest.param((stamped("Ready", "False", BEFORE),), NOW, id="moved"),
        pytest.param((stamped("Ready", "True", BEFORE),), BEFORE, id="as before"),
        pytest.param((stamped("Ready", "True", Time()),), Time(), id="as before, even null"),
        pytest.param(
            (stamped("Ready", "False", BEFORE), stamped("Ready", "True", BEFORE)),
            NOW,
            id="the first of the old ones counts",
        ),
    ],
)
def test_surprise_23_a_condition_is_stamped_now_unless_it_says_what_it_said_before(
    old: tuple[PodCondition, ...], expected: Time
) -> None:
    transition_time = Time.parse("2020-01-01T00:00:00Z")
    status = PodStatus(conditions=(stamped("Ready", "True", transition_time),))
    after = restamp_conditions(status, PodStatus(conditions=old), ("Ready",), NOW)
    assert condition_of(after, "Ready").last_transition_time == expected


def test_surprise_23_only_the_first_condition_of_a_type_and_only_types_asked_for() -> None:
    twin, custom = stamped("Ready", "False", BEFORE), stamped("Custom", "True", BEFORE)
    status = PodStatus(conditions=(custom, stamped("Ready", "True", BEFORE), twin))
    after = restamp_conditions(status, PodStatus(), ("Ready",), NOW)
    assert after.conditions == (custom, stamped("Ready", "True", NOW), twin)
