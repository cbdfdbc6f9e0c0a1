"""Correlation of events, with the scenarios of upstream and further ones.

Upstream: TestEventCorrelator, client-go v0.36.4, tools/record/events_cache_test.go.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.events.correlator import (
    AGGREGATE_MAX_EVENTS,
    AGGREGATE_PREFIX,
    MAX_LRU_CACHE_ENTRIES,
    SPAM_BURST,
    CorrelateResult,
    Create,
    EventCorrelator,
    LRUCache,
    Patch,
    Suppressed,
    aggregate,
)
from podstatus.events.new_event import PendingEvent, new_event
from podstatus.events.object_references import container_reference, pod_reference
from podstatus.kube.objects.event import Event, EventSource
from podstatus.kube.objects.meta import ObjectReference
from podstatus.testing.builders import make_pod

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
SOURCE = EventSource(component="kubelet", host="node-a")
POD = make_pod("p", containers=["a", "b"])


class Happening(msgspec.Struct, frozen=True):
    reason: str
    message: str = "m"
    about: ObjectReference = pod_reference(POD)
    type: str = "Normal"

    def at(self, now: int) -> Event:
        return new_event(
            PendingEvent(self.about, self.type, self.reason, self.message, now), SOURCE
        )


def play(
    happenings: Iterable[Happening], *, every: float, correlator: EventCorrelator | None = None
) -> list[CorrelateResult]:
    """Correlate events that happen `every` seconds; return the result of each."""
    correlator = correlator or EventCorrelator()
    moments = (round(START + number * every * SECOND) for number in range(10**6))
    return [
        correlator.correlate(happening.at(now), now)
        for happening, now in zip(happenings, moments, strict=False)
    ]


def similar(number: int, first: int = 0) -> list[Happening]:
    return [Happening("similar", f"message {i}") for i in range(first, first + number)]


def unique(number: int) -> list[Happening]:
    return [Happening(f"r{i}", f"m{i}", pod_reference(make_pod(f"p{i}"))) for i in range(number)]


SAME = Happening("same")
IN_A = Happening("similar", about=container_reference(POD, "a"))
IN_B = Happening("similar", about=container_reference(POD, "b"))
LAST = Happening("similar", "last")

SCENARIOS: dict[str, tuple[list[Happening], float, type[CorrelateResult], int, str]] = {
    "a single event": ([SAME], 5, Create, 1, "m"),
    "the same again is counted": ([SAME] * 2, 5, Patch, 2, "m"),
    "the same often is still counted": ([SAME] * 11, 30, Patch, 11, "m"),
    "the same too often is spam": ([SAME] * 27, 1, Suppressed, 27, "m"),
    "many that have nothing in common": ([*unique(30), SAME], 5, Create, 1, "m"),
    "the tenth that is similar": ([*similar(9), LAST], 5, Create, 1, f"{AGGREGATE_PREFIX}last"),
    "the eleventh that is similar": ([*similar(10), LAST], 5, Patch, 2, f"{AGGREGATE_PREFIX}last"),
    "the same of two containers": ([IN_B, IN_A], 5, Create, 1, "m"),
    "similar ones at long intervals": ([*similar(9), LAST], 601, Create, 1, "last"),
    "similar ones at just not so long ones": (
        [*similar(9), LAST],
        600,
        Create,
        1,
        f"{AGGREGATE_PREFIX}last",
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_becomes_of_the_last_of(name: str) -> None:
    happenings, every, kind, count, message = SCENARIOS[name]
    result = play(happenings, every=every)[-1]
    assert type(result) is kind
    assert (result.event.count, result.event.message) == (count, message)


def test_a_repeat_keeps_name_and_beginning_and_patches_the_rest() -> None:
    first, again = play([SAME] * 2, every=5)
    assert isinstance(again, Patch)
    assert again.event.metadata == first.event.metadata
    assert again.event.first_timestamp == first.event.first_timestamp
    assert again.event.last_timestamp.unix_nanos() == START + 5 * SECOND
    assert again.patch == b'{"count":2,"lastTimestamp":"2023-11-14T22:13:25Z","message":"m"}'


def test_an_empty_message_is_not_patched() -> None:
    *_, again = play([structs.replace(SAME, message="")] * 2, every=5)
    assert isinstance(again, Patch)
    assert b"message" not in again.patch


def test_bytes_that_are_no_text_can_be_patched() -> None:
    *_, again = play([structs.replace(SAME, message="\udcff<")] * 2, every=5)
    assert isinstance(again, Patch)
    assert msgspec.json.decode(again.patch)["message"] == "\N{REPLACEMENT CHARACTER}<"


def test_similar_events_are_one_event_whose_message_is_the_newest() -> None:
    results = play(similar(13), every=5)
    assert [type(result) for result in results] == [Create] * 10 + [Patch] * 3
    combined = results[9:]
    assert {result.event.metadata.name for result in combined} == {results[9].event.metadata.name}
    assert [result.event.message for result in combined] == [
        f"{AGGREGATE_PREFIX}message {i}" for i in range(9, 13)
    ]


def test_a_message_with_an_event_of_its_own_stays_with_it() -> None:
    results = play([*similar(11), *similar(9)], every=5)
    assert [result.event.message for result in results[-9:]] == [f"message {i}" for i in range(9)]
    assert {result.event.count for result in results[-9:]} == {2}


def test_similar_events_are_single_again_after_ten_quiet_minutes() -> None:
    correlator = EventCorrelator()
    play(similar(12), every=1, correlator=correlator)
    quiet = START + 612 * SECOND
    result = correlator.correlate(LAST.at(quiet), quiet)
    assert result == Create(LAST.at(quiet))


def test_what_is_held_back_is_counted_all_the_same() -> None:
    correlator = EventCorrelator()
    results = play([SAME] * 40, every=1, correlator=correlator)
    kinds = [type(result) for result in results]
    assert kinds == [Create] + [Patch] * 24 + [Suppressed] * 15
    later = START + 340 * SECOND
    result = correlator.correlate(SAME.at(later), later)
    assert isinstance(result, Patch)
    assert result.event.count == 41


@pytest.mark.parametrize("every", [299, 300])
def test_one_more_is_let_through_every_five_minutes(every: int) -> None:
    correlator = EventCorrelator()
    play([SAME] * SPAM_BURST, every=0, correlator=correlator)
    moments = [START + number * every * SECOND for number in range(1, 6)]
    results = [correlator.correlate(SAME.at(now), now) for now in moments]
    assert isinstance(results[0], Suppressed) == (every < 300)
    assert sum(isinstance(result, Suppressed) for result in results) == (1 if every < 300 else 0)


OTHERS: dict[str, Happening] = {
    "type": structs.replace(SAME, type="Warning"),
    "object": structs.replace(SAME, about=pod_reference(make_pod("q"))),
    "UID": structs.replace(SAME, about=pod_reference(make_pod("p", uid="other"))),
}


@pytest.mark.parametrize("what", OTHERS)
def test_spam_about_one_thing_does_not_silence_another(what: str) -> None:
    results = play([*[SAME] * 30, OTHERS[what]], every=1)
    assert isinstance(results[-2], Suppressed)
    assert isinstance(results[-1], Create)


@pytest.mark.parametrize(
    "other", [structs.replace(SAME, reason="other"), IN_A, structs.replace(SAME, message="x")]
)
def test_spam_is_about_an_object_whatever_is_said(other: Happening) -> None:
    assert isinstance(play([*[SAME] * 30, other], every=1)[-1], Suppressed)


def test_a_new_version_of_the_object_changes_nothing() -> None:
    newer = structs.replace(SAME.about, resource_version="8")
    assert isinstance(play([SAME, structs.replace(SAME, about=newer)], every=1)[-1], Patch)


def test_fields_that_are_equal_only_when_joined_are_different_events() -> None:
    one = structs.replace(SAME, reason="ab", message="c")
    other = structs.replace(SAME, reason="a", message="bc")
    assert [type(result) for result in play([one, other], every=1)] == [Create, Create]


def test_a_clock_that_is_set_back_stops_nothing() -> None:
    correlator = EventCorrelator()
    play([SAME] * 2, every=1, correlator=correlator)
    earlier = START - 86_400 * SECOND
    assert isinstance(correlator.correlate(SAME.at(earlier), earlier), Patch)
    for _ in range(30):
        correlator.correlate(SAME.at(earlier), earlier)
    later = earlier + 300 * SECOND
    assert isinstance(correlator.correlate(SAME.at(later), later), Patch)


# Memory


def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    recent: LRUCache[int] = LRUCache(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]
    recent.put("a", 4)
    assert (recent.get("a"), len(recent)) == (4, 2)


def test_memory_is_bounded() -> None:
    correlator = EventCorrelator()
    play(unique(MAX_LRU_CACHE_ENTRIES + 100), every=0, correlator=correlator)
    assert correlator.sizes == (MAX_LRU_CACHE_ENTRIES,) * 3
    # The first is forgotten, the last is not.
    last, first = unique(MAX_LRU_CACHE_ENTRIES + 100)[-1], unique(1)[0]
    assert isinstance(correlator.correlate(last.at(START), START), Patch)
    assert isinstance(correlator.correlate(first.at(START), START), Create)


def test_a_group_never_remembers_more_than_it_needs() -> None:
    group = None
    for event in similar(100):
        group, _ = aggregate(group, event.at(START), START)
    assert group is not None
    assert len(group.messages) == AGGREGATE_MAX_EVENTS - 1


# Any order

HAPPENINGS = st.builds(
    Happening,
    reason=st.sampled_from(["BackOff", "Unhealthy"]),
    message=st.sampled_from([f"m{i}" for i in range(14)]),
    about=st.sampled_from([pod_reference(POD), *(container_reference(POD, name) for name in "ab")]),
    type=st.sampled_from(["Normal", "Warning"]),
)
STEPS = st.sampled_from([0, 1, 5, 299, 300, 600, 601])


@given(st.lists(st.tuples(HAPPENINGS, STEPS), max_size=80))
def test_nothing_is_lost_whatever_the_order(steps: list[tuple[Happening, int]]) -> None:
    """Every occurrence counts towards exactly one event, which is created before it is patched."""
    correlator, now = EventCorrelator(), START
    counts: Counter[str] = Counter()
    created: set[str] = set()
    for happening, seconds in steps:
        now += seconds * SECOND + 1
        result = correlator.correlate(happening.at(now), now)
        name = result.event.metadata.name
        assert result.event.count == counts[name] + 1
        assert isinstance(result, Create) <= (name not in created)
        assert isinstance(result, Patch) <= (result.event.count > 1)
        assert result.event.reason == happening.reason
        assert result.event.message.removeprefix(AGGREGATE_PREFIX) == happening.message
        counts[name] += 1
        created.add(name)
    assert counts.total() == len(steps)
