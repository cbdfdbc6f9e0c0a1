"""Wait until deleted pods are gone, and show what is waited for."""

import sys
import time
from collections.abc import Sequence
from typing import TextIO

import msgspec

from podstatus.base.control_chars import escape_control_chars
from podstatus.cli.client.server_objects import ServerObjects
from podstatus.cli.terminal import terminal_width, write_encoded

_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 1.0
"""Nothing is shown for pods that are gone by then."""
_CLEAR_LINE = "\r\x1b[K"


class DeletedPod(msgspec.Struct, frozen=True):
    """A pod whose deletion was accepted."""

    namespace: str
    name: str
    uid: str
    grace_seconds: int


def await_deletion(server: ServerObjects, pods: Sequence[DeletedPod]) -> None:
    """Wait until these pods do not exist any more. Raises RequestError."""
    progress = DeletionProgress(sys.stderr)
    began = time.monotonic()
    try:
        for index, pod in enumerate(pods):
            while server.pod_uid(pod.namespace, pod.name) == pod.uid:
                seconds = time.monotonic() - began
                if seconds >= _PATIENCE_SECONDS:
                    progress.show(pod, seconds, len(pods) - index - 1)
                time.sleep(_POLL_SECONDS)
    finally:
        progress.clear()


class DeletionProgress:
    """A line that is updated on a terminal; otherwise a line for each pod that takes long."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._shown = ""

    def show(self, pod: DeletedPod, seconds: float, others: int) -> None:
        """Show the pod that is waited for; `others`: how many follow."""
        elapsed = f"{int(seconds)} s, " if self._is_terminal else ""
        more = f"; {others} more" if others else ""
        text = (
            f"waiting for pod {pod.name} to terminate ({elapsed}grace period "
            f"{pod.grace_seconds} s{more})"
        )
        if text == self._shown:
            return
        self._shown = text
        if self._is_terminal:
            line = escape_control_chars(text)[: terminal_width() - 1]
            write_encoded(self._stream, f"{_CLEAR_LINE}{line}")
        else:
            write_encoded(self._stream, f"{text}\n")

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self._shown and self._is_terminal:
            write_encoded(self._stream, _CLEAR_LINE)
