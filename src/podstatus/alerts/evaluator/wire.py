"""The protocol between the agent and the evaluator process, over one socket.

A frame is a length of four bytes and a value in MessagePack. The agent sends one request at a time;
the child responds. The rules being evaluated are recorded in a shared memory page, which can be
read after the process died.
"""

import socket
import struct
from collections.abc import Sequence
from mmap import mmap

import msgspec

from podstatus.alerts.evaluator.ports import EvaluationResult, RuleCheck, SubjectFacts
from podstatus.alerts.model import Rule

MAX_FRAME = 32 * 2**20
"""Maximum size of a frame, in bytes."""
PAGE_BYTES = 4096
_LENGTH = struct.Struct("<I")
_HEAD = struct.Struct("<II")


class CheckRequest(msgspec.Struct, frozen=True, tag=True):
    """Compile a rule and run it on trial inputs; the response is a RuleCheck."""

    rule: Rule


class LoadRequest(msgspec.Struct, frozen=True, tag=True):
    """Load these rules, once; the response is RulesLoaded. Only EvaluateRequest may follow."""

    rules: tuple[Rule, ...]
    isolated: bool = False
    """Whether each rule is evaluated by itself, to find the slow one."""


class EvaluateRequest(msgspec.Struct, frozen=True, tag=True):
    """Evaluate all rules; the response is EvaluationResult or EvaluatorEnded."""

    subjects: tuple[SubjectFacts, ...]
    disabled: frozenset[str] = frozenset()
    """Rules to skip."""
    isolated: bool = False
    """As in LoadRequest."""


class EncodedEvaluateRequest(msgspec.Struct, frozen=True, tag="EvaluateRequest"):
    """An EvaluateRequest whose subjects are encoded already."""

    subjects: Sequence[msgspec.Raw]
    disabled: frozenset[str] = frozenset()
    isolated: bool = False


def check_fields(rule: Rule) -> list[str]:
    """Return the fields of a rule that are checked, by their numbers in the shared page."""
    return ["expr", *(f"annotations.{name}" for name in rule.annotations)]


class RulesLoaded(msgspec.Struct, frozen=True, tag=True):
    """All rules have been compiled."""


class EvaluatorEnded(msgspec.Struct, frozen=True, tag=True):
    """The fork that evaluated rules died; the next one is running."""

    code: int
    """Exit code, negative for a signal."""
    rules: tuple[int, ...]
    """Numbers of the rules that it was evaluating; empty between requests."""


EvaluatorRequest = CheckRequest | LoadRequest | EvaluateRequest
encode = msgspec.msgpack.Encoder().encode
# Created on import: creating decoders in several threads at once crashes the process.
request_decoder = msgspec.msgpack.Decoder(EvaluatorRequest)
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
    """The peer closed the channel or sent an invalid frame."""


def send_frame(channel: socket.socket, content: bytes) -> None:
    """Send a frame. Raises OSError."""
    channel.sendall(_LENGTH.pack(len(content)) + content)


def receive_frame(channel: socket.socket) -> bytearray:
    """Receive the next frame. Raises ChannelClosedError and OSError."""
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
    """The numbers of the rules being evaluated; written by one process, read by another."""

    def __init__(self, page: mmap) -> None:
        self._page = page

    def write(self, count: int, rules: Sequence[int]) -> None:
        """Set the rules being evaluated; `count` changes with each evaluation."""
        _HEAD.pack_into(self._page, 0, count & 0xFFFFFFFF, len(rules))
        struct.pack_into(f"<{len(rules)}I", self._page, _HEAD.size, *rules)

    def pop(self) -> tuple[int, ...]:
        """Return the rules that a dead process was evaluating, and clear them."""
        rules = self.read()
        self.write(self.count() + 1, ())
        return rules

    def count(self) -> int:
        return int(_HEAD.unpack_from(self._page, 0)[0])

    def read(self) -> tuple[int, ...]:
        """Return the rules being evaluated; empty if the process does something else."""
        _, length = _HEAD.unpack_from(self._page, 0)
        length = min(length, (PAGE_BYTES - _HEAD.size) // 4)
        return struct.unpack_from(f"<{length}I", self._page, _HEAD.size)
