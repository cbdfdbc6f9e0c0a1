"""`/healthz`: run the health checks of the agent.

GET /healthz            `ok`, or 500 with the result of every check
GET /healthz?verbose    the result of every check
GET /healthz/relist     one check

Upstream: pkg/server/healthz/healthz.go, apiserver v0.36.4. Upstream withholds the reasons of
failures; here they are returned: the port listens on loopback, and its clients need them.
"""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus

from aiohttp import web

from podstatus.base.net.accept_loop import AcceptLoop, descriptor_limit
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.web.connection_limits import HEALTH_PORT_LIMITS, http_logger

HealthCheck = Callable[[], str | None]
"""Return the reason of a failure; None if healthy. Must not block."""
HealthChecks = Callable[[], Mapping[str, HealthCheck]]
"""Return the current checks by name."""

_PATH = "/healthz"
_CLOSE_SECONDS = 1.0
_FIRST_REQUEST_SECONDS = 5.0
_KEEP_ALIVE_SECONDS = 30.0
_LINGER_SECONDS = 1.0
"""For a request body, which is not read."""


def healthy() -> None:
    """The check that always passes (`ping`): the process responds."""


def heartbeat_checks(heartbeats: Heartbeats) -> dict[str, HealthCheck]:
    """The kubelet's constant checks, and one for each service with a heartbeat."""
    checks: dict[str, HealthCheck] = {"ping": healthy, "log": healthy}
    return checks | {name: partial(_stall_problem, heartbeats, name) for name in heartbeats.names()}


def _stall_problem(heartbeats: Heartbeats, name: str) -> str | None:
    stalled = heartbeats.find_stalled(name)
    return None if stalled is None else str(stalled)


class HealthListener:
    """Serves `/healthz` on a port of its own, so that a busy HTTPS port does not block it."""

    def __init__(self, host: str, port: int, checks: HealthChecks) -> None:
        self._host = host
        self._port = port
        self._checks = checks
        self._runner: web.ServerRunner | None = None
        self._connections: AcceptLoop | None = None

    async def start(self) -> int:
        """Start listening, and return the port. Raises OSError."""
        server = web.Server(
            self._serve,
            access_log=None,
            logger=http_logger(__name__),
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
            lingering_time=_LINGER_SECONDS,
        )
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=_CLOSE_SECONDS)
        await runner.setup()
        connections = AcceptLoop(
            server,
            HEALTH_PORT_LIMITS.scaled(descriptor_limit()),
            first_request_seconds=_FIRST_REQUEST_SECONDS,
        )
        try:
            port = await connections.start(self._host, self._port)
        except BaseException:
            await runner.cleanup()
            raise
        self._runner, self._connections = runner, connections
        return port

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None and self._connections is not None:
            self._connections.close()
            await runner.cleanup()
            await self._connections.abort_all()

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        if self._connections is None:
            return self._respond(request)
        with self._connections.serving(request.protocol):
            return self._respond(request)

    def _respond(self, request: web.BaseRequest) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            return _text_response(
                HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are allowed\n", Allow="GET, HEAD"
            )
        verbose = "verbose" in request.query
        code, text = health_response(request.path, self._checks(), verbose=verbose)
        return _text_response(code, text)


def health_response(
    path: str, checks: Mapping[str, HealthCheck], *, verbose: bool = False
) -> tuple[HTTPStatus, str]:
    path = path.rstrip("/")
    if path == _PATH:
        return _check_all(checks, verbose=verbose)
    check = checks.get(path.removeprefix(f"{_PATH}/"))
    if check is None:
        names = ", ".join(sorted(checks))
        return (
            HTTPStatus.NOT_FOUND,
            f"404 page not found; the checks below {_PATH} are {names}\n",
        )
    problem = _run_check(check)
    if problem is None:
        return HTTPStatus.OK, "ok"
    return HTTPStatus.INTERNAL_SERVER_ERROR, f"internal server error: {problem}\n"


def _check_all(checks: Mapping[str, HealthCheck], *, verbose: bool) -> tuple[HTTPStatus, str]:
    problems = {name: _run_check(check) for name, check in sorted(checks.items())}
    results = "".join(
        f"[+]{name} ok\n" if problem is None else f"[-]{name} failed: {problem}\n"
        for name, problem in problems.items()
    )
    if any(problem is not None for problem in problems.values()):
        return HTTPStatus.INTERNAL_SERVER_ERROR, f"{results}healthz check failed\n"
    return HTTPStatus.OK, f"{results}healthz check passed\n" if verbose else "ok"


def _run_check(check: HealthCheck) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a check that raises has failed
        return f"the check itself failed: {type(error).__name__}: {error}"


def _text_response(code: HTTPStatus, text: str, **headers: str) -> web.Response:
    return web.Response(
        status=code,
        text=text,
        content_type="text/plain",
        headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", **headers},
    )
