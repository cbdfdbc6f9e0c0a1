"""TCP checks against real ports on loopback."""

import asyncio
import socket

import pytest

from podstatus.probes.check_tcp import check_tcp
from podstatus.probes.decide.check_result import CheckResult
from podstatus.probes.resolver import HostResolver
from tests.support.loopback_servers import HOST, closed_port, deaf_port, raw_server

GOOD = CheckResult(success=True)


async def check(host: str, port: int, *, seconds: float = 5) -> CheckResult:
    return await check_tcp(host, port, seconds=seconds, resolver=HostResolver())


@pytest.mark.parametrize("host", [HOST, "localhost"])
async def test_a_port_that_accepts_is_good(host: str) -> None:
    async with raw_server(b"") as server:
        assert await check(host, server.port) == GOOD


async def test_ipv6_too() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "::1", 0)
    port = server.sockets[0].getsockname()[1]
    assert await check("::1", port) == GOOD
    server.close()
    await server.wait_closed()
    output = f"dial tcp [::1]:{port}: connect: connection refused"
    assert await check("::1", port) == CheckResult(success=False, output=output)


async def test_a_port_that_refuses_is_bad() -> None:
    port = closed_port()
    output = f"dial tcp {HOST}:{port}: connect: connection refused"
    assert await check(HOST, port) == CheckResult(success=False, output=output)


async def test_a_port_that_does_not_answer_is_bad_in_time() -> None:
    async with deaf_port() as port:
        checked = await check(HOST, port, seconds=0.1)
    output = f"dial tcp {HOST}:{port}: i/o timeout"
    assert checked == CheckResult(success=False, output=output)


@pytest.mark.parametrize("host", ["unknown.invalid", "a..b", "x" * 300])
async def test_an_unknown_host_name_is_a_failure(host: str) -> None:
    checked = await check(host, 80)
    assert not checked.success
    assert checked.output.startswith(f"dial tcp: lookup {host}: ")


async def test_a_socket_connected_to_itself_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = closed_port()
    real = socket.socket

    class Bound(real):  # type: ignore[misc, valid-type]
        """A socket whose ephemeral port is the target port."""

        def setblocking(self, flag: bool, /) -> None:
            self.bind((HOST, port))
            super().setblocking(flag)

    monkeypatch.setattr(socket, "socket", Bound)
    output = f"dial tcp {HOST}:{port}: connect: connection refused"
    assert await check(HOST, port) == CheckResult(success=False, output=output)
