"""What a runtime may offer besides running: logs, and processes that somebody talks to.

Both are optional: whoever asks looks with `isinstance(runtime, Logging)` first.
"""

from collections.abc import AsyncIterator
from enum import Enum
from typing import Protocol, runtime_checkable

import msgspec

from podstatus.kube.objects.pod import PodUID


class StreamUnavailableError(Exception):
    """There is nothing to read from or to talk to; the message says why, for whoever asked."""


class OutputStream(Enum):
    """What a process writes to."""

    STDOUT = "stdout"
    STDERR = "stderr"


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a container's log, and how; as `v1.PodLogOptions`."""

    follow: bool = False
    """Go on as more is written, until the container has ended."""
    timestamps: bool = False
    """Put when it was written in front of every line, as RFC 3339 with nanoseconds."""
    tail_lines: int | None = None
    """Only so many of the last lines."""
    since: int | None = None
    """Only what was written from this moment on, in nanoseconds since the Unix epoch."""
    limit_bytes: int | None = None
    """At most so many bytes."""
    stream: OutputStream | None = None
    """Only what was written there."""


@runtime_checkable
class Logs(Protocol):
    """A runtime that keeps what containers write."""

    def container_logs(
        self, uid: PodUID, container_id: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        """What an attempt wrote, in pieces. Raises NoStreamError if there is none (any more)."""


class TerminalSize(msgspec.Struct, frozen=True, kw_only=True):
    """How large the terminal of whoever talks is."""

    columns: int
    rows: int


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever talks to a process wants; as `v1.PodExecOptions` and `v1.PodAttachOptions`."""

    stdin: bool = False
    stdout: bool = True
    stderr: bool = True
    tty: bool = False


class ProcessStream(Protocol):
    """A process that somebody talks to. `close` must be called in the end, whatever happened."""

    async def read(self) -> tuple[OutputStream, bytes] | None:
        """The next piece it wrote; None when there is no more."""

    async def write(self, data: bytes) -> None:
        """Hand it input; if it does not want any, nothing happens."""

    async def close_stdin(self) -> None:
        """Let it see the end of its input."""

    def resize(self, size: TerminalSize) -> None:
        """Tell it how large the terminal is, if it has one."""

    async def wait(self) -> int:
        """The exit code, as soon as it has ended: 128 and the signal for one that was killed."""

    async def close(self) -> None:
        """Hang up: a process that was started for this talk is ended, with all it started."""


@runtime_checkable
class Streaming(Protocol):
    """A runtime that can run more processes in a container, and pass on what it reads and says."""

    async def exec(
        self, uid: PodUID, container_id: str, command: tuple[str, ...], request: StreamOptions
    ) -> ProcessStream:
        """Run a command where a running container is. Raises NoStreamError if that cannot be."""

    async def attach(self, uid: PodUID, container_id: str, request: StreamOptions) -> ProcessStream:
        """Talk to a running container itself. Raises NoStreamError if that cannot be.

        Hanging up leaves the container as it is.
        """
