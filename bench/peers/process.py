"""The benchmark's end of the pipes to a peer."""

import selectors
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

Answer = TypeVar("Answer")

_FOLDER = Path(__file__).parents[1]
_SECONDS = 120.0
"""Timeout of a response; longer than a burst on a slow machine, so a status was lost."""
_END_SECONDS = 10.0


class Peer:
    """A process that executes orders."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_FOLDER
        )

    def ask(self, order: msgspec.Struct, kind: type[Answer]) -> Answer:
        """Send an order, and return the response."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the peer has no pipes")
        stdin.write(msgspec.json.encode(order) + b"\n")
        stdin.flush()
        # A peer writes one line per order, so the buffer is empty.
        with selectors.DefaultSelector() as chooser:
            chooser.register(stdout, selectors.EVENT_READ)
            line = stdout.readline() if chooser.select(_SECONDS) else b""
        if not line:
            raise SystemExit(f"no response to {order} within {_SECONDS} s: {self._command}")
        return msgspec.json.decode(line, type=kind)

    def close(self) -> None:
        """Close the input, and kill the process if it does not exit."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
