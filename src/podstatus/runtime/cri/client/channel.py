"""A gRPC channel to the socket of a container runtime.

The channel connects by itself when a call is made, and again after the runtime was restarted; a
call while there is no connection fails at once. grpcio is imported on first use, since it is large.
"""

import importlib
from typing import Any, Final, TypeVar

from podstatus.kube.encoding.protobuf.wire import MalformedMessageError
from podstatus.runtime.cri.api.codec import CODEC, CriMessage
from podstatus.runtime.cri.client.errors import CriCallError, call_error

T = TypeVar("T", bound=CriMessage)
_SOCKET_SCHEME: Final = "unix://"
_MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Upstream: maxMsgSize, remote_runtime.go."""
OPTIONS: Final = (
    # The name of the socket would be sent as the authority, which servers reject.
    ("grpc.default_authority", "localhost"),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


class EndpointError(ValueError):
    """The endpoint is not the address of a unix socket."""


def socket_address(endpoint: str) -> str:
    """Return the address that gRPC connects to. Raises EndpointError.

    A path without a scheme is a socket, too, as upstream: parseEndpointWithFallbackProtocol.
    """
    path = endpoint.removeprefix(_SOCKET_SCHEME)
    if not path.startswith("/"):
        raise EndpointError(
            f"{endpoint} is not a unix socket; write unix:///run/containerd/containerd.sock"
        )
    return f"unix:{path}"


class GrpcMissingError(Exception):
    """grpcio is not installed; the message says how to install it."""


class CriChannel:
    """Calls of one service. Not thread-safe: for one event loop."""

    def __init__(self, endpoint: str) -> None:
        """Does not connect yet. Raises EndpointError, GrpcMissingError."""
        self._endpoint = endpoint
        self._address = socket_address(endpoint)
        self._grpc = import_grpc("grpc.aio")
        self._channel: Any = None
        """Belongs to the event loop of the first call."""

    async def call(self, service: str, request: CriMessage, response: type[T], seconds: float) -> T:
        """Call the method that the request is named after.

        Raises RuntimeDownError if there is no answer within `seconds`, CriCallError if it is an
        error.
        """
        method = type(request).__name__.removeprefix("Cri").removesuffix("Request")
        if self._channel is None:
            self._channel = self._grpc.insecure_channel(self._address, options=OPTIONS)
        call = self._channel.unary_unary(f"/runtime.v1.{service}/{method}")
        try:
            body: bytes = await call(CODEC.encode(request), timeout=seconds)
            return CODEC.decode(body, response)
        except self._grpc.AioRpcError as error:
            code, details = error.code().name, error.details() or ""
            raise call_error(self._endpoint, method, code, details, seconds=seconds) from error
        except MalformedMessageError as error:
            raise CriCallError(method, "INTERNAL", f"malformed response: {error}") from error

    async def close(self) -> None:
        """Close the connection; calls under way fail."""
        if self._channel is not None:
            await self._channel.close()


def import_grpc(module: str) -> Any:
    """Import a module of grpcio. Raises GrpcMissingError."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise GrpcMissingError(
            "the CRI runtime needs grpcio, which is not installed: pip install 'podstatus[cri]'"
        ) from error
