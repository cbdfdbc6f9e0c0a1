"""Answer what our own API is asked, out of what is known: each a function of the observatory.

While the API server is away it is all answered as before, and says how old it is.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from podstatus.alerts.ports import AlertReader
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.store import HistoryError, Moment
from podstatus.observe.status_view import Observatory, Sending
from podstatus.observe.summary.health import pod_health
from podstatus.observe.transitions.status_transitions import EVENT
from podstatus.web.errors import bad_request, not_found, too_long, unavailable
from podstatus.web.query_parameters import Query, read_query
from podstatus.web.v1.alerts import MOST_ALERTS, AlertsAnswer, answer_alerts
from podstatus.web.v1.endpoints import MOST_MOMENTS, MOST_PODS, QUESTIONS, USUAL_AT_ONCE
from podstatus.web.v1.filters import check_names, pod_filter
from podstatus.web.v1.pagination import page_of_pods
from podstatus.web.v1.wire import (
    MomentsAnswer,
    NodeAnswer,
    NodesAnswer,
    PodAnswer,
    PodsAnswer,
    StatusAnswer,
    show_moment,
    show_pod,
    to_the_thousandth,
)

ALERTS = "/v1/alerts"
MOST_QUERY = 8 * 2**10
"""Bytes of a query; a selector of kubectl's is far shorter."""
_MOST_NAME = 253
"""Characters of a name in Kubernetes."""
_MOST_ID = 2**63 - 1
_MOST_LOOKED_AT = 50_000
"""Moments that are read for one answer; who wants more asks on from where it ended."""
_AT_A_TIME = 2_000


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and when."""

    pattern: str
    names: Mapping[str, str] = {}
    query: Query = {}
    now: Time

    @classmethod
    def read(cls, pattern: str, names: Mapping[str, str], raw_query: str, now: Time) -> "Asked":
        """From a request. Raises Refusal for a parameter that there is not."""
        if len(raw_query) > MOST_QUERY:
            raise too_long(f"the query has more than {MOST_QUERY} bytes; ask for less")
        if any(len(name) > _MOST_NAME for name in names.values()):
            raise not_found(f"no name has more than {_MOST_NAME} characters")
        query = read_query(raw_query)
        check_names(query, _PARAMETERS[pattern])
        return cls(pattern=pattern, names=names, query=query, now=now)

    def number(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number of the query. Raises Refusal."""
        text = self.text(name)
        if not text:
            return default
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else least - 1
        if not least <= number <= most:
            raise bad_request(f"{name} has to be a whole number from {least} to {most}")
        return number

    def text(self, name: str) -> str:
        """A parameter that may be there once; empty if it is not. Raises Refusal."""
        values = self.query.get(name, ())
        if len(values) > 1:
            raise bad_request(f"{name} is given {len(values)} times; give it once")
        return values[0] if values else ""

    def limit(self, most: int) -> int:
        """How many are wanted at most. Raises Refusal."""
        return self.number("limit", USUAL_AT_ONCE, least=1, most=most)

    @property
    def after(self) -> int:
        """The moment that only later ones are wanted than. Raises Refusal."""
        return self.number("after", 0, least=0, most=_MOST_ID)


_PARAMETERS = {
    question.pattern: [parameter.name for parameter in question.parameters]
    for question in QUESTIONS
}


async def answer_query(
    known: Observatory, asked: Asked, alerts: AlertReader | None = None
) -> msgspec.Struct:
    """What is answered. Raises Refusal."""
    if asked.pattern == ALERTS:
        return _alerts(known, asked, alerts)
    try:
        return to_the_thousandth(await _ANSWERS[asked.pattern](known, asked))
    except HistoryError as error:
        raise unavailable(f"the history cannot be read now: {error}") from error


def _alerts(known: Observatory, asked: Asked, alerts: AlertReader | None) -> AlertsAnswer:
    if alerts is None:
        # Nobody but an observer sends no statuses.
        if known.sync() is None:
            raise not_found("an observer asks no rules; ask the agent of a node")
        raise not_found("no rules are asked here (--no-alerts)")
    return answer_alerts(alerts, known.knowledge(), asked.query, asked.limit(MOST_ALERTS))


async def _pods(known: Observatory, asked: Asked) -> PodsAnswer:
    page = page_of_pods(
        known.board.pods().values(),
        pod_filter(asked.query),
        asked.now,
        limit=asked.limit(MOST_PODS),
        after=asked.text("continue"),
    )
    return PodsAnswer(
        knowledge=known.knowledge(),
        pods=tuple(show_pod(pod, asked.now) for pod in page.pods),
        remaining=page.remaining,
        continue_=page.next,
    )


