import pytest
from msgspec import structs

from podstatus.kube.objects.pod_status import PodCondition
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.resize import (
    NO_RESIZE,
    ResizeConditions,
    backfill_conditions,
    count_in_progress,
    pending_by_reason,
    with_in_progress,
    with_pending,
)
from podstatus.testing.builders import make_pod, make_status
from tests.support.status_node import Node

BEFORE = Time.parse("2024-01-01T00:00:00Z")
NOW = Time.parse("2024-01-01T00:01:00Z")
UID = "uid-pod"


def pending(reason: str = "Deferred", message: str = "old", generation: int = 1) -> PodCondition:
    return PodCondition(
        type="PodResizePending",
        status="True",
        reason=reason,
        message=message,
        observed_generation=generation,
        last_probe_time=BEFORE,
        last_transition_time=BEFORE,
    )


def in_progress(reason: str = "", message: str = "", generation: int = 1) -> PodCondition:
    return structs.replace(pending(reason, message, generation), type="PodResizeInProgress")


# Pending


@pytest.mark.parametrize(
    ("reason", "stored"),
    [
        ("Infeasible", "Infeasible"),
        ("Deferred", "Deferred"),
        ("infeasible", "Deferred"),
        ("Whatever", "Deferred"),
        ("", "Deferred"),
    ],
)
def test_surprise_31_any_pending_reason_but_infeasible_becomes_deferred(
    reason: str, stored: str
) -> None:
    conditions, changed = with_pending(NO_RESIZE, reason, "why", 2, NOW)
    assert changed
    assert conditions.pending == PodCondition(
        type="PodResizePending",
        status="True",
        reason=stored,
        message="why",
        observed_generation=2,
        last_probe_time=NOW,
        last_transition_time=NOW,
    )


@pytest.mark.parametrize(
    ("reason", "message", "generation", "changed", "moved"),
    [
        pytest.param("Deferred", "old", 1, False, BEFORE, id="same"),
        pytest.param("Deferred", "new", 1, False, BEFORE, id="message only"),
        pytest.param("Deferred", "old", 2, True, BEFORE, id="generation"),
        pytest.param("Infeasible", "old", 1, True, NOW, id="reason"),
    ],
)
def test_surprise_32_a_new_pending_message_is_stored_without_being_a_change(
    *, reason: str, message: str, generation: int, changed: bool, moved: Time
) -> None:
    before = ResizeConditions(pending=pending(), in_progress=in_progress())
    after, has_changed = with_pending(before, reason, message, generation, NOW)
    assert has_changed is changed
    assert after.pending is not None
    assert (after.pending.message, after.pending.observed_generation) == (message, generation)
    assert (after.pending.last_probe_time, after.pending.last_transition_time) == (NOW, moved)
    assert after.in_progress == before.in_progress


# In progress


@pytest.mark.parametrize(
    ("reason", "message", "expected", "changed"),
    [
        pytest.param("", "", ("Error", "old"), False, id="neither is given: both are kept"),
        pytest.param("Error", "old", ("Error", "old"), False, id="same"),
        pytest.param("Error", "new", ("Error", "new"), True, id="message"),
        pytest.param("", "new", ("", "new"), True, id="a message alone clears the reason"),
        pytest.param("Other", "", ("Other", ""), True, id="a reason alone clears the message"),
    ],
)
def test_surprise_33_in_progress_keeps_its_generation_and_a_message_alone_clears_the_reason(
    *, reason: str, message: str, expected: tuple[str, str], changed: bool
) -> None:
    before = ResizeConditions(pending=pending(), in_progress=in_progress("Error", "old", 3))
    after, generation, has_changed = with_in_progress(before, reason, message, 9, NOW)
    assert (generation, has_changed) == (3, changed)
    assert after.in_progress is not None
    assert (after.in_progress.reason, after.in_progress.message) == expected
    assert after.in_progress.observed_generation == 3
    assert after.in_progress.last_probe_time == NOW
    assert after.pending == before.pending


def test_the_first_in_progress_takes_the_generation_given() -> None:
    after, generation, changed = with_in_progress(NO_RESIZE, "", "", 9, NOW)
    assert (generation, changed) == (9, True)
    assert after.in_progress is not None
    assert after.in_progress.last_transition_time == NOW


def test_in_progress_moves_only_with_its_reason() -> None:
    before = ResizeConditions(in_progress=in_progress("Error", "old"))
    same, _, _ = with_in_progress(before, "Error", "new", 1, NOW)
    other, _, _ = with_in_progress(before, "Other", "new", 1, NOW)
    assert same.in_progress is not None
    assert other.in_progress is not None
    assert same.in_progress.last_transition_time == BEFORE
    assert other.in_progress.last_transition_time == NOW


# Backfill and counting


def test_surprise_31_backfill_keeps_the_reason_and_sets_new_times() -> None:
    status = structs.replace(
        make_status("Running", Ready="True"),
        conditions=(pending("Odd", "why", 4), in_progress("Error", "how", 5)),
    )
    backfilled = backfill_conditions(NO_RESIZE, status, NOW)
    now = {"last_probe_time": NOW, "last_transition_time": NOW}
    assert backfilled.pending == structs.replace(pending("Odd", "why", 4), **now)
    assert backfilled.in_progress == structs.replace(in_progress("Error", "how", 5), **now)


def test_backfill_from_a_status_without_resize_changes_nothing() -> None:
    conditions = ResizeConditions(pending=pending())
    assert backfill_conditions(conditions, make_status("Running", Ready="True"), NOW) is conditions


