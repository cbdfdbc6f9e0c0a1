"""Optional protocols of a runtime: container logs, commands, exec and attach.

Callers check for them first: `isinstance(runtime, Logs)`, `isinstance(runtime, Streaming)`,
`isinstance(runtime, RunsCommands)`.
"""

from collections.abc import AsyncIterator
from enum import Enum
from typing import Protocol, runtime_checkable

import msgspec

from podstatus.kube.objects.pod import PodUID


class StreamUnavailableError(Exception):
    """The log or process does not exist or cannot be reached; the message is for the client."""


class OutputStream(Enum):
    """Standard stream that a process writes to."""

    STDOUT = "stdout"
    STDERR = "stderr"


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a log request, as in `v1.PodLogOptions`."""

    follow: bool = False
    """Continue with new output until the container has ended."""
    timestamps: bool = False
    """Prefix every line with its time, RFC 3339 with nanoseconds."""
    tail_lines: int | None = None
    """Only the last n lines."""
    since: int | None = None
    """Only lines written at or after this time, ns since the Unix epoch."""
    limit_bytes: int | None = None
    """Maximum number of bytes."""
    stream: OutputStream | None = None
    """Only lines of this stream."""


@runtime_checkable
class Logs(Protocol):
    """A runtime that stores the output of containers."""

    def container_logs(
        self, uid: PodUID, container_id: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        """Yield the log of an attempt in chunks. Raises StreamUnavailableError if it has none."""


class TerminalSize(msgspec.Struct, frozen=True, kw_only=True):
    """Size of the client's terminal, in characters."""

    columns: int
    rows: int


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an exec or attach request: `v1.PodExecOptions`, `v1.PodAttachOptions`."""

    stdin: bool = False
    stdout: bool = True
    stderr: bool = True
    tty: bool = False


class ProcessStream(Protocol):
    """Streams of a process for exec or attach. `close` must always be called in the end."""

    async def read(self) -> tuple[OutputStream, bytes] | None:
        """Return the next chunk of output; None at the end."""

    async def write(self, data: bytes) -> None:
        """Write to standard input; ignored if the process has closed it."""

    async def close_stdin(self) -> None:
        """Close standard input of the process."""

    def resize(self, size: TerminalSize) -> None:
        """Set the size of the process's terminal, if it has one."""

    async def wait(self) -> int:
        """Wait for the process to end; return its exit code, 128 + n if signal n killed it."""

    async def close(self) -> None:
        """Close the session; a process started by exec is killed with all its descendants."""


class CommandOutput(msgspec.Struct, frozen=True, kw_only=True):
    """Exit code and output of a command that has ended."""

    exit_code: int
    output: bytes
    """Standard output, then standard error."""


@runtime_checkable
class RunsCommands(Protocol):
    """A runtime that runs commands without streams: for probes and hooks, instead of `exec`."""

    async def exec_sync(
        self, uid: PodUID, container_id: str, command: tuple[str, ...]
    ) -> CommandOutput:
        """Run a command to its end; a cancellation kills it.

        Raises StreamUnavailableError if it cannot be run.
        """


@runtime_checkable
class Streaming(Protocol):
    """A runtime that can exec in a running container and attach to it."""

    async def exec(
        self, uid: PodUID, container_id: str, command: tuple[str, ...], request: StreamOptions
    ) -> ProcessStream:
        """Run a command in a running container. Raises StreamUnavailableError if that fails."""

    async def attach(self, uid: PodUID, container_id: str, request: StreamOptions) -> ProcessStream:
        """Attach to a running container's streams. Raises StreamUnavailableError if that fails.

        Closing the session leaves the container running.
        """
