"""A node that is only a port: answers what an agent's does, from a script, to API servers.

Logs are those that a test wrote down; commands are few words that behave as programs do.
"""

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

from podstatus.apiserver.pki.certificates import CA_CERTIFICATE, Certificates
from podstatus.apiserver.state_dir import StateDir
from podstatus.base.net.sockets import shutdown_sockets, transport_socket

Document = dict[str, Any]

V5 = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
_HANDSHAKE_SECONDS = 0.05
"""A TLS handshake on this machine takes milliseconds."""


def make_node_certificates(path: Path) -> Path:
    """Have certificates for nodes on loopback in a folder; the file with who signed them."""
    with closing(StateDir(path)) as folder:
        Certificates(folder, time.time_ns()).ensure()
    return path / CA_CERTIFICATE


class Asked:
    """A request that came."""

    def __init__(self, request: web.BaseRequest) -> None:
        self.method = request.method
        self.path = request.path
        self.raw = request.raw_path
        self.query = list(request.query.items())
        self.headers = dict(request.headers)
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        self.user = _common_name(certificate)


class StandInNode:
    """The port, while it is open."""

    def __init__(self, certificates: Path, clients: Path, port: int = 0) -> None:
        """`clients` is a file with who signs the certificates of those who may ask."""
        self.port = port
        self.asked: list[Asked] = []
        self.logs: dict[str, list[str]] = {}
        """By namespace/pod/container; lines without their ends."""
        self.open_streams = 0
        self.refusals: dict[str, tuple[int, str]] = {}
        """By the same: what is answered instead."""
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(clients))
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
        self._written = asyncio.Condition()
        self._stopped = asyncio.Event()
        self.silent = False
        """Whether nothing is answered at all."""
        self.summary: Document | None = None
        """The stats, once there are some."""
        self.summary_code = 200

    async def start(self) -> None:
        server = web.Server(self._serve, access_log=None)
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._context).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        self._stopped.set()
        assert self._runner.server is not None
        for site in list(self._runner.sites):
            await site.stop()
        # A connection belongs to the server only after its TLS handshake.
        await asyncio.sleep(_HANDSHAKE_SECONDS)
        sockets = [
            transport_socket(handler.transport) for handler in self._runner.server.connections
        ]
        await self._runner.cleanup()
        await shutdown_sockets(sockets)

    async def write(self, key: str, *lines: str) -> None:
        async with self._written:
            self.logs.setdefault(key, []).extend(lines)
            self._written.notify_all()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(Asked(request))
        if self.silent:
            await self._stopped.wait()
        match request.path.strip("/").split("/"):
            case ["containerLogs", *where]:
                return await self._log(request, "/".join(where))
            case ["exec" | "attach" as verb, *where]:
                return await self._talk(request, verb, "/".join(where))
            case ["stats", "summary"] if self.summary is not None:
                return web.json_response(self.summary, status=self.summary_code)
            case ["healthz"]:
                return web.Response(text="ok")
        return web.Response(status=404, text="404 page not found\n")

    async def _log(self, request: web.BaseRequest, key: str) -> web.StreamResponse:
        if key in self.refusals:
            code, text = self.refusals[key]
            return web.Response(status=code, text=text)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        kept = self.logs.get(f"{key}/previous" if "previous" in request.query else key, [])
        tail = request.query.get("tailLines")
        sent = len(kept) - min(int(tail), len(kept)) if tail else 0
        stamp = "2024-01-01T00:00:00.000000001Z " if "timestamps" in request.query else ""
        self.open_streams += 1
        try:
            while True:
                for line in kept[sent:]:
                    await response.write(f"{stamp}{line}\n".encode())
                sent = len(kept)
                if "follow" not in request.query or (kept and kept[-1] == "END"):
                    break
                await self._more(request, kept, sent)
            await response.write_eof()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.open_streams -= 1
        return response

    async def _more(self, request: web.BaseRequest, kept: list[str], sent: int) -> None:
        while len(kept) == sent:
            if request.transport is None or request.transport.is_closing():
                raise ConnectionResetError
            try:
                async with asyncio.timeout(0.05), self._written:
                    await self._written.wait()
            except TimeoutError:
                pass

    async def _talk(self, request: web.BaseRequest, verb: str, key: str) -> web.StreamResponse:
        if key in self.refusals:
            code, text = self.refusals[key]
            return web.Response(status=code, text=text)
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return web.Response(status=400, text="this node speaks WebSocket only")
        socket = web.WebSocketResponse(protocols=(V5,))
        await socket.prepare(request)
        self.open_streams += 1
        try:
            talk = _Talk(request, socket)
            await (talk.attached() if verb == "attach" else talk.run())
            await socket.close()
        except ConnectionError:
            pass
        finally:
            self.open_streams -= 1
        return socket


