"""What the benchmark of the sync and its peers say to each other: one JSON object in a line.

A peer is a process that reads orders from its standard input and answers each on its standard
output. A contender is told `Start` once, then for each burst a `Flip`, which it answers as soon
as all is under way, and a `Report`, when all flips have been seen. It ends with its input.
Times are those of the machine's clock, the one that all of them share.
"""

import asyncio
import sys
from typing import TypeVar

import msgspec

Order = TypeVar("Order")


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server is, who you are there, and how to go about it."""

    server: str
    token: str
    authority: str
    """The file with the certificate to trust."""
    node: str
    policy: str = "default"
    """Of the status manager: the one it ships with, or `upstream`."""
    qps: float = -1
    """Of the Go kubelet: requests a second, none of ours has a limit; -1 for no limit."""
    burst: int = 0


class Started(msgspec.Struct, frozen=True):
    """All pods of the node are known."""

    pods: int
    ready: bool


class Flip(msgspec.Struct, frozen=True, omit_defaults=True):
    """Let all pods be ready, or none; or, if it says neither, report."""

    ready: bool | None = None
    connections: int = 0
    """Of the bare loop."""


class Set(msgspec.Struct, frozen=True):
    """The flips are under way since then."""

    began_ns: int


class Report(msgspec.Struct, frozen=True):
    """What the last burst took."""

    cpu_seconds: float
    requests: int


class Await(msgspec.Struct, frozen=True):
    """To the observer: say when you have seen all pods of a node like this."""

    node: str
    ready: bool


class Seen(msgspec.Struct, frozen=True):
    """When each pod was seen first as it is now."""

    at_ns: list[int]


class Lines:
    """A peer's end of the pipes."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    @classmethod
    async def open(cls) -> "Lines":
        """Standard input and output."""
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        return cls(reader)

    async def read(self, kind: type[Order]) -> Order | None:
        """The next order; None if there will be none."""
        line = await self._reader.readline()
        return msgspec.json.decode(line, type=kind) if line else None

    def write(self, answer: msgspec.Struct) -> None:
        """Answer."""
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()
