"""Irrevocable restrictions of a command: no_new_privs, capabilities, keyring, seccomp."""

import ctypes
import errno
import os
import struct

_SET_SECCOMP, _DROP_FROM_BOUNDING_SET, _SET_NO_NEW_PRIVILEGES = 22, 24, 38
_FILTER_MODE = 2
_INSTRUCTION_BYTES = 8
_CAPABILITIES_V3 = 0x20080522
_CAPABILITIES, _WORD = 64, 32
_DROP_FINISHED_ERRNOS = (errno.EINVAL, errno.EPERM)
"""EINVAL: the kernel has fewer capabilities. EPERM: no CAP_SETPCAP; no_new_privs must do."""
_JOIN_SESSION_KEYRING = 1
_KEYCTL = {"x86_64": 250, "aarch64": 219}
"""The C library has no wrapper for this system call."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    """The C type `struct sock_fprog` of linux/filter.h."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def set_no_new_privileges() -> None:
    """Set no_new_privs: no program executed later gains privileges, such as by set-user-ID."""
    _prctl(_SET_NO_NEW_PRIVILEGES, ctypes.c_ulong(1))


def install_seccomp_filter(program: bytes) -> None:
    """Install a BPF filter for all later system calls, inherited by executed programs."""
    prepared = _Program(len(program) // _INSTRUCTION_BYTES, program)
    _prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER_MODE), ctypes.byref(prepared))


def join_new_keyring() -> None:
    """Join a new session keyring, if the kernel supports it and the user's quota allows it.

    The seccomp filter denies all keyring calls; this covers processes before the filter.
    """
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        _libc.syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None)


def limit_inherited_capabilities(numbers: frozenset[int]) -> None:
    """Restrict the capabilities of what bubblewrap executes; bubblewrap itself keeps all it has.

    A program executed by root gets the inheritable capabilities and those of the bounding set;
    bubblewrap sets the inheritable ones to those of the command.
    """
    _, permitted, _ = _capabilities()
    _set_capabilities(permitted, permitted, permitted)
    drop_bounding_set(numbers)


def set_capabilities(numbers: frozenset[int]) -> None:
    """Set exactly these capabilities, as far as they are permitted."""
    _, permitted, _ = _capabilities()
    capabilities = permitted & sum(1 << number for number in numbers)
    _set_capabilities(capabilities, capabilities, capabilities)


def drop_bounding_set(numbers: frozenset[int]) -> None:
    """Drop all other capabilities from the bounding set; current capabilities stay."""
    for number in range(_CAPABILITIES):
        if number not in numbers:
            try:
                _prctl(_DROP_FROM_BOUNDING_SET, ctypes.c_ulong(number))
            except OSError as error:
                if error.errno not in _DROP_FINISHED_ERRNOS:
                    raise
                return


def _capabilities() -> tuple[int, int, int]:
    """Return the effective, permitted and inheritable sets as bit masks."""
    data = ctypes.create_string_buffer(6 * 4)
    _check(_libc.capget(struct.pack("Ii", _CAPABILITIES_V3, 0), data), "capget")
    words = struct.unpack("6I", data.raw)
    effective, permitted, inheritable = (
        low | high << _WORD for low, high in zip(words[:3], words[3:], strict=True)
    )
    return effective, permitted, inheritable


def _set_capabilities(*sets: int) -> None:
    low, high = ([each >> shift & (1 << _WORD) - 1 for each in sets] for shift in (0, _WORD))
    header = struct.pack("Ii", _CAPABILITIES_V3, 0)
    _check(_libc.capset(header, struct.pack("6I", *low, *high)), "capset")


def _prctl(option: int, *values: object) -> None:
    # All five arguments: some options require unused ones to be zero.
    zeros = (ctypes.c_ulong(0),) * (4 - len(values))
    _check(_libc.prctl(ctypes.c_int(option), *values, *zeros), f"prctl {option}")


def _check(result: int, call: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
