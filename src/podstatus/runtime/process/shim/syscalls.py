"""System calls that Python's library lacks; the `nsenter` program uses them, too.

Restrictions of a process (no_new_privs, capabilities, seccomp) cannot be revoked.
"""

import ctypes
import errno
import os
import signal
import struct

_SET_PARENT_DEATH_SIGNAL, _SET_DUMPABLE, _SET_NAME, _SET_CHILD_SUBREAPER = 1, 4, 15, 36
_SET_SECCOMP, _DROP_FROM_BOUNDING_SET, _SET_NO_NEW_PRIVILEGES = 22, 24, 38
_FILTER_MODE = 2
_INSTRUCTION_BYTES = 8
_CAPABILITIES_V3 = 0x20080522
_CAPABILITIES, _WORD = 64, 32
_DROP_FINISHED_ERRNOS = (errno.EINVAL, errno.EPERM)
"""EINVAL: the kernel has fewer capabilities. EPERM: no CAP_SETPCAP; no_new_privs must do."""
_JOIN_SESSION_KEYRING = 1
_NEW_IPC_NAMESPACE = 0x08000000
_KEYCTL = {"x86_64": 250, "aarch64": 219}
"""The C library has no wrapper for this system call."""

libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    """The C type `struct sock_fprog` of linux/filter.h."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def set_child_subreaper() -> None:
    """Become the parent of every descendant whose own parent ends."""
    prctl(_SET_CHILD_SUBREAPER, 1)


def set_parent_death_signal(parent: int, number: signal.Signals) -> bool:
    """Request a signal for when the parent ends; False if it has already ended."""
    prctl(_SET_PARENT_DEATH_SIGNAL, number)
    return os.getppid() == parent


def set_not_dumpable() -> None:
    """Require CAP_SYS_PTRACE for access to this process's memory and /proc links."""
    prctl(_SET_DUMPABLE, 0)


def set_process_name(name: str) -> None:
    """Set the name shown in process lists; at most 15 characters."""
    prctl(_SET_NAME, ctypes.c_char_p(name.encode()))


def unshare_ipc() -> None:
    """Enter a new IPC namespace; requires root."""
    check(libc.unshare(_NEW_IPC_NAMESPACE), "unshare")


def set_no_new_privileges() -> None:
    """Set no_new_privs: no program executed later gains privileges, such as by set-user-ID."""
    prctl(_SET_NO_NEW_PRIVILEGES, 1)


def install_seccomp_filter(program: bytes) -> None:
    """Install a BPF filter for all later system calls, inherited by executed programs."""
    prepared = _Program(len(program) // _INSTRUCTION_BYTES, program)
    prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(prepared))


def join_new_keyring() -> None:
    """Join a new session keyring, if the kernel supports it and the user's quota allows it.

    The seccomp filter denies all keyring calls; this covers processes before the filter.
    """
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        libc.syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None)


def limit_inherited_capabilities(numbers: frozenset[int]) -> None:
    """Restrict the capabilities of what bubblewrap executes; bubblewrap itself keeps all it has.

    A program executed by root gets the inheritable capabilities and those of the bounding set;
    bubblewrap sets the inheritable ones to those of the command.
    """
    _set_capabilities(_permitted())
    drop_bounding_set(numbers)


def set_capabilities(numbers: frozenset[int]) -> frozenset[int]:
    """Set exactly these capabilities, as far as they are permitted; return those."""
    capabilities = _permitted() & sum(1 << number for number in numbers)
    _set_capabilities(capabilities)
    return frozenset(number for number in numbers if capabilities >> number & 1)


def drop_bounding_set(numbers: frozenset[int]) -> None:
    """Drop all other capabilities from the bounding set; current capabilities stay."""
    for number in range(_CAPABILITIES):
        if number not in numbers:
            try:
                prctl(_DROP_FROM_BOUNDING_SET, number)
            except OSError as error:
                if error.errno not in _DROP_FINISHED_ERRNOS:
                    raise
                return


def _permitted() -> int:
    """Return the permitted capabilities as a bit mask."""
    data = ctypes.create_string_buffer(6 * 4)
    check(libc.capget(struct.pack("Ii", _CAPABILITIES_V3, 0), data), "capget")
    _, low, _, _, high, _ = struct.unpack("6I", data.raw)
    return int(low | high << _WORD)


def _set_capabilities(mask: int) -> None:
    """Set the effective, permitted and inheritable capabilities."""
    low, high = (mask >> shift & (1 << _WORD) - 1 for shift in (0, _WORD))
    header = struct.pack("Ii", _CAPABILITIES_V3, 0)
    check(libc.capset(header, struct.pack("6I", low, low, low, high, high, high)), "capset")


def prctl(option: int, *values: object) -> None:
    """Call prctl(2) with these arguments, the others zero. Raises OSError."""
    # All five arguments: some options require unused ones to be zero.
    padded = (*values, 0, 0, 0, 0)[:4]
    arguments = (ctypes.c_ulong(each) if isinstance(each, int) else each for each in padded)
    check(libc.prctl(ctypes.c_int(option), *arguments), f"prctl {option}")


def check(result: int, call: str) -> None:
    """Raise OSError if the call failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
