"""What `podstatus delete` shows while pods terminate."""

import io
import os
import pty
from collections.abc import Iterator
from typing import TextIO

import pytest

from podstatus.cli.actions import await_deletion as module
from podstatus.cli.actions.await_deletion import DeletedPod, DeletionProgress, await_deletion
from podstatus.cli.client.server_objects import ServerObjects

CLEAR_LINE = "\r\x1b[K"
WEB, DB = DeletedPod("default", "web", "u1", 30), DeletedPod("default", "db", "u2", 5)


class TerminatingPods(ServerObjects):
    """A server on which each pod exists for some more requests."""

    def __init__(self, requests: int) -> None:
        self._left = {pod.name: [pod.uid] * requests for pod in (WEB, DB)}

    def pod_uid(self, namespace: str, name: str) -> str:
        return self._left[name].pop() if self._left[name] else "successor"


@pytest.fixture
def terminal() -> Iterator[tuple[int, TextIO]]:
    """The reading end of a terminal of 80 columns, and the stream that is on it."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        yield ours, stream
    os.close(ours)


def test_a_pipe_gets_a_line_for_each_pod_that_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.0)
    await_deletion(TerminatingPods(3), [WEB, DB])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.0)
    await_deletion(TerminatingPods(3), [WEB, DB])
    assert capsys.readouterr().err == (
        "waiting for pod web to terminate (grace period 30 s; 1 more)\n"
        "waiting for pod db to terminate (grace period 5 s)\n"
    )


def test_a_terminal_has_one_line_that_is_removed_at_the_end(
    terminal: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    ours, stream = terminal
    progress = DeletionProgress(stream)
    for seconds in (1.0, 1.2, 12.9):
        progress.show(WEB, seconds, 0)
    progress.clear()
    shown = ""
    while shown.count(CLEAR_LINE) < 3:
        shown += os.read(ours, 1000).decode()
    assert shown.split(CLEAR_LINE) == [
        "",
        "waiting for pod web to terminate (1 s, grace period 30 s)",
        "waiting for pod web to terminate (12 s, grace period 30 s)",
        "",
    ]


def test_a_line_that_was_not_shown_is_not_removed() -> None:
    stream = io.TextIOWrapper(io.BytesIO())
    DeletionProgress(stream).clear()
    stream.flush()
    assert stream.buffer.getvalue() == b""
