"""httpGet hooks against a real server on loopback."""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podstatus.apiserver.pki.certificates import Certificates
from podstatus.apiserver.state_dir import StateDir
from podstatus.probes.decide.http_target import HttpTarget
from podstatus.probes.http_hook import MAX_BODY_BYTES, send_hook_request

HOST = "127.0.0.1"


class Server:
    """Returns fixed bytes for each path, and records requests."""

    def __init__(self, answer: Callable[[str], bytes], *, stays: bool) -> None:
        self._answer = answer
        self._stays = stays
        self.asked: list[str] = []
        """The requests."""
        self.port = 0

    @property
    def paths(self) -> list[str]:
        return [head.split()[1] for head in self.asked]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if (first := await reader.read(1)) == b"\x16":
                writer.write(answer(400))  # a server with TLS
            else:
                head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
                self.asked.append(head)
                writer.write(self._answer(head.split()[1]))
            await writer.drain()
            if self._stays:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def served(
    said: Callable[[str], bytes] | bytes, *, tls: ssl.SSLContext | None = None, stays: bool = False
) -> AsyncIterator[Server]:
    known = Server((lambda _: said) if isinstance(said, bytes) else said, stays=stays)
    server = await asyncio.start_server(known.serve, HOST, 0, ssl=tls)
    known.port = server.sockets[0].getsockname()[1]
    try:
        yield known
    finally:
        server.close()


def answer(status: int, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def target(server: Server, path: str = "/bye", scheme: str = "http", **headers: str) -> HttpTarget:
    url = f"{scheme}://{HOST}:{server.port}{path}"
    return HttpTarget(url=url, headers=tuple(headers.items()))


@pytest.mark.parametrize("status", [200, 204, 304, 404, 500, 503])
async def test_whatever_is_answered_is_an_answer(status: int) -> None:
    async with served(answer(status)) as server:
        assert not await send_hook_request(target(server))
        assert server.paths == ["/bye"]


async def test_it_asks_with_the_headers_of_the_target_and_no_others() -> None:
    async with served(answer(200)) as server:
        headers = (("Host", "shop.test"), ("X-A", "1"), ("X-A", "2"))
        url = f"http://{HOST}:{server.port}/a%2Fb?c=%20d"
        await send_hook_request(HttpTarget(url=url, headers=headers))
        first, *rest = server.asked[0].split("\r\n")
        assert first == "GET /a%2Fb?c=%20d HTTP/1.1"
        assert sorted(line for line in rest if line) == [
            "Connection: close",
            "Host: shop.test",
            "X-A: 1",
            "X-A: 2",
        ]


@pytest.mark.parametrize(
    ("place", "asked"),
    [
        ("/there", ["/bye", "/there"]),
        ("there", ["/bye", "/there"]),
        (f"http://{HOST}:PORT/there", ["/bye", "/there"]),
        ("http://localhost:PORT/there", ["/bye"]),
        ("http://unknown.invalid/", ["/bye"]),
    ],
)
async def test_it_goes_where_the_same_host_leads(place: str, asked: list[str]) -> None:
    def lead(path: str) -> bytes:
        onward = f"Location: {place.replace('PORT', str(server.port))}"
        return answer(302, onward) if path == "/bye" else answer(200)

    async with served(lead) as server:
        assert not await send_hook_request(target(server))
        assert server.paths == asked


async def test_it_does_not_run_in_circles() -> None:
    async with served(answer(302, "Location: /bye")) as server:
        with pytest.raises(ConnectionError, match="stopped after 10 redirects"):
            await send_hook_request(target(server))
        assert len(server.asked) == 10


async def test_a_refused_connection_is_a_failure_that_names_the_url() -> None:
    with socket.socket() as found:
        found.bind((HOST, 0))
        port = found.getsockname()[1]
        url = f"http://{HOST}:{port}/bye"
        with pytest.raises(ConnectionError, match=f'^Get "{url}": .*connection refused'):
            await send_hook_request(HttpTarget(url=url, headers=()))


async def test_a_server_that_hangs_up_is_a_failure() -> None:
    async with served(b"") as server:
        with pytest.raises(ConnectionError, match="Get "):
            await send_hook_request(target(server))


async def test_a_certificate_is_not_verified(tmp_path: Path) -> None:
    certificates = Certificates(StateDir(tmp_path), time.time_ns())
    certificates.ensure(("unknown.test",))

    async with served(answer(200), tls=certificates.server_context()) as server:
        assert not await send_hook_request(target(server, scheme="https", Authorization="secret"))
        assert "Authorization: secret" in server.asked[0]


async def test_a_server_without_tls_is_asked_again_without_what_it_must_not_see() -> None:
    async with served(answer(500)) as server:
        asked = target(server, scheme="https", Authorization="secret", Other="1")
        assert await send_hook_request(asked)
        assert server.paths == ["/bye"]
        assert "Other: 1" in server.asked[0]
        assert "secret" not in server.asked[0]


async def test_who_answers_neither_way_fails_as_at_first() -> None:
    async with served(b"") as server:
        with pytest.raises(ConnectionError, match='Get "https://'):
            await send_hook_request(target(server, scheme="https"))


@pytest.mark.parametrize("length", [MAX_BODY_BYTES + 1, 10**12])
async def test_who_has_much_to_say_is_not_heard_to_the_end(length: int) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode()
    await _is_answered(head)


async def test_who_says_much_without_an_end_is_not_heard_to_the_end() -> None:
    await _is_answered(b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * MAX_BODY_BYTES)


async def _is_answered(said: bytes) -> None:
    async with served(said, stays=True) as server, asyncio.timeout(60):
        assert not await send_hook_request(target(server))


async def test_an_answer_that_breaks_off_is_an_answer() -> None:
    async with served(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc") as server:
        assert not await send_hook_request(target(server))


async def test_a_slow_response_is_awaited_until_the_caller_cancels() -> None:
    async with served(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", stays=True) as server:
        asking = asyncio.ensure_future(send_hook_request(target(server)))
        done, _ = await asyncio.wait([asking], timeout=0.2)
        assert not done
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
