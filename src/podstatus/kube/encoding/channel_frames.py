"""Channel protocols: the streams of exec and attach share one WebSocket.

A message is a channel number and data. It is a binary frame, or a text frame with the number as a
digit and the data in base64. The last message is a v1.Status on the error channel; before v4 it is
the text of an error, and nothing after a success.

Upstream: wsstream/conn.go, streaming v0.36.4; createWebSocketStreams and v1WriteStatusFunc,
remotecommand, cri-streaming v0.36.4.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from enum import IntEnum

import msgspec

V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"
V4_BASE64 = "v4.base64.channel.k8s.io"
V1 = "channel.k8s.io"
V1_BASE64 = "base64.channel.k8s.io"
UNNAMED = ""
"""The protocol of a client that offers none: as V1."""

PROTOCOLS = (V5, V4, V4_BASE64, V1, V1_BASE64)
"""The supported subprotocols, except for UNNAMED. Only v5 can signal the end of stdin."""
_BASE64 = (V4_BASE64, V1_BASE64)
_WITH_STATUS = (V5, V4, V4_BASE64)
_ZERO = ord("0")


class ChannelNumber(IntEnum):
    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4
    CLOSE = 255


def choose_protocol(offered: Sequence[str]) -> str | None:
    """Return the first offered protocol that is supported, UNNAMED if none is offered."""
    if not offered:
        return UNNAMED
    return next((protocol for protocol in offered if protocol in PROTOCOLS), None)


def encode_frame(message: bytes, protocol: str) -> bytes | str:
    """Return the WebSocket frame of a message: text for the base64 protocols."""
    if protocol not in _BASE64:
        return message
    return chr(_ZERO + message[0]) + base64.b64encode(message[1:]).decode()


def decode_frame(frame: bytes | str, protocol: str) -> bytes:
    """Return the message of a WebSocket frame; empty if the data is not base64."""
    data = frame.encode() if isinstance(frame, str) else frame
    if protocol not in _BASE64 or not data:
        return data
    try:
        # As in Go, line breaks are ignored, and nothing else.
        content = base64.b64decode(data[1:].translate(None, b"\r\n"), validate=True)
    except binascii.Error:
        return b""
    return bytes([(data[0] - _ZERO) % 256]) + content


def status_message(status: Mapping[str, object], protocol: str) -> bytes:
    """Return the final message for a v1.Status; empty if the protocol reports no success."""
    if protocol in _WITH_STATUS:
        content = msgspec.json.encode(status)
    elif status["status"] == "Success":
        return b""
    else:
        content = str(status["message"]).encode()
    return bytes([ChannelNumber.ERROR]) + content
