"""Responses that are complete at once: /metrics, /v1 queries, /stats/summary and z-pages.

Upstream: InstallAuthNotRequiredHandlers, pkg/kubelet/server/server.go v1.36.4.
"""

from collections.abc import Sequence

from aiohttp import web

from podstatus.alerts.ports import AlertReader
from podstatus.kube.scalars.time import Time
from podstatus.observe.metrics.pages import MetricPages
from podstatus.observe.status_view import Observatory
from podstatus.runtime.port import RuntimePod
from podstatus.web.errors import SAFE, not_found
from podstatus.web.kubelet.stats import stats_summary
from podstatus.web.kubelet.zpages import configz, flagz, statusz
from podstatus.web.ports import AboutAgent, Machine
from podstatus.web.query_parameters import read_query
from podstatus.web.routes import About, Found, Route
from podstatus.web.v1.handlers import Asked, answer_query
from podstatus.web.v1.openapi import KNOWLEDGE_AGE, OPENAPI, openapi_document
from podstatus.web.v1.wire import encode_answer

_MISSING = {
    "cadvisor": "the runtime of this node does not measure containers; "
    "/metrics/resource has what is known of pods and node",
}


async def answer_metrics(
    pages: MetricPages | None, request: web.BaseRequest, found: Found
) -> web.Response:
    """The page at this path, in the form that whoever asks reads best. Raises Refusal."""
    name = found.route.pattern.removeprefix("/metrics").removeprefix("/")
    accept = ",".join(request.headers.getall("Accept", ()))
    page = None if pages is None else await pages.page(name, accept)
    if page is None:
        raise not_found(_MISSING.get(name, "nothing is measured here"))
    return web.Response(body=page.body, headers={**SAFE, "Content-Type": page.content_type})


async def tell_query(
    known: Observatory | None,
    alerts: AlertReader | None,
    request: web.BaseRequest,
    found: Found,
    now: int,
    routes: tuple[Route, ...],
) -> web.Response:
    """What our own API is asked. Raises Refusal."""
    pattern = found.route.pattern
    if pattern in OPENAPI:
        return json_answer(openapi_document(routes))
    if known is None:
        raise not_found("nobody keeps here what is known of pods")
    raw_query = request.rel_url.raw_query_string
    asked = Asked.read(pattern, found.names, raw_query, Time.from_unix_nanos(now))
    answer = json_answer(encode_answer(await answer_query(known, asked, alerts)))
    answer.headers[KNOWLEDGE_AGE] = f"{known.knowledge().server_age_seconds:.3f}"
    return answer


def tell_stats(
    machine: Machine | None,
    request: web.BaseRequest,
    running: Sequence[RuntimePod],
    node_name: str,
) -> web.Response:
    """What node and pods use. Raises Refusal."""
    if machine is None:
        raise not_found("nobody measures here what is used")
    query = read_query(request.rel_url.raw_query_string)
    return json_answer(stats_summary(node_name, machine, running, query))


def tell_about_agent(
    agent: AboutAgent | None, about: About, now: int, routes: tuple[Route, ...]
) -> web.Response:
    """How the agent is configured, was started, or since when it runs. Raises Refusal."""
    if agent is None:
        raise not_found("nobody tells here how it was started")
    if about is About.CONFIGZ:
        return json_answer(configz(agent))
    told = flagz(agent) if about is About.FLAGZ else statusz(agent, now, routes)
    return web.Response(text=told, content_type="text/plain", charset="utf-8", headers=SAFE)


def json_answer(body: bytes) -> web.Response:
    """JSON, as it is."""
    return web.Response(body=body, content_type="application/json", headers=SAFE)
