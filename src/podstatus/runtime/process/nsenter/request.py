"""What the agent wants to be run, as JSON in a file that is handed over; and what it is told."""

import json
import os
import socket
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ExecRequest:
    """How to run a command where a container is."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    pid: int
    process: int
    """A pidfd of the container's command."""
    isolated: bool
    user: int | None
    group: int | None
    groups: list[int] | None
    capabilities: list[int] | None
    """Those it has; None: as the agent's, an ordinary user."""
    seccomp: str
    """The container's filter of system calls, a BPF program in base 64; empty for none."""
    cgroups: list[str]
    terminal: bool


def read_request(fd: int) -> ExecRequest:
    """Read it from its beginning."""
    text = os.pread(fd, os.fstat(fd).st_size, 0)
    return ExecRequest(**json.loads(text))


class ExecError(Exception):
    """The command cannot be run; why, for whoever asked."""


class AgentConnection:
    """The other end of the socket. To hang up is all it ever says."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected

    def report_started(self, terminal: int | None) -> None:
        """The command runs; with a terminal, the agent's side of it."""
        message = json.dumps({"started": True}).encode()
        socket.send_fds(self.socket, [message], [] if terminal is None else [terminal])

    def report_error(self, reason: str) -> None:
        """It will never run."""
        self._send({"error": reason[:4096]})

    def report_exit(self, code: int) -> None:
        """The command has ended; what it started may still run."""
        self._send({"exit": code})

    def _send(self, what: dict[str, object]) -> None:
        try:
            self.socket.send(json.dumps(what).encode())
        except OSError:
            # It hung up, which is noticed where that is waited for.
            return
