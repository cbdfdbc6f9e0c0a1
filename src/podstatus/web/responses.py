"""Responses that are complete at once: /metrics, /v1 queries, /stats/summary and z-pages.

Upstream: InstallAuthNotRequiredHandlers, pkg/kubelet/server/server.go v1.36.4.
"""

from collections.abc import Sequence

from aiohttp import web

from podstatus.alerts.ports import AlertReader
from podstatus.kube.scalars.time import Time
from podstatus.observe.metrics.pages import MetricPages
from podstatus.observe.status_view import StatusView
from podstatus.runtime.port import RuntimePod
from podstatus.web.errors import SECURITY_HEADERS, not_found
from podstatus.web.kubelet.stats import stats_summary
from podstatus.web.kubelet.zpages import configz, flagz, statusz
from podstatus.web.ports import AgentDescription, UsageProvider
from podstatus.web.query_parameters import read_query
from podstatus.web.routes import Route, RouteKind, RouteMatch
from podstatus.web.v1.handlers import QueryRequest, run_query
from podstatus.web.v1.openapi import FRESHNESS_HEADER, OPENAPI_PATHS, openapi_document
from podstatus.web.v1.wire import encode_response

_MISSING_PAGES = {
    "cadvisor": "the runtime of this node does not measure containers; "
    "/metrics/resource has what is known of pods and node",
}


async def handle_metrics(
    pages: MetricPages | None, request: web.BaseRequest, match: RouteMatch
) -> web.Response:
    """The page at this path, in the form that whoever asks reads best. Raises Refusal."""
    name = match.route.pattern.removeprefix("/metrics").removeprefix("/")
    accept = ",".join(request.headers.getall("Accept", ()))
    page = None if pages is None else await pages.page(name, accept)
    if page is None:
        raise not_found(_MISSING_PAGES.get(name, "nothing is measured here"))
    return web.Response(
        body=page.body, headers={**SECURITY_HEADERS, "Content-Type": page.content_type}
    )


async def handle_query(
    view: StatusView | None,
    alerts: AlertReader | None,
    request: web.BaseRequest,
    match: RouteMatch,
    now: int,
    routes: tuple[Route, ...],
) -> web.Response:
    """What our own API is asked. Raises Refusal."""
    pattern = match.route.pattern
    if pattern in OPENAPI_PATHS:
        return json_response(openapi_document(routes))
    if view is None:
        raise not_found("nobody keeps here what is known of pods")
    raw_query = request.rel_url.raw_query_string
    asked = QueryRequest.read(pattern, match.parameters, raw_query, Time.from_unix_nanos(now))
    answer = json_response(encode_response(await run_query(view, asked, alerts)))
    answer.headers[FRESHNESS_HEADER] = f"{view.freshness().server_age_seconds:.3f}"
    return answer


def handle_stats(
    machine: UsageProvider | None,
    request: web.BaseRequest,
    running: Sequence[RuntimePod],
    node_name: str,
) -> web.Response:
    """What node and pods use. Raises Refusal."""
    if machine is None:
        raise not_found("nobody measures here what is used")
    query = read_query(request.rel_url.raw_query_string)
    return json_response(stats_summary(node_name, machine, running, query))


def handle_zpage(
    agent: AgentDescription | None, kind: RouteKind, now: int, routes: tuple[Route, ...]
) -> web.Response:
    """How the agent is configured, was started, or since when it runs. Raises Refusal."""
    if agent is None:
        raise not_found("nobody tells here how it was started")
    if kind is RouteKind.CONFIGZ:
        return json_response(configz(agent))
    told = flagz(agent) if kind is RouteKind.FLAGZ else statusz(agent, now, routes)
    return web.Response(
        text=told, content_type="text/plain", charset="utf-8", headers=SECURITY_HEADERS
    )


def json_response(body: bytes) -> web.Response:
    """JSON, as it is."""
    return web.Response(body=body, content_type="application/json", headers=SECURITY_HEADERS)
