"""What the agent can be asked, and what a path is about. docs/node-server.md is checked against it.

Upstream: InstallAuthNotRequiredHandlers, InstallAuthRequiredHandlers and InstallSystemLogHandler,
pkg/kubelet/server/server.go v1.36.4.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from urllib.parse import unquote

import msgspec

from podstatus.web.v1.endpoints import QUESTIONS, WATCH


class About(Enum):
    """What a request is about."""

    HEALTH = "health"
    PODS = "pods"
    RUNNING_PODS = "running pods"
    CONTAINER_LOGS = "container logs"
    EXEC = "exec"
    ATTACH = "attach"
    OWN_LOGS = "own logs"
    DRAIN = "drain"
    STATS = "stats"
    CONFIGZ = "configz"
    FLAGZ = "flagz"
    STATUSZ = "statusz"
    QUERY = "query"
    """Of our own API: `query_paths` says more."""
    METRICS = "metrics"
    WATCH = "watch"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A form that paths can have; `{names}` stand for one part of it each."""

    pattern: str
    about: About
    methods: tuple[str, ...] = ("GET",)
    is_open: bool = False
    """Whether everybody on this machine may ask: it only tells how things are."""
    is_open_everywhere: bool = False
    """Whether everybody else may, too: it tells next to nothing."""

    @property
    def parts(self) -> tuple[str, ...]:
        """What is between the slashes."""
        return tuple(self.pattern.strip("/").split("/"))


_UPGRADES = ("GET", "POST")
_READS = ("GET", "HEAD")

OWN = ("/v1/", "/openapi")
"""How the paths of our own API begin."""

ROUTES = (
    Route(pattern="/healthz", about=About.HEALTH, methods=_READS, is_open_everywhere=True),
    Route(
        pattern="/healthz/{check}",
        about=About.HEALTH,
        methods=_READS,
        is_open_everywhere=True,
    ),
    Route(pattern="/pods", about=About.PODS, is_open=True),
    Route(pattern="/runningpods/", about=About.RUNNING_PODS, is_open=True),
    Route(pattern="/containerLogs/{namespace}/{pod}/{container}", about=About.CONTAINER_LOGS),
    Route(pattern="/exec/{namespace}/{pod}/{container}", about=About.EXEC, methods=_UPGRADES),
    Route(pattern="/exec/{namespace}/{pod}/{uid}/{container}", about=About.EXEC, methods=_UPGRADES),
    Route(pattern="/attach/{namespace}/{pod}/{container}", about=About.ATTACH, methods=_UPGRADES),
    Route(
        pattern="/attach/{namespace}/{pod}/{uid}/{container}",
        about=About.ATTACH,
        methods=_UPGRADES,
    ),
    Route(pattern="/logs/", about=About.OWN_LOGS),
    Route(pattern="/logs/{file}", about=About.OWN_LOGS),
    Route(pattern="/metrics", about=About.METRICS),
    Route(pattern="/metrics/cadvisor", about=About.METRICS),
    Route(pattern="/metrics/probes", about=About.METRICS),
    Route(pattern="/metrics/resource", about=About.METRICS),
    Route(pattern="/metrics/slis", about=About.METRICS),
    Route(pattern="/drain", about=About.DRAIN, methods=("GET", "POST", "DELETE")),
    Route(pattern="/stats/summary", about=About.STATS, is_open=True),
    Route(pattern="/configz", about=About.CONFIGZ),
    Route(pattern="/flagz", about=About.FLAGZ),
    Route(pattern="/statusz", about=About.STATUSZ),
    *(
        Route(pattern=question.pattern, about=About.QUERY, methods=_READS, is_open=True)
        for question in QUESTIONS
    ),
    Route(pattern=WATCH.pattern, about=About.WATCH, is_open=True),
)


_OF_OBSERVERS = frozenset(
    {
        About.HEALTH,
        About.OWN_LOGS,
        About.METRICS,
        About.FLAGZ,
        About.STATUSZ,
        About.QUERY,
        About.WATCH,
    }
)
_METRICS_OF_OBSERVERS = ("/metrics", "/metrics/slis")

OBSERVER_ROUTES = tuple(
    route
    for route in ROUTES
    if route.about in _OF_OBSERVERS
    and (route.about is not About.METRICS or route.pattern in _METRICS_OF_OBSERVERS)
)
"""What one can be asked who looks on: not what only a node can tell, or do."""


class Found(msgspec.Struct, frozen=True):
    """The route of a path, and what stands for its names."""

    route: Route
    names: Mapping[str, str]


def find_route(raw_path: str, routes: Sequence[Route] = ROUTES) -> Found | None:
    """What a path is about, as it was sent; None if nothing that is there.

    Each part is decoded by itself, so that an encoded slash never becomes one.
    """
    parts = _parts(raw_path)
    if parts is None:
        return None
    for route in routes:
        names = _match(route.parts, parts)
        if names is not None:
            return Found(route, names)
    return None


def _parts(raw_path: str) -> tuple[str, ...] | None:
    """The parts of a path; None if it could be meant to lead elsewhere."""
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
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted.startswith("{"):
            names[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return names
