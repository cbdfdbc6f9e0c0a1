"""What the agent answers, to those who may ask.

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
from podstatus.kube.objects.pod import Pod
from podstatus.observe.metrics.pages import MetricPages
from podstatus.observe.metrics.watch_counters import WatchCounts
from podstatus.observe.status_view import StatusView
from podstatus.runtime.streams import Logs, Streaming, StreamOptions
from podstatus.web.errors import SECURITY_HEADERS, HttpError, bad_request, not_found
from podstatus.web.kubelet.channel_protocol import PROTOCOLS, choose_protocol
from podstatus.web.kubelet.exec import CLOSE_SECONDS, MAX_MESSAGE_BYTES, ExecSession, OpenStream
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
from podstatus.web.responses import (
    handle_metrics,
    handle_query,
    handle_stats,
    handle_zpage,
    json_response,
)
from podstatus.web.routes import ROUTES, Route, RouteKind, RouteMatch
from podstatus.web.watch.service import WatchService

_STOP_SECONDS = 0.5
_CLOSE_SECONDS = 0.2


class HandlerDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """Where answers come from."""

    checks: HealthChecks
    routes: tuple[Route, ...] = ROUTES
    """What can be asked."""
    pods: NodePods | None = None
    """Of a node; None where there is none."""
    runtime: object = None
    """Logs and processes, if it is `Logs` and `Streaming`."""
    logs: Path
    """The folder of the agent's own logs."""
    drain: Drain | None = None
    """Who ends all pods, if anybody can."""
    metrics: MetricPages | None = None
    view: StatusView | None = None
    """What is known, and what happened."""
    alerts: AlertReader | None = None
    """What is wrong, if somebody asks rules."""
    watch_counts: WatchCounts | None = None
    """Who counts those who watch."""
    usage: UsageProvider | None = None
    """What is used of the node."""
    agent_info: AgentDescription | None = None
    """What the agent tells of itself."""


