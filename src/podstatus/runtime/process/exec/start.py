"""Starts exec and attach sessions.

session = await exec_in(started.process, launch, ("sh",), StreamOptions(stdin=True), clock=clock)
session = await attach_to(folder, launch, started, StreamOptions(), clock=clock)
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
from podstatus.runtime.process import nsenter_program
from podstatus.runtime.process.exec.attach_session import ProcessAttachSession
from podstatus.runtime.process.exec.exec_session import ProcessExecSession
from podstatus.runtime.process.records.launch import exec_context
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
    """Run a command in a container, with its environment and as the same user.

    Raises StreamUnavailableError if the container has ended or the command cannot be executed. All
    processes that the command starts end with the session, and with the container.
    """
    if not command:
        raise StreamUnavailableError("you must specify at least one command for the container")
    try:
        with ExitStack() as stack:
            target = open_process(process)
            if target is None:
                raise StreamUnavailableError(_CONTAINER_ENDED)
            stack.callback(os.close, target)
            encoded = _encode_request(process, target, launch, command, request)
            session = _start(stack, encoded, target, request, clock)
    except OSError as error:
        raise StreamUnavailableError(f"cannot start a process: {error.strerror}") from error
    try:
        await session.wait_started()
    except BaseException:
        await session.close()
        raise
    return session


async def attach_to(
    directory: ContainerFolder,
    launch: LaunchRecord,
    started: StartRecord,
    request: StreamOptions,
    *,
    clock: Clock,
) -> ProcessStream:
    """Attach to a container: its output from now on, and its input if it has one.

    Output is read from the container's log. Raises StreamUnavailableError if the container has
    ended.
    """
    monitor_fd = open_process(started.monitor)
    if monitor_fd is None:
        raise StreamUnavailableError(_CONTAINER_ENDED)
    session = ProcessAttachSession(
        directory, launch, started, request, monitor_fd=monitor_fd, clock=clock
    )
    try:
        await session.start()
    except BaseException:
        await session.close()
        raise
    return session


def _encode_request(
    process: ProcessIdentity,
    target: int,
    launch: LaunchRecord,
    command: Sequence[str],
    request: StreamOptions,
) -> bytes:
    """Encode the request as `nsenter.request.ExecRequest`."""
    context = exec_context(launch)
    terminal = {"TERM": "xterm"} if request.tty else {}
    document = {
        "argv": list(command),
        "env": terminal | launch.env,
        "cwd": context.cwd,
        "pid": process.pid,
        "process": target,
        "isolated": launch.bubblewrap is not None,
        "user": context.user,
        "group": context.group,
        "groups": context.groups,
        "capabilities": context.capabilities,
        "seccomp": launch.seccomp,
        "cgroups": list(launch.cgroups),
        "terminal": request.tty,
    }
    return json.dumps(document).encode()


def _start(
    stack: ExitStack, encoded: bytes, target: int, request: StreamOptions, clock: Clock
) -> ProcessExecSession:
    """Start the `nsenter` program; the child's descriptors are closed with `stack`.

    Raises OSError.
    """
    request_fd = os.memfd_create("request", os.MFD_CLOEXEC)
    stack.callback(os.close, request_fd)
    os.write(request_fd, encoded)
    parent_stack = stack.enter_context(ExitStack())
    parent_socket, child_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stack.callback(child_socket.close)
    parent_stack.callback(parent_socket.close)
    streams = _Pipes(stack, parent_stack, request)
    inherited = child_socket.fileno(), request_fd, target
    program = str(Path(nsenter_program.__file__))
    process = subprocess.Popen(  # noqa: S603 - no shell, and a program of this package
        [sys.executable, "-I", "-S", "-X", "utf8", program, str(inherited[0]), str(inherited[1])],
        stdin=streams.stdin,
        stdout=streams.stdout,
        stderr=streams.stderr,
        pass_fds=inherited,
        env={},
        cwd="/",
        start_new_session=True,
    )
    parent_stack.callback(_kill, process)
    session = ProcessExecSession(process, parent_socket, streams.input, streams.outputs, clock)
    parent_stack.pop_all()
    return session


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


class _Pipes:
    """Both ends of the pipes; with a terminal there are none."""

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
        reader, writer = os.pipe2(os.O_CLOEXEC)
        self._child_stack.callback(os.close, writer)
        self._parent_stack.callback(os.close, reader)
        self.outputs[reader] = stream
        return writer
