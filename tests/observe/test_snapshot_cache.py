"""A follower of the cache sees each pod in its current state, also after a pause."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.pod import PodUID
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.pod import PodSummary


def pod(name: str, phase: str = "Running") -> PodSummary:
    return PodSummary(uid=PodUID(f"uid-{name}"), namespace="default", name=name, phase=phase)


class Follower:
    """Maintains a copy from changes alone."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.pods: dict[str, PodSummary] = {}

    def follow(self, snapshots: SnapshotCache) -> None:
        news = snapshots.changed_since(self.number)
        if news.reset:
            self.pods = {}
        for _, gone in news.deleted:
            self.pods.pop(gone.uid, None)
        for uid in news.pods:
            self.pods[uid] = snapshots.pods()[uid]
        self.number = news.revision


STEPS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["Pending", "Running", "gone", "look"])),
    max_size=40,
)


@given(STEPS, st.integers(0, 3))
def test_follower_has_what_the_board_has_however_often_it_looks(
    steps: list[tuple[str, str]], max_deleted: int
) -> None:
    snapshots, follower = SnapshotCache(max_deleted=max_deleted), Follower()
    for name, what in steps:
        if what == "look":
            follower.follow(snapshots)
            assert follower.pods == dict(snapshots.pods())
        elif what == "gone":
            snapshots.remove(PodUID(f"uid-{name}"))
        else:
            snapshots.put(pod(name, what))
    follower.follow(snapshots)
    assert follower.pods == dict(snapshots.pods())


def test_same_again_is_no_news() -> None:
    snapshots = SnapshotCache()
    assert snapshots.put(pod("a"))
    number = snapshots.revision
    assert not snapshots.put(pod("a"))
    assert snapshots.revision == number


def test_only_changes_are_returned() -> None:
    snapshots = SnapshotCache()
    for name in "abc":
        snapshots.put(pod(name))
    number = snapshots.revision
    snapshots.put(pod("b", "Failed"))
    snapshots.remove(PodUID("uid-a"))
    news = snapshots.changed_since(number)
    assert news.pods == ("uid-b",)
    assert [gone.name for _, gone in news.deleted] == ["a"]
    assert not news.reset


def test_revision_of_another_cache_is_a_reset() -> None:
    snapshots = SnapshotCache()
    snapshots.put(pod("a"))
    assert snapshots.changed_since(17).reset
    assert snapshots.changed_since(None).reset


async def test_waiting_ends_with_the_next_change() -> None:
    snapshots = SnapshotCache()
    waiting = asyncio.create_task(snapshots.wait(0))
    await asyncio.sleep(0)
    assert not waiting.done()
    snapshots.put(pod("a"))
    await asyncio.wait_for(waiting, 1)
