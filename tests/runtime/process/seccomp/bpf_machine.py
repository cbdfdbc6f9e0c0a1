"""An interpreter of seccomp programs: what a program returns for a system call."""

import struct
from collections.abc import Sequence

KILL_PROCESS, ERRNO, ALLOW = 0x8000_0000, 0x0005_0000, 0x7FFF_0000


def returned(program: bytes, audit: int, number: int, arguments: Sequence[int] = ()) -> int:
    """Return SECCOMP_RET_…, with the errno in the low bits."""
    words = (*(argument % 2**64 for argument in arguments), *(0,) * 6)[:6]
    data = struct.pack(
        "<iIQ6Q", struct.unpack("<i", struct.pack("<I", number))[0], audit, 0, *words
    )
    code = list(struct.iter_unpack("<HBBI", program))
    at = accumulator = 0
    while True:
        operation, if_true, if_false, operand = code[at]
        at += 1
        match operation:
            case 0x20:  # load
                (accumulator,) = struct.unpack_from("<I", data, operand)
            case 0x54:  # and
                accumulator &= operand
            case 0x05:  # jump
                at += operand
            case 0x15:  # jump if equal
                at += if_true if accumulator == operand else if_false
            case 0x35:  # jump if at least
                at += if_true if accumulator >= operand else if_false
            case 0x06:  # return
                return int(operand)
            case _:
                raise AssertionError(f"instruction {at - 1}: the kernel refuses {operation:#x}")
