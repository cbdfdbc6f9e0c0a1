"""Run an exec plugin, and end all that it started if it fails or takes too long.

A program of its own, standard library only, started as

    python -I -S plugin_guard.py CONTROL COMMAND [ARGUMENT]...

CONTROL is the descriptor of a stream socket. Its end there is the order to kill: the caller has
closed it, or is no more. If the command cannot be started, the number of the error is written to
it. The guard ends as the command did.

It is a child subreaper (prctl(2)), so what the command started in a session of its own, or left
to init, is a descendant all the same. After a command that ended with 0 such processes live on:
a plugin may start a browser, or a daemon that caches tokens.
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
"""For what is killed to end; what hangs in the kernel then belongs to init."""
_PAUSE_SECONDS = 0.002
_MAX_KILL_ROUNDS = 1000
"""How often new children are killed, before all descendants are stopped."""
_MAX_STOP_ROUNDS = 100
"""How often newcomers are looked for and stopped, before all are killed."""
_PARENT, _START_TICKS = 1, 19
"""Among the fields of /proc/<pid>/stat behind the name."""


class _Process(NamedTuple):
    """A process, distinct from a later one with its pid."""

    pid: int
    parent: int
    start_ticks: int


def main(arguments: list[str]) -> NoReturn:
    """Run a command to its end, or to the order to kill it."""
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
    """A descriptor that can be read when a child ends. Ctrl-C is for the command alone."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # Handlers, not SIG_IGN, which the command would inherit.
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)
    return reader


def _default_signals() -> list[int]:
    """Signals that Python has changed, for the command to have as they were."""
    return [signal.SIGPIPE, signal.SIGXFSZ]


def _wait(pid: int, control: socket.socket, woken: int) -> int | None:
    """The end of the command, as Popen.returncode has it; None if it is to be killed."""
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
    """Kill all that has us as an ancestor; returns when there is nothing left, or after 5 s."""
    until = time.monotonic() + _KILL_SECONDS
    while _reap() and time.monotonic() < until:
        if _kill_children():
            time.sleep(_PAUSE_SECONDS)
            continue
        for process in _stop_all():
            _send(process, signal.SIGKILL)


def _kill_children() -> bool:
    """Kill children until there are no new ones; False if there is no end of them.

    What a child has started becomes ours when it ends. One that forks and ends, again and again,
    has another pid at every look: a look has to be shorter than its life.
    """
    killed: set[int] = set()
    for _ in range(_MAX_KILL_ROUNDS):
        found = _children()
        if found <= killed:
            return True
        for pid in found - killed:
            # The pid is not reused: it is ours until we wait for it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= found
    return False


def _children() -> set[int]:
    pid = os.getpid()
    try:
        return {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()}
    except OSError:  # a kernel without CONFIG_PROC_CHILDREN
        return {process.pid for process in _descendants() if process.parent == pid}


def _stop_all() -> set[_Process]:
    """Stop first: what forks faster than it is killed would never end."""
    stopped: set[_Process] = set()
    for _ in range(_MAX_STOP_ROUNDS):
        newcomers = _descendants() - stopped
        if not newcomers:
            break
        for process in newcomers:
            _send(process, signal.SIGSTOP)
        stopped |= newcomers
    return stopped


def _send(process: _Process, number: signal.Signals) -> None:
    try:
        opened = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        # What is open cannot become another process; its parent may have changed.
        now = _process(Path(f"/proc/{process.pid}"))
        if now is not None and now.start_ticks == process.start_ticks:
            signal.pidfd_send_signal(opened, number)
    except OSError:
        return  # it has ended, or a set-user-ID program, which is not ours to end
    finally:
        os.close(opened)


def _reap() -> bool:
    """Collect who has ended; whether there is any child left."""
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
    found = list(children.get(os.getpid(), ()))
    for process in found:  # grows as it goes
        found.extend(children.get(process.pid, ()))
    return set(found)


def _process(entry: Path) -> _Process | None:
    try:
        stat = (entry / "stat").read_bytes()
    except OSError:
        return None
    # The name of a program may hold anything, also brackets.
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
