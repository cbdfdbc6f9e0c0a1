"""gRPC health check (`grpc.health.v1.Health/Check`).

Needs the extra `grpc`. The two small messages are encoded and decoded here, without protobuf.

    HealthCheckRequest   { string service = 1; }
    HealthCheckResponse  { ServingStatus status = 1; }   UNKNOWN, SERVING, NOT_SERVING, …

Upstream: Probe, pkg/probe/grpc/grpc.go v1.36.4.
"""

import asyncio
import importlib
from typing import Any

from podstatus.kube.scalars.duration import format_duration
from podstatus.probes.decide.check_result import CheckError, CheckResult
from podstatus.probes.decide.http_target import USER_AGENT
from podstatus.probes.resolver import join_host_port

_METHOD = "/grpc.health.v1.Health/Check"
_STATUSES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_SERVING = 1
_STATUS_FIELD, _SERVICE_FIELD = b"\x08", b"\x0a"
_OPTIONS = (
    ("grpc.primary_user_agent", USER_AGENT),
    ("grpc.enable_http_proxy", 0),
    # A new connection for each check.
    ("grpc.use_local_subchannel_pool", 1),
    # Retry quickly, so that a starting server is reached within the timeout.
    ("grpc.initial_reconnect_backoff_ms", 100),
)


async def check_grpc(host: str, port: int, service: str, *, seconds: float) -> CheckResult:
    """Query the health of a service; an empty name means the whole server.

    Raises CheckError if grpcio is not installed or the response is invalid.
    """
    library = _import_grpc()
    address, timeout = join_host_port(host, port), format_duration(seconds)
    async with library.insecure_channel(address, options=_OPTIONS) as channel:
        try:
            async with asyncio.timeout(seconds):
                await channel.channel_ready()
                response = await channel.unary_unary(_METHOD)(_request(service))
        except TimeoutError:
            return CheckResult(success=False, output=_timeout_message(channel, address, timeout))
        except library.AioRpcError as error:
            return CheckResult(success=False, output=_rpc_error_message(error))
    return _result(_status(response))


def _import_grpc() -> Any:
    """Import grpc.aio on first use, since it is large."""
    try:
        importlib.import_module("grpc")
        return importlib.import_module("grpc.aio")
    except ImportError as error:
        raise CheckError(
            "gRPC checks need grpcio, which is not installed: pip install 'podstatus[grpc]'"
        ) from error


def _timeout_message(channel: Any, address: str, timeout: str) -> str:
    ready = importlib.import_module("grpc").ChannelConnectivity.READY
    if channel.get_state() is ready:
        return f"timeout: health rpc did not complete within {timeout}"
    return (
        f'timeout: failed to connect service "{address}" within {timeout}: '
        "context deadline exceeded"
    )


def _rpc_error_message(error: Any) -> str:
    if error.code().name == "UNIMPLEMENTED":
        return (
            "error: this server does not implement the grpc health protocol "
            f"(grpc.health.v1.Health): {error.details()}"
        )
    code = error.code().name.title().replace("_", "")
    return f"error: health rpc probe failed: rpc error: code = {code} desc = {error.details()}"


def _result(status: int) -> CheckResult:
    if status == _SERVING:
        return CheckResult(success=True, output="service healthy")
    name = _STATUSES[status] if status < len(_STATUSES) else str(status)
    return CheckResult(success=False, output=f'service unhealthy (responded with "{name}")')


def _request(service: str) -> bytes:
    name = service.encode()
    return _SERVICE_FIELD + _varint(len(name)) + name if name else b""


def _varint(value: int) -> bytes:
    """A protobuf varint: 7 bits per byte, low bits first, high bit set if more bytes follow."""
    low, rest = value & 0x7F, value >> 7
    return bytes((low | 0x80,)) + _varint(rest) if rest else bytes((low,))


def _status(response: bytes) -> int:
    """The status field; 0 if it is missing. Raises CheckError."""
    if not response:
        return 0
    digits = response[1:]
    is_number = bool(digits) and all(b & 0x80 for b in digits[:-1]) and digits[-1] < 0x80
    if response[:1] != _STATUS_FIELD or not is_number:
        raise CheckError(f"response is not a HealthCheckResponse: {response[:32]!r}")
    return sum((byte & 0x7F) << (7 * index) for index, byte in enumerate(digits))
