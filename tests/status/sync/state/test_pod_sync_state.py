import pytest
from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import ApiUID, Pod
from podstatus.status.decide.foreign_writes import StatusPart
from podstatus.status.sync.state.pod_sync_state import (
    MAX_WATCH_LAG_SECONDS,
    NO_FOREIGN_WRITES,
    PodSyncState,
)
from podstatus.testing.builders import make_pod, make_status

UID = ApiUID("uid-pod")
NEW = PodSyncState(api_uid=UID)
GATES = FeatureGates()
KEY = (StatusPart("phase"), "kubectl")


def at(version: str, phase: str = "Running") -> Pod:
    """Return a copy of the pod with this resource version."""
    pod = make_pod(status=make_status(phase))
    return structs.replace(pod, metadata=structs.replace(pod.metadata, resource_version=version))


@pytest.mark.parametrize(
    ("copy", "observed", "newest"),
    [
        (None, None, None),
        (None, "7", "7"),
        ("7", None, "7"),
        ("9", "7", "9"),
        ("7", "9", "9"),
        ("10", "9", "10"),
        ("9", "10", "10"),
        (None, "", None),
        (None, "abc", None),
        (None, "-1", None),
        (None, "٣", None),
        ("abc", None, None),
        ("abc", "7", None),
        ("7", "abc", None),
        ("7", "", None),
    ],
)
def test_a_patch_is_based_on_the_newest_comparable_copy(
    copy: str | None, observed: str | None, newest: str | None
) -> None:
    state = NEW if copy is None else NEW.read(at(copy), 0)
    base = state.patch_base(None if observed is None else at(observed), 0)
    assert (base.metadata.resource_version if base else None) == newest


def test_the_last_response_counts_although_its_version_is_lower() -> None:
    state = NEW.read(at("1000"), 0).read(at("5"), 0)
    assert state.patch_base(at("6"), 0) == at("6")


def test_a_new_pod_is_neither_queued_nor_in_flight_nor_known() -> None:
    assert (
        PodSyncState(
            api_uid=UID,
            deadline=None,
            in_flight=False,
            is_probe=False,
            retry=None,
            wakeup=None,
            sent_version=0,
            has_been_ready=False,
            server_copy=None,
            is_uncertain=False,
            may_land_late=False,
            foreign=NO_FOREIGN_WRITES,
        )
        == NEW
    )


def test_a_patch_without_a_response_requires_a_get() -> None:
    state = NEW.patch_started()
    assert state.patch_base(at("7"), 0) is None
    assert state.read(at("8"), 0).patch_base(at("7"), 0) == at("8")
    assert state.acknowledged(at("8"), 1, 0).patch_base(at("7"), 0) == at("8")


def test_a_patch_that_was_not_applied_requires_no_get() -> None:
    assert NEW.patch_started().patch_not_applied(may_land_late=False).patch_base(at("7"), 0) == at(
        "7"
    )


def test_a_response_that_the_watch_does_not_show_for_long_requires_a_get() -> None:
    state = NEW.acknowledged(at("1000"), 1, 0)
    assert MAX_WATCH_LAG_SECONDS == 60  # as in decision 0016
    assert state.patch_base(at("5"), MAX_WATCH_LAG_SECONDS) == at("1000")
    assert state.patch_base(at("5"), MAX_WATCH_LAG_SECONDS + 1) is None
    for shown in ("1000", "1001"):
        assert state.patch_base(at(shown), MAX_WATCH_LAG_SECONDS + 1) == at(shown)


def test_an_equal_status_does_not_make_an_old_response_younger() -> None:
    copy = at("1000")
    state = NEW.acknowledged(copy, 1, 0).acknowledged(copy, 2, MAX_WATCH_LAG_SECONDS)
    assert state.sent_version == 2
    assert state.patch_base(at("5"), MAX_WATCH_LAG_SECONDS + 1) is None


def test_a_patch_may_land_late_until_a_later_one_is_answered() -> None:
    late = NEW.patch_started()
    assert late.read(at("8"), 0).may_land_late
    assert not late.acknowledged(at("8"), 1, 0).may_land_late
    assert late.patch_not_applied(may_land_late=True).may_land_late  # an earlier one
    assert not late.patch_not_applied(may_land_late=False).may_land_late
    assert not late.object_replaced().may_land_late  # or a conflict would be followed by another
    assert not late.for_object(ApiUID("other")).may_land_late


def test_a_replaced_object_requires_a_get() -> None:
    replaced = NEW.read(at("7"), 0).object_replaced()
    assert replaced.patch_base(at("7"), 0) is None
    assert replaced.server_copy is None


def test_readiness_is_remembered() -> None:
    ready = make_pod(status=make_status("Running", Ready="True"))
    state = NEW.acknowledged(ready, 1, 0)
    assert state.has_been_ready
    assert state.acknowledged(at("9"), 2, 0).has_been_ready


def test_another_object_keeps_nothing_but_the_place_in_the_queue() -> None:
    state = structs.replace(NEW, deadline=3.0, in_flight=True, is_probe=True, wakeup=5.0)
    known = state.acknowledged(at("7"), 4, 0)
    other = ApiUID("mirror-2")
    assert known.for_object(UID) is known
    assert known.for_object(other) == structs.replace(state, api_uid=other)


@pytest.mark.parametrize(
    "state",
    [
        NEW,
        structs.replace(NEW.read(at("7"), 0), in_flight=True),
        NEW.read(at("7"), 0).patch_started(),
        NEW.read(at("8", "Failed"), 0),
        NEW.read(at("9"), 0),
    ],
    ids=["no copy", "in flight", "uncertain", "same version", "newer copy"],
)
def test_a_foreign_write_is_not_seen_without_an_older_certain_copy(state: PodSyncState) -> None:
    assert state.observed(at("8", "Failed"), GATES, 1) == (state, False)


def test_a_foreign_write_is_corrected_at_once_a_few_times_a_minute() -> None:
    state, corrections = NEW.read(at("1"), 0), []
    for number in range(2, 6):
        phase = "Failed" if number % 2 == 0 else "Running"
        state, correct = state.observed(at(str(number), phase), GATES, 0)
        corrections.append(correct)
    assert corrections == [True, True, True, False]
    assert not state.observed(at("99", "Pending"), GATES, 59)[1]
    assert state.observed(at("99", "Pending"), GATES, 60)[1]
    (write,) = state.foreign.pending.values()
    assert (write.before, write.after) == ("Running", "Running")


def test_an_observed_copy_without_a_foreign_write_is_the_new_base() -> None:
    state, correct = NEW.read(at("1"), 0).observed(at("2"), GATES, 0)
    assert not correct
    assert not state.foreign.pending
    assert state.patch_base(None, 0) == at("2")


def test_a_write_is_reported_once_per_interval() -> None:
    foreign, first = NO_FOREIGN_WRITES.try_report(KEY, 0)
    foreign, again = foreign.try_report(KEY, 599.5)
    foreign, later = foreign.try_report(KEY, 600)
    assert (first, again, later) == (True, False, True)
