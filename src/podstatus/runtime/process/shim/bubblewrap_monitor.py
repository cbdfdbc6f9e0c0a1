"""Makes bubblewrap's monitor non-dumpable, so that containers cannot use its /proc entries.

The monitor stays outside of the sandbox, as root and without capabilities. With exactly these
credentials, a container that runs as root may open `/proc/<monitor>/root` through any procfs it
finds. Access to a non-dumpable process requires CAP_SYS_PTRACE on the host. Bubblewrap makes itself
dumpable after it has dropped its capabilities, so it is traced up to that call, whose argument is
changed from 1 to 0.

See ptrace(2), PR_SET_DUMPABLE in prctl(2), and `drop_privs` of bubblewrap.c v0.8.0.
"""

import ctypes
import os
import platform
import signal
import struct
from pathlib import Path
from typing import NamedTuple

_TRACE_ME, _SYSCALL, _DETACH = 0, 24, 17
_SET_OPTIONS, _GET_REGISTERS, _SET_REGISTERS, _GET_SYSCALL = 0x4200, 0x4204, 0x4205, 0x420E
_MARK_SYSCALLS, _KILL_WITH_TRACER = 0x1, 0x100000
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_ENTRY = 1
_GENERAL_REGISTERS = 1
_SET_DUMPABLE, _DUMPABLE, _NOT_DUMPABLE = 4, 1, 0
_MAX_STOPS = 20_000
"""Bubblewrap makes a few hundred system calls until then, and two more per inherited file."""
_TERMINATED_CODES = (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)


class _Abi(NamedTuple):
    prctl: int
    """Number of the system call."""
    registers: int
    """Size of the register set, in bytes."""
    second: int
    """Offset of the second system call argument."""


_ABIS = {
    "x86_64": _Abi(prctl=157, registers=27 * 8, second=13 * 8),
    "aarch64": _Abi(prctl=167, registers=34 * 8, second=1 * 8),
}
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def await_tracer() -> None:
    """Stop at the next execve, so that the parent can call `set_monitor_not_dumpable`.

    Has no effect where the kernel or its configuration forbids tracing.
    """
    if platform.machine() in _ABIS:
        _libc.ptrace(ctypes.c_long(_TRACE_ME), 0, 0, 0)


def set_monitor_not_dumpable(pid: int) -> bool:
    """Let a bubblewrap that called `await_tracer` run until it is non-dumpable.

    Returns whether it is. A bubblewrap that ends before that is left for the caller to reap.
    """
    abi = _ABIS.get(platform.machine())
    if abi is None or not _is_traced(pid):
        return False
    try:
        return _trace_until_not_dumpable(pid, abi)
    except OSError:
        # Either it has ended, which the caller notices, or it would stay stopped forever.
        if not _has_ended(pid):
            os.kill(pid, signal.SIGKILL)
        return False


def _trace_until_not_dumpable(pid: int, abi: _Abi) -> bool:
    if _next_stop(pid) is None:
        return False
    _ptrace(_SET_OPTIONS, pid, 0, _MARK_SYSCALLS | _KILL_WITH_TRACER)
    deliver, changed = 0, False
    for _ in range(_MAX_STOPS):
        _ptrace(_SYSCALL, pid, 0, deliver)
        stop = _next_stop(pid)
        if stop is None:
            return False
        deliver = 0 if stop in (_SYSCALL_STOP, signal.SIGTRAP) else stop
        if stop == _SYSCALL_STOP and _is_set_dumpable_call(pid, abi):
            _set_second_argument(pid, abi, _NOT_DUMPABLE)
            changed = True
            break
    _ptrace(_DETACH, pid, 0, deliver)
    return changed


def _next_stop(pid: int) -> int | None:
    """Return the signal that stopped the process; None if it has ended."""
    event = os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
    if event is None or event.si_code in _TERMINATED_CODES:
        return None
    return event.si_status


def _has_ended(pid: int) -> bool:
    event = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    return event is not None


def _is_set_dumpable_call(pid: int, abi: _Abi) -> bool:
    buffer = ctypes.create_string_buffer(96)
    _ptrace(_GET_SYSCALL, pid, len(buffer), ctypes.addressof(buffer))
    kind, number, first, second = struct.unpack_from("=B23xQQQ", buffer.raw)
    return (kind, number, first, second) == (_ENTRY, abi.prctl, _SET_DUMPABLE, _DUMPABLE)


def _set_second_argument(pid: int, abi: _Abi, value: int) -> None:
    buffer = ctypes.create_string_buffer(abi.registers)
    vector = _Vector(ctypes.addressof(buffer), len(buffer))
    _ptrace(_GET_REGISTERS, pid, _GENERAL_REGISTERS, ctypes.addressof(vector))
    struct.pack_into("=Q", buffer, abi.second, value)
    vector.length = len(buffer)
    _ptrace(_SET_REGISTERS, pid, _GENERAL_REGISTERS, ctypes.addressof(vector))


def _is_traced(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return f"\nTracerPid:\t{os.getpid()}\n" in status


def _ptrace(request: int, pid: int, address: int, data: int) -> None:
    arguments = (ctypes.c_long(request), ctypes.c_long(pid))
    if _libc.ptrace(*arguments, ctypes.c_void_p(address), ctypes.c_void_p(data)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace {request:#x}: {os.strerror(number)}")
