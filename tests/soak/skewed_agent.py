"""`podstatus run`, as a program, with a clock that others may set.

    python skewed_agent.py OFFSET_FILE run …

The file has nanoseconds to add to the time, 8 bytes. It is looked at whenever somebody asks
what time it is.
"""

import mmap
import sys
import time
from pathlib import Path

from podstatus.agent.compose.agent import NodeAgent
from podstatus.agent.compose.runtime import build_runtime
from podstatus.agent.daemon.run_agent import AgentContext
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.base.system_clock import SystemClock
from podstatus.cli import run as run_command
from podstatus.cli.register_commands import app

SIZE = 8


class SkewedClock(SystemClock):
    """The machine's, and what a file adds to it."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as opened:
            self._offset = mmap.mmap(opened.fileno(), SIZE, prot=mmap.PROT_READ)

    def now(self) -> int:
        return time.time_ns() + int.from_bytes(self._offset[:SIZE], "little", signed=True)


def set_offset(file: Path, seconds: float) -> None:
    """Let clocks that read this file be so far ahead."""
    offset = int(seconds * 1e9).to_bytes(SIZE, "little", signed=True)
    if not file.exists():
        file.write_bytes(offset)
    with file.open("r+b") as opened:
        opened.write(offset)


def main() -> None:
    clock = SkewedClock(Path(sys.argv.pop(1)))

    def build(context: AgentContext) -> NodeAgent:
        return NodeAgent(context, clock, Heartbeats(clock), build_runtime)

    run_command.build_node_agent = build  # type: ignore[attr-defined]
    app()


if __name__ == "__main__":
    main()
