"""What somebody wants to watch, and from where on."""

import re

import msgspec

from podstatus.web.errors import bad_request
from podstatus.web.query_parameters import Query
from podstatus.web.v1.filters import FILTERS, PodFilter, check_parameters, pod_filter

TRANSITIONS_EPOCH = "transitions"
"""Stands for the board's life in the ids of moments, which go on when the agent is restarted."""
PARAMETERS = {
    **{name: what for name, what in FILTERS.items() if name != "health"},
    "after": "go on after the event with this id; the header Last-Event-ID goes before it",
    "transitions": "1: every transition, from the history, instead of pods as they are",
}
"""What a watch can be asked with, and what it means."""
_FLAGS = {"1": True, "true": True, "0": False, "false": False, "": False}
_EVENT_ID = re.compile(r"([0-9a-z]+)-([0-9]{1,18})", re.ASCII)


class ResumePoint(msgspec.Struct, frozen=True):
    """How far somebody has got."""

    epoch: str
    revision: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.revision}"


UNKNOWN_RESUME_POINT = ResumePoint("", 0)
"""A place that nobody knows."""


class WatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to send."""

    filter: PodFilter = PodFilter()
    transitions: bool = False
    after: ResumePoint | None = None
    """None: from the beginning."""


def parse_watch_request(query: Query, last_event_id: str = "") -> WatchRequest:
    """What a query asks for, by one who has seen the event with this id. Raises Refusal."""
    if "health" in query:
        raise bad_request(
            "a watch has no filter by health, which changes with time alone; look at the health "
            "that each event has, or ask /v1/pods?health="
        )
    check_parameters(query, PARAMETERS)
    transitions = _flag(query, "transitions")
    wanted = WatchRequest(
        filter=pod_filter(query), transitions=transitions, after=_after(query, last_event_id)
    )
    if transitions and wanted.filter != PodFilter(namespace=wanted.filter.namespace):
        raise bad_request(
            "transitions can be filtered by namespace only; leave the other filters out"
        )
    return wanted


def _flag(query: Query, name: str) -> bool:
    value = [*query.get(name, ()), ""][0]
    if value not in _FLAGS:
        raise bad_request(f"{name}={value} is neither 1 nor 0")
    return _FLAGS[value]


def _after(query: Query, last_event_id: str) -> ResumePoint | None:
    """Browsers ask again with the same query, and tell in the header what they have seen."""
    if last_event_id:
        return _parse_event_id(last_event_id) or UNKNOWN_RESUME_POINT
    given = [value for value in query.get("after", ()) if value]
    if not given:
        return None
    place = _parse_event_id(given[-1])
    if place is None:
        raise bad_request(f"after={given[-1]} is no id of an event; they look like 1f2e3d4c-17")
    return place


def _parse_event_id(text: str) -> ResumePoint | None:
    found = _EVENT_ID.fullmatch(text)
    return None if found is None else ResumePoint(found[1], int(found[2]))
