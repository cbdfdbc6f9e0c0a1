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
MOST_REMEMBERED = 4096
"""Keys in each of the three memories."""
SIMILAR_EVENTS = 10
SIMILAR_NANOS = 600 * _SECOND
"""So many messages, each within so long of the one before, make one event of all that follow."""
SPAM_BURST = 25
SPAM_NANOS = 300 * _SECOND
"""So many events about one object at once, and one more every five minutes: enough to see that
something is always unhealthy."""
COMBINED = "(combined from similar events): "


class Create(msgspec.Struct, frozen=True):
    """An event that the server does not have."""

    event: Event


class Repeat(msgspec.Struct, frozen=True):
    """An event that the server has: its count grows."""

    event: Event
    """As it is with the new count, should the server have lost it."""
    patch: bytes


class Spam(msgspec.Struct, frozen=True):
    """An event that is not worth a request."""

    event: Event


Correlated = Create | Repeat | Spam


class Seen(msgspec.Struct, frozen=True):
    """An event that was sent, as far as its repeats need it."""

    name: str
    first: Time
    count: int


class Similar(msgspec.Struct, frozen=True):
    """Events that differ by their messages alone."""

    messages: frozenset[str]
    last: int
    """When the newest of them happened."""


class Recent(Generic[V]):
    """A map that forgets what was not used for longest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[Hashable, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def find(self, key: Hashable) -> V | None:
        """What was put there last, which counts as a use; None if it is not remembered."""
        if key not in self._items:
            return None
        self._items.move_to_end(key)
        return self._items[key]

    def put(self, key: Hashable, value: V) -> None:
        """Remember this, and forget another if it is too much."""
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._most:
            self._items.popitem(last=False)


class Correlator:
    """Remembers what was said about what. For one task."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._similar: Recent[Similar] = Recent(most)
        self._seen: Recent[Seen] = Recent(most)
        self._allowances: Recent[TokenBucket] = Recent(most)

    def correlate(self, event: Event, now: int) -> Correlated:
        """What becomes of an event that happened now."""
        group = similar_key(event)
        similar, combined = combine(self._similar.find(group), event, now)
        self._similar.put(group, similar)
        key = exact_key(event) if combined is event else group

        counted = count(self._seen.find(key), combined)
        seen = Seen(counted.metadata.name, counted.first_timestamp, counted.count)
        self._seen.put(key, seen)

        if not self._is_allowed(spam_key(event), now):
            return Spam(counted)
        return Repeat(counted, repeat_patch(counted)) if counted.count > 1 else Create(counted)

    def _is_allowed(self, key: Hashable, now: int) -> bool:
        fresh = TokenBucket(burst=SPAM_BURST, interval_ns=SPAM_NANOS, at=now)
        allowance, allowed = (self._allowances.find(key) or fresh).try_acquire(now)
        self._allowances.put(key, allowance)
        return allowed


def combine(similar: Similar | None, event: Event, now: int) -> tuple[Similar, Event]:
    """What is remembered of those like it, and the event itself or the one for all of them."""
    if similar is None or now - similar.last > SIMILAR_NANOS:
        similar = Similar(frozenset(), now)
    messages = similar.messages | {event.message}
    if len(messages) < SIMILAR_EVENTS:
        return Similar(messages, now), event
    combined = structs.replace(event, message=COMBINED + event.message)
    return Similar(similar.messages, now), combined


def count(seen: Seen | None, event: Event) -> Event:
    """The event, or the one that it repeats with a count that is one more."""
    if seen is None:
        return event
    return structs.replace(
        event,
        metadata=structs.replace(event.metadata, name=seen.name),
        first_timestamp=seen.first,
        count=seen.count + 1,
    )


def repeat_patch(event: Event) -> bytes:
    """The patch that makes of an event what it is after one more.

    The message is in it because that of a combined event is always its newest.
    """
    patch: Document = {"count": event.count, "lastTimestamp": event.last_timestamp.wire}
    if event.message:
        patch["message"] = event.message
    return encode_document(patch)


def exact_key(event: Event) -> Hashable:
    """The same for events that are the same but for the time."""
    return (_about(event), event.involved_object.field_path, event.reason, event.message)


def similar_key(event: Event) -> Hashable:
    """The same for events that differ by their messages, or are of several containers."""
    reporter = (event.reporting_component, event.reporting_instance)
    return (_about(event), reporter, event.reason)


def spam_key(event: Event) -> Hashable:
    """The same for all events of one type about one object."""
    return _about(event)


def _about(event: Event) -> Hashable:
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
