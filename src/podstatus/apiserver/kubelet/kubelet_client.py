"""The server as a client of its nodes: asks their agents, with a certificate of its own.

Upstream's words for what goes wrong: those of Go's net/http, in
apiserver v0.36.4 pkg/registry/generic/rest/streamer.go and
apimachinery v0.36.4 pkg/util/proxy/upgradeaware.go.
"""

import asyncio
import os
import ssl
import struct
from asyncio.trsock import TransportSocket
from contextlib import suppress
from pathlib import Path
from socket import SHUT_RDWR, SO_LINGER, SOL_SOCKET
from typing import Any
from weakref import WeakSet

import aiohttp
import msgspec
from aiohttp import ClientResponse, ClientSession, WSMsgType
from yarl import URL

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import Message
from podstatus.apiserver.kubelet.address import KubeletAddress
from podstatus.base.net.accept_loop import descriptor_limit

_CONNECT_SECONDS = 10.0
RESPONSE_HEADER_SECONDS = 30.0
"""How long a node may think before its answer begins; upstream would wait for ever."""
_MAX_ERROR_BYTES = 50_000
"""So much of a refusal is read. Upstream: maxReadLength."""
_GOING_AWAY = 1001
"""What a WebSocket says when its server stops."""
_CLOSE_SECONDS = 0.3
_ZERO_LINGER = struct.pack("ii", 1, 0)
"""Linger for no second: a connection is reset when it is closed."""
_UNKNOWN_AUTHORITY_CODES = (18, 19, 20, 21)
"""OpenSSL's numbers for chains that do not end at somebody who is trusted."""
MISSING_AUTHORITY = (
    "this server does not know whom to trust as a node; start it with "
    "--node-certificate-authority FILE, the certificates that have signed those of the nodes "
    "(pki/agent.crt in the root-dir of a podstatus node); docs/node-server.md has the rest"
)


class KubeletClientConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How nodes are reached."""

    certificate: Path | None = None
    """Of this server, to be shown to them."""
    key: Path | None = None
    authority: Path | None = None
    """Who has signed the certificates of nodes; without it none is asked."""
    address: str = ""
    """Where the ports of all nodes are, whatever they say themselves."""


class KubeletError(Exception):
    """A node does not do what it was asked."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class KubeletClient:
    """Asks nodes."""

    def __init__(self, config: KubeletClientConfig) -> None:
        self._config = config
        self._session: ClientSession | None = None
        self._responses: WeakSet[ClientResponse] = WeakSet()
        self._websockets: WeakSet[KubeletWebSocket] = WeakSet()

    @property
    def address(self) -> str:
        """What stands in for the addresses of nodes."""
        return self._config.address

    def check_configured(self) -> None:
        """Whether nodes can be asked at all. Raises Problem."""
        if self._config.authority is None:
            raise StatusError(503, "ServiceUnavailable", MISSING_AUTHORITY)

    async def get(
        self, address: KubeletAddress, path_and_query: str, *, verify: bool = True
    ) -> ClientResponse:
        """The answer of a node, of which only the head was read. Raises Problem."""
        url = f"https://{address}{path_and_query}"
        try:
            async with asyncio.timeout(RESPONSE_HEADER_SECONDS):
                answer = await self._open_session().get(
                    URL(url, encoded=True),
                    ssl=self._ssl_context(verify=verify),
                    allow_redirects=False,
                )
        except (aiohttp.ClientError, OSError) as error:
            # As Go has it: what was tried, and why not.
            raise _connection_error(error, address, f'Get "{url}": ') from error
        self._responses.add(answer)
        return answer

    async def open_websocket(
        self, address: KubeletAddress, path_and_query: str, protocol: str
    ) -> "KubeletWebSocket":
        """A WebSocket to a node. Raises Problem, NodeRefusalError."""
        url = URL(f"https://{address}{path_and_query}", encoded=True)
        try:
            async with asyncio.timeout(RESPONSE_HEADER_SECONDS):
                socket = await self._open_session().ws_connect(
                    url, protocols=(protocol,), ssl=self._ssl_context(verify=True)
                )
        except aiohttp.WSServerHandshakeError as error:
            raise KubeletError(error.status, error.message) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _connection_error(error, address, "error dialing backend: ") from error
        if socket.protocol != protocol:
            await socket.close()
            raise StatusError(500, "", f"the node does not speak {protocol}")
        opened = KubeletWebSocket(socket)
        self._websockets.add(opened)
        return opened

    async def close(self) -> None:
        """Hang up on all nodes; whoever reads from them is told."""
        raw = [socket.raw for socket in self._websockets]
        for answer in self._responses:
            if answer.connection is not None and answer.connection.transport is not None:
                raw.append(answer.connection.transport.get_extra_info("socket"))
            answer.close()
        goodbyes = [asyncio.create_task(socket.close(_GOING_AWAY)) for socket in self._websockets]
        if goodbyes:
            await asyncio.wait(goodbyes, timeout=_CLOSE_SECONDS)
        for goodbye in goodbyes:
            goodbye.cancel()
        if self._session is not None:
            await self._session.close()
            self._session = None
        # TLS would wait for nodes that do not say goodbye.
        for connection in raw:
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)

    def _open_session(self) -> ClientSession:
        if self._session is None:
            # A connection for each: who follows a log keeps it, and those are not few.
            self._session = ClientSession(
                connector=aiohttp.TCPConnector(limit=descriptor_limit() // 8, force_close=True),
                timeout=aiohttp.ClientTimeout(total=None, connect=_CONNECT_SECONDS),
                auto_decompress=False,
                skip_auto_headers=("Accept-Encoding",),
                raise_for_status=_check_upgrade,
            )
        return self._session

    def _ssl_context(self, *, verify: bool) -> ssl.SSLContext:
        """Made anew each time: files change while a server runs. Raises Problem."""
        access = self._config
        try:
            context = ssl.create_default_context(cafile=access.authority if verify else None)
            if not verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            # An agent that has signed its certificate itself is its own authority.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            if access.certificate is not None:
                context.load_cert_chain(access.certificate, access.key)
        except OSError as error:
            files = f"{access.authority}, {access.certificate}"
            raise StatusError(503, "ServiceUnavailable", f"cannot use {files}: {error}") from error
        return context


class KubeletWebSocket:
    """The node's end of a WebSocket, as `exchange.Socket`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self.raw: TransportSocket = socket.get_extra_info("socket")
        """What is below TLS."""

    @property
    def close_code(self) -> int | None:
        """What the node said when it left."""
        return self._socket.close_code

    async def receive(self) -> Message | None:
        """The next message; None when the node has had enough. Raises ConnectionError."""
        return read_message(await self._socket.receive())

    async def send(self, message: Message) -> None:
        """Hand over a message, as fast as it is taken. Raises ConnectionError."""
        await send_message(self._socket, message)

    async def close(self, code: int, reason: bytes = b"") -> None:
        """Say goodbye; a node that has no time for that is hung up on."""
        try:
            await self._socket.close(code=code, message=reason)
        except asyncio.CancelledError:
            # What it has not taken yet would keep it from hearing that we have gone.
            with suppress(OSError):
                self.raw.setsockopt(SOL_SOCKET, SO_LINGER, _ZERO_LINGER)
            raise


def read_message(message: aiohttp.WSMessage) -> Message | None:
    """What a frame says; None if it is the last. Raises ConnectionError."""
    match message.type:
        case WSMsgType.BINARY | WSMsgType.TEXT:
            data: Message = message.data
            return data
        case WSMsgType.ERROR:
            raise ConnectionResetError(str(message.data))
    return None


async def send_message(socket: Any, message: Message) -> None:
    """Send a message by one of aiohttp's WebSockets."""
    if isinstance(message, str):
        await socket.send_str(message)
    else:
        await socket.send_bytes(message)


async def _check_upgrade(response: ClientResponse) -> None:
    """Keep what a node says when it does not want to talk: aiohttp itself would drop it."""
    if "Upgrade" in response.request_info.headers and response.status != 101:
        words = (await response.content.read(_MAX_ERROR_BYTES)).decode(errors="replace")
        response.close()
        raise KubeletError(response.status, words)


async def read_error_body(response: ClientResponse) -> str:
    """What a node says in its answer, if it is not too long."""
    words = await response.content.read(_MAX_ERROR_BYTES)
    return words.decode(errors="replace")


def _tls_error(error: ssl.SSLError) -> str:
    """Why a node's certificate is not taken; whom to trust is what people get wrong most."""
    if getattr(error, "verify_code", 0) in _UNKNOWN_AUTHORITY_CODES:
        return "x509: certificate signed by unknown authority"
    return f"x509: {getattr(error, 'verify_message', '') or error}"


def _connection_error(error: Exception, address: KubeletAddress, tried: str) -> StatusError:
    """Why a node could not be asked, in upstream's words as far as it has some."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLError() as why):
            return StatusError(
                500, "", f"{tried}tls: failed to verify certificate: {_tls_error(why)}"
            )
        case aiohttp.ConnectionTimeoutError():
            return StatusError(504, "Timeout", f"{tried}dial tcp {address}: i/o timeout")
        case TimeoutError():
            return StatusError(504, "Timeout", f"{tried}timeout awaiting response headers")
        case aiohttp.ClientConnectorSSLError():
            return StatusError(500, "", f"{tried}tls: {error}")
        case aiohttp.ClientConnectorError(os_error=os_error):
            number = os_error.errno
            words = str(os_error) if number is None else os.strerror(number).lower()
            return StatusError(500, "", f"{tried}dial tcp {address}: connect: {words}")
    return StatusError(500, "", f"{tried}{error or type(error).__name__}")