def test_conditions_are_listed_pending_first() -> None:
    both = ResizeConditions(pending=pending(), in_progress=in_progress())
    assert both.as_tuple() == (pending(), in_progress())
    assert NO_RESIZE.as_tuple() == ()


def test_pending_resizes_are_counted_by_reason_in_lower_case() -> None:
    conditions = (
        ResizeConditions(pending=pending("Deferred"), in_progress=in_progress()),
        ResizeConditions(pending=pending("Deferred")),
        ResizeConditions(pending=pending("Infeasible")),
        NO_RESIZE,
    )
    assert pending_by_reason(conditions) == {"deferred": 2, "infeasible": 1}
    assert count_in_progress(conditions) == 1


# Through the manager


def test_a_pending_resize_is_deferred_or_infeasible_until_cleared() -> None:
    manager = Node().manager
    assert not manager.is_pod_resize_deferred(UID)
    assert manager.set_pod_resize_pending_condition(UID, "Whatever", "later", 1)
    assert manager.is_pod_resize_deferred(UID)
    assert not manager.is_pod_resize_infeasible(UID)
    assert manager.set_pod_resize_pending_condition(UID, "Infeasible", "never", 1)
    assert manager.is_pod_resize_infeasible(UID)
    manager.clear_pod_resize_pending_condition(UID)
    assert not manager.is_pod_resize_infeasible(UID)
    assert manager.pod_resize_conditions(UID) == ()


def test_clearing_in_progress_answers_with_its_generation() -> None:
    manager = Node().manager
    assert manager.clear_pod_resize_in_progress_condition(UID) is None
    assert manager.set_pod_resize_in_progress_condition(UID, "", "", 4) == (4, True)
    assert manager.set_pod_resize_in_progress_condition(UID, "", "", 5) == (4, False)
    assert manager.clear_pod_resize_in_progress_condition(UID) == 4
    assert manager.set_pod_resize_in_progress_condition(UID, "", "", 5) == (5, True)


def test_both_conditions_are_kept_side_by_side_and_stamped_by_the_clock() -> None:
    node = Node()
    node.manager.set_pod_resize_in_progress_condition(UID, "", "", 1)
    node.manager.set_pod_resize_pending_condition(UID, "Deferred", "", 2)
    listed = node.manager.pod_resize_conditions(UID)
    assert [c.type for c in listed] == ["PodResizePending", "PodResizeInProgress"]
    assert {c.last_transition_time for c in listed} == {node.now}


def test_resizing_is_no_status_change() -> None:
    node = Node(make_pod())
    node.manager.set_pod_resize_pending_condition(UID, "Deferred", "", 1)
    assert not node.manager.pop_changes()
    assert node.manager.pod_status(UID) is None


def test_backfill_takes_over_what_the_pods_show() -> None:
    node = Node()
    shown = structs.replace(make_status("Running"), conditions=(pending("Odd"), in_progress()))
    pods = [make_pod("a", status=shown), make_pod("b")]
    node.manager.backfill_pod_resize_conditions(iter(pods))
    assert set(node.manager.resizes()) == {"uid-a"}
    assert (node.observer.pending, node.observer.in_progress) == ({"odd": 1}, 1)


def test_surprise_34_orphan_removal_keeps_resizes_of_pods_without_a_cached_status() -> None:
    cached, uncached = make_pod("cached"), make_pod("uncached")
    node = Node(cached, uncached)
    node.manager.set_pod_status(cached, make_status("Running"))
    for pod in (cached, uncached):
        node.manager.set_pod_resize_pending_condition(pod.uid, "Deferred", "", 1)
        node.manager.set_pod_resize_in_progress_condition(pod.uid, "", "", 1)
    node.manager.remove_orphaned_statuses(set())
    assert node.manager.pod_resize_conditions(cached.uid) == ()
    assert node.manager.pod_resize_conditions(uncached.uid) != ()
    assert (node.observer.pending, node.observer.in_progress) == ({"deferred": 1}, 1)


def test_the_pending_gauge_is_not_recounted_when_only_the_reason_changes() -> None:
    node = Node()
    node.manager.set_pod_resize_pending_condition("a", "Deferred", "", 1)
    node.manager.set_pod_resize_pending_condition("a", "Infeasible", "", 1)
    assert node.observer.pending == {"deferred": 1}
    node.manager.set_pod_resize_pending_condition("b", "Deferred", "", 1)
    assert node.observer.pending == {"infeasible": 1, "deferred": 1}


def test_the_pending_gauge_follows_clearing_but_not_clearing_nothing() -> None:
    node = Node()
    node.manager.set_pod_resize_pending_condition("a", "Deferred", "", 1)
    node.manager.set_pod_resize_pending_condition("a", "Infeasible", "", 1)
    node.manager.clear_pod_resize_pending_condition("b")
    assert node.observer.pending == {"deferred": 1}
    assert set(node.manager.resizes()) == {"a"}
    node.manager.clear_pod_resize_pending_condition("a")
    assert node.observer.pending == {}


def test_the_in_progress_gauge_follows_setting_and_clearing() -> None:
    node = Node()
    node.manager.set_pod_resize_in_progress_condition("a", "", "", 1)
    node.manager.set_pod_resize_in_progress_condition("b", "", "", 1)
    assert node.observer.in_progress == 2
    node.manager.clear_pod_resize_in_progress_condition("a")
    assert node.observer.in_progress == 1
