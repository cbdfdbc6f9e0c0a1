"""Versions of a pod's status, and the updates that the API server lacks."""

from podstatus.status.decide.versioned_status import (
    UnsentUpdate,
    VersionedStatus,
    next_version,
)
from podstatus.testing.builders import make_pod, make_status

POD = make_pod("web", namespace="shop")
SECOND = 1_000_000_000


def at(seconds: float) -> int:
    """A monotonic time."""
    return round((5000 + seconds) * SECOND)


def updates(count: int, old: VersionedStatus | None = None) -> VersionedStatus:
    """The entry after so many updates, one a second."""
    for second in range(count):
        status = make_status("Running")
        old = next_version(old, POD, status, finished=False, monotonic=at(second))
    assert old is not None
    return old


def test_the_first_version_is_1_and_the_next_is_one_more() -> None:
    first = next_version(None, POD, make_status("Pending"), finished=False, monotonic=at(0))
    second = next_version(first, POD, make_status("Failed"), finished=True, monotonic=at(1))
    assert (first.version, first.finished, first.status.phase) == (1, False, "Pending")
    assert (second.version, second.finished, second.status.phase) == (2, True, "Failed")
    assert (first.namespace, first.name) == (second.namespace, second.name) == ("shop", "web")
    assert second.unsent == (UnsentUpdate(1, at(0)), UnsentUpdate(2, at(1)))


def test_an_acknowledged_update_is_no_longer_unsent() -> None:
    sent = updates(2)
    newer = updates(1, sent)
    assert newer.acknowledged(sent).unsent == newer.unsent[2:]
    assert newer.acknowledged(newer).unsent == ()
    assert newer.acknowledged(newer).version == 3


def test_the_oldest_and_the_newest_unsent_updates_are_kept() -> None:
    full = updates(16)
    assert [update.version for update in full.unsent] == [*range(1, 17)]
    for more in (1, 2, 3):
        kept = [1, *range(2 + more, 17 + more)]
        assert [update.version for update in updates(more, full).unsent] == kept


def test_the_age_is_that_of_the_oldest_unsent_update() -> None:
    entry = updates(3)
    assert entry.unsent_seconds(at(10)) == 10
    assert entry.unsent_seconds(at(10.5)) == 10.5
    assert entry.acknowledged(entry).unsent_seconds(at(10)) is None
