"""The port of an agent, with one log: behaves as far as `podstatus logs` asks."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from podstatus.agent.root_dir import Endpoints, RootDir
from tests.client.certificates import authority

TOKEN = "t0ken"  # noqa: S105 - of nobody


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
        else:
            self._stream()

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for index, piece in enumerate(self.node.log):
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
def fake_node(root_dir: Path, **more: str) -> Iterator[FakeNode]:
    """The node, serving, as an agent tells it that runs in the root-dir."""
    node = FakeNode()
    with RootDir(root_dir) as root, node.serve_at(root_dir) as server:
        told = {"agent": node.url, "token": TOKEN, "node": "n1", **more}
        trusted = {"agent_certificate": str(root_dir / "ca.crt")}
        root.announce(Endpoints(apiserver="", pid=1, **{**trusted, **told}))
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield node
        finally:
            server.shutdown()
            serving.join()
