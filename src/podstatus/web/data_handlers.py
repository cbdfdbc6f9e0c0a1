"""Responses that are complete at once: /metrics, /v1 queries, /stats/summary and z-pages.

Upstream: InstallAuthNotRequiredHandlers, pkg/kubelet/server/server.go v1.36.4.
"""

from collections.abc import Sequence

from aiohttp import web

from podstatus.alerts.ports import AlertReader
from podstatus.kube.scalars.time import Time
from podstatus.observe.metrics.exposition import MetricPages
from podstatus.observe.ports import StatusView
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
    "/metrics/resource has the usage of pods and node",
}


async def handle_metrics(
    pages: MetricPages, request: web.BaseRequest, match: RouteMatch
) -> web.Response:
    """The metrics page of this path, in the format that `Accept` prefers. Raises HttpError."""
    name = match.route.pattern.removeprefix("/metrics").removeprefix("/")
    accept = ",".join(request.headers.getall("Accept", ()))
    page = await pages.page(name, accept)
    if page is None:
        raise not_found(_MISSING_PAGES.get(name, "metrics are not available here"))
    return web.Response(
        body=page.body, headers={**SECURITY_HEADERS, "Content-Type": page.content_type}
    )


async def handle_query(
    view: StatusView,
    alerts: AlertReader | None,
    request: web.BaseRequest,
    match: RouteMatch,
    now: int,
    routes: tuple[Route, ...],
) -> web.Response:
    """The response of a /v1 endpoint, or the OpenAPI document. Raises HttpError."""
    pattern = match.route.pattern
    if pattern in OPENAPI_PATHS:
        return json_response(openapi_document(routes))
    raw_query = request.rel_url.raw_query_string
    query = QueryRequest.read(pattern, match.parameters, raw_query, Time.from_unix_nanos(now))
    response = json_response(encode_response(await run_query(view, query, alerts)))
    response.headers[FRESHNESS_HEADER] = f"{view.freshness().server_age_seconds:.3f}"
    return response


def handle_stats(
    machine: UsageProvider | None,
    request: web.BaseRequest,
    running: Sequence[RuntimePod],
    node_name: str,
) -> web.Response:
    """The response of /stats/summary. Raises HttpError."""
    if machine is None:
        raise not_found("usage is not measured here")
    query = read_query(request.rel_url.raw_query_string)
    return json_response(stats_summary(node_name, machine, running, query))


def handle_zpage(
    agent: AgentDescription, kind: RouteKind, now: int, routes: tuple[Route, ...]
) -> web.Response:
    """The response of /configz, /flagz or /statusz."""
    if kind is RouteKind.CONFIGZ:
        return json_response(configz(agent))
    text = flagz(agent) if kind is RouteKind.FLAGZ else statusz(agent, now, routes)
    return web.Response(
        text=text, content_type="text/plain", charset="utf-8", headers=SECURITY_HEADERS
    )


def json_response(body: bytes) -> web.Response:
    """A response whose body is encoded already."""
    return web.Response(body=body, content_type="application/json", headers=SECURITY_HEADERS)
