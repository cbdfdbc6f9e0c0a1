"""The messages of exec and attach: what clients send, and the results that they get.

Upstream: wsstream/conn.go, streaming v0.36.4; remotecommand/{constants,exec}.go, cri-streaming
v0.36.4.
"""

import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.encoding.channel_frames import V5, ChannelNumber, decode_frame, status_message
from podstatus.runtime.streams import OutputStream, StreamOptions, TerminalSize

_MAX_TERMINAL_SIDE = 2**16 - 1
"""Terminals count their columns and rows in 16 bits."""


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


def read_message(frame: bytes | str, protocol: str) -> ClientMessage | None:
    """Decode a message of the client; None for one that is ignored."""
    data = decode_frame(frame, protocol)
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


def exit_message(code: int, protocol: str) -> bytes:
    """The final message for a process that exited; empty if the protocol reports no success."""
    if code == 0:
        return status_message({"metadata": {}, "status": "Success"}, protocol)
    return status_message(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        },
        protocol,
    )


def failure_message(reason: str, protocol: str) -> bytes:
    """The final message for a session that failed."""
    return status_message(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {reason}",
            "reason": "InternalError",
            "details": {"causes": [{"message": reason}]},
            "code": 500,
        },
        protocol,
    )
