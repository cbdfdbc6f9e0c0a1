"""The HTTPS client for kubelets, with a client certificate.

Errors use upstream's words, those of Go's net/http: apiserver v0.36.4
pkg/registry/generic/rest/streamer.go and apimachinery v0.36.4 pkg/util/proxy/upgradeaware.go.
"""

import asyncio
import os
import ssl
import struct
from asyncio.trsock import TransportSocket
from contextlib import suppress
from pathlib import Path
from socket import SHUT_RDWR, SO_LINGER, SOL_SOCKET
from weakref import WeakSet

import aiohttp
import msgspec
from aiohttp import ClientResponse, ClientSession
from yarl import URL

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.kubelet.address import KubeletAddress
from podstatus.apiserver.kubelet.websocket_relay import WebSocketConnection
from podstatus.base.net.accept_loop import descriptor_limit

_CONNECT_SECONDS = 10.0
RESPONSE_HEADER_SECONDS = 30.0
"""How long a kubelet may take to send response headers; upstream waits forever."""
_MAX_ERROR_BYTES = 50_000
"""How much of an error body is read. Upstream: maxReadLength."""
_GOING_AWAY = 1001
"""WebSocket close code: the server is shutting down."""
_CLOSE_SECONDS = 0.3
_ZERO_LINGER = struct.pack("ii", 1, 0)
"""SO_LINGER of zero seconds: closing resets the connection."""
_UNKNOWN_AUTHORITY_CODES = (18, 19, 20, 21)
"""OpenSSL's verify codes for an untrusted chain."""
MISSING_AUTHORITY = (
    "this server trusts no certificate authority for nodes; start it with "
    "--node-certificate-authority FILE, the CA bundle of the nodes' serving certificates "
    "(pki/agent.crt in the root directory of a podstatus node); see "
    "docs/reference/http/kubelet-endpoints.md"
)


class KubeletClientConfig(msgspec.Struct, frozen=True, kw_only=True):
    certificate: Path | None = None
    """Client certificate of this server, PEM."""
    key: Path | None = None
    authority: Path | None = None
    """CA bundle for the nodes' serving certificates; without it no kubelet is contacted."""
    address: str = ""
    """Host that replaces the address of every node."""