async def _pod(known: Observatory, asked: Asked) -> PodAnswer:
    """The newest, if one of the same name is still ending."""
    namespace, name = asked.names["namespace"], asked.names["name"]
    found = [
        pod
        for pod in known.board.pods().values()
        if pod.name == name and pod.namespace == namespace
    ]
    if not found:
        raise not_found(
            f"no pod {namespace}/{name} is known here; what happened to one that is gone is at "
            f"/v1/pods/{namespace}/{name}/timeline"
        )
    newest = max(found, key=lambda pod: pod.created)
    return PodAnswer(
        knowledge=known.knowledge(),
        pod=show_pod(newest, asked.now),
        sync=known.pod_sync(newest.uid) if isinstance(known, Sending) else None,
    )


async def _timeline(known: Observatory, asked: Asked) -> MomentsAnswer:
    namespace, name = asked.names["namespace"], asked.names["name"]
    after, limit = asked.after, asked.limit(MOST_MOMENTS)
    found = await known.timeline(namespace, name, after=after)
    if not found and not after and not _is_there(known, namespace, name):
        raise not_found(f"nothing is known of a pod {namespace}/{name}, and nothing happened to it")
    return _moments(known, found[:limit], after, more=len(found) > limit)


def _is_there(known: Observatory, namespace: str, name: str) -> bool:
    pods = known.board.pods().values()
    return any(pod.name == name and pod.namespace == namespace for pod in pods)


async def _events(known: Observatory, asked: Asked) -> MomentsAnswer:
    """Events are few among moments: they are looked for until there are enough."""
    namespace, limit = asked.text("namespace"), asked.limit(MOST_MOMENTS)
    found: list[Moment] = []
    after = seen = asked.after
    for _ in range(_MOST_LOOKED_AT // _AT_A_TIME):
        moments = await known.moments(seen, most=_AT_A_TIME)
        for moment in moments:
            seen = moment.id
            if moment.transition.kind != EVENT or namespace not in ("", moment.namespace):
                continue
            found.append(moment)
            if len(found) == limit:
                return _moments(known, found, after, more=True, upto=seen)
        if len(moments) < _AT_A_TIME:
            return _moments(known, found, after, more=False, upto=seen)
    return _moments(known, found, after, more=True, upto=seen)


def _moments(
    known: Observatory, found: list[Moment], after: int, *, more: bool, upto: int = 0
) -> MomentsAnswer:
    return MomentsAnswer(
        knowledge=known.knowledge(),
        history=known.history(),
        moments=tuple(map(show_moment, found)),
        after=upto or (found[-1].id if found else after),
        more=more,
    )


async def _node(known: Observatory, asked: Asked) -> NodeAnswer:
    nodes, name = known.nodes(), asked.names.get("name", "")
    if name:
        node = nodes.get(name)
        if node is None:
            raise not_found(f"no node {name} is known here; /v1/nodes has those that are")
        return NodeAnswer(knowledge=known.knowledge(), node=node)
    if len(nodes) != 1:
        raise not_found(f"{len(nodes)} nodes are known here, not one; ask /v1/nodes")
    (node,) = nodes.values()
    return NodeAnswer(knowledge=known.knowledge(), node=node)


async def _nodes(known: Observatory, _: Asked) -> NodesAnswer:
    nodes = known.nodes()
    return NodesAnswer(
        knowledge=known.knowledge(), nodes=tuple(nodes[name] for name in sorted(nodes))
    )


async def _status(known: Observatory, asked: Asked) -> StatusAnswer:
    pods = known.board.pods().values()
    return StatusAnswer(
        knowledge=known.knowledge(),
        history=known.history(),
        sync=known.sync(),
        pods=len(pods),
        nodes=len(known.nodes()),
        phases=dict(Counter(pod.phase or "Unknown" for pod in pods)),
        health=dict(Counter(pod_health(pod, asked.now).word.value for pod in pods)),
    )


_ANSWERS: Mapping[str, Callable[[Observatory, Asked], Awaitable[msgspec.Struct]]] = {
    "/v1/pods": _pods,
    "/v1/pods/{namespace}/{name}": _pod,
    "/v1/pods/{namespace}/{name}/timeline": _timeline,
    "/v1/node": _node,
    "/v1/nodes": _nodes,
    "/v1/nodes/{name}": _node,
    "/v1/events": _events,
    "/v1/status": _status,
}
