"""System calls to enter a container; those that the shim needs, too, are in `shim.syscalls`."""

import ctypes
import fcntl
import os
import struct
from collections.abc import Iterable

from ..shim.syscalls import check, libc, prctl
from ..shim.syscalls import set_capabilities as _set_capabilities

NAMESPACES = {
    "user": 0x10000000,
    "mnt": 0x00020000,
    "pid": 0x20000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "cgroup": 0x02000000,
    "net": 0x40000000,
}
_KEEPCAPS, _AMBIENT = 8, 47
_AMBIENT_RAISE, _AMBIENT_CLEAR = 2, 4
_MS_READ_ONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
_UNLOCK_TERMINAL, _OPEN_PEER = 0x40045431, 0x5441


def join_namespaces(process: int, kinds: Iterable[str]) -> None:
    """Join these namespaces of a pidfd's process at once, with the current privileges."""
    check(libc.setns(process, sum(NAMESPACES[kind] for kind in kinds)), "setns")


def unshare_mounts(folder: str) -> None:
    """Enter a new mount namespace in which `folder` is read-only."""
    check(libc.unshare(NAMESPACES["mnt"]), "unshare")
    target = os.fsencode(folder)
    _mount(b"none", b"/", _MS_REC | _MS_PRIVATE)
    _mount(target, target, _MS_BIND)
    _mount(b"none", target, _MS_REMOUNT | _MS_BIND | _MS_READ_ONLY)


def _mount(source: bytes, target: bytes, flags: int) -> None:
    check(libc.mount(source, target, None, ctypes.c_ulong(flags), None), "mount")


def keep_capabilities() -> None:
    """Keep permitted capabilities across a change of user."""
    prctl(_KEEPCAPS, 1)


def set_capabilities(numbers: frozenset[int]) -> None:
    """Set exactly these capabilities, as far as permitted, also for executed programs."""
    retained = _set_capabilities(numbers)
    prctl(_AMBIENT, _AMBIENT_CLEAR)
    for number in retained:
        prctl(_AMBIENT, _AMBIENT_RAISE, number)


def open_peer(terminal: int) -> int:
    """Open the slave side of a pseudo-terminal without resolving its path."""
    fcntl.ioctl(terminal, _UNLOCK_TERMINAL, struct.pack("i", 0))
    return fcntl.ioctl(terminal, _OPEN_PEER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
