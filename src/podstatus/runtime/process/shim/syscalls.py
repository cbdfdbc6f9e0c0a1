"""System calls that Python's library lacks: prctl and renameat2 without replacement."""

import ctypes
import errno
import os
import signal
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1
_SET_DUMPABLE = 4
_SET_NAME = 15
_SET_CHILD_SUBREAPER = 36
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_UNSUPPORTED_ERRNOS = (errno.EINVAL, errno.ENOSYS)
"""Unsupported by this file system, or by this kernel."""

_libc = ctypes.CDLL(None, use_errno=True)


def set_child_subreaper() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def set_parent_death_signal(parent: int, number: signal.Signals) -> bool:
    """Request a signal for when the parent ends; False if it has already ended."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, number)
    return os.getppid() == parent


def set_not_dumpable() -> None:
    """Require CAP_SYS_PTRACE for access to this process's memory and /proc links."""
    _prctl(_SET_DUMPABLE, 0)


def set_process_name(name: str) -> None:
    """Set the name shown in process lists; at most 15 characters."""
    _prctl(_SET_NAME, ctypes.c_char_p(name.encode()))


def rename_no_replace(source: Path, target: Path) -> None:
    """Rename, even on a full disk. Raises FileExistsError if `target` exists, or OSError."""
    names = _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target)
    number = errno.ENOSYS
    if (rename := getattr(_libc, "renameat2", None)) is not None:
        if rename(*names, _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
    if number not in _UNSUPPORTED_ERRNOS:
        raise OSError(number, f"rename: {os.strerror(number)}", str(source), None, str(target))
    # Not atomic, but there is no better way here.
    if target.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    source.replace(target)


def _prctl(option: int, value: int | ctypes.c_char_p) -> None:
    argument = value if isinstance(value, ctypes.c_char_p) else ctypes.c_ulong(value)
    # All five arguments: some options require unused ones to be zero.
    zero = ctypes.c_ulong(0)
    if _libc.prctl(ctypes.c_int(option), argument, zero, zero, zero) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")