class Handlers:
    """Answers requests; what takes long is counted, and ended when the agent stops."""

    def __init__(
        self, dependencies: HandlerDependencies, options: ServerOptions, clock: Clock
    ) -> None:
        self._dependencies = dependencies
        self._options = options
        self._clock = clock
        self._streams: set[asyncio.Task[object]] = set()
        observatory = dependencies.view
        self.watch_service = (
            None
            if observatory is None
            else WatchService(observatory, clock, counts=dependencies.watch_counts)
        )

    @property
    def routes(self) -> tuple[Route, ...]:
        """What can be asked."""
        return self._dependencies.routes

    @property
    def streams(self) -> int:
        """How many there are."""
        return len(self._streams)

    async def handle(
        self, request: web.BaseRequest, match: RouteMatch, user: str = ""
    ) -> web.StreamResponse:
        """The answer to one who is this, if that is known; sent as far as it takes long.

        Raises Refusal.
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
                return await self._watch(request, user)
            case _:
                return await self._handle_data(request, match)

    async def stop(self) -> None:
        """End all streams; those who talk are told."""
        streams = list(self._streams)
        for task in streams:
            task.cancel()
        if self.watch_service is not None:
            await self.watch_service.stop()
        if streams:
            await asyncio.wait(streams, timeout=_STOP_SECONDS)

    def _health(self, request: web.BaseRequest) -> web.Response:
        verbose = "verbose" in request.query
        code, told = health_response(request.path, self._dependencies.checks(), verbose=verbose)
        return web.Response(
            status=code, text=told, content_type="text/plain", headers=SECURITY_HEADERS
        )

    def _drain(self, method: str) -> web.Response:
        """Begin, or cancel; how far it is then."""
        drain = self._dependencies.drain
        if drain is None:
            raise not_found("nobody ends pods here")
        if method == "POST":
            drain.begin()
        elif method == "DELETE":
            drain.cancel()
        return json_response(msgspec.json.encode(drain.progress()))

    async def _handle_data(self, request: web.BaseRequest, found: RouteMatch) -> web.Response:
        """What is known, and told at once."""
        sources, about = self._dependencies, found.route.kind
        if about is RouteKind.METRICS:
            return await handle_metrics(sources.metrics, request, found)
        if about is RouteKind.QUERY:
            now = self._clock.now()
            return await handle_query(
                sources.view, sources.alerts, request, found, now, self.routes
            )
        if about is RouteKind.STATS:
            running = self._pods.running_pods()
            return handle_stats(sources.usage, request, running, self._options.node_name)
        return handle_zpage(sources.agent_info, about, self._clock.now(), self.routes)

    async def _watch(self, request: web.BaseRequest, who: str) -> web.StreamResponse:
        if self.watch_service is None:
            raise not_found("nothing is watched here")
        return await self.watch_service.handle(request, who)

    async def _container_log(
        self, request: web.BaseRequest, found: RouteMatch
    ) -> web.StreamResponse:
        container = found.parameters["container"]
        asked = log_request(read_query(request.rel_url.raw_query_string), self._clock.now())
        pod = self._pod(found, f'pod "{found.parameters["pod"]}" does not exist')
        check_container(pod, container)
        attempt = container_with_logs(pod, container, previous=asked.previous)
        runtime = self._dependencies.runtime
        if not isinstance(runtime, Logs):
            raise _not_supported("keeps no logs")
        with self._stream():
            pieces = runtime.container_logs(pod.uid, attempt, asked.options)
            idle = self._idle_timeout(request)
            return await send_container_log(request, pieces, idle, follow=asked.options.follow)

    async def _exec(self, request: web.BaseRequest, found: RouteMatch) -> web.StreamResponse:
        query = read_query(request.rel_url.raw_query_string)
        wanted = stream_options(query)
        command = exec_command(query)
        pod = self._pod(found, "pod does not exist")
        attempt = self._running_container(pod, found.parameters["container"])
        runtime = self._dependencies.runtime
        if not isinstance(runtime, Streaming):
            raise _not_supported("cannot run commands in containers")
        talk = _ExecTarget(wanted, lambda: runtime.exec(pod.uid, attempt, command, wanted))
        return await self._run_exec_session(request, talk)

    async def _attach(self, request: web.BaseRequest, found: RouteMatch) -> web.StreamResponse:
        wanted = stream_options(read_query(request.rel_url.raw_query_string))
        pod = self._pod(found, "pod does not exist")
        container = found.parameters["container"]
        attempt = self._running_container(pod, container)
        # Whether there is a terminal was decided when the container was started.
        tty = has_tty(pod, container)
        wanted = msgspec.structs.replace(wanted, tty=tty, stderr=wanted.stderr and not tty)
        runtime = self._dependencies.runtime
        if not isinstance(runtime, Streaming):
            raise _not_supported("cannot attach to containers")
        talk = _ExecTarget(wanted, lambda: runtime.attach(pod.uid, attempt, wanted), attached=True)
        return await self._run_exec_session(request, talk)

    async def _agent_logs(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        folder = self._dependencies.logs
        if not name:
            page = await asyncio.to_thread(list_logs, folder)
            return web.Response(text=page, content_type="text/html", headers=SECURITY_HEADERS)
        with self._stream():
            return await send_agent_log(request, folder, name, self._idle_timeout(request))

    async def _run_exec_session(
        self, request: web.BaseRequest, talk: "_ExecTarget"
    ) -> web.StreamResponse:
        """Talk, and only then refuse how somebody wants to.

        kubectl tries SPDY if a WebSocket is refused, and shows what comes of that: so whatever
        else is wrong has been said before. And a text with a colon and a space is YAML to it, of
        which it shows nothing: these texts have none.
        """
        with self._stream():
            protocol = _check_upgrade(request)
            socket = web.WebSocketResponse(
                protocols=(protocol,),
                timeout=CLOSE_SECONDS,
                max_msg_size=MAX_MESSAGE_BYTES,
                # Not worth its time, and a small message could become a huge one.
                compress=False,
            )
            await socket.prepare(request)
            idle = self._idle_timeout(request)
            conversation = ExecSession(socket, talk.options, protocol, idle, attached=talk.attached)
            try:
                await conversation.run(talk.open_stream)
            except asyncio.CancelledError:
                await _close_on_stop(socket, conversation)
                raise
            except ConnectionError:
                pass  # It has gone, and with it whoever could be told.
            finally:
                _close_transport(request, socket)
            return socket

    @property
    def _pods(self) -> NodePods:
        pods = self._dependencies.pods
        if pods is None:
            raise not_found("this is no node, and has no pods of its own")
        return pods

    def _pod(self, found: RouteMatch, missing: str) -> Pod:
        names = found.parameters
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
        """Be one of those that take long. Raises Refusal if there are too many."""
        most = self._options.max_streams
        if len(self._streams) >= most:
            raise HttpError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{most} logs and commands are being sent already, and no more are allowed "
                "(--max-streams); end some of them, or try again later",
                **{"Retry-After": "1"},
            )
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we are in one
        self._streams.add(task)
        try:
            yield
        finally:
            self._streams.discard(task)


class _ExecTarget(msgspec.Struct, frozen=True):
    """What somebody wants to talk to, and how."""

    options: StreamOptions
    open_stream: OpenStream
    attached: bool = False


def _check_upgrade(request: web.BaseRequest) -> str:
    """The protocol to speak. Raises Refusal."""
    upgrade = request.headers.get("Upgrade", "").lower()
    if upgrade.startswith("spdy/"):
        raise bad_request(
            "this node speaks WebSocket, and not SPDY; use kubectl 1.30 or newer (without "
            "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false) and an API server that speaks WebSocket to "
            "nodes (feature gate ExtendWebSocketsToKubelet)"
        )
    if upgrade != "websocket":
        raise bad_request(
            f"Upgrade request required; ask for a WebSocket with the protocol {PROTOCOLS[0]}"
        )
    offered = ",".join(request.headers.getall("Sec-WebSocket-Protocol", []))
    protocol = choose_protocol(offered)
    if protocol is None:
        raise bad_request(
            f"requested protocol(s) are not supported: [{offered}]; "
            f"supports [{' '.join(PROTOCOLS)}]"
        )
    return protocol


async def _close_on_stop(socket: web.WebSocketResponse, conversation: ExecSession) -> None:
    """Tell a client that it is not its fault; it has no time to answer.

    In words, and with the code of an ordinary end: kubectl shows any other one three times over.
    """
    with suppress(ConnectionError, TimeoutError, RuntimeError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await socket.send_bytes(conversation.failure("the agent of the node stops"))
            await socket.close(drain=False)


def _close_transport(request: web.BaseRequest, socket: web.WebSocketResponse) -> None:
    """Let go of a client that does not take what it was sent last."""
    if socket.closed and request.transport is not None and not request.transport.is_closing():
        request.transport.close()


def _not_supported(what: str) -> HttpError:
    return HttpError(
        HTTPStatus.NOT_IMPLEMENTED,
        f"the runtime of this node {what}; see docs/runtimes.md for what a runtime may offer",
    )
