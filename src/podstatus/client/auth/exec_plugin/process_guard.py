"""Run an exec plugin, and kill all processes that it started if it fails or exceeds its timeout.

A separate program that uses only the standard library, started as

    python -I -S process_guard.py CONTROL COMMAND [ARGUMENT]...

CONTROL is the descriptor of a stream socket. End of file on it is the order to kill: the caller has
closed it, or has died. If the command cannot be started, the guard writes the errno to the socket.
The guard exits with the command's exit code, or by its signal.

The guard is a child subreaper (prctl(2)), so processes that the command started in another session,
or orphaned, are still its descendants. After exit code 0 they keep running: a plugin may start a
browser, or a daemon that caches tokens.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import NamedTuple, NoReturn

_PR_SET_CHILD_SUBREAPER = 36
_FAILED = 1
_KILL_SECONDS = 5.0
"""Maximum wait for killed processes; those that hang in the kernel are left to init."""
_PAUSE_SECONDS = 0.002
_MAX_KILL_ROUNDS = 1000
"""Rounds of killing new children before all descendants are stopped instead."""
_MAX_STOP_ROUNDS = 100
"""Rounds of stopping new descendants before all are killed."""
_PARENT, _START_TICKS = 1, 19
"""Indexes into the fields of /proc/<pid>/stat after the name."""


class _Process(NamedTuple):
    """A process; the start time distinguishes it from a later one with the same pid."""

    pid: int
    parent: int
    start_ticks: int


def main(arguments: list[str]) -> NoReturn:
    """Run a command until it exits or the order to kill arrives."""
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    _become_subreaper()
    woken = _wake_at_child_signals()
    try:
        pid = os.posix_spawn(arguments[1], arguments[1:], os.environ, setsigdef=_default_signals())
    except (OSError, ValueError) as error:
        control.sendall(str(getattr(error, "errno", 0) or 0).encode())
        sys.exit(_FAILED)
    code = _wait(pid, control, woken)
    if code != 0:
        end_descendants()
    _exit_like(code)


def _become_subreaper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wake_at_child_signals() -> int:
    """Return a descriptor that is readable after SIGCHLD. Ctrl-C only affects the command."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # Handlers instead of SIG_IGN, which the command would inherit.
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)
    return reader


def _default_signals() -> list[int]:
    """Return the signals that Python ignores; the command gets their default action."""
    return [signal.SIGPIPE, signal.SIGXFSZ]


def _wait(pid: int, control: socket.socket, woken: int) -> int | None:
    """Return the exit code as Popen.returncode has it; None if the command is to be killed."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _reap()
            return os.waitstatus_to_exitcode(status)
        ready, _, _ = select.select([control.fileno(), woken], [], [])
        if control.fileno() in ready:
            return None
        os.read(woken, 4096)


def end_descendants() -> None:
    """Kill all descendants; return when none is left, or after 5 s."""
    until = time.monotonic() + _KILL_SECONDS
    while _reap() and time.monotonic() < until:
        if _kill_children():
            time.sleep(_PAUSE_SECONDS)
            continue
        for process in _stop_all():
            _send(process, signal.SIGKILL)


def _kill_children() -> bool:
    """Kill children until there are no new ones; False if new ones keep appearing.

    The children of a killed child are reparented to the guard. A process that forks and exits
    repeatedly has another pid in every round: a round has to be shorter than its lifetime.
    """
    killed: set[int] = set()
    for _ in range(_MAX_KILL_ROUNDS):
        children = _children()
        if children <= killed:
            return True
        for pid in children - killed:
            # The pid cannot be reused before the guard has reaped the child.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= children
    return False


def _children() -> set[int]:
    pid = os.getpid()
    try:
        return {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()}
    except OSError:  # a kernel without CONFIG_PROC_CHILDREN
        return {process.pid for process in _descendants() if process.parent == pid}


def _stop_all() -> set[_Process]:
    """Stop all descendants and return them, for processes that fork faster than they are killed."""
    stopped: set[_Process] = set()
    for _ in range(_MAX_STOP_ROUNDS):
        running = _descendants() - stopped
        if not running:
            break
        for process in running:
            _send(process, signal.SIGSTOP)
        stopped |= running
    return stopped


def _send(process: _Process, number: signal.Signals) -> None:
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        # The pid of an open pidfd is not reused; only the parent may have changed.
        current = _process(Path(f"/proc/{process.pid}"))
        if current is not None and current.start_ticks == process.start_ticks:
            signal.pidfd_send_signal(pidfd, number)
    except OSError:
        return  # it has exited, or is a set-user-ID program, which may not be killed
    finally:
        os.close(pidfd)


def _reap() -> bool:
    """Reap exited children; return whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _descendants() -> set[_Process]:
    children: dict[int, list[_Process]] = {}
    for entry in Path("/proc").iterdir() if sys.platform == "linux" else ():
        if entry.name.isdecimal() and (process := _process(entry)) is not None:
            children.setdefault(process.parent, []).append(process)
    descendants = list(children.get(os.getpid(), ()))
    for process in descendants:  # grows during the iteration
        descendants.extend(children.get(process.pid, ()))
    return set(descendants)


def _process(entry: Path) -> _Process | None:
    try:
        stat = (entry / "stat").read_bytes()
    except OSError:
        return None
    # The program name may contain any character, including brackets.
    fields = stat.rpartition(b")")[2].split()
    return _Process(int(entry.name), int(fields[_PARENT]), int(fields[_START_TICKS]))


def _exit_like(code: int | None) -> NoReturn:
    if code is not None and code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), -code)
    sys.exit(_FAILED if code is None else code)


if __name__ == "__main__":
    main(sys.argv[1:])
