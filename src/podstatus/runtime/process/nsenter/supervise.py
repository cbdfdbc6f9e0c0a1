"""Runs the command, reports its exit, and kills its descendants when the agent disconnects."""

import fcntl
import os
import select
import signal
import termios

from ..shim.signal_queue import restore_defaults
from ..shim.syscalls import set_child_subreaper, set_parent_death_signal
from . import syscalls
from .execute import execute
from .kill_tree import kill_tree, reap
from .request import AgentConnection, ExecError, ExecRequest

_PTMX_DEVICE = os.makedev(5, 2)


def supervise(request: ExecRequest, agent: AgentConnection, null: int) -> None:
    """Run the command until the agent disconnects. Raises ExecError."""
    set_child_subreaper()
    wakeup_reader, wakeup_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    # Before the command is started: it may end at any time.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
    terminal = _open_terminal() if request.terminal else None
    command = _start(request, terminal)
    for standard in (0, 1, 2):
        # Only the command may hold its streams, so that closing them is noticed.
        os.dup2(null, standard)
    try:
        agent.report_started(terminal)
    except OSError:
        kill_tree(command)
        return
    if terminal is not None:
        os.close(terminal)
    _wait_for_exit(agent, command, wakeup_reader, () if request.isolated else (request.process,))


def _wait_for_exit(
    agent: AgentConnection, command: int, wakeup_fd: int, container_pidfds: tuple[int, ...]
) -> None:
    """Wait until the agent disconnects or, without isolation, the container ends; kill the rest."""
    poll = select.poll()
    for descriptor in (agent.socket.fileno(), wakeup_fd, *container_pidfds):
        poll.register(descriptor, select.POLLIN)
    ending = False
    while not ending:
        ready = {descriptor for descriptor, _ in poll.poll()}
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
    """Start the command; return its pid once it is executed. Raises ExecError."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    supervisor = os.getpid()
    command = os.fork()
    if command == 0:
        os.close(reader)
        _run_child(request, terminal, writer, supervisor)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        message = file.read()
    if message:
        raise ExecError(message.decode(errors="replace"))
    return command


def _run_child(request: ExecRequest, terminal: int | None, error_fd: int, supervisor: int) -> None:
    """Set up the child and execute the command; never returns."""
    try:
        if set_parent_death_signal(supervisor, signal.SIGKILL):
            os.setsid()
            if terminal is not None:
                _set_controlling_terminal(terminal)
            signal.set_wakeup_fd(-1)
            restore_defaults()
            execute(request.argv, request.env, request.cwd)
    except ExecError as error:
        os.write(error_fd, str(error).encode(errors="surrogateescape"))
    except Exception as error:  # noqa: BLE001 - this process must not continue as the supervisor
        os.write(error_fd, f"cannot start the command: {error}".encode(errors="replace"))
    finally:
        os._exit(127)


def _open_terminal() -> int:
    """Open a terminal of the container's devpts. Its /dev/ptmx is untrusted and verified."""
    try:
        terminal = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ExecError(f"cannot open a terminal: {error.strerror}") from error
    if os.fstat(terminal).st_rdev != _PTMX_DEVICE:
        raise ExecError("cannot open a terminal: /dev/ptmx is not a terminal")
    return terminal


def _set_controlling_terminal(terminal: int) -> None:
    peer = syscalls.open_peer(terminal)
    fcntl.ioctl(peer, termios.TIOCSCTTY, 0)
    for standard in (0, 1, 2):
        os.dup2(peer, standard)
