"""A fake agent: answers the requests of the commands."""

import json
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.agent.daemon.root_dir import RootDir
from tests.support.certificates import authority

TOKEN = "t0ken"  # noqa: S105 - of a test


_COUNTS: dict[str, Any] = {"pods": 0, "nodes": 0, "sync": None, "phases": {}, "health": {}}
"""What /v1/status has, and other answers do not: a client ignores fields that it does not know."""


class FakeNode:
    """What it has, and what it was asked."""

    def __init__(self) -> None:
        self.pods: list[dict[str, Any]] = []
        self.log: tuple[bytes, ...] = (b"one\n",)
        self.refusal: tuple[int, str] | None = None
        self.breaks_off = False
        self.may_go_on = threading.Event()
        """For the pieces of a log after the first."""
        self.may_go_on.set()
        self.asked: list[str] = []
        self.progress: list[dict[str, Any]] = [{"state": "drained"}]
        """What it says of a drain, one after the other; the last one again and again."""
        self.responses: dict[str, Any] = {}
        """What its own API answers, by path."""
        self.watches: list[list[bytes]] = []
        """What is sent to one watcher after the other; the last one again and again."""
        self.url = ""

    def serve_at(self, folder: Path) -> ThreadingHTTPServer:
        pair = authority().pair("node")
        (folder / "ca.crt").write_bytes(authority().pem)
        (folder / "node.pem").write_bytes(pair.certificate + pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "node.pem")
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"node": self}))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{server.server_address[1]}"
        return server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    node: FakeNode

    def do_GET(self) -> None:
        self.node.asked.append(self.path)
        if self.path == "/pods":
            self._answer(200, json.dumps({"kind": "PodList", "items": self.node.pods}).encode())
        elif self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._answer(401, b"Unauthorized")
        elif self.node.refusal is not None:
            self._answer(self.node.refusal[0], self.node.refusal[1].encode())
        elif self.path == "/drain":
            self._drain()
        elif self.path.startswith("/v1/watch"):
            # As the agent's: it is the last answer of its connection.
            self.close_connection = True
            watches = self.node.watches
            self._stream(watches.pop(0) if len(watches) > 1 else watches[0])
        elif self.path.startswith("/v1/"):
            response = self.node.responses.get(urlsplit(self.path).path)
            always = {"freshness": {}, "history": {}} | _COUNTS
            known = None if response is None else always | response
            code, body = (404, {"message": "not known here"}) if known is None else (200, known)
            self._answer(code, json.dumps(body).encode())
        else:
            self._stream(self.node.log)

    def do_POST(self) -> None:
        self.node.asked.append(f"POST {self.path}")
        self._drain()

    def do_DELETE(self) -> None:
        self.node.asked.append(f"DELETE {self.path}")
        self._drain()

    def _drain(self) -> None:
        progress = self.node.progress
        self._answer(
            200, json.dumps(progress.pop(0) if len(progress) > 1 else progress[0]).encode()
        )

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, pieces: Sequence[bytes]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        for index, piece in enumerate(pieces):
            if index:
                assert self.node.may_go_on.wait(60)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if self.node.breaks_off:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def fake_node(root_dir: Path, **more: Any) -> Iterator[FakeNode]:
    """The node, serving, as an agent tells it that runs in the root directory."""
    node = FakeNode()
    with RootDir(root_dir) as root, node.serve_at(root_dir) as server:
        endpoints: dict[str, Any] = {"agent": node.url, "token": TOKEN, "node": "n1", **more}
        trusted = {"agent_certificate": str(root_dir / "ca.crt")}
        root.write_endpoints(AgentEndpoints(apiserver="", pid=1, **{**trusted, **endpoints}))
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield node
        finally:
            server.shutdown()
            serving.join()
