"""A gRPC server on a unix socket that answers CRI calls as a test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from podstatus.runtime.cri.api.codec import CODEC, CriMessage

Answer = CriMessage | bytes | Callable[[Any], Awaitable[bytes]]


class FakeCriServer:
    """Answers by method; a method without one is not implemented."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.calls: list[str] = []

    def fail(self, method: str, code: grpc.StatusCode, details: str) -> None:
        """Let a method fail."""

        async def abort(context: Any) -> bytes:
            await context.abort(code, details)
            return b""

        self.answers[method] = abort

    def hang(self, method: str) -> None:
        """Let a method never answer."""

        async def wait(_: Any) -> bytes:
            await asyncio.Event().wait()
            return b""

        self.answers[method] = wait

    @asynccontextmanager
    async def serve(self, socket: Path) -> AsyncIterator[None]:
        """Serve until the block is left."""
        server = grpc.aio.server(handlers=[_Handler(self)])
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        try:
            yield
        finally:
            await server.stop(grace=None)

    async def answer(self, method: str, context: Any) -> bytes:
        """Return the response body of a call."""
        self.calls.append(method)
        answer = self.answers[method]
        if isinstance(answer, bytes):
            return answer
        return CODEC.encode(answer) if isinstance(answer, CriMessage) else await answer(context)


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, server: FakeCriServer) -> None:
        self._server = server

    def service(self, details: Any) -> Any:
        method = details.method.rpartition("/")[2]
        if method not in self._server.answers:
            return None

        async def handle(_: bytes, context: Any) -> bytes:
            return await self._server.answer(method, context)

        return grpc.unary_unary_rpc_method_handler(handle)
