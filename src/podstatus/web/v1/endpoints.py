"""The endpoints of the query API: paths, parameters and response types.

Routes, the check of parameters and the OpenAPI document are derived from this table.
"""

from typing import Literal

import msgspec

from podstatus.web.v1 import alerts, filters
from podstatus.web.v1.alerts import MAX_ALERTS
from podstatus.web.v1.wire import (
    AlertsResponse,
    NodeResponse,
    NodesResponse,
    NodeTimelineResponse,
    PodResponse,
    PodsResponse,
    StatusResponse,
    TransitionsResponse,
)
from podstatus.web.watch import request

MAX_PODS = 1_000
"""Of one response: encoding a pod blocks the event loop for some 20 µs."""
MAX_TRANSITIONS = 5_000
DEFAULT_LIMIT = 500


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    help: str
    """One sentence."""
    kind: Literal["string", "integer", "boolean"] = "string"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A path with its parameters and its response."""

    pattern: str
    help: str
    """One sentence."""
    response: type[msgspec.Struct] | None = None
    """None: not a struct of `wire`."""
    parameters: tuple[Parameter, ...] = ()
    media_type: str = "application/json"


_FILTERS = tuple(
    Parameter(name=name, help=f"Only {help}.") for name, help in filters.FILTERS.items()
)
_ALERT_FILTERS = tuple(
    Parameter(name=name, help=f"Only {help}.") for name, help in alerts.FILTERS.items()
)
_NAMESPACE = Parameter(name="namespace", help="Only transitions of pods in this namespace.")


def _limit(maximum: int) -> Parameter:
    help = f"Maximum number of items, at most {maximum}; {DEFAULT_LIMIT} by default."
    return Parameter(name="limit", help=help, kind="integer")


_CONTINUE = Parameter(name="continue", help="The `continue` of the previous page.")
_AFTER = Parameter(
    name="after", help="Only transitions after the one with this id.", kind="integer"
)

ENDPOINTS = (
    Endpoint(
        pattern="/v1/pods",
        help="Pods with their health.",
        response=PodsResponse,
        parameters=(*_FILTERS, _limit(MAX_PODS), _CONTINUE),
    ),
    Endpoint(
        pattern="/v1/pods/{namespace}/{name}",
        help="One pod, and how much of its status the API server has.",
        response=PodResponse,
    ),
    Endpoint(
        pattern="/v1/pods/{namespace}/{name}/timeline",
        help="Transitions of all pods that had this name, deleted ones included.",
        response=TransitionsResponse,
        parameters=(_AFTER, _limit(MAX_TRANSITIONS)),
    ),
    Endpoint(pattern="/v1/node", help="The node of this agent.", response=NodeResponse),
    Endpoint(pattern="/v1/nodes", help="All known nodes.", response=NodesResponse),
    Endpoint(pattern="/v1/nodes/{name}", help="One node.", response=NodeResponse),
    Endpoint(
        pattern="/v1/nodes/{name}/timeline",
        help="Transitions and load of a node.",
        response=NodeTimelineResponse,
        parameters=(_AFTER, _limit(MAX_TRANSITIONS)),
    ),
    Endpoint(
        pattern="/v1/events",
        help="Events of pods, from the history.",
        response=TransitionsResponse,
        parameters=(_NAMESPACE, _AFTER, _limit(MAX_TRANSITIONS)),
    ),
    Endpoint(
        pattern="/v1/alerts",
        help="Pending, firing and recently resolved alerts.",
        response=AlertsResponse,
        parameters=(*_ALERT_FILTERS, _limit(MAX_ALERTS)),
    ),
    Endpoint(
        pattern="/v1/status",
        help="Counts of pods and nodes, freshness, and the state of sync and history.",
        response=StatusResponse,
    ),
    Endpoint(pattern="/openapi.json", help="This document."),
    Endpoint(pattern="/openapi/v3", help="This document."),
)

WATCH_ENDPOINT = Endpoint(
    pattern="/v1/watch",
    help="All pods and then their changes, as server-sent events.",
    parameters=tuple(
        Parameter(name=name, help=f"{help[:1].upper()}{help[1:]}.")
        for name, help in request.PARAMETERS.items()
    ),
    media_type="text/event-stream",
)
