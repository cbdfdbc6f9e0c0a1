"""System calls that Python 3.11 has no wrapper for."""

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterable

NAMESPACES = {
    "user": 0x10000000,
    "mnt": 0x00020000,
    "pid": 0x20000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "cgroup": 0x02000000,
    "net": 0x40000000,
}
_PDEATHSIG, _DUMPABLE, _KEEPCAPS, _BOUNDING_DROP = 1, 4, 8, 24
_SUBREAPER, _NO_NEW_PRIVILEGES, _AMBIENT = 36, 38, 47
_AMBIENT_RAISE, _AMBIENT_CLEAR = 2, 4
_CAPABILITIES_V3 = 0x20080522
_CAPABILITIES, _WORD = 64, 32
_DROP_FINISHED_ERRNOS = (errno.EINVAL, errno.EPERM)
"""EINVAL: the kernel has fewer capabilities. EPERM: no CAP_SETPCAP; no_new_privs must do."""
_MS_READ_ONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
_UNLOCK_TERMINAL, _OPEN_PEER = 0x40045431, 0x5441

_SET_SECCOMP, _FILTER_MODE, _INSTRUCTION_BYTES = 22, 2, 8
_JOIN_SESSION_KEYRING = 1
_KEYCTL = {"x86_64": 250, "aarch64": 219}
"""The C library has no wrapper for this system call."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    """The C type `struct sock_fprog` of linux/filter.h."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _prctl(option: int, *values: int) -> None:
    padded = (*values, 0, 0, 0, 0)[:4]
    _check(_libc.prctl(option, *(ctypes.c_ulong(value) for value in padded)))


def join_namespaces(process: int, kinds: Iterable[str]) -> None:
    """Join these namespaces of a pidfd's process at once, with the current privileges."""
    _check(_libc.setns(process, sum(NAMESPACES[kind] for kind in kinds)))


def unshare_mounts(folder: str) -> None:
    """Enter a new mount namespace in which `folder` is read-only."""
    _check(_libc.unshare(NAMESPACES["mnt"]))
    target = os.fsencode(folder)
    _mount(b"none", b"/", _MS_REC | _MS_PRIVATE)
    _mount(target, target, _MS_BIND)
    _mount(b"none", target, _MS_REMOUNT | _MS_BIND | _MS_READ_ONLY)


def _mount(source: bytes, target: bytes, flags: int) -> None:
    _check(_libc.mount(source, target, None, ctypes.c_ulong(flags), None))


def set_not_dumpable() -> None:
    """Make this process and the file it executes inaccessible through /proc."""
    _prctl(_DUMPABLE, 0)


def keep_capabilities() -> None:
    """Keep permitted capabilities across a change of user."""
    _prctl(_KEEPCAPS, 1)


def drop_bounding_set(numbers: frozenset[int]) -> None:
    """Drop all other capabilities from the bounding set."""
    for number in range(_CAPABILITIES):
        if number not in numbers:
            try:
                _prctl(_BOUNDING_DROP, number)
            except OSError as error:
                if error.errno not in _DROP_FINISHED_ERRNOS:
                    raise
                return


def set_capabilities(numbers: frozenset[int]) -> None:
    """Set exactly these capabilities, as far as permitted, also for executed programs."""
    numbers &= _permitted()
    low = sum(1 << number for number in numbers if number < _WORD)
    high = sum(1 << number - _WORD for number in numbers if number >= _WORD)
    header = struct.pack("Ii", _CAPABILITIES_V3, 0)
    _check(_libc.capset(header, struct.pack("6I", low, low, low, high, high, high)))
    _prctl(_AMBIENT, _AMBIENT_CLEAR)
    for number in numbers:
        _prctl(_AMBIENT, _AMBIENT_RAISE, number)


def _permitted() -> frozenset[int]:
    data = ctypes.create_string_buffer(6 * 4)
    _check(_libc.capget(struct.pack("Ii", _CAPABILITIES_V3, 0), data))
    _, low, _, _, high, _ = struct.unpack("6I", data.raw)
    bits = low | high << _WORD
    return frozenset(number for number in range(_CAPABILITIES) if bits >> number & 1)


def set_no_new_privileges() -> None:
    """Set no_new_privs: no program executed later gains privileges."""
    _prctl(_NO_NEW_PRIVILEGES, 1)


def install_seccomp_filter(program: bytes) -> None:
    """Install a BPF filter for all later system calls, inherited by executed programs."""
    prepared = _Program(len(program) // _INSTRUCTION_BYTES, program)
    zeros = (ctypes.c_ulong(0),) * 2
    mode = ctypes.c_ulong(_FILTER_MODE)
    _check(_libc.prctl(_SET_SECCOMP, mode, ctypes.byref(prepared), *zeros))


def join_new_keyring() -> None:
    """Join a new session keyring, if the kernel supports it and the user's quota allows it.

    The seccomp filter denies all keyring calls; this covers processes before the filter.
    """
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        _libc.syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None)


def set_child_subreaper() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_SUBREAPER, 1)


def set_parent_death_signal(signal_number: int) -> None:
    """Request a signal for when the parent ends."""
    _prctl(_PDEATHSIG, signal_number)


def open_peer(terminal: int) -> int:
    """Open the slave side of a pseudo-terminal without resolving its path."""
    fcntl.ioctl(terminal, _UNLOCK_TERMINAL, struct.pack("i", 0))
    return fcntl.ioctl(terminal, _OPEN_PEER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
