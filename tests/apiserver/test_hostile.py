"""The server answers whatever is sent to it, and stays up."""

import gzip
import itertools
import json
import re
import secrets
import select
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPResponse
from pathlib import Path

import pytest

from podstatus.apiserver.resources import RESOURCES
from tests.apiserver.fuzzing import Fuzzer
from tests.support.processes.server_process import TOKEN, Client, ServerProcess, running

REQUESTS = 10_000
MAX_GROWTH = 96 * 2**20
"""Changes are cached for watchers, so some growth is expected."""
POD_PATH = "/api/v1/namespaces/default/pods"
HEAD = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
NAMED = {503: "ServiceUnavailable", 504: "Timeout"}
"""Logs without a configured node, and resource versions of the future."""


class Wire:
    """A connection that sends raw bytes; opened again when the server closes it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self.connections = 0

    def ask(self, method: str, request: bytes) -> tuple[int, str, bytes]:
        """Return code, type and body of the response; for a watch, no body."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=60)
            self.connections += 1
        self._socket.sendall(request)
        with closing(HTTPResponse(self._socket, method=method)) as response:
            response.begin()
            kind = response.headers.get("Content-Type", "")
            if response.chunked:
                self.close()
                return response.status, kind, b""
            body = response.read()
            if response.will_close:
                self.close()
            return response.status, kind, body

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with running(settings={"listener.BODY_SECONDS": 0.5}) as server:
        yield server


@pytest.fixture
def impatient_server() -> Iterator[ServerProcess]:
    """Closes a connection that brings no request within 2 s, not 10."""
    with running(settings={"accept_loop.FIRST_REQUEST_SECONDS": 2.0}) as server:
        yield server


@pytest.mark.slow
def test_ten_thousand_broken_requests_are_each_answered(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")  # noqa: T201 - to reproduce a failure
    log, path, codes = tmp_path / "log", tmp_path / "objects.db", set()
    with running(path, log=log) as server:
        wire = Wire(server.port)
        before = server.peak_bytes()
        for method, request in itertools.islice(Fuzzer(seed), REQUESTS):
            code, kind, body = wire.ask(method, request)
            assert _is_in_order(method, code, kind, body), _failure_message(
                request, code, body, log
            )
            codes.add(code)
        assert server.peak_bytes() - before < MAX_GROWTH
        assert wire.connections < REQUESTS / 10
        wire.close()
        _assert_everything_can_be_shown(server)
    assert codes > {200, 201, 400, 401, 403, 404, 405, 406, 409, 415, 422}
    with running(path) as server:
        _assert_everything_can_be_shown(server)
    assert TOKEN not in log.read_text(encoding="utf-8")


def _is_in_order(method: str, code: int, kind: str, body: bytes) -> bool:
    if code < 400 or method == "HEAD":
        return code < 500
    if code == 404 and kind.startswith("text/plain"):
        return body == b"404 page not found\n"
    if not kind.startswith("application/json"):
        return False
    status = json.loads(body)
    expected = code < 500 or NAMED.get(code) == status.get("reason")
    return expected and (status["kind"], status["code"]) == ("Status", code)


def _failure_message(request: bytes, code: int, body: bytes, log: Path) -> str:
    trace = log.read_text(encoding="utf-8")[-3000:]
    return f"{request[:3000]!r} was answered {code} {body[:500]!r}\n{trace}"


def _assert_everything_can_be_shown(server: ServerProcess) -> None:
    """Lists, Tables and the next start must not fail on anything that was stored."""
    wire = Wire(server.port)
    for resource in RESOURCES:
        for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
            path = f"{resource.prefix}/{resource.plural}"
            head = f"GET {path} HTTP/1.1\r\nAccept: {accept}\r\n".encode()
            code, _, body = wire.ask("GET", head + HEAD + b"\r\n")
            assert code == 200, body
            json.loads(body)
    wire.close()


def _assert_serves(server: ServerProcess) -> None:
    with closing(Client(server.port)) as client:
        assert client.ask("GET", "/api/v1/namespaces/default")[0] == 200


def _post(body: bytes, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers).encode()
    return b"POST %s HTTP/1.1\r\n%s%s\r\n%s" % (POD_PATH.encode(), HEAD, lines, body)


def _answer(connection: socket.socket) -> tuple[int, str]:
    """Return code and reason of the response."""
    with closing(HTTPResponse(connection)) as response:
        response.begin()
        return response.status, json.loads(response.read())["reason"]


def _connected(server: ServerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


@pytest.mark.parametrize("levels", [100, 500, 900, 1000, 5000, 200_000])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_json_within_json_is_no_way_to_break_it(
    server: ServerProcess, levels: int, method: str
) -> None:
    nested = b"[" * levels + b"]" * levels
    wire, accepted = Wire(server.port), (200, 201, 400, 422)
    body = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"},"more":%s}' % nested
    types = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json")
    for kind in ("json",) if method == "POST" else types:
        path = "/api/v1/namespaces/default/configmaps" + ("" if method == "POST" else "/c")
        if method == "PATCH":
            _make_config_map(server)
        sent = b'[{"op":"add","path":"/more","value":%s}]' % nested if "json-" in kind else body
        head = f"Content-Type: application/{kind}\r\nContent-Length: {len(sent)}\r\n\r\n"
        request = f"{method} {path} HTTP/1.1\r\n".encode() + HEAD + head.encode() + sent
        code, _, answer = wire.ask(method, request)
        assert code in accepted, answer
    wire.close()
    _assert_serves(server)


def _make_config_map(server: ServerProcess) -> None:
    with closing(Client(server.port)) as client:
        document = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}}
        path = "/api/v1/namespaces/default/configmaps"
        assert client.ask("POST", path, document)[0] in (201, 409)


