"""Let things go wrong on demand: a page that takes rules, and a hand between the socket and
the server that follows them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

import msgspec

from podstatus.apiserver.faults.rules import Asked, Fault, first_match, read_faults, used_once
from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import Problem
from podstatus.apiserver.http.messages import Answer, Dropped, Request, Stream, Tunnel, answer
from podstatus.apiserver.http.router import find_target
from podstatus.base.clock import Clock

PATH = "/podstatus/faults"

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_COLLECTIONS = {"GET": "list", "DELETE": "deletecollection"}


class FaultInjection:
    """Hands requests on to `handle`, or does to them what the first rule that matches says.

    A new set of rules concerns watches that run already, too: a stall holds back what they
    would send, a cut ends them.
    """

    def __init__(
        self,
        handle: Callable[[Request], Awaitable[Answer | Stream | Tunnel]],
        compact: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._handle = handle
        self._compact = compact
        self._clock = clock
        self._faults: tuple[Fault, ...] = ()
        self._changed: asyncio.Future[None] | None = None

    async def handle(self, request: Request) -> Answer | Stream | Tunnel | Dropped:
        """The answer, right or wrong. Raises Problem."""
        if request.path == PATH:
            return self._page(request)
        asked = _asked(request)
        fault = self._apply(asked)
        if fault is not None:
            if fault.latency:
                await self._clock.wait(fault.latency)
            wrong = await self._wrong(fault, request, asked)
            if wrong is not None:
                return wrong
        given = await self._handle(request)
        if isinstance(given, Stream):
            return msgspec.structs.replace(given, lines=self._watched(asked, given.lines))
        return given

    def clear(self) -> None:
        """Let nothing go wrong any more."""
        self._replace(())

    def _page(self, request: Request) -> Answer:
        match request.method:
            case "GET":
                pass
            case "PUT":
                self._replace(read_faults(request.body))
            case "DELETE":
                self.clear()
            case _:
                raise errors.method_not_allowed()
        return answer(self._faults)

    def _replace(self, faults: tuple[Fault, ...]) -> None:
        self._faults = faults
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    def _apply(self, asked: Asked) -> Fault | None:
        """The rule for a request, counted."""
        index = first_match(self._faults, asked)
        if index is None:
            return None
        fault = self._faults[index]
        self._faults = used_once(self._faults, index)
        return fault

    async def _wrong(
        self, fault: Fault, request: Request, asked: Asked
    ) -> Answer | Stream | Dropped | None:
        """What goes wrong instead of an answer; None if the answer comes after all."""
        if fault.action == "cut":
            return Stream(lines=_last_words(fault), end=_nothing_to_end)
        if fault.problem is not None:
            raise fault.problem
        match fault.action:
            case "lose" if asked.verb != "watch":
                await self._do_in_vain(request)
                return Dropped()
            case "drop" | "lose":
                return Dropped()
            case "compact":
                self._compact()
        return None

    async def _do_in_vain(self, request: Request) -> None:
        with suppress(Problem):
            given = await self._handle(request)
            if isinstance(given, Stream):
                given.end()

    async def _watched(
        self, asked: Asked, lines: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """What a watch sends, as far as the rules let it."""
        async with aclosing(lines):
            line = None
            try:
                while True:
                    line = line or asyncio.ensure_future(anext(lines, b""))
                    await self._news(line)
                    match self._rule_of_running(asked):
                        case Fault(action="cut"):
                            async for last in _last_words(self._apply(asked)):
                                yield last
                            return
                        case Fault(action="stall"):
                            await asyncio.wait({self._change()})
                            continue
                    if line.done():
                        sent, line = line.result(), None
                        if not sent:
                            return
                        yield sent
            finally:
                if line is not None:
                    line.cancel()
                    await asyncio.wait({line})

    def _rule_of_running(self, asked: Asked) -> Fault | None:
        index = first_match(self._faults, asked)
        return None if index is None else self._faults[index]

    async def _news(self, line: asyncio.Future[bytes]) -> None:
        """Wait for a line to send, or for other rules."""
        awaited: set[asyncio.Future[Any]] = {line, self._change()}
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)

    def _change(self) -> asyncio.Future[None]:
        """Done as soon as there are other rules."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        return self._changed


def _nothing_to_end() -> None:
    """It was never begun."""


async def _last_words(fault: Fault | None) -> AsyncGenerator[bytes, None]:
    """What a watch says before it is cut: the error, if the rule has one."""
    if fault is not None and fault.problem is not None:
        yield msgspec.json.encode({"type": "ERROR", "object": fault.problem.document}) + b"\n"


def _asked(request: Request) -> Asked:
    verb = _VERBS.get(request.method, request.method.lower())
    target = find_target(request.path)
    if target is None:
        return Asked(verb=verb)
    if target.name is None:
        is_watch = request.method == "GET" and request.flag("watch")
        verb = "watch" if is_watch else _OF_COLLECTIONS.get(request.method, verb)
    plural = target.resource.plural
    return Asked(
        verb=verb,
        resource=f"{plural}/{target.subresource}" if target.subresource else plural,
        namespace=target.namespace or "",
        name=target.name or "",
    )
