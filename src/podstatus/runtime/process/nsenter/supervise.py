"""Start the command and stay: tell of its end, and end all it started when the agent hangs up."""

import fcntl
import os
import select
import signal
import termios

from . import syscalls
from .execute import execute, reset_signals
from .kill_tree import end_all, reap
from .request import Agent, FailedError, Order

_TERMINAL_DEVICE = os.makedev(5, 2)


def watch(order: Order, agent: Agent, nothing: int) -> None:
    """Run the command to its end. Raises FailedError."""
    syscalls.adopt_orphans()
    wakeful, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    # Before the command is started: its end may come at any time.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    terminal = _open_terminal() if order.terminal else None
    command = _start(order, terminal)
    for standard in (0, 1, 2):
        # Who reads and writes is the command alone: its ends are seen when it closes them.
        os.dup2(nothing, standard)
    try:
        agent.tell_started(terminal)
    except OSError:
        end_all(command)
        return
    if terminal is not None:
        os.close(terminal)
    _stay(agent, command, wakeful, () if order.isolated else (order.process,))


def _stay(agent: Agent, command: int, wakeful: int, ends: tuple[int, ...]) -> None:
    """Until the agent hangs up; a container that has ended, outside of which this runs, ends it."""
    poll = select.poll()
    for opened in (agent.socket.fileno(), wakeful, *ends):
        poll.register(opened, select.POLLIN)
    ending = False
    while not ending:
        ready = {opened for opened, _ in poll.poll()}
        if wakeful in ready:
            os.read(wakeful, 4096)
            _tell(agent, reap()[1].get(command))
        ending = bool(ready - {wakeful})
    end_all(command)


def _tell(agent: Agent, status: int | None) -> None:
    if status is not None:
        code = os.waitstatus_to_exitcode(status)
        agent.tell_ended(code if code >= 0 else 128 - code)


def _start(order: Order, terminal: int | None) -> int:
    """The command's pid, once it is executed."""
    heard, said = os.pipe2(os.O_CLOEXEC)
    watcher = os.getpid()
    command = os.fork()
    if command == 0:
        os.close(heard)
        _be(order, terminal, said, watcher)
    os.close(said)
    with os.fdopen(heard, "rb") as file:
        why = file.read()
    if why:
        raise FailedError(why.decode(errors="replace"))
    return command


def _be(order: Order, terminal: int | None, said: int, watcher: int) -> None:
    """What the child does; it never comes back."""
    try:
        syscalls.end_with_parent(signal.SIGKILL)
        if os.getppid() == watcher:
            os.setsid()
            if terminal is not None:
                _take_terminal(terminal)
            signal.set_wakeup_fd(-1)
            reset_signals()
            execute(order.argv, order.env, order.cwd)
    except FailedError as error:
        os.write(said, str(error).encode(errors="surrogateescape"))
    except Exception as error:  # noqa: BLE001 - this process must not go on as the watcher
        os.write(said, f"cannot start the command: {error}".encode(errors="replace"))
    finally:
        os._exit(127)


def _open_terminal() -> int:
    """The container's own kind of terminal. What it has there as a device may be anything."""
    try:
        opened = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise FailedError(f"cannot open a terminal: {error.strerror}") from error
    if os.fstat(opened).st_rdev != _TERMINAL_DEVICE:
        raise FailedError("cannot open a terminal: /dev/ptmx is not a terminal")
    return opened


def _take_terminal(terminal: int) -> None:
    peer = syscalls.open_peer(terminal)
    fcntl.ioctl(peer, termios.TIOCSCTTY, 0)
    for standard in (0, 1, 2):
        os.dup2(peer, standard)