class KubeletError(Exception):
    """A kubelet refused the request; `code` and `message` are its response."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class KubeletClient:
    """Sends requests to kubelets. Not thread-safe."""

    def __init__(self, config: KubeletClientConfig) -> None:
        self._config = config
        self._session: ClientSession | None = None
        self._responses: WeakSet[ClientResponse] = WeakSet()
        self._websockets: WeakSet[KubeletWebSocket] = WeakSet()
        self._verifying: tuple[_FileVersions, ssl.SSLContext] | None = None
        """The context that checks certificates, and the files that it was built of."""

    @property
    def address(self) -> str:
        """Host that replaces the address of every node; empty if none."""
        return self._config.address

    def check_configured(self) -> None:
        """Raise StatusError (503) unless a CA for nodes is configured."""
        if self._config.authority is None:
            raise StatusError(503, "ServiceUnavailable", MISSING_AUTHORITY)

    async def get(
        self, address: KubeletAddress, path_and_query: str, *, verify: bool = True
    ) -> ClientResponse:
        """Send a GET; return the response with only its headers read. Raises StatusError."""
        url = f"https://{address}{path_and_query}"
        try:
            async with asyncio.timeout(RESPONSE_HEADER_SECONDS):
                response = await self._open_session().get(
                    URL(url, encoded=True),
                    ssl=self._ssl_context(verify=verify),
                    allow_redirects=False,
                )
        except (aiohttp.ClientError, OSError) as error:
            # As in Go: what was tried, then the reason.
            raise _connection_error(error, address, f'Get "{url}": ') from error
        self._responses.add(response)
        return response

    async def open_websocket(
        self, address: KubeletAddress, path_and_query: str, protocol: str
    ) -> "KubeletWebSocket":
        """Open a WebSocket to a kubelet. Raises StatusError, KubeletError."""
        url = URL(f"https://{address}{path_and_query}", encoded=True)
        try:
            async with asyncio.timeout(RESPONSE_HEADER_SECONDS):
                socket = await self._open_session().ws_connect(
                    url,
                    protocols=(protocol,) if protocol else (),
                    ssl=self._ssl_context(verify=True),
                )
        except aiohttp.WSServerHandshakeError as error:
            raise KubeletError(error.status, error.message) from error
        except (aiohttp.ClientError, OSError) as error:
            raise _connection_error(error, address, "error dialing backend: ") from error
        if (socket.protocol or "") != protocol:
            await socket.close()
            raise StatusError(500, "", f"the node does not support the protocol {protocol}")
        opened = KubeletWebSocket(socket)
        self._websockets.add(opened)
        return opened

    async def close(self) -> None:
        """Close all connections; pending reads end."""
        raw = [socket.raw for socket in self._websockets]
        for response in self._responses:
            if response.connection is not None and response.connection.transport is not None:
                raw.append(response.connection.transport.get_extra_info("socket"))
            response.close()
        closing = [asyncio.create_task(socket.close(_GOING_AWAY)) for socket in self._websockets]
        if closing:
            await asyncio.wait(closing, timeout=_CLOSE_SECONDS)
        for task in closing:
            task.cancel()
        if self._session is not None:
            await self._session.close()
            self._session = None
        # A TLS shutdown would wait for nodes that do not respond.
        for connection in raw:
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)

    def _open_session(self) -> ClientSession:
        if self._session is None:
            # One connection per request: log followers hold theirs, and there may be many.
            self._session = ClientSession(
                connector=aiohttp.TCPConnector(limit=descriptor_limit() // 8, force_close=True),
                timeout=aiohttp.ClientTimeout(total=None, connect=_CONNECT_SECONDS),
                auto_decompress=False,
                skip_auto_headers=("Accept-Encoding",),
                raise_for_status=_check_upgrade,
            )
        return self._session

    def _ssl_context(self, *, verify: bool) -> ssl.SSLContext:
        """Return a context of the files as they are now. Raises StatusError."""
        config = self._config
        try:
            if not verify:
                return _build_context(config, verify=False)
            # Building it takes a millisecond; a request for all nodes needs it for each of them.
            versions = _file_versions(config)
            if self._verifying is None or self._verifying[0] != versions:
                self._verifying = versions, _build_context(config, verify=True)
            return self._verifying[1]
        except OSError as error:
            files = f"{config.authority} and {config.certificate}"
            raise StatusError(503, "ServiceUnavailable", f"cannot use {files}: {error}") from error


_FileVersions = tuple[tuple[int, int, int], ...]


def _file_versions(config: KubeletClientConfig) -> _FileVersions:
    """Return what changes when one of the files is replaced. Raises OSError."""
    files = (config.authority, config.certificate, config.key)
    states = (path.stat() for path in files if path is not None)
    return tuple((state.st_ino, state.st_size, state.st_mtime_ns) for state in states)


def _build_context(config: KubeletClientConfig, *, verify: bool) -> ssl.SSLContext:
    """Build the context of a client of kubelets. Raises OSError."""
    context = ssl.create_default_context(cafile=config.authority if verify else None)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    # Accept a self-signed serving certificate that is itself in the CA bundle.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if config.certificate is not None:
        context.load_cert_chain(config.certificate, config.key)
    return context


class KubeletWebSocket(WebSocketConnection):
    """The connection to the kubelet, as a `WebSocket`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        super().__init__(socket)
        self.raw: TransportSocket = socket.get_extra_info("socket")
        """The TCP socket below TLS."""

    async def close(self, code: int, reason: bytes = b"") -> None:
        """Close the WebSocket; reset the connection if cancelled."""
        try:
            await super().close(code, reason)
        except asyncio.CancelledError:
            # Unsent data would otherwise delay the close of the connection.
            with suppress(OSError):
                self.raw.setsockopt(SOL_SOCKET, SO_LINGER, _ZERO_LINGER)
            raise


async def _check_upgrade(response: ClientResponse) -> None:
    """Raise KubeletError with the body of a refused upgrade, which aiohttp would discard."""
    if "Upgrade" in response.request_info.headers and response.status != 101:
        body = await read_error_body(response)
        response.close()
        raise KubeletError(response.status, body)


async def read_error_body(response: ClientResponse) -> str:
    """Return the error body of a response, truncated."""
    body = await response.content.read(_MAX_ERROR_BYTES)
    return body.decode(errors="replace")


def _tls_error(error: ssl.SSLError) -> str:
    """Return Go's text for a failed certificate check; an untrusted CA is the usual mistake."""
    if getattr(error, "verify_code", 0) in _UNKNOWN_AUTHORITY_CODES:
        return "x509: certificate signed by unknown authority"
    return f"x509: {getattr(error, 'verify_message', '') or error}"


def _connection_error(error: Exception, address: KubeletAddress, prefix: str) -> StatusError:
    """Translate a connection error into a StatusError, in upstream's words where they exist."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLError() as why):
            return StatusError(
                500, "", f"{prefix}tls: failed to verify certificate: {_tls_error(why)}"
            )
        case aiohttp.ConnectionTimeoutError():
            return StatusError(504, "Timeout", f"{prefix}dial tcp {address}: i/o timeout")
        case TimeoutError():
            return StatusError(504, "Timeout", f"{prefix}timeout awaiting response headers")
        case aiohttp.ClientConnectorSSLError():
            return StatusError(500, "", f"{prefix}tls: {error}")
        case aiohttp.ClientConnectorError(os_error=os_error):
            number = os_error.errno
            reason = str(os_error) if number is None else os.strerror(number).lower()
            return StatusError(500, "", f"{prefix}dial tcp {address}: connect: {reason}")
    return StatusError(500, "", f"{prefix}{error or type(error).__name__}")
