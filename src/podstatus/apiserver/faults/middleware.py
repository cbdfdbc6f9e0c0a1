"""The fault injection middleware, and the endpoint that configures its rules."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

import msgspec

from podstatus.apiserver.faults.rules import Fault, consume, first_match, parse_faults
from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import (
    ConnectionDropped,
    HttpRequest,
    Response,
    StreamResponse,
    WebSocketProxy,
    json_response,
)
from podstatus.apiserver.request.request_info import RequestInfo, request_info
from podstatus.base.clock import Clock

FAULTS_PATH = "/podstatus/faults"


class FaultInjection:
    """Passes requests to `handle`, unless a fault rule applies; the first match wins.

    New rules also apply to running watches: `stall` holds back their events, `cut` ends them.
    """

    def __init__(
        self,
        handle: Callable[[HttpRequest], Awaitable[Response | StreamResponse | WebSocketProxy]],
        compact: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._handle = handle
        self._compact = compact
        self._clock = clock
        self._faults: tuple[Fault, ...] = ()
        self._rules_changed: asyncio.Future[None] | None = None

    async def handle(
        self, request: HttpRequest
    ) -> Response | StreamResponse | WebSocketProxy | ConnectionDropped:
        """Return the response, or the injected fault. Raises StatusError."""
        if request.path == FAULTS_PATH:
            return self._handle_rules(request)
        info = request_info(request)
        fault = self._apply(info)
        if fault is not None:
            if fault.latency:
                await self._clock.wait(fault.latency)
            injected = await self._inject(fault, request, info)
            if injected is not None:
                return injected
        response = await self._handle(request)
        if isinstance(response, StreamResponse):
            return msgspec.structs.replace(response, lines=self._filter_watch(info, response.lines))
        return response

    def clear(self) -> None:
        """Remove all rules; stalled watches continue."""
        self._replace(())

    def _handle_rules(self, request: HttpRequest) -> Response:
        match request.method:
            case "GET":
                pass
            case "PUT":
                self._replace(parse_faults(request.body))
            case "DELETE":
                self.clear()
            case _:
                raise errors.method_not_allowed()
        return json_response(self._faults)

    def _replace(self, faults: tuple[Fault, ...]) -> None:
        self._faults = faults
        if self._rules_changed is not None:
            self._rules_changed.set_result(None)
            self._rules_changed = None

    def _apply(self, info: RequestInfo) -> Fault | None:
        """Return the matching rule and count its use."""
        fault = first_match(self._faults, info)
        if fault is not None:
            self._faults = consume(self._faults, fault)
        return fault

    async def _inject(
        self, fault: Fault, request: HttpRequest, info: RequestInfo
    ) -> Response | StreamResponse | ConnectionDropped | None:
        """Return the injected response; None to handle the request normally.

        Raises StatusError, the injected error.
        """
        if fault.action == "cut":
            return StreamResponse(lines=_final_event(fault))
        if fault.error is not None:
            raise fault.error
        match fault.action:
            case "lose" if info.verb != "watch":
                await self._handle_and_discard(request)
                return ConnectionDropped()
            case "drop" | "lose":
                return ConnectionDropped()
            case "compact":
                self._compact()
        return None

    async def _handle_and_discard(self, request: HttpRequest) -> None:
        with suppress(StatusError):
            response = await self._handle(request)
            if isinstance(response, StreamResponse):
                response.close()

    async def _filter_watch(
        self, info: RequestInfo, lines: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a watch, subject to the current rules."""
        async with aclosing(lines):
            line = None
            try:
                while True:
                    line = line or asyncio.ensure_future(anext(lines, b""))
                    await self._wait_line_or_rules(line)
                    match first_match(self._faults, info):
                        case Fault(action="cut"):
                            async for last in _final_event(self._apply(info)):
                                yield last
                            return
                        case Fault(action="stall"):
                            await asyncio.wait({self._rules_change()})
                            continue
                    if line.done():
                        content, line = line.result(), None
                        if not content:
                            return
                        yield content
            finally:
                if line is not None:
                    line.cancel()
                    await asyncio.wait({line})

    async def _wait_line_or_rules(self, line: asyncio.Future[bytes]) -> None:
        awaited: set[asyncio.Future[Any]] = {line, self._rules_change()}
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)

    def _rules_change(self) -> asyncio.Future[None]:
        """Return a future that is done when the rules change."""
        if self._rules_changed is None:
            self._rules_changed = asyncio.get_running_loop().create_future()
        return self._rules_changed


async def _final_event(fault: Fault | None) -> AsyncGenerator[bytes, None]:
    """Yield the ERROR event before a cut, if the rule has a code."""
    if fault is not None and fault.error is not None:
        yield msgspec.json.encode({"type": "ERROR", "object": fault.error.document}) + b"\n"
