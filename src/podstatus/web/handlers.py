"""Dispatch an authorized request to the handler of its route.

Upstream: the handlers of pkg/kubelet/server/server.go v1.36.4.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path

import msgspec
from aiohttp import web

from podstatus.alerts.ports import AlertReader
from podstatus.base.clock import Clock
from podstatus.kube.encoding.channel_frames import PROTOCOLS, choose_protocol
from podstatus.kube.objects.pod import Pod
from podstatus.observe.metrics.exposition import MetricPages
from podstatus.observe.metrics.watch_counters import WatchCounts
from podstatus.observe.ports import StatusView
from podstatus.runtime.streams import Logs, Streaming, StreamOptions
from podstatus.web.data_handlers import (
    handle_metrics,
    handle_query,
    handle_stats,
    handle_zpage,
    json_response,
)
from podstatus.web.errors import SECURITY_HEADERS, HttpError, bad_request, not_found
from podstatus.web.kubelet.exec_attach import (
    CLOSE_SECONDS,
    MAX_MESSAGE_BYTES,
    ExecSession,
    OpenStream,
)
from podstatus.web.kubelet.health import HealthChecks, health_response
from podstatus.web.kubelet.idle_timeout import IdleTimeout
from podstatus.web.kubelet.logs import list_logs, send_agent_log, send_container_log
from podstatus.web.kubelet.pods import (
    check_container,
    container_with_logs,
    has_tty,
    pod_list,
    running_container,
    running_pods,
)
from podstatus.web.ports import AgentDescription, Drain, NodePods, ServerOptions, UsageProvider
from podstatus.web.query_parameters import exec_command, log_request, read_query, stream_options
from podstatus.web.routes import ROUTES, Route, RouteKind, RouteMatch
from podstatus.web.watch.serve_watch import WatchService

_STOP_SECONDS = 0.5
_CLOSE_SECONDS = 0.2


class HandlerDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """The data sources of the handlers; None where an observer does not have one."""

    checks: HealthChecks
    routes: tuple[Route, ...] = ROUTES
    pods: NodePods | None = None
    runtime: object = None
    """Serves logs if it is `Logs`, exec and attach if it is `Streaming`."""
    logs: Path
    """The directory of the agent's own log files."""
    drain: Drain | None = None
    metrics: MetricPages
    view: StatusView
    """Snapshot and history for the query API and its watch."""
    alerts: AlertReader | None = None
    """None if alerting is disabled."""
    watch_counts: WatchCounts | None = None
    usage: UsageProvider | None = None
    agent_info: AgentDescription


