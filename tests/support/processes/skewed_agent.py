"""`podstatus run`, as a program, with a wall clock that others may step.

    python skewed_agent.py OFFSET_FILE run …

The file has nanoseconds to add to the time, 8 bytes, which are read at every call of `time.time`
and `time.time_ns` in this process. Monotonic clocks, the times of files and other processes (shims,
containers, the API server) keep the machine's clock.
"""

import mmap
import sys
import time
from pathlib import Path

from podstatus.cli.register_commands import app

SIZE = 8


def skew_time_module(file: Path) -> None:
    """Let this process have the machine's wall clock and what a file adds to it."""
    with file.open("rb") as opened:
        offset = mmap.mmap(opened.fileno(), SIZE, prot=mmap.PROT_READ)
    read = time.time_ns

    def time_ns() -> int:
        return read() + int.from_bytes(offset[:SIZE], "little", signed=True)

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def set_offset(file: Path, seconds: float) -> None:
    """Let clocks that read this file be so far ahead."""
    offset = int(seconds * 1e9).to_bytes(SIZE, "little", signed=True)
    if not file.exists():
        file.write_bytes(offset)
    with file.open("r+b") as opened:
        opened.write(offset)


def main() -> None:
    skew_time_module(Path(sys.argv.pop(1)))
    app()


if __name__ == "__main__":
    main()
