"""gRPC checks against a real server on loopback."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podstatus.probes.check_grpc import check_grpc
from podstatus.probes.decide.check_result import CheckError, CheckResult
from tests.support.loopback_servers import HOST, closed_port, raw_server

grpc = pytest.importorskip("grpc", reason="needs podstatus[grpc]")

SECONDS = 30.0
Health = Callable[[bytes, Any], Awaitable[bytes]]


@asynccontextmanager
async def health_server(
    answer: Health, service: str = "grpc.health.v1.Health"
) -> AsyncIterator[int]:
    server = grpc.aio.server()
    methods = {"Check": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


def saying(answer: bytes) -> Health:
    async def say(_: bytes, __: Any) -> bytes:
        return answer

    return say


@pytest.mark.parametrize(
    ("answer", "checked"),
    [
        (b"\x08\x01", CheckResult(success=True, output="service healthy")),
        (b"", CheckResult(success=False, output='service unhealthy (responded with "UNKNOWN")')),
        (
            b"\x08\x02",
            CheckResult(success=False, output='service unhealthy (responded with "NOT_SERVING")'),
        ),
        (
            b"\x08\x81\x01",
            CheckResult(success=False, output='service unhealthy (responded with "129")'),
        ),
    ],
)
async def test_status_decides(answer: bytes, checked: CheckResult) -> None:
    async with health_server(saying(answer)) as port:
        assert await check_grpc(HOST, port, "", seconds=SECONDS) == checked


@pytest.mark.parametrize("answer", [b"\x10\x01", b"\x08", b"\x08\x81", b"\x08\x01\x01"])
async def test_answer_that_is_none_says_nothing(answer: bytes) -> None:
    async with health_server(saying(answer)) as port:
        with pytest.raises(CheckError, match="not a HealthCheckResponse"):
            await check_grpc(HOST, port, "", seconds=SECONDS)


@pytest.mark.parametrize(
    ("service", "request_"),
    [("", b""), ("web", b"\x0a\x03web"), ("x" * 200, b"\x0a\xc8\x01" + b"x" * 200)],
)
async def test_the_service_is_named_and_so_are_we(service: str, request_: bytes) -> None:
    asked = list[tuple[bytes, str]]()

    async def remember(request: bytes, context: Any) -> bytes:
        metadata = dict(context.invocation_metadata())
        asked.append((request, metadata["user-agent"]))
        return b"\x08\x01"

    async with health_server(remember) as port:
        await check_grpc(HOST, port, service, seconds=SECONDS)
    assert [request for request, _ in asked] == [request_]
    assert asked[0][1].startswith("kube-probe/1.36")


async def test_rpc_errors_are_failures() -> None:
    async def refuse(_: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        raise AssertionError

    async with health_server(refuse) as port:
        checked = await check_grpc(HOST, port, "x", seconds=SECONDS)
    output = "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"
    assert checked == CheckResult(success=False, output=output)
    async with health_server(saying(b""), service="another.Service") as port:
        checked = await check_grpc(HOST, port, "", seconds=SECONDS)
    assert not checked.success
    assert "does not implement the grpc health protocol" in checked.output


async def test_refused_and_silent_servers_fail_within_the_timeout() -> None:
    port = closed_port()
    checked = await check_grpc(HOST, port, "", seconds=0.3)
    connect = f'timeout: failed to connect service "{HOST}:{port}" within 300ms'
    assert not checked.success
    assert checked.output.startswith(connect)

    async def hang(_: bytes, __: Any) -> bytes:
        return await asyncio.Future()

    async with health_server(hang) as port:
        checked = await check_grpc(HOST, port, "", seconds=3)
    output = "timeout: health rpc did not complete within 3s"
    assert checked == CheckResult(success=False, output=output)
    async with raw_server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        assert not (await check_grpc(HOST, server.port, "", seconds=0.3)).success


async def test_without_the_extra_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(CheckError, match=r"pip install 'podstatus\[grpc\]'"):
        await check_grpc(HOST, 1, "", seconds=SECONDS)
