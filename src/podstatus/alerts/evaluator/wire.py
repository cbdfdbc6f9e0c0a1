"""What an agent and the process that evaluates its rules send each other, over one socket.

A frame is its length, four bytes, and a value in MessagePack. The agent asks, one thing at a time;
the other answers. What is being evaluated stands in a page of memory that both of them see: there
it can be read after the process is dead.
"""

import socket
import struct
from collections.abc import Sequence
from mmap import mmap

import msgspec

from podstatus.alerts.evaluator.ports import About, Evaluated, RuleCheck
from podstatus.alerts.model import Rule

MAX_FRAME = 32 * 2**20
"""Bytes."""
PAGE_BYTES = 4096
_LENGTH = struct.Struct("<I")
_HEAD = struct.Struct("<II")


class Check(msgspec.Struct, frozen=True, tag=True):
    """Compile a rule and try it; the answer is a RuleCheck."""

    rule: Rule


class Load(msgspec.Struct, frozen=True, tag=True):
    """Evaluate these rules from now on, and do nothing else; the answer is Loaded."""

    rules: tuple[Rule, ...]
    apart: bool = False
    """Whether each rule is asked by itself, to find out which one takes too long."""


class Evaluate(msgspec.Struct, frozen=True, tag=True):
    """Evaluate all rules; the answer is Evaluated, or Ended."""

    subjects: tuple[About, ...]
    off: frozenset[str] = frozenset()
    """Rules that are left out."""
    apart: bool = False
    """As of Load."""


class EncodedEvaluate(msgspec.Struct, frozen=True, tag="Evaluate"):
    """The same, with subjects that are encoded already."""

    subjects: Sequence[msgspec.Raw]
    off: frozenset[str] = frozenset()
    apart: bool = False


def check_fields(rule: Rule) -> list[str]:
    """The fields of a rule that is being checked, by the numbers that stand in the page."""
    return ["expr", *(f"annotations.{name}" for name in rule.annotations)]


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """All rules are compiled."""


class Ended(msgspec.Struct, frozen=True, tag=True):
    """What evaluated rules has ended, and another one is there by now."""

    code: int
    """Its exit code, negative if by a signal."""


Request = Check | Load | Evaluate
encode = msgspec.msgpack.Encoder().encode
# Made when this is imported: threads that make decoders at the same time end the process.
request_decoder = msgspec.msgpack.Decoder(Request)
check_decoder: msgspec.msgpack.Decoder[RuleCheck | Ended] = msgspec.msgpack.Decoder(
    RuleCheck | Ended
)
load_decoder: msgspec.msgpack.Decoder[Loaded | Ended] = msgspec.msgpack.Decoder(Loaded | Ended)
evaluate_decoder: msgspec.msgpack.Decoder[Evaluated | Ended] = msgspec.msgpack.Decoder(
    Evaluated | Ended
)


class ClosedError(Exception):
    """The other side is gone, or sends no frames."""


def send_frame(channel: socket.socket, content: bytes) -> None:
    """Send it all. Raises OSError."""
    channel.sendall(_LENGTH.pack(len(content)) + content)


def receive_frame(channel: socket.socket) -> bytearray:
    """The next frame. Raises ClosedError, and OSError."""
    (length,) = _LENGTH.unpack(_receive(channel, _LENGTH.size))
    if length > MAX_FRAME:
        raise ClosedError(f"a frame of {length} bytes")
    return _receive(channel, length)


def _receive(channel: socket.socket, length: int) -> bytearray:
    content = bytearray(length)
    view, at = memoryview(content), 0
    while at < length:
        count = channel.recv_into(view[at:])
        if count == 0:
            raise ClosedError("end of file")
        at += count
    return content


class Progress:
    """Which rules are evaluated, by their numbers; written by one process, read by another."""

    def __init__(self, page: mmap) -> None:
        self._page = page

    def write(self, count: int, rules: Sequence[int]) -> None:
        """These are, from now on; `count` changes with each evaluation."""
        _HEAD.pack_into(self._page, 0, count & 0xFFFFFFFF, len(rules))
        struct.pack_into(f"<{len(rules)}I", self._page, _HEAD.size, *rules)

    def count(self) -> int:
        """The number of the current evaluation."""
        return int(_HEAD.unpack_from(self._page, 0)[0])

    def read(self) -> tuple[int, ...]:
        """The rules that are being evaluated; none: it does something else."""
        _, length = _HEAD.unpack_from(self._page, 0)
        length = min(length, (PAGE_BYTES - _HEAD.size) // 4)
        return struct.unpack_from(f"<{length}I", self._page, _HEAD.size)
