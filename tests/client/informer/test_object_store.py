"""What lists and watch events make of a copy, in every order."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstatus.client.informer import object_store as replica_module
from podstatus.client.informer.decode import ObjectKey, ObjectState
from podstatus.client.informer.object_store import (
    Added,
    ListResult,
    ObjectChanges,
    ObjectStore,
    Removed,
    Updated,
)
from podstatus.client.informer.resource_version import ResourceVersion
from podstatus.kube.objects.cluster import KubeObject
from podstatus.kube.objects.meta import ObjectMeta
from tests.client.informer.story import Story, version_of

Version = int | str


def thing(name: str, version: Version, uid: str = "u") -> KubeObject:
    return KubeObject(metadata=ObjectMeta(name=name, uid=uid, resource_version=str(version)))


def seen(object_: KubeObject, *, decodable: bool = True) -> ObjectState[KubeObject]:
    metadata = object_.metadata
    version = ResourceVersion.parse(metadata.resource_version)
    key = ObjectKey(metadata.namespace, metadata.name)
    return ObjectState(key, metadata.uid, version, object_ if decodable else None)


def listing(version: Version, *objects: KubeObject) -> ListResult[KubeObject]:
    return ListResult(ResourceVersion.parse(str(version)), [seen(o) for o in objects])


def knowing(version: Version, *objects: KubeObject) -> ObjectStore[KubeObject]:
    replica = ObjectStore[KubeObject]()
    replica.apply_list(listing(version, *objects))
    return replica


A5, A7, A9 = thing("a", 5), thing("a", 7), thing("a", 9)
OTHER_A9 = thing("a", 9, "v")
B6 = thing("b", 6)


def test_the_first_list_adds_all() -> None:
    replica = ObjectStore[KubeObject]()
    assert replica.apply_list(listing(6, A5, B6)) == (Added(A5), Added(B6))
    assert replica.objects() == [A5, B6]
    assert replica.get(ObjectKey("", "a")) == A5
    assert replica.get(ObjectKey("elsewhere", "a")) is None


@pytest.mark.parametrize(
    ("known", "event", "changes"),
    [
        ([A5], A7, (Updated(A5, A7),)),
        ([], A7, (Added(A7),)),
        ([A5], OTHER_A9, (Removed(A5), Added(OTHER_A9))),
        ([A5], A5, None),
        ([], A5, None),
    ],
    ids=["newer", "unknown", "another UID", "known", "covered by the list"],
)
def test_added_and_modified_mean_the_same(
    known: list[KubeObject], event: KubeObject, changes: ObjectChanges[KubeObject] | None
) -> None:
    assert knowing(6, *known).upsert(seen(event)) == changes


@pytest.mark.parametrize(
    ("known", "event", "changes"),
    [
        ([A5], A7, (Removed(A5),)),
        ([A5], OTHER_A9, (Removed(A5),)),
        ([], A7, ()),
        ([A5], A5, None),
    ],
    ids=["known", "another UID", "unknown", "covered by the list"],
)
def test_deleted_removes_the_stored_object(
    known: list[KubeObject], event: KubeObject, changes: ObjectChanges[KubeObject] | None
) -> None:
    assert knowing(6, *known).delete(seen(event)) == changes


def test_what_was_deleted_does_not_come_back_by_an_older_event() -> None:
    replica = knowing(6, A5)
    replica.delete(seen(A9))
    assert replica.upsert(seen(A7)) is None
    assert replica.delete(seen(A9)) is None
    assert replica.upsert(seen(thing("a", 10, "v"))) == (Added(thing("a", 10, "v")),)


def test_a_deletion_that_comes_before_the_creation_is_remembered() -> None:
    replica = knowing(4)
    assert replica.delete(seen(A9)) == ()
    assert replica.upsert(seen(A7)) is None


def test_a_deletion_that_is_older_than_what_is_known_is_no_news() -> None:
    replica = knowing(4)
    replica.upsert(seen(OTHER_A9))
    assert replica.delete(seen(A7)) is None
    assert replica.objects() == [OTHER_A9]


def test_what_is_newer_than_a_list_stays() -> None:
    replica = knowing(4)
    replica.upsert(seen(A9))
    assert replica.apply_list(listing(8, A5)) == ()
    assert replica.apply_list(listing(8)) == ()
    assert replica.objects() == [A9]


def test_what_was_deleted_after_the_list_stays_away() -> None:
    replica = knowing(6, A5)
    replica.delete(seen(A9))
    assert replica.apply_list(listing(8, A7)) == ()
    assert replica.upsert(seen(thing("a", 9))) is None, "the tombstone is newer than the list"


def test_a_list_removes_updates_and_replaces() -> None:
    gone, same, changed, other = (thing(name, 5) for name in "gsco")
    replica = knowing(6, gone, same, changed, other)
    newer, another = thing("c", 8), thing("o", 9, "v")
    assert replica.apply_list(listing(9, newer, another, same)) == (
        Removed(gone),
        Updated(changed, newer),
        Removed(other),
        Added(another),
    )


def test_a_list_that_is_older_than_the_last_says_nothing() -> None:
    replica = knowing(8, A7)
    assert replica.apply_list(listing(6, A5, B6)) == ()


def test_tombstones_are_forgotten_when_a_list_covers_them() -> None:
    replica = knowing(6, A5)
    replica.delete(seen(A9))
    replica.apply_list(listing(9))
    assert replica.upsert(seen(A7)) is None


def test_tombstones_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_module, "MAX_TOMBSTONES", 3)
    replica = knowing(6)
    for index in range(10):
        replica.delete(seen(thing(f"n{index}", 10 + index)))
    # An older version of a deleted object is ignored only while its tombstone is there.
    seen_again = [index for index in range(10) if replica.upsert(seen(thing(f"n{index}", 9)))]
    assert seen_again == list(range(7))


def test_what_cannot_be_decoded_is_skipped() -> None:
    replica = knowing(6, A5)
    assert replica.upsert(seen(A7, decodable=False)) == ()
    assert replica.objects() == [A5]
    assert replica.upsert(seen(thing("x", 8), decodable=False)) == ()
    assert replica.upsert(seen(A9)) == (Updated(A5, A9),)


def test_what_cannot_be_decoded_in_a_list_is_not_removed() -> None:
    replica = knowing(6, A5, B6)
    unread = ListResult(ResourceVersion.parse("8"), [seen(A7, decodable=False)])
    assert replica.apply_list(unread) == (Removed(B6),)
    assert replica.objects() == [A5]


def test_another_one_that_cannot_be_decoded_takes_the_place_of_ours() -> None:
    replica = knowing(4)
    replica.upsert(seen(A5))
    assert replica.upsert(seen(OTHER_A9, decodable=False)) == (Removed(A5),)
    assert replica.upsert(seen(A7)) is None


def test_versions_that_are_no_numbers_count_in_the_order_of_delivery() -> None:
    first, second = thing("a", "x"), thing("a", "b")
    replica = knowing("list", first)
    assert replica.upsert(seen(first)) is None
    assert replica.upsert(seen(second)) == (Updated(first, second),)
    assert replica.upsert(seen(first)) == (Updated(second, first),)
    assert replica.delete(seen(first)) == (Removed(first),)
    assert replica.upsert(seen(second)) == (Added(second),)


@pytest.mark.parametrize("text", ["", "x", "-1", "+1", "1_0", " 1", "1.0", "٣", "9" * 41])
def test_only_digits_are_a_number(text: str) -> None:
    assert ResourceVersion.parse(text).number is None
    assert ResourceVersion.parse(text).text == text


def test_versions_are_compared_as_numbers() -> None:
    nine, ten = ResourceVersion.parse("9"), ResourceVersion.parse("10")
    assert ten.is_after(nine)
    assert nine.is_covered_by(ten)
    assert not ten.is_covered_by(nine)


def test_a_list_from_another_history_replaces_everything() -> None:
    old, gone, same = thing("a", 90), thing("g", 80), thing("s", 5)
    replica = knowing(100, old, gone, same)
    replica.delete(seen(thing("d", 110)))
    older, buried = thing("a", 3), thing("d", 4)
    assert replica.replace(listing(7, older, buried, same)) == (
        Removed(gone),
        Updated(old, older),
        Added(buried),
    )
    newer = thing("s", 8)
    assert replica.upsert(seen(same)) is None
    assert replica.upsert(seen(newer)) == (Updated(same, newer),), "versions count from here on"


def test_what_cannot_be_decoded_in_another_history_can_be_updated_there() -> None:
    replica = knowing(100, thing("a", 90))
    unread = ListResult(ResourceVersion.parse("7"), [seen(thing("a", 5), decodable=False)])
    assert replica.replace(unread) == ()
    assert replica.upsert(seen(A9)) == (Updated(thing("a", 90), A9),)


def test_others_may_look_while_it_changes() -> None:
    replica, stopped, seen_by_others = knowing(0), threading.Event(), [0]

    def look() -> None:
        while not stopped.is_set():
            seen_by_others.append(len(replica.objects()))
            replica.get(ObjectKey("", "n5"))

    with ThreadPoolExecutor() as threads:
        looking = threads.submit(look)
        for version in range(1, 20_000):
            take = replica.upsert if version % 300 < 200 else replica.delete
            take(seen(thing(f"n{version % 100}", version)))
        stopped.set()
        looking.result(timeout=90)
    assert max(seen_by_others) <= 100


class Write(NamedTuple):
    """An event in a server's history."""

    object: KubeObject
    deleted: bool
    decodable: bool


