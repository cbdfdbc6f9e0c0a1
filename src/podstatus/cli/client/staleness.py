"""Whether an observer hears its API server: what it shows is as old as what it heard last.

An agent knows its own pods from its runtime, however long the API server is away.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from podstatus.cli.client.agent_client import AgentClient
from podstatus.cli.client.api_server import RequestError
from podstatus.cli.client.query_client import QueryClient
from podstatus.cli.terminal import write
from podstatus.observe.summary.health import format_duration
from podstatus.web.v1.wire import StatusResponse

_POLL_SECONDS = 5.0


def staleness_message(agent: AgentClient) -> str:
    """`API server not heard for 4 min 13 s`; empty if it is. Raises CannotAskError."""
    if not agent.is_observer:
        return ""
    freshness = QueryClient(agent).get("/v1/status", {}, StatusResponse).freshness
    if freshness.server_reachable:
        return ""
    return f"API server not heard for {format_duration(freshness.server_age_seconds)}"


def warn_if_stale(agent: AgentClient) -> None:
    """Say it beside what is shown, where it is in nobody's way."""
    # What is wrong with an observer that does not answer is told by whoever asks it for more.
    with suppress(RequestError):
        if told := staleness_message(agent):
            write(f"podstatus: {told}\n", err=True)


class Staleness:
    """The same beside a watch, which sends nothing while nothing is heard: asked now and then."""

    def __init__(
        self, find_agent: Callable[[], AgentClient], report: Callable[[str], None]
    ) -> None:
        """`report` gets the text when it begins, and an empty one when it ends."""
        self._find_agent = find_agent
        self._report = report
        self._stop = threading.Event()
        self.text = ""
        """What there is to say now."""

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Ask again and again meanwhile."""
        threading.Thread(target=self._run, daemon=True).start()
        try:
            yield
        finally:
            self._stop.set()

    def poll_once(self) -> None:
        """Ask, and tell if it begins or ends. An observer that is away tells nothing new."""
        before = self.text
        with suppress(RequestError):
            self.text = staleness_message(self._find_agent())
        if bool(before) != bool(self.text):
            self._report(self.text)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.poll_once()
            self._stop.wait(_POLL_SECONDS)
