"""Starting a program: a fork, then everything that must be so before it is executed."""

import base64
import contextlib
import fcntl
import os
import signal
import termios
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

from . import bubblewrap_monitor, confinement, syscalls
from .records import LaunchSpec
from .signals import restore_defaults
from .streams import ChildStreams

_UMASK = 0o022
"""As in any container; the shim's own is stricter."""


class StartFailedError(Exception):
    """The command was not executed; the message says why."""


class Program(NamedTuple):
    """What is executed, and how it finds itself."""

    argv: list[bytes]
    env: Mapping[bytes, bytes]
    cwd: str
    inherited: Sequence[int] = ()
    """Open files that it gets besides 0, 1 and 2, under their numbers."""
    traced: bool = False
    """Whether it stops when it is executed, for `monitor.hide_monitor`."""


def unsandboxed_program(launch: LaunchSpec) -> Program:
    """The command itself, not isolated."""
    env = {encode(name): encode(value) for name, value in launch.env.items()}
    return Program([encode(argument) for argument in launch.argv], env, launch.cwd or "/")


def encode(text: str) -> bytes:
    """As it was in the pod's spec, whatever the locale of this machine. Raises CannotStartError."""
    try:
        encoded = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise StartFailedError(f"{text!r} cannot be passed on: {error.reason}") from None
    if b"\0" in encoded:
        raise StartFailedError(f"{text!r} cannot be passed on: it holds a zero byte")
    return encoded


def start_program(program: Program, launch: LaunchSpec, ends: ChildStreams) -> int:
    """Its pid, once it is executed. Raises CannotStartError."""
    told, tell = os.pipe()
    keeper = os.getpid()
    try:
        with _error_context("fork"):
            pid = os.fork()
        if pid == 0:
            _run_child(program, launch, ends, error_fd=tell, monitor_pid=keeper)
    finally:
        os.close(tell)
    # The other end closes when the program is executed: then there is nothing to read.
    with os.fdopen(told, "rb") as file:
        problem = file.read()
    if problem:
        os.waitpid(pid, 0)
        raise StartFailedError(problem.decode(errors="replace"))
    return pid


def _run_child(
    program: Program, launch: LaunchSpec, ends: ChildStreams, *, error_fd: int, monitor_pid: int
) -> NoReturn:
    try:
        restore_defaults()
        _set_standard_streams(ends)
        _enter_cgroups(launch)
        confinement.join_new_keyring()
        _bound_capabilities(launch)
        _change_user(launch)
        _retain_capabilities(launch)
        with _error_context(f'chdir "{program.cwd}"'):
            os.chdir(encode(program.cwd))
        os.umask(_UMASK)
        for file in program.inherited:
            os.set_inheritable(file, True)
        if program.traced:
            bubblewrap_monitor.await_tracer()
        # Only now: it is forgotten when the user changes.
        if syscalls.set_parent_death_signal(monitor_pid, signal.SIGKILL):
            _confine(launch)
            _execute(program)
    except StartFailedError as error:
        os.write(error_fd, str(error).encode(errors="backslashreplace"))
    except BaseException as error:  # noqa: BLE001  this process must not go on as a keeper
        os.write(error_fd, f"{type(error).__name__}: {error}".encode(errors="backslashreplace"))
    finally:
        os._exit(127)


def _set_standard_streams(ends: ChildStreams) -> None:
    os.setsid()
    if ends.terminal is not None:
        fcntl.ioctl(ends.terminal, termios.TIOCSCTTY, 0)
    for number, file in enumerate((ends.stdin, ends.stdout, ends.stderr)):
        os.dup2(file, number)


def _enter_cgroups(launch: LaunchSpec) -> None:
    for path in launch.cgroups:
        with _error_context(f'cgroup "{path}"'):
            file = os.open(encode(path), os.O_WRONLY)
            try:
                os.write(file, str(os.getpid()).encode())
            finally:
                os.close(file)


def _change_user(launch: LaunchSpec) -> None:
    # Also an ordinary user may ask for what it is already.
    if launch.groups is not None and set(launch.groups) != set(os.getgroups()):
        with _error_context(f"groups {launch.groups}"):
            os.setgroups(launch.groups)
    if launch.group is not None:
        with _error_context(f"group {launch.group}"):
            os.setresgid(launch.group, launch.group, launch.group)
    if launch.user is not None:
        with _error_context(f"user {launch.user}"):
            os.setresuid(launch.user, launch.user, launch.user)


def _bound_capabilities(launch: LaunchSpec) -> None:
    if launch.capabilities is None:
        return
    with _error_context("capabilities"):
        numbers = frozenset(launch.capabilities)
        if launch.bubblewrap is None:
            confinement.drop_bounding_set(numbers)
        else:
            confinement.limit_inherited_capabilities(numbers)


def _retain_capabilities(launch: LaunchSpec) -> None:
    """Bubblewrap sees to those of what it executes."""
    if launch.capabilities is not None and launch.bubblewrap is None:
        with _error_context("capabilities"):
            confinement.set_capabilities(frozenset(launch.capabilities))


def _confine(launch: LaunchSpec) -> None:
    """Bubblewrap, which may be set-user-ID, sees to it itself."""
    if launch.bubblewrap is not None:
        return
    with _error_context("no_new_privs"):
        confinement.set_no_new_privileges()
    if launch.seccomp:
        with _error_context("seccomp"):
            confinement.install_seccomp_filter(base64.b64decode(launch.seccomp))


def _execute(program: Program) -> NoReturn:
    if not program.argv:
        raise StartFailedError("no command")
    name = program.argv[0]
    shown = name.decode(errors="surrogateescape")
    if b"/" in name:
        with _error_context(f'exec: "{shown}"'):
            os.execve(name, program.argv, program.env)  # noqa: S606  no shell is the point
    refused: OSError | None = None
    for folder in filter(None, program.env.get(b"PATH", b"").split(b":")) if name else ():
        try:
            os.execve(folder + b"/" + name, program.argv, program.env)  # noqa: S606
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refused = refused or error
    why = "executable file not found in $PATH" if refused is None else _describe_error(refused)
    raise StartFailedError(f'exec: "{shown}": {why}')


@contextlib.contextmanager
def _error_context(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, OverflowError, ValueError) as error:
        why = _describe_error(error) if isinstance(error, OSError) else str(error)
        raise StartFailedError(f"{what}: {why}") from error


def _describe_error(error: OSError) -> str:
    """As Go says it."""
    return (error.strerror or str(error)).lower()
