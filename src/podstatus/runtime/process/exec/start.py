"""Talk to processes: to one more where a container is, or to the container itself.

talk = await exec_in(started.process, launch, ("sh",), TalkRequest(stdin=True), clock=clock)
talk = await attach_to(place, launch, started, TalkRequest(), clock=clock)
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from podstatus.base.clock import Clock
from podstatus.runtime.process import run_exec
from podstatus.runtime.process.exec.attach_session import ProcessAttachSession
from podstatus.runtime.process.exec.container_context import exec_context
from podstatus.runtime.process.exec.exec_session import ProcessExecSession
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import LaunchRecord, ProcessIdentity, StartRecord
from podstatus.runtime.process.state.process_identity import open_process
from podstatus.runtime.streams import (
    OutputStream,
    ProcessStream,
    StreamOptions,
    StreamUnavailableError,
)

_CONTAINER_ENDED = "the container has ended"


async def exec_in(
    process: ProcessIdentity,
    launch: LaunchRecord,
    command: Sequence[str],
    request: StreamOptions,
    *,
    clock: Clock,
) -> ProcessStream:
    """Run a command where a container's process is, with what that was given, as the same user.

    Raises NoStreamError if the container has ended or the command cannot be executed. All that
    the command starts ends with the talk, and with the container.
    """
    if not command:
        raise StreamUnavailableError("you must specify at least one command for the container")
    try:
        with ExitStack() as stack:
            target = open_process(process)
            if target is None:
                raise StreamUnavailableError(_CONTAINER_ENDED)
            stack.callback(os.close, target)
            order = _encode_request(process, target, launch, command, request)
            executed = _start(stack, order, target, request, clock)
    except OSError as error:
        raise StreamUnavailableError(f"cannot start a process: {error.strerror}") from error
    try:
        await executed.wait_started()
    except BaseException:
        await executed.close()
        raise
    return executed


async def attach_to(
    directory: ContainerFolder,
    launch: LaunchRecord,
    started: StartRecord,
    request: StreamOptions,
    *,
    clock: Clock,
) -> ProcessStream:
    """Talk to a container: what it writes from now on, and its input if it reads any.

    Raises NoStreamError if it has ended. What it writes is found in its log.
    """
    keeper = open_process(started.keeper)
    if keeper is None:
        raise StreamUnavailableError(_CONTAINER_ENDED)
    attached = ProcessAttachSession(
        directory, launch, started, request, monitor_fd=keeper, clock=clock
    )
    try:
        await attached.start()
    except BaseException:
        await attached.close()
        raise
    return attached


def _encode_request(
    process: ProcessIdentity,
    target: int,
    launch: LaunchRecord,
    command: Sequence[str],
    request: StreamOptions,
) -> bytes:
    """As `inside.order.Order` reads it."""
    found = exec_context(launch)
    terminal = {"TERM": "xterm"} if request.tty else {}
    order = {
        "argv": list(command),
        "env": terminal | found.env,
        "cwd": found.cwd,
        "pid": process.pid,
        "process": target,
        "isolated": launch.bubblewrap is not None,
        "user": found.user,
        "group": found.group,
        "groups": found.groups,
        "capabilities": found.capabilities,
        "seccomp": launch.seccomp,
        "cgroups": list(launch.cgroups),
        "terminal": request.tty,
    }
    return json.dumps(order).encode()


def _start(
    stack: ExitStack, encoded: bytes, target: int, request: StreamOptions, clock: Clock
) -> ProcessExecSession:
    """Start the program that goes inside; what it alone needs is closed with the stack.

    Raises OSError.
    """
    handed = os.memfd_create("order", os.MFD_CLOEXEC)
    stack.callback(os.close, handed)
    os.write(handed, encoded)
    kept = stack.enter_context(ExitStack())
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stack.callback(theirs.close)
    kept.callback(ours.close)
    streams = _Pipes(stack, kept, request)
    passed = theirs.fileno(), handed, target
    program = str(Path(run_exec.__file__))
    process = subprocess.Popen(  # noqa: S603 - no shell, and a program of ours
        [sys.executable, "-I", "-S", "-X", "utf8", program, str(passed[0]), str(passed[1])],
        stdin=streams.stdin,
        stdout=streams.stdout,
        stderr=streams.stderr,
        pass_fds=passed,
        env={},
        cwd="/",
        start_new_session=True,
    )
    kept.callback(_kill, process)
    executed = ProcessExecSession(process, ours, streams.input, streams.outputs, clock)
    kept.pop_all()
    return executed


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Of one that nobody can talk to."""
    process.kill()
    process.wait()


class _Pipes:
    """The ends of the pipes; with a terminal there are none."""

    def __init__(self, stack: ExitStack, parent_stack: ExitStack, request: StreamOptions) -> None:
        self._child_stack, self._parent_stack = stack, parent_stack
        self.outputs: dict[int, OutputStream] = {}
        self.input: int | None = None
        self.stdin = subprocess.DEVNULL
        piped = not request.tty
        if request.stdin and piped:
            self.stdin, self.input = os.pipe2(os.O_CLOEXEC)
            stack.callback(os.close, self.stdin)
            parent_stack.callback(os.close, self.input)
        self.stdout = (
            self._open_output(OutputStream.STDOUT)
            if request.stdout and piped
            else subprocess.DEVNULL
        )
        self.stderr = (
            self._open_output(OutputStream.STDERR)
            if request.stderr and piped
            else subprocess.DEVNULL
        )

    def _open_output(self, stream: OutputStream) -> int:
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        self._child_stack.callback(os.close, theirs)
        self._parent_stack.callback(os.close, ours)
        self.outputs[ours] = stream
        return theirs
