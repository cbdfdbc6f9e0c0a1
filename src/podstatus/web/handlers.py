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
from podstatus.observe.status_view import Observatory
from podstatus.runtime.streams import Logs, Streaming, StreamOptions
from podstatus.web.errors import SAFE, Refusal, bad_request, not_found
from podstatus.web.kubelet.channel_protocol import PROTOCOLS, choose_protocol
from podstatus.web.kubelet.exec import LAST_SECONDS, MOST_MESSAGE, Begin, Conversation
from podstatus.web.kubelet.health import Checks, health_answer
from podstatus.web.kubelet.idle_timeout import IdleWatch
from podstatus.web.kubelet.logs import list_logs, send_container_log, send_own_log
from podstatus.web.kubelet.pods import (
    check_container,
    container_with_logs,
    has_terminal,
    pod_list,
    running_container,
    running_pods,
)
from podstatus.web.ports import AboutAgent, Drain, Machine, NodePods, Wishes
from podstatus.web.query_parameters import command_of, log_request, read_query, talk_request
from podstatus.web.responses import (
    answer_metrics,
    json_answer,
    tell_about_agent,
    tell_query,
    tell_stats,
)
from podstatus.web.routes import ROUTES, About, Found, Route
from podstatus.web.watch.service import Watches

_STOP_SECONDS = 0.5
_GOODBYE_SECONDS = 0.2


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Where answers come from."""

    checks: Checks
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
    observatory: Observatory | None = None
    """What is known, and what happened."""
    alerts: AlertReader | None = None
    """What is wrong, if somebody asks rules."""
    watching: WatchCounts | None = None
    """Who counts those who watch."""
    machine: Machine | None = None
    """What is used of the node."""
    agent: AboutAgent | None = None
    """What the agent tells of itself."""


class Answers:
    """Answers requests; what takes long is counted, and ended when the agent stops."""

    def __init__(self, sources: Sources, wishes: Wishes, clock: Clock) -> None:
        self._sources = sources
        self._wishes = wishes
        self._clock = clock
        self._streams: set[asyncio.Task[object]] = set()
        observatory = sources.observatory
        self.watches = (
            None if observatory is None else Watches(observatory, clock, counts=sources.watching)
        )

    @property
    def routes(self) -> tuple[Route, ...]:
        """What can be asked."""
        return self._sources.routes

    @property
    def streams(self) -> int:
        """How many there are."""
        return len(self._streams)

    async def answer(
        self, request: web.BaseRequest, found: Found, who: str = ""
    ) -> web.StreamResponse:
        """The answer to one who is this, if that is known; sent as far as it takes long.

        Raises Refusal.
        """
        match found.route.about:
            case About.HEALTH:
                return self._health(request)
            case About.PODS:
                return json_answer(pod_list(self._pods.pods()))
            case About.RUNNING_PODS:
                return json_answer(pod_list(running_pods(self._pods.running_pods())))
            case About.CONTAINER_LOGS:
                return await self._container_log(request, found)
            case About.EXEC:
                return await self._exec(request, found)
            case About.ATTACH:
                return await self._attach(request, found)
            case About.OWN_LOGS:
                return await self._own_logs(request, found.names.get("file", ""))
            case About.DRAIN:
                return self._drain(request.method)
            case About.WATCH:
                return await self._watch(request, who)
            case _:
                return await self._tell(request, found)

    async def stop(self) -> None:
        """End all streams; those who talk are told."""
        streams = list(self._streams)
        for task in streams:
            task.cancel()
        if self.watches is not None:
            await self.watches.stop()
        if streams:
            await asyncio.wait(streams, timeout=_STOP_SECONDS)

    def _health(self, request: web.BaseRequest) -> web.Response:
        verbose = "verbose" in request.query
        code, told = health_answer(request.path, self._sources.checks(), verbose=verbose)
        return web.Response(status=code, text=told, content_type="text/plain", headers=SAFE)

    def _drain(self, method: str) -> web.Response:
        """Begin, or cancel; how far it is then."""
        drain = self._sources.drain
        if drain is None:
            raise not_found("nobody ends pods here")
        if method == "POST":
            drain.begin()
        elif method == "DELETE":
            drain.cancel()
        return json_answer(msgspec.json.encode(drain.progress()))

    async def _tell(self, request: web.BaseRequest, found: Found) -> web.Response:
        """What is known, and told at once."""
        sources, about = self._sources, found.route.about
        if about is About.METRICS:
            return await answer_metrics(sources.metrics, request, found)
        if about is About.QUERY:
            now = self._clock.now()
            return await tell_query(
                sources.observatory, sources.alerts, request, found, now, self.routes
            )
        if about is About.STATS:
            running = self._pods.running_pods()
            return tell_stats(sources.machine, request, running, self._wishes.node_name)
        return tell_about_agent(sources.agent, about, self._clock.now(), self.routes)

    async def _watch(self, request: web.BaseRequest, who: str) -> web.StreamResponse:
        if self.watches is None:
            raise not_found("nothing is watched here")
        return await self.watches.answer(request, who)

    async def _container_log(self, request: web.BaseRequest, found: Found) -> web.StreamResponse:
        container = found.names["container"]
        asked = log_request(read_query(request.rel_url.raw_query_string), self._clock.now())
        pod = self._pod(found, f'pod "{found.names["pod"]}" does not exist')
        check_container(pod, container)
        attempt = container_with_logs(pod, container, previous=asked.previous)
        runtime = self._sources.runtime
        if not isinstance(runtime, Logs):
            raise _not_offered("keeps no logs")
        with self._stream():
            pieces = runtime.container_logs(pod.uid, attempt, asked.options)
            idle = self._idle(request)
            return await send_container_log(request, pieces, idle, follow=asked.options.follow)

    async def _exec(self, request: web.BaseRequest, found: Found) -> web.StreamResponse:
        query = read_query(request.rel_url.raw_query_string)
        wanted = talk_request(query)
        command = command_of(query)
        pod = self._pod(found, "pod does not exist")
        attempt = self._running(pod, found.names["container"])
        runtime = self._sources.runtime
        if not isinstance(runtime, Streaming):
            raise _not_offered("cannot run commands in containers")
        talk = _Talk(wanted, lambda: runtime.exec(pod.uid, attempt, command, wanted))
        return await self._converse(request, talk)

    async def _attach(self, request: web.BaseRequest, found: Found) -> web.StreamResponse:
        wanted = talk_request(read_query(request.rel_url.raw_query_string))
        pod = self._pod(found, "pod does not exist")
        container = found.names["container"]
        attempt = self._running(pod, container)
        # Whether there is a terminal was decided when the container was started.
        tty = has_terminal(pod, container)
        wanted = msgspec.structs.replace(wanted, tty=tty, stderr=wanted.stderr and not tty)
        runtime = self._sources.runtime
        if not isinstance(runtime, Streaming):
            raise _not_offered("cannot attach to containers")
        talk = _Talk(wanted, lambda: runtime.attach(pod.uid, attempt, wanted), attached=True)
        return await self._converse(request, talk)

    async def _own_logs(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        folder = self._sources.logs
        if not name:
            page = await asyncio.to_thread(list_logs, folder)
            return web.Response(text=page, content_type="text/html", headers=SAFE)
        with self._stream():
            return await send_own_log(request, folder, name, self._idle(request))

    async def _converse(self, request: web.BaseRequest, talk: "_Talk") -> web.StreamResponse:
        """Talk, and only then refuse how somebody wants to.

        kubectl tries SPDY if a WebSocket is refused, and shows what comes of that: so whatever
        else is wrong has been said before. And a text with a colon and a space is YAML to it, of
        which it shows nothing: these texts have none.
        """
        with self._stream():
            protocol = _check_upgrade(request)
            socket = web.WebSocketResponse(
                protocols=(protocol,),
                timeout=LAST_SECONDS,
                max_msg_size=MOST_MESSAGE,
                # Not worth its time, and a small message could become a huge one.
                compress=False,
            )
            await socket.prepare(request)
            idle = self._idle(request)
            conversation = Conversation(socket, talk.wanted, protocol, idle, attached=talk.attached)
            try:
                await conversation.hold(talk.begin)
            except asyncio.CancelledError:
                await _say_goodbye(socket, conversation)
                raise
            except ConnectionError:
                pass  # It has gone, and with it whoever could be told.
            finally:
                _hang_up_on_closed(request, socket)
            return socket

    @property
    def _pods(self) -> NodePods:
        pods = self._sources.pods
        if pods is None:
            raise not_found("this is no node, and has no pods of its own")
        return pods

    def _pod(self, found: Found, missing: str) -> Pod:
        names = found.names
        pod = self._pods.find_pod(names["namespace"], names["pod"], names.get("uid", ""))
        if pod is None:
            raise not_found(missing)
        return pod

    def _running(self, pod: Pod, container: str) -> str:
        attempt = running_container(self._pods.running_pods(), pod.uid, container)
        if attempt is None:
            raise Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, f'container not found ("{container}")')
        return attempt

    def _idle(self, request: web.BaseRequest) -> IdleWatch:
        return IdleWatch(request.transport, self._wishes.idle_seconds, self._clock)

    @contextmanager
    def _stream(self) -> Iterator[None]:
        """Be one of those that take long. Raises Refusal if there are too many."""
        most = self._wishes.most_streams
        if len(self._streams) >= most:
            raise Refusal(
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


class _Talk(msgspec.Struct, frozen=True):
    """What somebody wants to talk to, and how."""

    wanted: StreamOptions
    begin: Begin
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


async def _say_goodbye(socket: web.WebSocketResponse, conversation: Conversation) -> None:
    """Tell a client that it is not its fault; it has no time to answer.

    In words, and with the code of an ordinary end: kubectl shows any other one three times over.
    """
    with suppress(ConnectionError, TimeoutError, RuntimeError):
        async with asyncio.timeout(_GOODBYE_SECONDS):
            await socket.send_bytes(conversation.failure("the agent of the node stops"))
            await socket.close(drain=False)


def _hang_up_on_closed(request: web.BaseRequest, socket: web.WebSocketResponse) -> None:
    """Let go of a client that does not take what it was sent last."""
    if socket.closed and request.transport is not None and not request.transport.is_closing():
        request.transport.close()


def _not_offered(what: str) -> Refusal:
    return Refusal(
        HTTPStatus.NOT_IMPLEMENTED,
        f"the runtime of this node {what}; see docs/runtimes.md for what a runtime may offer",
    )
