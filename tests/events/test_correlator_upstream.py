"""Correlation agrees with recorded results of upstream's correlator.

Recorded by calling `EventCorrelate` and `UpdateState` of client-go v0.36.4, tools/record, on
generated sequences. A group has at most nine messages, or messages that never repeat: upstream
evicts a random one of ten.
"""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from podstatus.events.correlator import (
    AGGREGATE_PREFIX,
    CorrelateResult,
    EventCorrelator,
    Patch,
    Suppressed,
)
from podstatus.events.new_event import PendingEvent, new_event
from podstatus.kube.objects.event import Event, EventSource
from podstatus.kube.objects.meta import ObjectReference

RECORDED = Path(__file__).with_name("upstream-correlation.jsonl.gz")
CASES = [msgspec.json.decode(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
SOURCE = EventSource(component="kubelet", host="h")


def event(occurrence: dict[str, Any]) -> Event:
    about = ObjectReference(
        kind="Pod",
        namespace="n",
        name=occurrence["name"],
        uid="u",
        api_version="v1",
        field_path=occurrence["field"],
    )
    pending = PendingEvent(
        about, occurrence["type"], occurrence["reason"], occurrence["message"], occurrence["at"]
    )
    return new_event(pending, SOURCE)


def result(correlated: CorrelateResult) -> dict[str, Any] | None:
    """Return the result in the form of the recording, where a suppressed event is null."""
    if isinstance(correlated, Suppressed):
        return None
    event = correlated.event
    return {
        "name": event.metadata.name,
        "count": event.count,
        "message": event.message,
        "first": event.first_timestamp.wire,
        "last": event.last_timestamp.wire,
        "patch": msgspec.json.decode(correlated.patch) if isinstance(correlated, Patch) else None,
    }


def test_events_are_correlated_as_by_upstream() -> None:
    kinds: Counter[str] = Counter()
    for case in CASES:
        correlator = EventCorrelator()
        for occurrence, expected in zip(case["events"], case["results"], strict=True):
            assert result(correlator.correlate(event(occurrence), occurrence["at"])) == expected, (
                occurrence
            )
            kinds[kind(expected)] += 1
    assert all(kinds[name] > 50 for name in ("new", "repeat", "combined", "spam")), kinds


def kind(expected: dict[str, Any] | None) -> str:
    if expected is None:
        return "spam"
    if expected["message"].startswith(AGGREGATE_PREFIX):
        return "combined"
    return "repeat" if expected["patch"] else "new"
