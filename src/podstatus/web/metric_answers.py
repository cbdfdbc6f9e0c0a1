"""Answer what is at `/metrics`, and below it.

Upstream: InstallAuthNotRequiredHandlers, pkg/kubelet/server/server.go v1.36.4.
"""

from aiohttp import web

from podstatus.observe.metrics.pages import MetricPages
from podstatus.web.refusals import SAFE, not_found
from podstatus.web.routes import Found

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
