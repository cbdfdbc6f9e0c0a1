import pytest
from msgspec import structs

from podstatus.kube.objects.pod import ApiUID, Pod
from podstatus.status.sync.state.patch_base import MAX_WATCH_LAG_SECONDS, KnownCopies
from podstatus.testing.builders import make_pod

UID = ApiUID("uid-pod")


def at(version: str, uid: str = "uid-pod") -> Pod:
    """Return a copy of the pod with this resource version."""
    pod = make_pod(uid=uid)
    return structs.replace(pod, metadata=structs.replace(pod.metadata, resource_version=version))


@pytest.mark.parametrize(
    ("answer", "shown", "newest"),
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
def test_the_newest_copy_is_the_base_where_anybody_can_tell(
    answer: str | None, shown: str | None, newest: str | None
) -> None:
    bases = KnownCopies()
    if answer is not None:
        bases.response_received(at(answer), 0)
    found = bases.patch_base(UID, None if shown is None else at(shown), 0)
    assert (found.metadata.resource_version if found else None) == newest


def test_the_copy_of_another_pod_is_no_base() -> None:
    assert KnownCopies().patch_base(UID, at("7", uid="another"), 0) is None


def test_an_answer_that_the_watch_has_overtaken_does_not_come_back() -> None:
    bases = KnownCopies()
    bases.response_received(at("7"), 0)
    bases.patch_base(UID, at("8"), 0)
    assert bases.patch_base(UID, None, 0) is None


def test_the_last_answer_counts_though_its_number_is_smaller() -> None:
    bases = KnownCopies()
    bases.response_received(at("1000"), 0)
    bases.response_received(at("5"), 0)
    assert bases.patch_base(UID, at("6"), 0) == at("6")


def test_a_patch_without_an_answer_leaves_doubt_until_there_is_one() -> None:
    bases = KnownCopies()
    bases.patch_started(UID)
    assert bases.patch_base(UID, at("7"), 0) is None
    bases.response_received(at("8"), 0)
    assert bases.patch_base(UID, at("7"), 0) == at("8")


def test_a_patch_that_was_not_taken_leaves_no_doubt() -> None:
    bases = KnownCopies()
    bases.patch_started(UID)
    bases.patch_not_applied(UID)
    assert bases.patch_base(UID, at("7"), 0) == at("7")


def test_an_answer_that_the_watch_does_not_show_for_long_is_doubted() -> None:
    bases = KnownCopies()
    bases.response_received(at("1000"), 0)
    assert bases.patch_base(UID, at("5"), MAX_WATCH_LAG_SECONDS) == at("1000")
    assert bases.patch_base(UID, at("5"), MAX_WATCH_LAG_SECONDS + 1) is None
    assert bases.patch_base(UID, at("1001"), MAX_WATCH_LAG_SECONDS + 1) == at("1001")


def test_what_is_forgotten_has_to_be_asked_for() -> None:
    bases = KnownCopies()
    bases.response_received(at("7"), 0)
    bases.forget(UID)
    assert bases.patch_base(UID, at("7"), 0) is None


def test_objects_that_are_not_kept_leave_nothing_behind() -> None:
    bases = KnownCopies()
    bases.response_received(at("7"), 0)
    bases.patch_started(UID)
    bases.retain_only(set())
    assert bases.patch_base(UID, None, 0) is None
    assert bases.patch_base(UID, at("3"), 0) == at("3")
