"""The load of nodes, from the agent or observer that measures it; the API server has none."""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from podstatus.cli.client.https_client import find_agent
from podstatus.cli.client.query_api_client import QueryClient
from podstatus.cli.client.request_errors import RequestError
from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.node_load import NodeLoad

_TIMEOUT_SECONDS = 2.0
"""The nodes come from the API server: an agent that hangs must not delay them for long."""
_POLL_SECONDS = 5.0
"""Half of the period of an agent's measurements."""


def node_loads(root_dir: Path | None) -> Mapping[str, NodeLoad]:
    """Return the load by node; empty if no agent or observer runs in the root directory."""
    try:
        agent = find_agent(root_dir, os.environ, timeout=_TIMEOUT_SECONDS)
        return {node.name: node.load for node in QueryClient(agent).nodes().nodes}
    except RequestError:
        return {}


class NodePoller:
    """Reads the nodes periodically during a watch, which sends only pods."""

    def __init__(self, root_dir: Path | None) -> None:
        self._root_dir = root_dir
        self._stop = threading.Event()
        self.nodes: Sequence[NodeSummary] = ()
        """The last answer; empty while the agent does not answer."""

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Poll in a thread within the context."""
        threading.Thread(target=self._run, daemon=True).start()
        try:
            yield
        finally:
            self._stop.set()

    def poll_once(self) -> None:
        nodes: Sequence[NodeSummary] = ()
        with suppress(RequestError):
            nodes = QueryClient(find_agent(self._root_dir, os.environ)).nodes().nodes
        self.nodes = nodes

    def _run(self) -> None:
        while not self._stop.is_set():
            self.poll_once()
            self._stop.wait(_POLL_SECONDS)
