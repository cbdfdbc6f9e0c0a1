"""What the agent answers, to those who may ask.

Upstream: the handlers of pkg/kubelet/server/server.go v1.36.4.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path

import msgspec
from aiohttp import WSCloseCode, web

from podstatus.base.clock import Clock
from podstatus.kube.pod import Pod
from podstatus.runtime.streams import Logging, Talking, TalkRequest
from podstatus.web.channels import PROTOCOLS, choose_protocol
from podstatus.web.find_container import check_container, container_with_logs, has_terminal
from podstatus.web.health import Checks, health_answer
from podstatus.web.idle import IdleWatch
from podstatus.web.log_files import list_logs
from podstatus.web.pod_lists import pod_list, running_container, running_pods
from podstatus.web.ports import NodePods, Wishes
from podstatus.web.queries import command_of, log_request, read_query, talk_request
from podstatus.web.refusals import Refusal, bad_request, not_found
from podstatus.web.routes import About, Found
from podstatus.web.send import send_container_log, send_own_log
from podstatus.web.talk import LAST_SECONDS, MOST_MESSAGE, Begin, Conversation

_STOP_SECONDS = 0.5
_GOODBYE_SECONDS = 0.2
_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Where answers come from."""

    pods: NodePods
    runtime: object
    """Logs and processes, if it is `Logging` and `Talking`."""
    checks: Checks
    logs: Path
    """The folder of the agent's own logs."""


class Answers:
    """Answers requests; what takes long is counted, and ended when the agent stops."""

    def __init__(self, sources: Sources, wishes: Wishes, clock: Clock) -> None:
        self._sources = sources
        self._wishes = wishes
        self._clock = clock
        self._streams: set[asyncio.Task[object]] = set()

    @property
    def streams(self) -> int:
        """How many there are."""
        return len(self._streams)

    async def answer(self, request: web.BaseRequest, found: Found) -> web.StreamResponse:
        """The answer, sent as far as it takes long. Raises Refusal."""
        match found.route.about:
            case About.HEALTH:
                return self._health(request)
            case About.PODS:
                return _json(pod_list(self._sources.pods.pods()))
            case About.RUNNING_PODS:
                return _json(pod_list(running_pods(self._sources.pods.running_pods())))
            case About.CONTAINER_LOGS:
                return await self._container_log(request, found)
            case About.EXEC:
                return await self._exec(request, found)
            case About.ATTACH:
                return await self._attach(request, found)
            case About.OWN_LOGS:
                return await self._own_logs(request, found.names.get("file", ""))

    async def stop(self) -> None:
        """End all streams; those who talk are told."""
        streams = list(self._streams)
        for task in streams:
            task.cancel()
        if streams:
            await asyncio.wait(streams, timeout=_STOP_SECONDS)

    def _health(self, request: web.BaseRequest) -> web.Response:
        verbose = "verbose" in request.query
        code, told = health_answer(request.path, self._sources.checks(), verbose=verbose)
        return web.Response(status=code, text=told, content_type="text/plain", headers=_SAFE)

    async def _container_log(self, request: web.BaseRequest, found: Found) -> web.StreamResponse:
        container = found.names["container"]
        asked = log_request(read_query(request.rel_url.raw_query_string), self._clock.now())
        pod = self._pod(found, f'pod "{found.names["pod"]}" does not exist')
        check_container(pod, container)
        attempt = container_with_logs(pod, container, previous=asked.previous)
        runtime = self._sources.runtime
        if not isinstance(runtime, Logging):
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
        if not isinstance(runtime, Talking):
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
        if not isinstance(runtime, Talking):
            raise _not_offered("cannot attach to containers")
        talk = _Talk(wanted, lambda: runtime.attach(pod.uid, attempt, wanted), attached=True)
        return await self._converse(request, talk)

    async def _own_logs(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        folder = self._sources.logs
        if not name:
            page = await asyncio.to_thread(list_logs, folder)
            return web.Response(text=page, content_type="text/html", headers=_SAFE)
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
                await _say_goodbye(socket)
                raise
            except ConnectionError:
                pass  # It has gone, and with it whoever could be told.
            finally:
                _hang_up_on_closed(request, socket)
            return socket

    def _pod(self, found: Found, missing: str) -> Pod:
        names = found.names
        pod = self._sources.pods.find_pod(names["namespace"], names["pod"], names.get("uid", ""))
        if pod is None:
            raise not_found(missing)
        return pod

    def _running(self, pod: Pod, container: str) -> str:
        attempt = running_container(self._sources.pods.running_pods(), pod.uid, container)
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

    wanted: TalkRequest
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


async def _say_goodbye(socket: web.WebSocketResponse) -> None:
    """Tell a client that it is not its fault; it has no time to answer."""
    with suppress(ConnectionError, TimeoutError, RuntimeError):
        async with asyncio.timeout(_GOODBYE_SECONDS):
            await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the agent stops", drain=False)


def _hang_up_on_closed(request: web.BaseRequest, socket: web.WebSocketResponse) -> None:
    """Let go of a client that does not take what it was sent last."""
    if socket.closed and request.transport is not None and not request.transport.is_closing():
        request.transport.close()


def _not_offered(what: str) -> Refusal:
    return Refusal(
        HTTPStatus.NOT_IMPLEMENTED,
        f"the runtime of this node {what}; see docs/runtimes.md for what a runtime may offer",
    )


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json", headers=_SAFE)