class Handlers:
    """Handles requests. Streams are limited in number, and cancelled by `stop`."""

    def __init__(
        self, dependencies: HandlerDependencies, options: ServerOptions, clock: Clock
    ) -> None:
        self._dependencies = dependencies
        self._options = options
        self._clock = clock
        self._streams: set[asyncio.Task[object]] = set()
        self.watch_service = WatchService(
            dependencies.view, clock, counts=dependencies.watch_counts
        )

    @property
    def routes(self) -> tuple[Route, ...]:
        return self._dependencies.routes

    @property
    def streams(self) -> int:
        """The number of open log and exec streams."""
        return len(self._streams)

    async def handle(
        self, request: web.BaseRequest, match: RouteMatch, user: str = ""
    ) -> web.StreamResponse:
        """The response to an authorized request; a stream has been sent when this returns.

        `user` is empty for an anonymous client. Raises HttpError.
        """
        match match.route.kind:
            case RouteKind.HEALTH:
                return self._health(request)
            case RouteKind.PODS:
                return json_response(pod_list(self._pods.pods()))
            case RouteKind.RUNNING_PODS:
                return json_response(pod_list(running_pods(self._pods.running_pods())))
            case RouteKind.CONTAINER_LOGS:
                return await self._container_log(request, match)
            case RouteKind.EXEC:
                return await self._exec(request, match)
            case RouteKind.ATTACH:
                return await self._attach(request, match)
            case RouteKind.AGENT_LOGS:
                return await self._agent_logs(request, match.parameters.get("file", ""))
            case RouteKind.DRAIN:
                return self._drain(request.method)
            case RouteKind.WATCH:
                return await self.watch_service.handle(request, user)
            case _:
                return await self._handle_data(request, match)

    async def stop(self) -> None:
        """End all streams; exec and watch clients receive the reason."""
        streams = list(self._streams)
        for task in streams:
            task.cancel()
        await self.watch_service.stop()
        if streams:
            await asyncio.wait(streams, timeout=_STOP_SECONDS)

    def _health(self, request: web.BaseRequest) -> web.Response:
        verbose = "verbose" in request.query
        code, text = health_response(request.path, self._dependencies.checks(), verbose=verbose)
        return web.Response(
            status=code, text=text, content_type="text/plain", headers=SECURITY_HEADERS
        )

    def _drain(self, method: str) -> web.Response:
        """Start a drain (POST), cancel it (DELETE), and return its progress."""
        drain = self._dependencies.drain
        if drain is None:
            raise not_found("drain is not available here")
        if method == "POST":
            drain.begin()
        elif method == "DELETE":
            drain.cancel()
        return json_response(msgspec.json.encode(drain.progress()))

    async def _handle_data(self, request: web.BaseRequest, match: RouteMatch) -> web.Response:
        """A response that is complete at once."""
        sources, kind = self._dependencies, match.route.kind
        if kind is RouteKind.METRICS:
            return await handle_metrics(sources.metrics, request, match)
        if kind is RouteKind.QUERY:
            now = self._clock.now()
            return await handle_query(
                sources.view, sources.alerts, request, match, now, self.routes
            )
        if kind is RouteKind.STATS:
            running = self._pods.running_pods()
            return handle_stats(sources.usage, request, running, self._options.node_name)
        return handle_zpage(sources.agent_info, kind, self._clock.now(), self.routes)

    async def _container_log(
        self, request: web.BaseRequest, match: RouteMatch
    ) -> web.StreamResponse:
        container = match.parameters["container"]
        selection = log_request(read_query(request.rel_url.raw_query_string), self._clock.now())
        pod = self._pod(match, f'pod "{match.parameters["pod"]}" does not exist')
        check_container(pod, container)
        attempt = container_with_logs(pod, container, previous=selection.previous)
        runtime = self._dependencies.runtime
        if not isinstance(runtime, Logs):
            raise _not_supported("keeps no logs")
        with self._stream():
            chunks = runtime.container_logs(pod.uid, attempt, selection.options)
            idle = self._idle_timeout(request)
            return await send_container_log(request, chunks, idle, follow=selection.options.follow)

    async def _exec(self, request: web.BaseRequest, match: RouteMatch) -> web.StreamResponse:
        query = read_query(request.rel_url.raw_query_string)
        options = stream_options(query)
        command = exec_command(query)
        pod = self._pod(match, "pod does not exist")
        attempt = self._running_container(pod, match.parameters["container"])
        runtime = self._dependencies.runtime
        if not isinstance(runtime, Streaming):
            raise _not_supported("cannot run commands in containers")
        target = _ExecTarget(options, lambda: runtime.exec(pod.uid, attempt, command, options))
        return await self._run_exec_session(request, target)

    async def _attach(self, request: web.BaseRequest, match: RouteMatch) -> web.StreamResponse:
        query = stream_options(read_query(request.rel_url.raw_query_string))
        pod = self._pod(match, "pod does not exist")
        container = match.parameters["container"]
        attempt = self._running_container(pod, container)
        # The container's spec decides about the TTY, not the query.
        tty = has_tty(pod, container)
        options = msgspec.structs.replace(query, tty=tty, stderr=query.stderr and not tty)
        runtime = self._dependencies.runtime
        if not isinstance(runtime, Streaming):
            raise _not_supported("cannot attach to containers")
        target = _ExecTarget(
            options, lambda: runtime.attach(pod.uid, attempt, options), attached=True
        )
        return await self._run_exec_session(request, target)

    async def _agent_logs(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        directory = self._dependencies.logs
        if not name:
            page = await asyncio.to_thread(list_logs, directory)
            return web.Response(text=page, content_type="text/html", headers=SECURITY_HEADERS)
        with self._stream():
            return await send_agent_log(request, directory, name, self._idle_timeout(request))

    async def _run_exec_session(
        self, request: web.BaseRequest, target: "_ExecTarget"
    ) -> web.StreamResponse:
        """Run the session over a WebSocket. The protocol is checked last, all else before.

        When a WebSocket is rejected, kubectl falls back to SPDY and shows the error of that
        attempt, so other errors must have been returned before. kubectl parses an error text with
        a colon and a space as YAML and prints nothing of it: these texts have none.
        """
        with self._stream():
            protocol = _check_upgrade(request)
            socket = web.WebSocketResponse(
                protocols=(protocol,) if protocol else (),
                timeout=CLOSE_SECONDS,
                max_msg_size=MAX_MESSAGE_BYTES,
                # A small compressed message could expand to a huge one.
                compress=False,
            )
            await socket.prepare(request)
            idle = self._idle_timeout(request)
            session = ExecSession(socket, target.options, protocol, idle, attached=target.attached)
            try:
                await session.run(target.open_stream)
            except asyncio.CancelledError:
                await _close_on_stop(socket, session)
                raise
            except ConnectionError:
                pass  # The client has disconnected; there is no receiver for an error.
            finally:
                _close_transport(request, socket)
            return socket

    @property
    def _pods(self) -> NodePods:
        pods = self._dependencies.pods
        if pods is None:
            raise not_found("an observer has no pods of its own; query the agent of a node")
        return pods

    def _pod(self, match: RouteMatch, missing: str) -> Pod:
        names = match.parameters
        pod = self._pods.find_pod(names["namespace"], names["pod"], names.get("uid", ""))
        if pod is None:
            raise not_found(missing)
        return pod

    def _running_container(self, pod: Pod, container: str) -> str:
        attempt = running_container(self._pods.running_pods(), pod.uid, container)
        if attempt is None:
            raise HttpError(
                HTTPStatus.INTERNAL_SERVER_ERROR, f'container not found ("{container}")'
            )
        return attempt

    def _idle_timeout(self, request: web.BaseRequest) -> IdleTimeout:
        return IdleTimeout(request.transport, self._options.idle_timeout_seconds, self._clock)

    @contextmanager
    def _stream(self) -> Iterator[None]:
        """Register this task as a stream. Raises HttpError (429) at the limit."""
        maximum = self._options.max_streams
        if len(self._streams) >= maximum:
            raise HttpError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{maximum} log and exec streams are open, which is the limit (--max-streams); "
                "close some of them, or try again later",
                **{"Retry-After": "1"},
            )
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - handlers run in tasks
        self._streams.add(task)
        try:
            yield
        finally:
            self._streams.discard(task)


