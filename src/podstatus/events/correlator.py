"""Decide whether an event is created, counted as a repeat, combined with others or suppressed.

| event | result |
|---|---|
| new | created |
| equal to an earlier event except for the time | the count of the earlier event is patched |
| tenth message within ten minutes, all else equal | one combined event for all that follow |
| over the rate limit of its object | suppressed, but counted |

State is bounded and in memory only: after a restart, the first repeat is a new event.

Upstream: EventCorrelator, client-go v0.36.4, tools/record/events_cache.go. Two differences: keys
are tuples, because joined strings can be equal for different events; and when an eleventh message
arrives, upstream evicts a random one of the ten before it. Here the newest is evicted, so the nine
messages that have an event of their own keep it.
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
"""Maximum number of keys in each of the three caches."""
AGGREGATE_MAX_EVENTS = 10
AGGREGATE_INTERVAL_NS = 600 * _SECOND
"""This many messages, each within the interval after the previous one, start a combined event."""
SPAM_BURST = 25
SPAM_INTERVAL_NS = 300 * _SECOND
"""Rate limit per object: a burst of 25 events, then one every five minutes, which is enough to show
that an object stays unhealthy."""
AGGREGATE_PREFIX = "(combined from similar events): "


class Create(msgspec.Struct, frozen=True):
    """The server does not have the event yet."""

    event: Event


class Patch(msgspec.Struct, frozen=True):
    """The server has the event; its count increases."""

    event: Event
    """The whole event with the new count, to be created if the server has deleted it."""
    patch: bytes


class Suppressed(msgspec.Struct, frozen=True):
    """The event exceeds the rate limit and is not sent."""

    event: Event


CorrelateResult = Create | Patch | Suppressed


class EventLog(msgspec.Struct, frozen=True):
    """What repeats need to know about an event that was sent."""

    name: str
    first_timestamp: Time
    count: int


class AggregateRecord(msgspec.Struct, frozen=True):
    """The group of events that differ only by their messages."""

    messages: frozenset[str]
    last: int
    """Monotonic time of the newest event, in nanoseconds."""


class LRUCache(Generic[V]):
    """A map that evicts the least recently used entry when it is full."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._items: OrderedDict[Hashable, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Hashable) -> V | None:
        """Return the value of a key and mark it as used; None if there is none."""
        if key not in self._items:
            return None
        self._items.move_to_end(key)
        return self._items[key]

    def put(self, key: Hashable, value: V) -> None:
        """Store a value; evicts the least recently used entry if the cache is full."""
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._max_entries:
            self._items.popitem(last=False)


class EventCorrelator:
    """Correlates each event with earlier ones. Not thread-safe."""

    def __init__(self) -> None:
        self._aggregates: LRUCache[AggregateRecord] = LRUCache(MAX_LRU_CACHE_ENTRIES)
        self._logs: LRUCache[EventLog] = LRUCache(MAX_LRU_CACHE_ENTRIES)
        self._token_buckets: LRUCache[TokenBucket] = LRUCache(MAX_LRU_CACHE_ENTRIES)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The numbers of groups, events and objects that are remembered."""
        return len(self._aggregates), len(self._logs), len(self._token_buckets)

    def correlate(self, event: Event, now: int) -> CorrelateResult:
        """Classify an event that was recorded at `now`, in monotonic nanoseconds."""
        group = aggregate_key(event)
        similar, combined = aggregate(self._aggregates.get(group), event, now)
        self._aggregates.put(group, similar)
        key = event_key(event) if combined is event else group

        counted = count_event(self._logs.get(key), combined)
        log = EventLog(counted.metadata.name, counted.first_timestamp, counted.count)
        self._logs.put(key, log)

        if not self._is_allowed(spam_key(event), now):
            return Suppressed(counted)
        return Patch(counted, count_patch(counted)) if counted.count > 1 else Create(counted)

    def _is_allowed(self, key: Hashable, now: int) -> bool:
        full = TokenBucket(burst=SPAM_BURST, interval_ns=SPAM_INTERVAL_NS, at=now)
        bucket, allowed = (self._token_buckets.get(key) or full).try_acquire(now)
        self._token_buckets.put(key, bucket)
        return allowed


def aggregate(
    record: AggregateRecord | None, event: Event, now: int
) -> tuple[AggregateRecord, Event]:
    """Return the updated group, and the event: unchanged, or the combined one."""
    if record is None or now - record.last > AGGREGATE_INTERVAL_NS:
        record = AggregateRecord(frozenset(), now)
    messages = record.messages | {event.message}
    if len(messages) < AGGREGATE_MAX_EVENTS:
        return AggregateRecord(messages, now), event
    combined = structs.replace(event, message=AGGREGATE_PREFIX + event.message)
    return AggregateRecord(record.messages, now), combined


def count_event(log: EventLog | None, event: Event) -> Event:
    """Return the event, or the event that it repeats with its count increased by one."""
    if log is None:
        return event
    return structs.replace(
        event,
        metadata=structs.replace(event.metadata, name=log.name),
        first_timestamp=log.first_timestamp,
        count=log.count + 1,
    )


def count_patch(event: Event) -> bytes:
    """Return the strategic merge patch that adds one repeat to an event.

    It includes the message, since a combined event always carries the newest one.
    """
    patch: Document = {"count": event.count, "lastTimestamp": event.last_timestamp.wire}
    if event.message:
        patch["message"] = event.message
    return encode_document(patch)


def event_key(event: Event) -> Hashable:
    """Return a key that is equal for events that differ only by time."""
    return (spam_key(event), event.involved_object.field_path, event.reason, event.message)


def aggregate_key(event: Event) -> Hashable:
    """Return a key that is equal for events that differ only by message or container."""
    reporter = (event.reporting_component, event.reporting_instance)
    return (spam_key(event), reporter, event.reason)


def spam_key(event: Event) -> Hashable:
    """Return a key that is equal for all events of one type about one object."""
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
