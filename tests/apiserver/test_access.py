"""Access control: only clients with the token, by the server's own name, and no web pages."""

import json
import socket
import ssl
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

import pytest

from podstatus.apiserver.pki.certificates import Certificates
from podstatus.apiserver.state_dir import StateDir
from tests.support.processes.server_process import TOKEN, Document, ServerProcess, running

PODS = "/api/v1/pods"
WITH_TOKEN = f"Authorization: Bearer {TOKEN}"
HOST = "Host: 127.0.0.1"


class Guarded:
    """A server with TLS, and its log."""

    def __init__(self, server: ServerProcess, authority: bytes, log: Path) -> None:
        self._server = server
        self._context = ssl.create_default_context(cadata=authority.decode())
        self._log = log

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._server.port), timeout=60)

    def ask(self, path: str, *headers: str) -> tuple[int, Document]:
        """Return code and body of the response, over TLS."""
        with (
            self.connect() as plain,
            self._context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            lines = "".join(f"{header}\r\n" for header in headers)
            connection.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1"))
            response = HTTPResponse(connection)
            response.begin()
            with response:
                body = response.read()
            is_json = response.headers.get_content_type() == "application/json"
            return response.status, json.loads(body) if is_json else {}

    def logged(self) -> str:
        return self._log.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    path = tmp_path_factory.mktemp("server")
    folder = StateDir(path)
    authority = Certificates(folder, time.time_ns()).ensure()
    with running(tls=path, log=path / "log") as server:
        yield Guarded(server, authority, path / "log")
    folder.close()


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("Authorization: Bearer wrong",),
        ("Authorization: Bearer",),
        ("Authorization: Bearer ",),
        (f"Authorization: {TOKEN}",),
        (f"Authorization: Basic {TOKEN}",),
        (f"Authorization: Basic Bearer {TOKEN}",),
        (f"Authorization: Bearer {TOKEN}x",),
        (f"Authorization: Bearer {TOKEN[:-1]}",),
        (f"Authorization: Bearer {TOKEN.upper()}",),
        ("Authorization: Bearer \xff\xfe",),
        (f"X-Authorization: Bearer {TOKEN}",),
    ],
)
def test_without_the_token_there_is_nothing_to_see(
    guarded: Guarded, headers: tuple[str, ...]
) -> None:
    for path in (PODS, "/apis", "/openapi/v3", "/nothing/here"):
        code, status = guarded.ask(path, HOST, *headers)
        assert code == 401
        assert status == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }


def test_a_token_in_the_address_is_none(guarded: Guarded) -> None:
    assert guarded.ask(f"{PODS}?access_token={TOKEN}", HOST)[0] == 401


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "localhost:6443", "[::1]:1", "LOCALHOST"]
)
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_token_opens_it(guarded: Guarded, host: str, scheme: str) -> None:
    assert guarded.ask(PODS, f"Host: {host}", f"Authorization: {scheme} {TOKEN}")[0] == 200


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_anybody_may_ask_whether_it_lives(guarded: Guarded, path: str) -> None:
    assert guarded.ask(path, HOST)[0] == 200


@pytest.mark.parametrize(
    "path", ["/%68ealthz/../api/v1/pods", "/version/../api/v1/pods", "//version"]
)
def test_no_detour_by_what_is_open_leads_in(guarded: Guarded, path: str) -> None:
    assert guarded.ask(path, HOST)[0] in (401, 404)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:443", "127.0.0.1.evil.example", "localhost@evil", "", "["],
)
def test_another_name_is_refused_even_with_the_token(guarded: Guarded, host: str) -> None:
    """A page can point its own name to this address (DNS rebinding)."""
    code, status = guarded.ask(PODS, f"Host: {host}", WITH_TOKEN)
    assert (code, status["reason"]) == (403, "Forbidden")


@pytest.mark.parametrize(
    "header",
    [
        "Origin: https://evil.example",
        "Origin: null",
        "Origin: https://localhost",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ],
)
def test_a_web_page_is_refused_even_with_the_token(guarded: Guarded, header: str) -> None:
    for path in (PODS, "/version"):
        code, status = guarded.ask(path, HOST, WITH_TOKEN, header)
        assert (code, status["reason"]) == (403, "Forbidden")


@pytest.mark.parametrize(
    "sent",
    [
        f"GET {PODS} HTTP/1.1\r\n{HOST}\r\n{WITH_TOKEN}\r\n\r\n".encode(),
        b"\x00" * 600,
        b"\x16\x03\x01\xff\xff" + b"x" * 600,
        b"",
    ],
)
def test_without_tls_nothing_is_answered(guarded: Guarded, sent: bytes) -> None:
    with guarded.connect() as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        try:
            answer = connection.recv(2**16)
        except ConnectionError:
            answer = b""
    assert b"HTTP" not in answer
    assert guarded.ask(PODS, HOST, WITH_TOKEN)[0] == 200


def test_the_token_is_never_logged(guarded: Guarded) -> None:
    before = guarded.logged()
    guarded.ask(PODS, HOST, WITH_TOKEN)
    guarded.ask(PODS, HOST, WITH_TOKEN, "Bad\x01Header: x")
    guarded.ask(PODS, HOST, f"{WITH_TOKEN}\x00")
    guarded.ask(PODS, HOST, f"{WITH_TOKEN}{'x' * 10_000}")
    assert "Error handling request" in guarded.logged()[len(before) :], "nothing was logged at all"
    assert TOKEN not in guarded.logged()
