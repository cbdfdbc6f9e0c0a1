"""The channel protocol: streams share one WebSocket, each message starts with a channel number.

Upstream: wsstream/conn.go, streaming v0.36.4; remotecommand/{constants,exec}.go, cri-streaming
v0.36.4.
"""

from enum import IntEnum

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.runtime.streams import OutputStream, StreamOptions, TerminalSize

V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"
PROTOCOLS = (V5, V4)
"""Supported subprotocols, the preferred one first. v4 cannot signal the end of stdin."""

_MAX_TERMINAL_SIDE = 2**16 - 1
"""Terminals count their columns and rows in 16 bits."""


class ChannelNumber(IntEnum):
    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4
    CLOSE = 255


class StdinData(msgspec.Struct, frozen=True):
    """Data for the stdin of the process."""

    data: bytes


class StdinClosed(msgspec.Struct, frozen=True):
    """The client closed the stdin channel."""


class Resize(msgspec.Struct, frozen=True):
    """A new size of the terminal."""

    size: TerminalSize


class ProtocolError(msgspec.Struct, frozen=True):
    """A violation of the protocol; the connection must be closed."""

    reason: str


ClientMessage = StdinData | StdinClosed | Resize | ProtocolError


class _Size(msgspec.Struct, frozen=True, rename="pascal"):
    width: int
    height: int


def choose_protocol(offered: str) -> str | None:
    """The preferred protocol of a Sec-WebSocket-Protocol header; None if none is supported."""
    names = {name.strip() for name in offered.split(",")}
    return next((protocol for protocol in PROTOCOLS if protocol in names), None)


def read_message(data: bytes, protocol: str) -> ClientMessage | None:
    """Decode a message of the client; None for one that is ignored."""
    if not data:
        return None
    number, rest = data[0], data[1:]
    if number == ChannelNumber.STDIN:
        return StdinData(rest) if rest else None
    if number == ChannelNumber.RESIZE:
        return _resize(rest)
    if number == ChannelNumber.CLOSE and protocol == V5:
        return _close(rest)
    # Upstream ignores messages on unused channels, too.
    return None


def _resize(rest: bytes) -> Resize | None:
    try:
        size = decode_json(rest, _Size)
    except msgspec.DecodeError:
        return None
    if not (0 <= size.width <= _MAX_TERMINAL_SIDE and 0 <= size.height <= _MAX_TERMINAL_SIDE):
        return None
    return Resize(TerminalSize(columns=size.width, rows=size.height))


def _close(rest: bytes) -> StdinClosed | ProtocolError | None:
    if len(rest) != 1 or rest[0] > ChannelNumber.RESIZE:
        return ProtocolError("the byte after 255 must be one channel number from 0 to 4")
    return StdinClosed() if rest[0] == ChannelNumber.STDIN else None


def output_message(channel: OutputStream, data: bytes) -> bytes:
    number = ChannelNumber.STDOUT if channel is OutputStream.STDOUT else ChannelNumber.STDERR
    return bytes([number]) + data


def is_requested(channel: OutputStream, request: StreamOptions) -> bool:
    return request.stdout if channel is OutputStream.STDOUT else request.stderr


def hello_frame(request: StreamOptions) -> bytes:
    """The empty first message, which tells the client that it is connected."""
    if request.stdout:
        return bytes([ChannelNumber.STDOUT])
    return bytes([ChannelNumber.STDERR if request.stderr else ChannelNumber.ERROR])


def exit_message(code: int) -> bytes:
    if code == 0:
        return _status_message(status="Success")
    return _status_message(
        status="Failure",
        message=f"command terminated with non-zero exit code: exit status {code}",
        reason="NonZeroExitCode",
        details={"causes": [{"reason": "ExitCode", "message": str(code)}]},
    )


def failure_message(reason: str) -> bytes:
    """The final message for a session that failed."""
    return _status_message(
        status="Failure",
        message=f"Internal error occurred: {reason}",
        reason="InternalError",
        details={"causes": [{"message": reason}]},
        code=500,
    )


def _status_message(**fields: object) -> bytes:
    """A message on the error channel: a `v1.Status`, whose metadata is present and empty."""
    return bytes([ChannelNumber.ERROR]) + msgspec.json.encode({"metadata": {}, **fields})
