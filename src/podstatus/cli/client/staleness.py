"""Whether an observer hears its API server: what it shows is as old as what it heard last.

An agent knows its own pods from its runtime, however long the API server is away.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from podstatus.cli.client.agent_client import NodePort
from podstatus.cli.client.api_server import CannotAskError
from podstatus.cli.client.query_client import QueryPort
from podstatus.cli.terminal import show
from podstatus.observe.status_view import Knowledge
from podstatus.observe.summary.health import span

_AGAIN_SECONDS = 5.0


class _Status(msgspec.Struct, frozen=True):
    knowledge: Knowledge = Knowledge()


def server_silence(node: NodePort) -> str:
    """`API server not heard for 4 min 13 s`; empty if it is. Raises CannotAskError."""
    if not node.observes:
        return ""
    known = QueryPort(node).answer("/v1/status", {}, _Status).knowledge
    if known.server_reachable:
        return ""
    return f"API server not heard for {span(known.server_age_seconds)}"


def tell_silence(node: NodePort) -> None:
    """Say it beside what is shown, where it is in nobody's way."""
    # What is wrong with an observer that does not answer is told by whoever asks it for more.
    with suppress(CannotAskError):
        if told := server_silence(node):
            show(f"podstatus: {told}\n", err=True)


class Silence:
    """The same beside a watch, which sends nothing while nothing is heard: asked now and then."""

    def __init__(self, find: Callable[[], NodePort], tell: Callable[[str], None]) -> None:
        """`tell` gets the text when it begins, and an empty one when it ends."""
        self._find = find
        self._tell = tell
        self._end = threading.Event()
        self.text = ""
        """What there is to say now."""

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Ask again and again meanwhile."""
        threading.Thread(target=self._run, daemon=True).start()
        try:
            yield
        finally:
            self._end.set()

    def ask_once(self) -> None:
        """Ask, and tell if it begins or ends. An observer that is away tells nothing new."""
        before = self.text
        with suppress(CannotAskError):
            self.text = server_silence(self._find())
        if bool(before) != bool(self.text):
            self._tell(self.text)

    def _run(self) -> None:
        while not self._end.is_set():
            self.ask_once()
            self._end.wait(_AGAIN_SECONDS)