def test_a_body_that_is_said_to_be_too_long_is_refused_unread(server: ServerProcess) -> None:
    with _connected(server) as connection:
        connection.sendall(_post(b"", f"Content-Length: {2**40}"))
        assert _answer(connection) == (413, "RequestEntityTooLarge")
    _assert_serves(server)


def test_a_body_without_end_is_cut_off(server: ServerProcess) -> None:
    before = server.peak_bytes()
    with _connected(server) as connection:
        connection.sendall(_post(b"", "Transfer-Encoding: chunked"))
        piece = b"10000\r\n" + b" " * 2**16 + b"\r\n"
        sent = _send_until_answered(connection, piece)
        assert sent < 64 * 2**20
        assert _answer(connection) == (413, "RequestEntityTooLarge")
    assert server.peak_bytes() - before < 32 * 2**20
    _assert_serves(server)


def _send_until_answered(connection: socket.socket, piece: bytes) -> int:
    sent = 0
    while not select.select([connection], [], [], 0)[0]:
        connection.sendall(piece)
        sent += len(piece)
    return sent


def test_a_body_that_comes_too_slowly_is_cut_off(server: ServerProcess) -> None:
    with _connected(server) as connection:
        connection.sendall(_post(b"", "Content-Length: 1000"))
        while not select.select([connection], [], [], 0.1)[0]:
            connection.sendall(b" ")
        assert _answer(connection) == (408, "Timeout")
    _assert_serves(server)


def test_a_compressed_body_is_not_inflated(server: ServerProcess) -> None:
    bomb = gzip.compress(b" " * 64 * 2**20)
    with _connected(server) as connection:
        headers = ("Content-Encoding: gzip", f"Content-Length: {len(bomb)}")
        connection.sendall(_post(bomb, *headers))
        assert _answer(connection) == (400, "BadRequest")
    _assert_serves(server)


@pytest.mark.parametrize(
    "request_",
    [
        _post(b"zz\r\nx\r\n", "Transfer-Encoding: chunked"),
        _post(b"-1\r\nx\r\n", "Transfer-Encoding: chunked"),
        _post(b"5\r\nxxxxxxxxxx\r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
        _post(b"{}", "Content-Length: 2", "Content-Length: 3"),
        _post(b"{}", "Content-Length: 2", "Transfer-Encoding: chunked"),
        _post(b"{}", "Content-Length: -2"),
        _post(b"", f"X-Long: {'x' * 100_000}"),
        _post(b"", *[f"X-{number}: x" for number in range(5000)]),
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"GET / HTTP/9.9\r\n" + HEAD + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
        b"\x00" * 1000,
        b"GET / HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(impatient_server: ServerProcess, request_: bytes) -> None:
    with _connected(impatient_server) as connection:
        answer = _refusal(connection, request_)
    assert not answer or re.match(rb"HTTP/1\.[01] 4\d\d ", answer)
    _assert_serves(impatient_server)


def _refusal(connection: socket.socket, request: bytes) -> bytes:
    """Return the start of the response; empty if the server closed while we were sending."""
    try:
        connection.sendall(request)
        return connection.recv(2**16)
    except ConnectionError:
        return b""
