"""Start the command and stay: tell of its end, and end all it started when the agent hangs up."""

import fcntl
import os
import select
import signal
import termios

from . import syscalls
from .execute import execute, reset_signals
from .kill_tree import kill_tree, reap
from .request import AgentConnection, ExecError, ExecRequest

_PTMX_DEVICE = os.makedev(5, 2)


def supervise(request: ExecRequest, agent: AgentConnection, nothing: int) -> None:
    """Run the command to its end. Raises FailedError."""
    syscalls.set_child_subreaper()
    wakeful, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    # Before the command is started: its end may come at any time.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    terminal = _open_terminal() if request.terminal else None
    command = _start(request, terminal)
    for standard in (0, 1, 2):
        # Who reads and writes is the command alone: its ends are seen when it closes them.
        os.dup2(nothing, standard)
    try:
        agent.report_started(terminal)
    except OSError:
        kill_tree(command)
        return
    if terminal is not None:
        os.close(terminal)
    _wait_for_exit(agent, command, wakeful, () if request.isolated else (request.process,))


def _wait_for_exit(
    agent: AgentConnection, command: int, wakeup_fd: int, container_pidfds: tuple[int, ...]
) -> None:
    """Until the agent hangs up; a container that has ended, outside of which this runs, ends it."""
    poll = select.poll()
    for opened in (agent.socket.fileno(), wakeup_fd, *container_pidfds):
        poll.register(opened, select.POLLIN)
    ending = False
    while not ending:
        ready = {opened for opened, _ in poll.poll()}
        if wakeup_fd in ready:
            os.read(wakeup_fd, 4096)
            _report_exit(agent, reap()[1].get(command))
        ending = bool(ready - {wakeup_fd})
    kill_tree(command)


def _report_exit(agent: AgentConnection, status: int | None) -> None:
    if status is not None:
        code = os.waitstatus_to_exitcode(status)
        agent.report_exit(code if code >= 0 else 128 - code)


def _start(request: ExecRequest, terminal: int | None) -> int:
    """The command's pid, once it is executed."""
    heard, said = os.pipe2(os.O_CLOEXEC)
    watcher = os.getpid()
    command = os.fork()
    if command == 0:
        os.close(heard)
        _run_child(request, terminal, said, watcher)
    os.close(said)
    with os.fdopen(heard, "rb") as file:
        why = file.read()
    if why:
        raise ExecError(why.decode(errors="replace"))
    return command


def _run_child(request: ExecRequest, terminal: int | None, error_fd: int, supervisor: int) -> None:
    """What the child does; it never comes back."""
    try:
        syscalls.set_parent_death_signal(signal.SIGKILL)
        if os.getppid() == supervisor:
            os.setsid()
            if terminal is not None:
                _set_controlling_terminal(terminal)
            signal.set_wakeup_fd(-1)
            reset_signals()
            execute(request.argv, request.env, request.cwd)
    except ExecError as error:
        os.write(error_fd, str(error).encode(errors="surrogateescape"))
    except Exception as error:  # noqa: BLE001 - this process must not go on as the watcher
        os.write(error_fd, f"cannot start the command: {error}".encode(errors="replace"))
    finally:
        os._exit(127)


def _open_terminal() -> int:
    """The container's own kind of terminal. What it has there as a device may be anything."""
    try:
        opened = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ExecError(f"cannot open a terminal: {error.strerror}") from error
    if os.fstat(opened).st_rdev != _PTMX_DEVICE:
        raise ExecError("cannot open a terminal: /dev/ptmx is not a terminal")
    return opened


def _set_controlling_terminal(terminal: int) -> None:
    peer = syscalls.open_peer(terminal)
    fcntl.ioctl(peer, termios.TIOCSCTTY, 0)
    for standard in (0, 1, 2):
        os.dup2(peer, standard)
