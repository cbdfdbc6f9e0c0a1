"""What becomes of an event, given those before it: a new one, a repeat, one of many, too many.

| it is | then |
|---|---|
| new | it is created |
| the same as one before, but for the time | the count of that one grows |
| the tenth in ten minutes that differs by its message alone | one event for all such |
| one of very many about one object | it is held back, but counted |

What is remembered is bounded, and gone after a restart: the first repeat is then a new event.

Upstream: EventCorrelator, client-go v0.36.4, tools/record/events_cache.go. Keys are tuples here:
joined texts can be the same for different events. Which of ten messages is forgotten when an
eleventh comes is left to chance there; here it is the newest, so that the nine with an event of
their own stay with it.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

import msgspec
from msgspec import structs

from podstatus.base.token_bucket import TokenBucket
from podstatus.kube.encoding.go_json import Document, encode_document
from podstatus.kube.objects.event import Event
from podstatus.kube.scalars.time import Time

V = TypeVar("V")

_SECOND = 1_000_000_000
MAX_LRU_CACHE_ENTRIES = 4096
"""Keys in each of the three memories."""
AGGREGATE_MAX_EVENTS = 10
AGGREGATE_INTERVAL_NS = 600 * _SECOND
"""So many messages, each within so long of the one before, make one event of all that follow."""
SPAM_BURST = 25
SPAM_INTERVAL_NS = 300 * _SECOND
"""So many events about one object at once, and one more every five minutes: enough to see that
something is always unhealthy."""
AGGREGATE_PREFIX = "(combined from similar events): "


class Create(msgspec.Struct, frozen=True):
    """An event that the server does not have."""

    event: Event


class Patch(msgspec.Struct, frozen=True):
    """An event that the server has: its count grows."""

    event: Event
    """As it is with the new count, should the server have lost it."""
    patch: bytes


class Suppressed(msgspec.Struct, frozen=True):
    """An event that is not worth a request."""

    event: Event


CorrelateResult = Create | Patch | Suppressed


class EventLog(msgspec.Struct, frozen=True):
    """An event that was sent, as far as its repeats need it."""

    name: str
    first_timestamp: Time
    count: int


class AggregateRecord(msgspec.Struct, frozen=True):
    """Events that differ by their messages alone."""

    messages: frozenset[str]
    last: int
    """When the newest of them happened."""


class LRUCache(Generic[V]):
    """A map that forgets what was not used for longest."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._items: OrderedDict[Hashable, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Hashable) -> V | None:
        """What was put there last, which counts as a use; None if it is not remembered."""
        if key not in self._items:
            return None
        self._items.move_to_end(key)
        return self._items[key]

    def put(self, key: Hashable, value: V) -> None:
        """Remember this, and forget another if it is too much."""
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._max_entries:
            self._items.popitem(last=False)


class EventCorrelator:
    """Remembers what was said about what. For one task."""

    def __init__(self, max_entries: int = MAX_LRU_CACHE_ENTRIES) -> None:
        self._aggregates: LRUCache[AggregateRecord] = LRUCache(max_entries)
        self._logs: LRUCache[EventLog] = LRUCache(max_entries)
        self._token_buckets: LRUCache[TokenBucket] = LRUCache(max_entries)

    def correlate(self, event: Event, now: int) -> CorrelateResult:
        """What becomes of an event that happened now."""
        group = aggregate_key(event)
        similar, combined = aggregate(self._aggregates.get(group), event, now)
        self._aggregates.put(group, similar)
        key = event_key(event) if combined is event else group

        counted = count_event(self._logs.get(key), combined)
        seen = EventLog(counted.metadata.name, counted.first_timestamp, counted.count)
        self._logs.put(key, seen)

        if not self._is_allowed(spam_key(event), now):
            return Suppressed(counted)
        return Patch(counted, count_patch(counted)) if counted.count > 1 else Create(counted)

    def _is_allowed(self, key: Hashable, now: int) -> bool:
        fresh = TokenBucket(burst=SPAM_BURST, interval_ns=SPAM_INTERVAL_NS, at=now)
        allowance, allowed = (self._token_buckets.get(key) or fresh).try_acquire(now)
        self._token_buckets.put(key, allowance)
        return allowed


def aggregate(
    record: AggregateRecord | None, event: Event, now: int
) -> tuple[AggregateRecord, Event]:
    """What is remembered of those like it, and the event itself or the one for all of them."""
    if record is None or now - record.last > AGGREGATE_INTERVAL_NS:
        record = AggregateRecord(frozenset(), now)
    messages = record.messages | {event.message}
    if len(messages) < AGGREGATE_MAX_EVENTS:
        return AggregateRecord(messages, now), event
    combined = structs.replace(event, message=AGGREGATE_PREFIX + event.message)
    return AggregateRecord(record.messages, now), combined


def count_event(log: EventLog | None, event: Event) -> Event:
    """The event, or the one that it repeats with a count that is one more."""
    if log is None:
        return event
    return structs.replace(
        event,
        metadata=structs.replace(event.metadata, name=log.name),
        first_timestamp=log.first_timestamp,
        count=log.count + 1,
    )


def count_patch(event: Event) -> bytes:
    """The patch that makes of an event what it is after one more.

    The message is in it because that of a combined event is always its newest.
    """
    patch: Document = {"count": event.count, "lastTimestamp": event.last_timestamp.wire}
    if event.message:
        patch["message"] = event.message
    return encode_document(patch)


def event_key(event: Event) -> Hashable:
    """The same for events that are the same but for the time."""
    return (
        _source_and_object(event),
        event.involved_object.field_path,
        event.reason,
        event.message,
    )


def aggregate_key(event: Event) -> Hashable:
    """The same for events that differ by their messages, or are of several containers."""
    reporter = (event.reporting_component, event.reporting_instance)
    return (_source_and_object(event), reporter, event.reason)


def spam_key(event: Event) -> Hashable:
    """The same for all events of one type about one object."""
    return _source_and_object(event)


def _source_and_object(event: Event) -> Hashable:
    about = event.involved_object
    return (
        event.source.component,
        event.source.host,
        about.kind,
        about.namespace,
        about.name,
        about.uid,
        about.api_version,
        event.type,
    )
