"""The protocol between the sync benchmark and its peers: one JSON object per line.

A peer is a process that reads orders from standard input and writes one response to each on
standard output. A contender gets `Start` once, then for each burst a `Flip`, to which it responds
with `Set`, and an empty `Flip` when all flips have been observed, to which it responds with a
`Report`. It exits at the end of its input. Times are wall-clock times of the machine.
"""

import asyncio
import sys
from typing import TypeVar

import msgspec

Order = TypeVar("Order")


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The server, the credentials and the options of a peer."""

    server: str
    token: str
    authority: str
    """The path of the CA file."""
    node: str
    policy: str = "default"
    """Sync policy of the status manager: `default` or `upstream`."""
    qps: float = -1
    """Requests per second of the Go kubelet only; -1 for no limit."""
    burst: int = 0


class Started(msgspec.Struct, frozen=True):
    """The peer has listed all pods of its node."""

    pods: int
    ready: bool


class Flip(msgspec.Struct, frozen=True, omit_defaults=True):
    """Make all pods ready or unready; without `ready`, send a report."""

    ready: bool | None = None
    connections: int = 0
    """Connections of the bare loop."""


class Set(msgspec.Struct, frozen=True):
    """The time at which the first status was set."""

    began_ns: int


class Report(msgspec.Struct, frozen=True):
    """The cost of the last burst."""

    cpu_seconds: float
    requests: int


class Await(msgspec.Struct, frozen=True):
    """An order to the observer: respond when all pods of a node have this readiness."""

    node: str
    ready: bool


class Seen(msgspec.Struct, frozen=True):
    """The time at which each pod was first observed in its current state."""

    at_ns: list[int]


class Lines:
    """A peer's end of the pipes."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    @classmethod
    async def open(cls) -> "Lines":
        """Connect to standard input and output."""
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        return cls(reader)

    async def read(self, kind: type[Order]) -> Order | None:
        """Return the next order; None at the end of the input."""
        line = await self._reader.readline()
        return msgspec.json.decode(line, type=kind) if line else None

    def write(self, answer: msgspec.Struct) -> None:
        """Write a response as one line."""
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()
