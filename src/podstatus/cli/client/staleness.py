"""Warnings about stale data of an observer that cannot reach its API server.

An agent's own pods are never stale: their state comes from the runtime.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from podstatus.cli.client.https_client import AgentClient
from podstatus.cli.client.query_api_client import QueryClient
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.terminal import write_message
from podstatus.observe.summary.health import format_duration
from podstatus.web.v1.wire import StatusResponse

_POLL_SECONDS = 5.0


def staleness_message(agent: AgentClient) -> str:
    """Return `no response from the API server for 4 min 13 s`, empty if the data is fresh.

    Raises RequestError.
    """
    if not agent.is_observer:
        return ""
    freshness = QueryClient(agent).get("/v1/status", {}, StatusResponse).freshness
    if freshness.server_reachable:
        return ""
    age = format_duration(freshness.server_age_seconds)
    return f"no response from the API server for {age}"


def warn_if_stale(agent: AgentClient) -> None:
    """Print the staleness, if any, to standard error."""
    # If the observer itself does not answer, the actual request reports it.
    with suppress(RequestError):
        if message := staleness_message(agent):
            write_message(f"podstatus: {message}", err=True)


class Staleness:
    """Polls the staleness during a watch, which sends nothing while the data is stale."""

    def __init__(
        self, find_agent: Callable[[], AgentClient], report: Callable[[str], None]
    ) -> None:
        """`report` receives the message when staleness begins, an empty text when it ends."""
        self._find_agent = find_agent
        self._report = report
        self._stop = threading.Event()
        self.text = ""
        """The current message; empty if the data is fresh."""

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Poll in a thread within the context."""
        threading.Thread(target=self._run, daemon=True).start()
        try:
            yield
        finally:
            self._stop.set()

    def poll_once(self) -> None:
        """Poll, and report a change. An unreachable observer counts as no change."""
        before = self.text
        with suppress(RequestError):
            self.text = staleness_message(self._find_agent())
        if bool(before) != bool(self.text):
            self._report(self.text)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.poll_once()
            self._stop.wait(_POLL_SECONDS)
