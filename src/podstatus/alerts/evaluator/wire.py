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

from podstatus.alerts.evaluator.ports import EvaluationResult, RuleCheck, SubjectFacts
from podstatus.alerts.model import Rule

MAX_FRAME = 32 * 2**20
"""Bytes."""
PAGE_BYTES = 4096
_LENGTH = struct.Struct("<I")
_HEAD = struct.Struct("<II")


class CheckRequest(msgspec.Struct, frozen=True, tag=True):
    """Compile a rule and try it; the answer is a RuleCheck."""

    rule: Rule


class LoadRequest(msgspec.Struct, frozen=True, tag=True):
    """Evaluate these rules from now on, and do nothing else; the answer is Loaded."""

    rules: tuple[Rule, ...]
    isolated: bool = False
    """Whether each rule is asked by itself, to find out which one takes too long."""


class EvaluateRequest(msgspec.Struct, frozen=True, tag=True):
    """Evaluate all rules; the answer is Evaluated, or Ended."""

    subjects: tuple[SubjectFacts, ...]
    disabled: frozenset[str] = frozenset()
    """Rules that are left out."""
    isolated: bool = False
    """As of Load."""


class EncodedEvaluateRequest(msgspec.Struct, frozen=True, tag="EvaluateRequest"):
    """The same, with subjects that are encoded already."""

    subjects: Sequence[msgspec.Raw]
    disabled: frozenset[str] = frozenset()
    isolated: bool = False


def check_fields(rule: Rule) -> list[str]:
    """The fields of a rule that is being checked, by the numbers that stand in the page."""
    return ["expr", *(f"annotations.{name}" for name in rule.annotations)]


class RulesLoaded(msgspec.Struct, frozen=True, tag=True):
    """All rules are compiled."""


class EvaluatorEnded(msgspec.Struct, frozen=True, tag=True):
    """What evaluated rules has ended, and another one is there by now."""

    code: int
    """Its exit code, negative if by a signal."""


WorkerRequest = CheckRequest | LoadRequest | EvaluateRequest
encode = msgspec.msgpack.Encoder().encode
# Made when this is imported: threads that make decoders at the same time end the process.
request_decoder = msgspec.msgpack.Decoder(WorkerRequest)
check_decoder: msgspec.msgpack.Decoder[RuleCheck | EvaluatorEnded] = msgspec.msgpack.Decoder(
    RuleCheck | EvaluatorEnded
)
load_decoder: msgspec.msgpack.Decoder[RulesLoaded | EvaluatorEnded] = msgspec.msgpack.Decoder(
    RulesLoaded | EvaluatorEnded
)
evaluate_decoder: msgspec.msgpack.Decoder[EvaluationResult | EvaluatorEnded] = (
    msgspec.msgpack.Decoder(EvaluationResult | EvaluatorEnded)
)


class ChannelClosedError(Exception):
    """The other side is gone, or sends no frames."""


def send_frame(channel: socket.socket, content: bytes) -> None:
    """Send it all. Raises OSError."""
    channel.sendall(_LENGTH.pack(len(content)) + content)


def receive_frame(channel: socket.socket) -> bytearray:
    """The next frame. Raises ClosedError, and OSError."""
    (length,) = _LENGTH.unpack(_receive(channel, _LENGTH.size))
    if length > MAX_FRAME:
        raise ChannelClosedError(f"a frame of {length} bytes")
    return _receive(channel, length)


def _receive(channel: socket.socket, length: int) -> bytearray:
    content = bytearray(length)
    view, at = memoryview(content), 0
    while at < length:
        count = channel.recv_into(view[at:])
        if count == 0:
            raise ChannelClosedError("end of file")
        at += count
    return content


class EvaluationProgress:
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
