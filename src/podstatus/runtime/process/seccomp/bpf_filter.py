"""Assembles a seccomp profile into a classic BPF program.

    load the architecture; kill the process if it is another one
    load the number of the system call
    binary search for the range of numbers that share a decision
    the decision: return, or check an argument first

A 32-bit process has another architecture. The x32 ABI of x86_64 has the same architecture, and
numbers above all known ones: ENOSYS, as on a kernel without x32.

Upstream: Documentation/userspace-api/seccomp_filter.rst, linux/seccomp.h, linux/filter.h.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

import msgspec

from podstatus.runtime.process.seccomp.default_profile import (
    NOT_IMPLEMENTED,
    NOT_PERMITTED,
    Allowed,
    ArgumentFilter,
    Decision,
    Denied,
)

# Offsets in struct seccomp_data; the arguments are 64-bit words, both architectures little-endian.
_NUMBER, _ARCHITECTURE, _ARGUMENTS, _WORD = 0, 4, 16, 8
_LOAD, _AND = 0x20, 0x54
_JUMP, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST = 0x05, 0x15, 0x35
_RETURN = 0x06
_KILL_PROCESS, _ERRNO, _ALLOW = 0x8000_0000, 0x0005_0000, 0x7FFF_0000
_MAX_JUMP = 255
"""Maximum number of instructions that a conditional jump can skip."""
MAX_INSTRUCTIONS: Final = 4096
"""BPF_MAXINSNS of linux/bpf_common.h."""


class _Instruction(msgspec.Struct, frozen=True):
    code: int
    operand: int
    if_true: int = 0
    """Number of instructions to skip."""
    if_false: int = 0


class _Range(msgspec.Struct, frozen=True, kw_only=True):
    """System calls from this number up to the next range."""

    first: int
    decision: Decision


_Code = list[_Instruction]


def assemble(audit_architecture: int, profile: Mapping[int, Decision]) -> bytes:
    """Return the program as an array of struct sock_filter.

    Numbers missing from the profile are denied with EPERM, those above it with ENOSYS.
    """
    code = [
        _Instruction(_LOAD, _ARCHITECTURE),
        _Instruction(_JUMP_IF_EQUAL, audit_architecture, 1, 0),
        _Instruction(_RETURN, _KILL_PROCESS),
        _Instruction(_LOAD, _NUMBER),
        *_search(tuple(_ranges(profile))),
    ]
    return b"".join(
        struct.pack("<HBBI", each.code, each.if_true, each.if_false, each.operand) for each in code
    )


def _ranges(profile: Mapping[int, Decision]) -> Iterator[_Range]:
    last = max(profile)
    every = [profile.get(number, NOT_PERMITTED) for number in range(last + 1)]
    first = 0
    for decision, same in groupby(every):
        yield _Range(first=first, decision=decision)
        first += len(list(same))
    yield _Range(first=last + 1, decision=NOT_IMPLEMENTED)


def _search(ranges: Sequence[_Range]) -> _Code:
    if len(ranges) == 1:
        return _decision(ranges[0].decision)
    middle = len(ranges) // 2
    below, above = _search(ranges[:middle]), _search(ranges[middle:])
    first = ranges[middle].first
    if len(below) <= _MAX_JUMP:
        return [_Instruction(_JUMP_IF_AT_LEAST, first, len(below), 0), *below, *above]
    far = _Instruction(_JUMP, len(below))
    return [_Instruction(_JUMP_IF_AT_LEAST, first, 0, 1), far, *below, *above]


def _decision(decision: Decision) -> _Code:
    if not isinstance(decision, ArgumentFilter):
        return [_return(decision)]
    matching = [
        _Instruction(_JUMP_IF_EQUAL, value, left)
        for left, value in zip(range(len(decision.values), 0, -1), decision.values, strict=True)
    ]
    return [
        _Instruction(_LOAD, _ARGUMENTS + _WORD * decision.argument),
        _Instruction(_AND, decision.mask),
        *matching,
        _return(decision.others),
        _return(decision.matching),
    ]


def _return(decision: Allowed | Denied) -> _Instruction:
    match decision:
        case Allowed():
            return _Instruction(_RETURN, _ALLOW)
        case Denied(error_number=number):
            return _Instruction(_RETURN, _ERRNO | number)
