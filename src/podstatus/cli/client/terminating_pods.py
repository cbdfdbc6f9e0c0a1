"""The health of pods that their node terminates, from its agent.

The API server shows such a pod as running until none of its containers runs.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from podstatus.cli.client.https_client import find_agent
from podstatus.cli.client.query_api_client import QueryClient
from podstatus.cli.client.request_errors import RequestError
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.summary.health import PodHealth

_TIMEOUT_SECONDS = 2.0
"""The pods come from the API server: an agent that hangs must not delay them for long."""


def terminating_pods(root_dir: Path | None) -> Mapping[PodUID, PodHealth]:
    """Return the health by UID; empty if no agent of a node runs in the root directory."""
    try:
        agent = find_agent(root_dir, os.environ, timeout=_TIMEOUT_SECONDS)
        if agent.is_observer:
            return {}
        pods = QueryClient(agent).pods(None, health="ending")
    except RequestError:
        return {}
    return {pod.uid: pod.health for pod in pods if pod.terminating is not None}
