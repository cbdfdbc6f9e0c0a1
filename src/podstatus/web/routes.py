"""The routes of the agent's HTTPS port, as in docs/reference/http/kubelet-endpoints.md.

Upstream: InstallAuthNotRequiredHandlers, InstallAuthRequiredHandlers and InstallSystemLogHandler,
pkg/kubelet/server/server.go v1.36.4.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from urllib.parse import unquote

import msgspec

from podstatus.web.v1.endpoints import ENDPOINTS, WATCH_ENDPOINT


class RouteKind(Enum):
    """What a route serves; one handler each."""

    HEALTH = "health"
    PODS = "pods"
    RUNNING_PODS = "running pods"
    CONTAINER_LOGS = "container logs"
    EXEC = "exec"
    ATTACH = "attach"
    AGENT_LOGS = "own logs"
    DRAIN = "drain"
    STATS = "stats"
    CONFIGZ = "configz"
    FLAGZ = "flagz"
    STATUSZ = "statusz"
    QUERY = "query"
    """An endpoint of the query API; see `v1.endpoints`."""
    METRICS = "metrics"
    WATCH = "watch"


class Route(msgspec.Struct, frozen=True):
    """A path pattern; each `{name}` stands for one path segment."""

    pattern: str
    kind: RouteKind
    methods: tuple[str, ...] = ("GET",)
    allows_anonymous_local: bool = False
    """Whether clients on this machine need no credentials: the endpoint is read-only."""
    allows_anonymous: bool = False
    """Whether no client needs credentials: the response reveals next to nothing."""

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.pattern.strip("/").split("/"))


_UPGRADE_METHODS = ("GET", "POST")
_READ_METHODS = ("GET", "HEAD")

OWN_API_PREFIXES = ("/v1/", "/openapi")
"""Path prefixes of the query API, which returns errors as JSON."""

ROUTES = (
    Route("/healthz", RouteKind.HEALTH, methods=_READ_METHODS, allows_anonymous=True),
    Route("/healthz/{check}", RouteKind.HEALTH, methods=_READ_METHODS, allows_anonymous=True),
    Route("/pods", RouteKind.PODS, allows_anonymous_local=True),
    Route("/runningpods/", RouteKind.RUNNING_PODS, allows_anonymous_local=True),
    Route("/containerLogs/{namespace}/{pod}/{container}", RouteKind.CONTAINER_LOGS),
    Route("/exec/{namespace}/{pod}/{container}", RouteKind.EXEC, methods=_UPGRADE_METHODS),
    Route("/exec/{namespace}/{pod}/{uid}/{container}", RouteKind.EXEC, methods=_UPGRADE_METHODS),
    Route("/attach/{namespace}/{pod}/{container}", RouteKind.ATTACH, methods=_UPGRADE_METHODS),
    Route(
        "/attach/{namespace}/{pod}/{uid}/{container}", RouteKind.ATTACH, methods=_UPGRADE_METHODS
    ),
    Route("/logs/", RouteKind.AGENT_LOGS),
    Route("/logs/{file}", RouteKind.AGENT_LOGS),
    Route("/metrics", RouteKind.METRICS),
    Route("/metrics/cadvisor", RouteKind.METRICS),
    Route("/metrics/probes", RouteKind.METRICS),
    Route("/metrics/resource", RouteKind.METRICS),
    Route("/metrics/slis", RouteKind.METRICS),
    Route("/drain", RouteKind.DRAIN, methods=("GET", "POST", "DELETE")),
    Route("/stats/summary", RouteKind.STATS, allows_anonymous_local=True),
    Route("/configz", RouteKind.CONFIGZ),
    Route("/flagz", RouteKind.FLAGZ),
    Route("/statusz", RouteKind.STATUSZ),
    *(
        Route(endpoint.pattern, RouteKind.QUERY, methods=_READ_METHODS, allows_anonymous_local=True)
        for endpoint in ENDPOINTS
    ),
    Route(WATCH_ENDPOINT.pattern, RouteKind.WATCH, allows_anonymous_local=True),
)


_OBSERVER_KINDS = frozenset(
    {
        RouteKind.HEALTH,
        RouteKind.AGENT_LOGS,
        RouteKind.METRICS,
        RouteKind.FLAGZ,
        RouteKind.STATUSZ,
        RouteKind.QUERY,
        RouteKind.WATCH,
    }
)
_OBSERVER_METRICS = ("/metrics", "/metrics/slis")

OBSERVER_ROUTES = tuple(
    route
    for route in ROUTES
    if route.kind in _OBSERVER_KINDS
    and (route.kind is not RouteKind.METRICS or route.pattern in _OBSERVER_METRICS)
)
"""The routes of an observer: without those that need a node."""


class RouteMatch(msgspec.Struct, frozen=True):
    """The route of a path, and the values of its `{names}`."""

    route: Route
    parameters: Mapping[str, str]


def match_route(raw_path: str, routes: Sequence[Route] = ROUTES) -> RouteMatch | None:
    """The route of a raw path; None if there is none.

    Each segment is percent-decoded by itself, so that an encoded slash does not separate segments.
    """
    parts = _parts(raw_path)
    if parts is None:
        return None
    for route in routes:
        names = _match(route.parts, parts)
        if names is not None:
            return RouteMatch(route, names)
    return None


def _parts(raw_path: str) -> tuple[str, ...] | None:
    """The segments of a path; None if one is empty, a dot segment, or has a slash or null byte."""
    if not raw_path.startswith("/"):
        return None
    parts = raw_path[1:].removesuffix("/").split("/")
    decoded = tuple(unquote(part, errors="surrogateescape") for part in parts)
    if any(part in ("", ".", "..") or "/" in part or "\0" in part for part in decoded):
        return None
    return decoded


def _match(pattern: tuple[str, ...], parts: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(parts):
        return None
    names = {}
    for expected, part in zip(pattern, parts, strict=True):
        if expected.startswith("{"):
            names[expected[1:-1]] = part
        elif expected != part:
            return None
    return names
