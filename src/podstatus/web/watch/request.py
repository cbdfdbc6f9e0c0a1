"""Parse the parameters of a watch."""

import re

import msgspec

from podstatus.web.errors import bad_request
from podstatus.web.query_parameters import Query
from podstatus.web.v1.filters import FILTERS, PodFilter, check_parameters, pod_filter

TRANSITIONS_EPOCH = "transitions"
"""The epoch in ids of transitions, which continue across restarts of the agent."""
PARAMETERS = {
    **{name: what for name, what in FILTERS.items() if name != "health"},
    "after": "resume after the event with this id; the header Last-Event-ID takes precedence",
    "transitions": "1: every transition, from the history, instead of pods",
}
"""The parameters with their descriptions."""
_FLAGS = {"1": True, "true": True, "0": False, "false": False, "": False}
_EVENT_ID = re.compile(r"([0-9a-z]+)-([0-9]{1,18})", re.ASCII)


class ResumePoint(msgspec.Struct, frozen=True):
    """The id of an event: the epoch of its source and a revision."""

    epoch: str
    revision: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.revision}"


UNKNOWN_RESUME_POINT = ResumePoint("", 0)
"""Of an id that cannot be parsed: the client gets `reset` and the whole state."""


class WatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to send to a client."""

    filter: PodFilter = PodFilter()
    transitions: bool = False
    after: ResumePoint | None = None
    """None: send the whole state."""


def parse_watch_request(query: Query, last_event_id: str = "") -> WatchRequest:
    """Parse a query and the header Last-Event-ID. Raises HttpError."""
    if "health" in query:
        raise bad_request(
            "a watch has no filter by health, which also changes with time; read the health in "
            "each event, or use /v1/pods?health="
        )
    check_parameters(query, PARAMETERS)
    transitions = _flag(query, "transitions")
    request = WatchRequest(
        filter=pod_filter(query), transitions=transitions, after=_after(query, last_event_id)
    )
    if transitions and request.filter != PodFilter(namespace=request.filter.namespace):
        raise bad_request(
            "transitions can be filtered by namespace only; leave the other filters out"
        )
    return request


def _flag(query: Query, name: str) -> bool:
    value = [*query.get(name, ()), ""][0]
    if value not in _FLAGS:
        raise bad_request(f"{name}={value} is not 1 or 0")
    return _FLAGS[value]


def _after(query: Query, last_event_id: str) -> ResumePoint | None:
    """The header wins: a browser reconnects with the original query and sets the header."""
    if last_event_id:
        return _parse_event_id(last_event_id) or UNKNOWN_RESUME_POINT
    values = [value for value in query.get("after", ()) if value]
    if not values:
        return None
    point = _parse_event_id(values[-1])
    if point is None:
        raise bad_request(f"after={values[-1]} is not the id of an event, such as 1f2e3d4c-17")
    return point


def _parse_event_id(text: str) -> ResumePoint | None:
    match = _EVENT_ID.fullmatch(text)
    return None if match is None else ResumePoint(match[1], int(match[2]))
