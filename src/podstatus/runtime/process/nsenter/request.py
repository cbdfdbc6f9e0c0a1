"""The agent's exec request (JSON in an inherited file), and the connection to the agent."""

import json
import os
import socket
from typing import NamedTuple


class ExecRequest(NamedTuple):
    """How to run a command in a container."""

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
    """The container's capabilities; None: those of the agent, an ordinary user."""
    seccomp: str
    """The container's seccomp filter, a BPF program in base64; empty for none."""
    cgroups: list[str]
    terminal: bool


def read_request(fd: int) -> ExecRequest:
    """Read the request from the beginning of the file."""
    text = os.pread(fd, os.fstat(fd).st_size, 0)
    return ExecRequest(**json.loads(text))


class ExecError(Exception):
    """The command cannot be run; the message is for the client."""


class AgentConnection:
    """The socket to the agent. The agent sends nothing; closing it ends the command."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected

    def report_started(self, terminal: int | None) -> None:
        """Report that the command runs, and pass the master side of its terminal, if any."""
        message = json.dumps({"started": True}).encode()
        socket.send_fds(self.socket, [message], [] if terminal is None else [terminal])

    def report_error(self, reason: str) -> None:
        """Report that the command cannot be run."""
        self._send({"error": reason[:4096]})

    def report_exit(self, code: int) -> None:
        """Report the command's exit code; processes it started may still run."""
        self._send({"exit": code})

    def _send(self, message: dict[str, object]) -> None:
        try:
            self.socket.send(json.dumps(message).encode())
        except OSError:
            # The agent closed the connection, which the poll loop notices.
            return
