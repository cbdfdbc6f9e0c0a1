"""Starts a program: fork, set up the child, execve."""

import base64
import contextlib
import fcntl
import os
import signal
import termios
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

from . import bubblewrap_monitor, syscalls
from .records import LaunchSpec
from .signal_queue import restore_defaults
from .streams import ChildStreams

_UMASK = 0o022
"""The usual umask in containers; the shim's own is stricter."""


class StartFailedError(Exception):
    """The command was not executed; the message says why."""


class Program(NamedTuple):
    """Program to execute, with its environment."""

    argv: list[bytes]
    env: Mapping[bytes, bytes]
    cwd: str
    inherited: Sequence[int] = ()
    """Open file descriptors that it inherits besides 0, 1 and 2, with the same numbers."""
    traced: bool = False
    """Whether it stops at execve, for `bubblewrap_monitor.set_monitor_not_dumpable`."""


def unsandboxed_program(launch: LaunchSpec) -> Program:
    """Return the command itself, to run without isolation."""
    env = {encode(name): encode(value) for name, value in launch.env.items()}
    return Program([encode(argument) for argument in launch.argv], env, launch.cwd or "/")


def encode(text: str) -> bytes:
    """Encode text of the pod's spec as UTF-8, whatever the locale. Raises StartFailedError."""
    try:
        encoded = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise StartFailedError(f"{text!r} cannot be passed to a program: {error.reason}") from None
    if b"\0" in encoded:
        raise StartFailedError(f"{text!r} cannot be passed to a program: it contains a NUL")
    return encoded


def start_program(program: Program, launch: LaunchSpec, ends: ChildStreams) -> int:
    """Start the program; return its pid once it is executed. Raises StartFailedError."""
    error_pipe, child_error_pipe = os.pipe()
    monitor_pid = os.getpid()
    try:
        with _error_context("fork"):
            pid = os.fork()
        if pid == 0:
            _run_child(program, launch, ends, error_fd=child_error_pipe, monitor_pid=monitor_pid)
    finally:
        os.close(child_error_pipe)
    # The child's end is close-on-exec: end of file without data means success.
    with os.fdopen(error_pipe, "rb") as file:
        message = file.read()
    if message:
        os.waitpid(pid, 0)
        raise StartFailedError(message.decode(errors="replace"))
    return pid


def _run_child(
    program: Program, launch: LaunchSpec, ends: ChildStreams, *, error_fd: int, monitor_pid: int
) -> NoReturn:
    try:
        restore_defaults()
        _set_standard_streams(ends)
        _enter_cgroups(launch)
        syscalls.join_new_keyring()
        _set_sysctls(launch)
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
        # Not earlier: a change of user resets the parent death signal.
        if syscalls.set_parent_death_signal(monitor_pid, signal.SIGKILL):
            _confine(launch)
            _execute(program)
    except StartFailedError as error:
        os.write(error_fd, str(error).encode(errors="backslashreplace"))
    except BaseException as error:  # noqa: BLE001  this process must not continue as a monitor
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


def _set_sysctls(launch: LaunchSpec) -> None:
    """Enter a new IPC namespace and set its kernel parameters; requires root.

    Before the sandbox exists: in it, /proc/sys is read-only.
    """
    if not launch.sysctls:
        return
    with _error_context("IPC namespace"):
        syscalls.unshare_ipc()
    for name, value in launch.sysctls.items():
        with _error_context(f'sysctl "{name}" = "{value}"'):
            file = os.open(encode("/proc/sys/" + name.replace(".", "/")), os.O_WRONLY)
            try:
                os.write(file, encode(value))
            finally:
                os.close(file)


def _change_user(launch: LaunchSpec) -> None:
    # An ordinary user may also ask for the IDs it already has.
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
            syscalls.drop_bounding_set(numbers)
        else:
            syscalls.limit_inherited_capabilities(numbers)


def _retain_capabilities(launch: LaunchSpec) -> None:
    """Set capabilities, unless bubblewrap sets those of the program it executes."""
    if launch.capabilities is not None and launch.bubblewrap is None:
        with _error_context("capabilities"):
            syscalls.set_capabilities(frozenset(launch.capabilities))


def _confine(launch: LaunchSpec) -> None:
    """Set no_new_privs and seccomp, unless bubblewrap (possibly set-user-ID) does so."""
    if launch.bubblewrap is not None:
        return
    with _error_context("no_new_privs"):
        syscalls.set_no_new_privileges()
    if launch.seccomp:
        with _error_context("seccomp"):
            syscalls.install_seccomp_filter(base64.b64decode(launch.seccomp))


def _execute(program: Program) -> NoReturn:
    if not program.argv:
        raise StartFailedError("no command")
    name = program.argv[0]
    program_name = name.decode(errors="surrogateescape")
    if b"/" in name:
        with _error_context(f'exec: "{program_name}"'):
            os.execve(name, program.argv, program.env)  # noqa: S606  no shell is the point
    first_error: OSError | None = None
    for folder in filter(None, program.env.get(b"PATH", b"").split(b":")) if name else ():
        try:
            os.execve(folder + b"/" + name, program.argv, program.env)  # noqa: S606
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            first_error = first_error or error
    reason = (
        "executable file not found in $PATH"
        if first_error is None
        else _describe_error(first_error)
    )
    raise StartFailedError(f'exec: "{program_name}": {reason}')


@contextlib.contextmanager
def _error_context(context: str) -> Iterator[None]:
    try:
        yield
    except (OSError, OverflowError, ValueError) as error:
        reason = _describe_error(error) if isinstance(error, OSError) else str(error)
        raise StartFailedError(f"{context}: {reason}") from error


def _describe_error(error: OSError) -> str:
    """Return the error message in Go's spelling."""
    return (error.strerror or str(error)).lower()
