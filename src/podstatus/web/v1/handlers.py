"""Handlers of the query API: each computes a response from the status view.

No handler waits for the API server; while it is unreachable, `freshness` says how old the data is.
"""

import base64
import binascii
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec

from podstatus.alerts.ports import AlertReader
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.sqlite_store import HistoryEntry, HistoryError
from podstatus.observe.ports import StatusView, SupportsPodSync
from podstatus.observe.summary.health import pod_health
from podstatus.observe.summary.pod import PodSummary
from podstatus.observe.transitions.compare_statuses import EVENT
from podstatus.web.errors import bad_request, not_found, unavailable
from podstatus.web.query_parameters import Query
from podstatus.web.v1.alerts import MAX_ALERTS, list_alerts
from podstatus.web.v1.endpoints import DEFAULT_LIMIT, ENDPOINTS, MAX_PODS, MAX_TRANSITIONS
from podstatus.web.v1.filters import (
    PodFilter,
    check_parameters,
    pod_filter,
    read_bounded_query,
    single_value,
)
from podstatus.web.v1.wire import (
    NodeResponse,
    NodesResponse,
    NodeTimelineResponse,
    PodResponse,
    PodsResponse,
    StatusResponse,
    TransitionsResponse,
    node_load_view,
    pod_view,
    round_floats,
    transition_view,
)

ALERTS_PATH = "/v1/alerts"
_MAX_NAME_LENGTH = 253
"""Characters of a Kubernetes name."""
_MAX_ID = 2**63 - 1
_MAX_SCANNED_ENTRIES = 50_000
"""History entries scanned for one response; the client continues from its `after`."""
_SCAN_BATCH_SIZE = 2_000
PodPosition = tuple[str, str, str]
"""The sort key of a pod: namespace, name and UID."""
_POSITION_DECODER = msgspec.json.Decoder(tuple[str, str, str])


class QueryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to an endpoint, with its parameters and its time."""

    pattern: str
    path_parameters: Mapping[str, str] = {}
    query: Query = {}
    now: Time

    @classmethod
    def read(
        cls, pattern: str, path_parameters: Mapping[str, str], raw_query: str, now: Time
    ) -> "QueryRequest":
        """Parse a request. Raises HttpError for an unknown parameter."""
        query = read_bounded_query(raw_query)
        if any(len(name) > _MAX_NAME_LENGTH for name in path_parameters.values()):
            raise not_found(f"names have at most {_MAX_NAME_LENGTH} characters")
        check_parameters(query, _PARAMETERS[pattern])
        return cls(pattern=pattern, path_parameters=path_parameters, query=query, now=now)

    def number(self, name: str, default: int, *, minimum: int, maximum: int) -> int:
        """An integer parameter. Raises HttpError if it is out of range."""
        text = self.text(name)
        if not text:
            return default
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else minimum - 1
        if not minimum <= number <= maximum:
            raise bad_request(f"{name} must be an integer from {minimum} to {maximum}")
        return number

    def text(self, name: str) -> str:
        """A parameter that may occur once; empty if it is absent. Raises HttpError."""
        return single_value(self.query, name)

    def limit(self, maximum: int) -> int:
        """The maximum number of items. Raises HttpError."""
        return self.number("limit", DEFAULT_LIMIT, minimum=1, maximum=maximum)

    @property
    def after(self) -> int:
        """The id after which transitions are selected. Raises HttpError."""
        return self.number("after", 0, minimum=0, maximum=_MAX_ID)


_PARAMETERS = {
    endpoint.pattern: [parameter.name for parameter in endpoint.parameters]
    for endpoint in ENDPOINTS
}


async def run_query(
    view: StatusView, request: QueryRequest, alerts: AlertReader | None = None
) -> msgspec.Struct:
    """The response to a request. Raises HttpError."""
    if request.pattern == ALERTS_PATH:
        if alerts is None:
            raise not_found("alerting is disabled (--no-alerts)")
        return list_alerts(alerts, view.freshness(), request.query, request.limit(MAX_ALERTS))
    try:
        return round_floats(await _HANDLERS[request.pattern](view, request))
    except HistoryError as error:
        raise unavailable(f"the history cannot be read now: {error}") from error


async def _pods(view: StatusView, request: QueryRequest) -> PodsResponse:
    page = paginate_pods(
        view.snapshot_cache.pods().values(),
        pod_filter(request.query),
        request.now,
        limit=request.limit(MAX_PODS),
        after=request.text("continue"),
    )
    return PodsResponse(
        freshness=view.freshness(),
        pods=tuple(pod_view(pod, request.now) for pod in page.pods),
        remaining=page.remaining,
        continue_=page.next,
    )


class PodPage(msgspec.Struct, frozen=True):
    pods: tuple[PodSummary, ...]
    remaining: int
    next: str
    """Token of the next page; empty: this is the last one."""


def paginate_pods(
    pods: Iterable[PodSummary], filter_: PodFilter, now: Time, *, limit: int, after: str = ""
) -> PodPage:
    """The page after the token `after`. Raises HttpError for an invalid token.

    A pod that is created or deleted between two pages may be missing; none is listed twice, and
    none that exists throughout is missing.
    """
    begin = _decode_token(after) if after else None
    matches = sorted(
        (
            pod
            for pod in pods
            if filter_.matches(pod, now) and (not begin or _position(pod) > begin)
        ),
        key=_position,
    )
    page = tuple(matches[:limit])
    remaining = len(matches) - len(page)
    return PodPage(page, remaining, _encode_token(page[-1]) if remaining else "")


def _position(pod: PodSummary) -> PodPosition:
    return pod.namespace, pod.name, pod.uid


def _encode_token(pod: PodSummary) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(_position(pod))).decode()


def _decode_token(text: str) -> PodPosition:
    try:
        return _POSITION_DECODER.decode(base64.urlsafe_b64decode(text.encode()))
    except (binascii.Error, msgspec.DecodeError, UnicodeError, ValueError) as error:
        raise bad_request(
            "continue is not a token of a previous response; leave it out to start over"
        ) from error


async def _pod(view: StatusView, request: QueryRequest) -> PodResponse:
    """The newest pod of this name: an older one may still be terminating."""
    namespace, name = request.path_parameters["namespace"], request.path_parameters["name"]
    pods = [
        pod
        for pod in view.snapshot_cache.pods().values()
        if pod.name == name and pod.namespace == namespace
    ]
    if not pods:
        raise not_found(
            f"pod {namespace}/{name} is unknown; the history of a deleted pod is at "
            f"/v1/pods/{namespace}/{name}/timeline"
        )
    newest = max(pods, key=lambda pod: pod.created)
    return PodResponse(
        freshness=view.freshness(),
        pod=pod_view(newest, request.now),
        sync=view.pod_sync(newest.uid) if isinstance(view, SupportsPodSync) else None,
    )


async def _timeline(view: StatusView, request: QueryRequest) -> TransitionsResponse:
    namespace, name = request.path_parameters["namespace"], request.path_parameters["name"]
    after, limit = request.after, request.limit(MAX_TRANSITIONS)
    entries = await view.history.timeline(namespace, name, after=after)
    if not entries and not after and not _pod_exists(view, namespace, name):
        raise not_found(f"pod {namespace}/{name} is unknown and has no history")
    return _transitions_response(view, entries[:limit], after, more=len(entries) > limit)


def _pod_exists(view: StatusView, namespace: str, name: str) -> bool:
    pods = view.snapshot_cache.pods().values()
    return any(pod.name == name and pod.namespace == namespace for pod in pods)


async def _events(view: StatusView, request: QueryRequest) -> TransitionsResponse:
    """Scan the history until there are enough events: few of its entries are events."""
    namespace, limit = request.text("namespace"), request.limit(MAX_TRANSITIONS)
    events: list[HistoryEntry] = []
    after = scanned = request.after
    for _ in range(_MAX_SCANNED_ENTRIES // _SCAN_BATCH_SIZE):
        batch = await view.history.transitions(scanned, limit=_SCAN_BATCH_SIZE)
        for entry in batch:
            scanned = entry.id
            if entry.transition.kind != EVENT or namespace not in ("", entry.namespace):
                continue
            events.append(entry)
            if len(events) == limit:
                return _transitions_response(view, events, after, more=True, upto=scanned)
        if len(batch) < _SCAN_BATCH_SIZE:
            return _transitions_response(view, events, after, more=False, upto=scanned)
    return _transitions_response(view, events, after, more=True, upto=scanned)


def _transitions_response(
    view: StatusView, entries: list[HistoryEntry], after: int, *, more: bool, upto: int = 0
) -> TransitionsResponse:
    return TransitionsResponse(
        freshness=view.freshness(),
        history=view.history.counts,
        transitions=tuple(map(transition_view, entries)),
        after=upto or (entries[-1].id if entries else after),
        more=more,
    )


async def _node(view: StatusView, request: QueryRequest) -> NodeResponse:
    nodes, name = view.nodes(), request.path_parameters.get("name", "")
    if name:
        node = nodes.get(name)
        if node is None:
            raise not_found(f"node {name} is unknown; /v1/nodes lists the known ones")
        return NodeResponse(freshness=view.freshness(), node=node)
    if len(nodes) != 1:
        raise not_found(f"{len(nodes)} nodes are known here, not one; use /v1/nodes")
    (node,) = nodes.values()
    return NodeResponse(freshness=view.freshness(), node=node)


async def _node_timeline(view: StatusView, request: QueryRequest) -> NodeTimelineResponse:
    name, after = request.path_parameters["name"], request.after
    limit = request.limit(MAX_TRANSITIONS)
    recorded = await view.history.node_timeline(name, after=after)
    if not recorded.entries and not recorded.samples and name not in view.nodes():
        raise not_found(f"node {name} is unknown and has no history; /v1/nodes lists the nodes")
    entries = recorded.entries[:limit]
    return NodeTimelineResponse(
        freshness=view.freshness(),
        history=view.history.counts,
        transitions=tuple(map(transition_view, entries)),
        load=() if after else tuple(map(node_load_view, recorded.samples)),
        after=entries[-1].id if entries else after,
        more=len(recorded.entries) > limit,
    )


async def _nodes(view: StatusView, _: QueryRequest) -> NodesResponse:
    nodes = view.nodes()
    return NodesResponse(
        freshness=view.freshness(), nodes=tuple(nodes[name] for name in sorted(nodes))
    )


async def _status(view: StatusView, request: QueryRequest) -> StatusResponse:
    pods = view.snapshot_cache.pods().values()
    return StatusResponse(
        freshness=view.freshness(),
        history=view.history.counts,
        sync=view.sync(),
        pods=len(pods),
        nodes=len(view.nodes()),
        phases=dict(Counter(pod.phase or "Unknown" for pod in pods)),
        health=dict(Counter(pod_health(pod, request.now).state.value for pod in pods)),
    )


_HANDLERS: Mapping[str, Callable[[StatusView, QueryRequest], Awaitable[msgspec.Struct]]] = {
    "/v1/pods": _pods,
    "/v1/pods/{namespace}/{name}": _pod,
    "/v1/pods/{namespace}/{name}/timeline": _timeline,
    "/v1/node": _node,
    "/v1/nodes": _nodes,
    "/v1/nodes/{name}": _node,
    "/v1/nodes/{name}/timeline": _node_timeline,
    "/v1/events": _events,
    "/v1/status": _status,
}
