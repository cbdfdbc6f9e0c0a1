"""What our own API can be asked: paths, parameters, and what is answered.

Everything follows from this table: the routes, which parameters are taken, and the OpenAPI
document.
"""

from typing import Literal

import msgspec

from podstatus.web.v1 import alerts, filters
from podstatus.web.v1.alerts import MAX_ALERTS
from podstatus.web.v1.wire import (
    AlertsResponse,
    NodeResponse,
    NodesResponse,
    PodResponse,
    PodsResponse,
    StatusResponse,
    TransitionsResponse,
)
from podstatus.web.watch import request

MAX_PODS = 1_000
"""In one answer: each takes some 20 µs, in which nothing else is done."""
MAX_TRANSITIONS = 5_000
DEFAULT_LIMIT = 500


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One that a query may have."""

    name: str
    help: str
    """One sentence."""
    kind: Literal["string", "integer", "boolean"] = "string"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be asked."""

    pattern: str
    help: str
    """One sentence."""
    response: type[msgspec.Struct] | None = None
    """None: it is not a value of ours."""
    parameters: tuple[Parameter, ...] = ()
    media_type: str = "application/json"


_FILTERS = tuple(
    Parameter(name=name, help=f"Only {help}.") for name, help in filters.FILTERS.items()
)
_ALERT_FILTERS = tuple(
    Parameter(name=name, help=f"Only {help}.") for name, help in alerts.FILTERS.items()
)
_NAMESPACE = Parameter(name="namespace", help="Only what happened to pods of this namespace.")


def _limit(maximum: int) -> Parameter:
    help = f"At most so many, up to {maximum}; {DEFAULT_LIMIT} if nothing is said."
    return Parameter(name="limit", help=help, kind="integer")


_CONTINUE = Parameter(name="continue", help="What the answer before gave, for the next ones.")
_AFTER = Parameter(
    name="after", help="Only what is later than the moment with this id.", kind="integer"
)

ENDPOINTS = (
    Endpoint(
        pattern="/v1/pods",
        help="Pods, each with its health in one word and one sentence.",
        response=PodsResponse,
        parameters=(*_FILTERS, _limit(MAX_PODS), _CONTINUE),
    ),
    Endpoint(
        pattern="/v1/pods/{namespace}/{name}",
        help="One pod, and how far its status has got.",
        response=PodResponse,
    ),
    Endpoint(
        pattern="/v1/pods/{namespace}/{name}/timeline",
        help="What happened to the pods of this name, also to those that are gone.",
        response=TransitionsResponse,
        parameters=(_AFTER, _limit(MAX_TRANSITIONS)),
    ),
    Endpoint(pattern="/v1/node", help="The node, if there is one only.", response=NodeResponse),
    Endpoint(pattern="/v1/nodes", help="All nodes that are known here.", response=NodesResponse),
    Endpoint(pattern="/v1/nodes/{name}", help="One node.", response=NodeResponse),
    Endpoint(
        pattern="/v1/events",
        help="What was said of pods in events.",
        response=TransitionsResponse,
        parameters=(_NAMESPACE, _AFTER, _limit(MAX_TRANSITIONS)),
    ),
    Endpoint(
        pattern="/v1/alerts",
        help="Alerts that are pending, fire, or resolved a while ago.",
        response=AlertsResponse,
        parameters=(*_ALERT_FILTERS, _limit(MAX_ALERTS)),
    ),
    Endpoint(
        pattern="/v1/status",
        help="How old what is known here is, and how far it has got.",
        response=StatusResponse,
    ),
    Endpoint(pattern="/openapi.json", help="This document."),
    Endpoint(pattern="/openapi/v3", help="This document."),
)

WATCH_ENDPOINT = Endpoint(
    pattern="/v1/watch",
    help="Pods as they are, then what changes, as server-sent events.",
    parameters=tuple(
        Parameter(name=name, help=f"{help[:1].upper()}{help[1:]}.")
        for name, help in request.PARAMETERS.items()
    ),
    media_type="text/event-stream",
)
