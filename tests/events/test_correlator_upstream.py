"""Events that upstream's own correlator was asked about: what became of each.

Recorded by calling `EventCorrelate` and `UpdateState` of client-go v0.36.4, tools/record, on
made-up sequences. Messages either are nine at most for a group or never come again: which of ten
is forgotten, upstream leaves to chance.
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
from podstatus.events.event import PendingEvent, new_event
from podstatus.kube.objects.event import Event, EventSource
from podstatus.kube.objects.meta import ObjectReference

RECORDED = Path(__file__).with_name("upstream-correlation.jsonl.gz")
CASES = [msgspec.json.decode(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
SOURCE = EventSource(component="kubelet", host="h")


def event(given: dict[str, Any]) -> Event:
    about = ObjectReference(
        kind="Pod",
        namespace="n",
        name=given["name"],
        uid="u",
        api_version="v1",
        field_path=given["field"],
    )
    happened = PendingEvent(about, given["type"], given["reason"], given["message"], given["at"])
    return new_event(happened, SOURCE)


def result(correlated: CorrelateResult) -> dict[str, Any] | None:
    """In the form of the recording, where what is held back is null."""
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
        for given, expected in zip(case["events"], case["results"], strict=True):
            assert result(correlator.correlate(event(given), given["at"])) == expected, given
            kinds[kind(expected)] += 1
    assert all(kinds[name] > 50 for name in ("new", "repeat", "combined", "spam")), kinds


def kind(expected: dict[str, Any] | None) -> str:
    if expected is None:
        return "spam"
    if expected["message"].startswith(AGGREGATE_PREFIX):
        return "combined"
    return "repeat" if expected["patch"] else "new"