@st.composite
def histories(draw: st.DrawFn) -> list[Write]:
    """Objects that are created, changed, deleted and recreated."""
    writes: list[Write] = []
    alive: dict[str, str] = {}
    version = 0
    for _ in range(draw(st.integers(1, 25))):
        version += draw(st.integers(1, 3))
        name = draw(st.sampled_from("abc"))
        deleted = name in alive and draw(st.booleans())
        uid = alive.pop(name) if deleted else alive.setdefault(name, f"{name}{version}")
        decodable = draw(st.integers(0, 9)) > 0
        writes.append(Write(thing(name, version, uid), deleted, decodable))
    return writes


def state_at(writes: Sequence[Write], version: int) -> dict[str, Write]:
    state: dict[str, Write] = {}
    for write in writes:
        if version_of(write.object) > version:
            break
        if write.deleted:
            del state[write.object.metadata.name]
        else:
            state[write.object.metadata.name] = write
    return state


class Delivery:
    """Delivers a history to a replica, imperfectly, and checks the reported changes."""

    def __init__(self, writes: list[Write]) -> None:
        self._writes = writes
        self._next = 0
        self._listed = 0
        self.replica = ObjectStore[KubeObject]()
        self.story = Story[KubeObject]()

    def deliver(self, index: int) -> None:
        write = self._writes[index % len(self._writes)]
        sighting = seen(write.object, decodable=write.decodable)
        take = self.replica.delete if write.deleted else self.replica.upsert
        self._tell(take(sighting) or ())

    def go_on(self) -> None:
        if self._next < len(self._writes):
            self.deliver(self._next)
            self._next += 1

    def list(self, ahead: int) -> None:
        """Apply a list, never an older one than the last: lists are consistent and sequential."""
        newest = version_of(self._writes[-1].object)
        self._listed = min(newest, self._listed + ahead)
        items = state_at(self._writes, self._listed).values()
        sightings = [seen(write.object, decodable=write.decodable) for write in items]
        self._tell(
            self.replica.apply_list(ListResult(ResourceVersion.parse(str(self._listed)), sightings))
        )

    def finish(self) -> None:
        while self._next < len(self._writes):
            self.go_on()

    def _tell(self, changes: ObjectChanges[KubeObject]) -> None:
        for change in changes:
            self.story(change)


@settings(max_examples=400)
@given(histories(), st.lists(st.tuples(st.sampled_from("ddrrl"), st.integers(0, 60)), max_size=40))
def test_however_it_is_delivered_the_end_is_right_and_the_story_in_order(
    writes: list[Write], steps: list[tuple[str, int]]
) -> None:
    delivery = Delivery(writes)
    for step, number in steps:
        match step:
            case "d":
                delivery.go_on()
            case "r":
                delivery.deliver(number)
            case "l":
                delivery.list(number % 8)
    delivery.finish()
    changes = {key.name: object_ for key, object_ in delivery.story.objects.items()}
    assert {id(o) for o in changes.values()} == {id(o) for o in delivery.replica.objects()}
    expected = state_at(writes, version_of(writes[-1].object))
    for name, write in expected.items():
        if write.decodable:
            assert changes.pop(name) is write.object
        elif name in changes:
            assert changes.pop(name).metadata.uid == write.object.metadata.uid
    assert not changes
