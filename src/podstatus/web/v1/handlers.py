"""Answer what our own API is asked, out of what is known: each a function of the observatory.

While the API server is away it is all answered as before, and says how old it is.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from podstatus.alerts.ports import AlertReader
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.store import HistoryEntry, HistoryError
from podstatus.observe.status_view import StatusView, SupportsPodSync
from podstatus.observe.summary.health import pod_health
from podstatus.observe.transitions.status_transitions import EVENT
from podstatus.web.errors import bad_request, not_found, too_long, unavailable
from podstatus.web.query_parameters import Query, read_query
from podstatus.web.v1.alerts import MAX_ALERTS, list_alerts
from podstatus.web.v1.endpoints import DEFAULT_LIMIT, ENDPOINTS, MAX_PODS, MAX_TRANSITIONS
from podstatus.web.v1.filters import check_parameters, pod_filter
from podstatus.web.v1.pagination import paginate_pods
from podstatus.web.v1.wire import (
    AlertsResponse,
    NodeResponse,
    NodesResponse,
    PodResponse,
    PodsResponse,
    StatusResponse,
    TransitionsResponse,
    pod_view,
    round_floats,
    transition_view,
)

ALERTS_PATH = "/v1/alerts"
MAX_QUERY_BYTES = 8 * 2**10
"""Bytes of a query; a selector of kubectl's is far shorter."""
_MAX_NAME_LENGTH = 253
"""Characters of a name in Kubernetes."""
_MAX_ID = 2**63 - 1
_MAX_SCANNED_ENTRIES = 50_000
"""Moments that are read for one answer; who wants more asks on from where it ended."""
_SCAN_BATCH_SIZE = 2_000


class QueryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and when."""

    pattern: str
    path_parameters: Mapping[str, str] = {}
    query: Query = {}
    now: Time

    @classmethod
    def read(
        cls, pattern: str, path_parameters: Mapping[str, str], raw_query: str, now: Time
    ) -> "QueryRequest":
        """From a request. Raises Refusal for a parameter that there is not."""
        if len(raw_query) > MAX_QUERY_BYTES:
            raise too_long(f"the query has more than {MAX_QUERY_BYTES} bytes; ask for less")
        if any(len(name) > _MAX_NAME_LENGTH for name in path_parameters.values()):
            raise not_found(f"no name has more than {_MAX_NAME_LENGTH} characters")
        query = read_query(raw_query)
        check_parameters(query, _PARAMETERS[pattern])
        return cls(pattern=pattern, path_parameters=path_parameters, query=query, now=now)

    def number(self, name: str, default: int, *, minimum: int, maximum: int) -> int:
        """A whole number of the query. Raises Refusal."""
        text = self.text(name)
        if not text:
            return default
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else minimum - 1
        if not minimum <= number <= maximum:
            raise bad_request(f"{name} has to be a whole number from {minimum} to {maximum}")
        return number

    def text(self, name: str) -> str:
        """A parameter that may be there once; empty if it is not. Raises Refusal."""
        values = self.query.get(name, ())
        if len(values) > 1:
            raise bad_request(f"{name} is given {len(values)} times; give it once")
        return values[0] if values else ""

    def limit(self, maximum: int) -> int:
        """How many are wanted at most. Raises Refusal."""
        return self.number("limit", DEFAULT_LIMIT, minimum=1, maximum=maximum)

    @property
    def after(self) -> int:
        """The moment that only later ones are wanted than. Raises Refusal."""
        return self.number("after", 0, minimum=0, maximum=_MAX_ID)


_PARAMETERS = {
    question.pattern: [parameter.name for parameter in question.parameters]
    for question in ENDPOINTS
}


async def run_query(
    view: StatusView, request: QueryRequest, alerts: AlertReader | None = None
) -> msgspec.Struct:
    """What is answered. Raises Refusal."""
    if request.pattern == ALERTS_PATH:
        return _alerts(view, request, alerts)
    try:
        return round_floats(await _HANDLERS[request.pattern](view, request))
    except HistoryError as error:
        raise unavailable(f"the history cannot be read now: {error}") from error


def _alerts(known: StatusView, asked: QueryRequest, alerts: AlertReader | None) -> AlertsResponse:
    if alerts is None:
        # Nobody but an observer sends no statuses.
        if known.sync() is None:
            raise not_found("an observer asks no rules; ask the agent of a node")
        raise not_found("no rules are asked here (--no-alerts)")
    return list_alerts(alerts, known.freshness(), asked.query, asked.limit(MAX_ALERTS))


async def _pods(known: StatusView, asked: QueryRequest) -> PodsResponse:
    page = paginate_pods(
        known.snapshot_cache.pods().values(),
        pod_filter(asked.query),
        asked.now,
        limit=asked.limit(MAX_PODS),
        after=asked.text("continue"),
    )
    return PodsResponse(
        freshness=known.freshness(),
        pods=tuple(pod_view(pod, asked.now) for pod in page.pods),
        remaining=page.remaining,
        continue_=page.next,
    )


async def _pod(known: StatusView, asked: QueryRequest) -> PodResponse:
    """The newest, if one of the same name is still ending."""
    namespace, name = asked.path_parameters["namespace"], asked.path_parameters["name"]
    found = [
        pod
        for pod in known.snapshot_cache.pods().values()
        if pod.name == name and pod.namespace == namespace
    ]
    if not found:
        raise not_found(
            f"no pod {namespace}/{name} is known here; what happened to one that is gone is at "
            f"/v1/pods/{namespace}/{name}/timeline"
        )
    newest = max(found, key=lambda pod: pod.created)
    return PodResponse(
        freshness=known.freshness(),
        pod=pod_view(newest, asked.now),
        sync=known.pod_sync(newest.uid) if isinstance(known, SupportsPodSync) else None,
    )


async def _timeline(known: StatusView, asked: QueryRequest) -> TransitionsResponse:
    namespace, name = asked.path_parameters["namespace"], asked.path_parameters["name"]
    after, limit = asked.after, asked.limit(MAX_TRANSITIONS)
    found = await known.timeline(namespace, name, after=after)
    if not found and not after and not _pod_exists(known, namespace, name):
        raise not_found(f"nothing is known of a pod {namespace}/{name}, and nothing happened to it")
    return _transitions_response(known, found[:limit], after, more=len(found) > limit)


def _pod_exists(known: StatusView, namespace: str, name: str) -> bool:
    pods = known.snapshot_cache.pods().values()
    return any(pod.name == name and pod.namespace == namespace for pod in pods)


async def _events(known: StatusView, asked: QueryRequest) -> TransitionsResponse:
    """Events are few among moments: they are looked for until there are enough."""
    namespace, limit = asked.text("namespace"), asked.limit(MAX_TRANSITIONS)
    found: list[HistoryEntry] = []
    after = seen = asked.after
    for _ in range(_MAX_SCANNED_ENTRIES // _SCAN_BATCH_SIZE):
        moments = await known.transitions(seen, limit=_SCAN_BATCH_SIZE)
        for moment in moments:
            seen = moment.id
            if moment.transition.kind != EVENT or namespace not in ("", moment.namespace):
                continue
            found.append(moment)
            if len(found) == limit:
                return _transitions_response(known, found, after, more=True, upto=seen)
        if len(moments) < _SCAN_BATCH_SIZE:
            return _transitions_response(known, found, after, more=False, upto=seen)
    return _transitions_response(known, found, after, more=True, upto=seen)


def _transitions_response(
    known: StatusView, found: list[HistoryEntry], after: int, *, more: bool, upto: int = 0
) -> TransitionsResponse:
    return TransitionsResponse(
        freshness=known.freshness(),
        history=known.history(),
        transitions=tuple(map(transition_view, found)),
        after=upto or (found[-1].id if found else after),
        more=more,
    )


async def _node(known: StatusView, asked: QueryRequest) -> NodeResponse:
    nodes, name = known.nodes(), asked.path_parameters.get("name", "")
    if name:
        node = nodes.get(name)
        if node is None:
            raise not_found(f"no node {name} is known here; /v1/nodes has those that are")
        return NodeResponse(freshness=known.freshness(), node=node)
    if len(nodes) != 1:
        raise not_found(f"{len(nodes)} nodes are known here, not one; ask /v1/nodes")
    (node,) = nodes.values()
    return NodeResponse(freshness=known.freshness(), node=node)


async def _nodes(known: StatusView, _: QueryRequest) -> NodesResponse:
    nodes = known.nodes()
    return NodesResponse(
        freshness=known.freshness(), nodes=tuple(nodes[name] for name in sorted(nodes))
    )


async def _status(known: StatusView, asked: QueryRequest) -> StatusResponse:
    pods = known.snapshot_cache.pods().values()
    return StatusResponse(
        freshness=known.freshness(),
        history=known.history(),
        sync=known.sync(),
        pods=len(pods),
        nodes=len(known.nodes()),
        phases=dict(Counter(pod.phase or "Unknown" for pod in pods)),
        health=dict(Counter(pod_health(pod, asked.now).state.value for pod in pods)),
    )


_HANDLERS: Mapping[str, Callable[[StatusView, QueryRequest], Awaitable[msgspec.Struct]]] = {
    "/v1/pods": _pods,
    "/v1/pods/{namespace}/{name}": _pod,
    "/v1/pods/{namespace}/{name}/timeline": _timeline,
    "/v1/node": _node,
    "/v1/nodes": _nodes,
    "/v1/nodes/{name}": _node,
    "/v1/events": _events,
    "/v1/status": _status,
}