class _ExecTarget(msgspec.Struct, frozen=True):
    """The process of an exec session, and the streams that the client requested."""

    options: StreamOptions
    open_stream: OpenStream
    attached: bool = False


def _check_upgrade(request: web.BaseRequest) -> str:
    """The WebSocket subprotocol. Raises HttpError."""
    upgrade = request.headers.get("Upgrade", "").lower()
    if upgrade.startswith("spdy/"):
        raise bad_request(
            "this node supports WebSocket, not SPDY; use kubectl 1.30 or newer (without "
            "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false) and an API server that uses WebSocket to "
            "nodes (feature gate ExtendWebSocketsToKubelet)"
        )
    if upgrade != "websocket":
        raise bad_request(
            f"Upgrade request required; use a WebSocket with the protocol {PROTOCOLS[0]}"
        )
    offered = ",".join(request.headers.getall("Sec-WebSocket-Protocol", []))
    protocol = choose_protocol([name.strip() for name in offered.split(",") if name.strip()])
    if protocol is None:
        raise bad_request(
            f"requested protocol(s) are not supported: [{offered}]; "
            f"supports [{' '.join(PROTOCOLS)}]"
        )
    return protocol


async def _close_on_stop(socket: web.WebSocketResponse, session: ExecSession) -> None:
    """Send the reason on the error channel and close with code 1000, without waiting for a reply.

    kubectl prints an error for any other close code three times.
    """
    with suppress(ConnectionError, TimeoutError, RuntimeError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await session.send_failure("the agent of the node is stopping")
            await socket.close(drain=False)


def _close_transport(request: web.BaseRequest, socket: web.WebSocketResponse) -> None:
    """Close the connection of a client that does not read the last message."""
    if socket.closed and request.transport is not None and not request.transport.is_closing():
        request.transport.close()


def _not_supported(what: str) -> HttpError:
    return HttpError(
        HTTPStatus.NOT_IMPLEMENTED,
        f"the runtime of this node {what}; docs/reference/runtime-port.md lists what is optional",
    )