class _Talk:
    """A pretended process."""

    def __init__(self, request: web.BaseRequest, socket: web.WebSocketResponse) -> None:
        self._request = request
        self._socket = socket
        self._command = request.query.getall("command", [])
        self._has_input = request.query.get("input") == "1"

    async def run(self) -> None:
        """Do what the command is for; its exit code."""
        code = 0
        match self._command:
            case ["echo", *words]:
                await self._say(STDOUT, " ".join(words) + "\n")
            case ["complain", *words]:
                await self._say(STDERR, " ".join(words) + "\n")
            case ["exit", number]:
                code = int(number)
            case ["cat"]:
                await self._cat()
            case ["flood", number]:
                for _ in range(int(number)):
                    await self._send(STDOUT, b"x" * 32768)
            case ["size"]:
                await self._size()
            case ["wait"]:
                await self._socket.receive()
            case ["vanish"]:
                assert self._request.transport is not None
                self._request.transport.abort()
                return
            case _:
                code = 127
                await self._say(STDERR, f"{self._command}: not found\n")
        await self._send(ERROR, json.dumps(_status(code)).encode())

    async def attached(self) -> None:
        await self._say(STDOUT, "attached\n")
        await self._send(ERROR, json.dumps(_status(0)).encode())

    async def _cat(self) -> None:
        if not self._has_input:
            return
        async for message in self._socket:
            assert message.type is WSMsgType.BINARY
            if message.data[0] == CLOSE and message.data[1] == STDIN:
                return
            if message.data[0] == STDIN:
                await self._send(STDOUT, message.data[1:])

    async def _size(self) -> None:
        async for message in self._socket:
            if message.data[0] == RESIZE:
                size = json.loads(message.data[1:])
                await self._say(STDOUT, f"{size['Width']}x{size['Height']}\n")
                return

    async def _say(self, channel: int, text: str) -> None:
        await self._send(channel, text.encode())

    async def _send(self, channel: int, data: bytes) -> None:
        await self._socket.send_bytes(bytes([channel]) + data)


def wait_until(is_so: Callable[[], bool]) -> None:
    """Look until something is so, for it happens elsewhere."""
    deadline = time.monotonic() + 90
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _status(code: int) -> Document:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _common_name(certificate: Any) -> str:
    subject = (certificate or {}).get("subject", ())
    return next((value for part in subject for key, value in part if key == "commonName"), "")


@contextmanager
def running_node(certificates: Path, clients: Path) -> Iterator["NodeThread"]:
    """A node in a thread, until the end."""
    node = NodeThread(certificates, clients)
    try:
        yield node
    finally:
        node.stop()


class NodeThread:
    """The node, for tests that do not run a loop."""

    def __init__(self, certificates: Path, clients: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="node")
        self._thread.start()
        self.node = StandInNode(certificates, clients)
        self._do(self.node.start())

    def write(self, key: str, *lines: str) -> None:
        """Let a container write to its log."""
        self._do(self.node.write(key, *lines))

    def stop(self) -> None:
        self._do(self.node.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, doing: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(90)
