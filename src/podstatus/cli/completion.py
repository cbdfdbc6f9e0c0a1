"""Shell completion of object types and of the names of the agent's pods.

Errors are ignored: a completion must not print anything while the user is typing.
"""

import os
import re
from pathlib import Path
from typing import Any

import typer

from podstatus.cli.client.request_errors import RequestError

_KINDS = ("pods", "nodes", "events", "alerts")
_PODS = ("pod", "pods", "po")
_NAME = re.compile(r"[a-z0-9.-]+", re.ASCII)
"""Other names are dropped: the shell could interpret their characters."""


def complete_kind(incomplete: str) -> list[str]:
    """Complete the object type of `podstatus get`."""
    return [kind for kind in _KINDS if kind.startswith(incomplete)]


def complete_pod(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a pod name of the given namespace; nothing for other object types."""
    params: dict[str, Any] = ctx.params
    if params.get("kind") not in (None, *_PODS):
        return []
    root_dir = params.get("root_dir")
    try:
        where = params.get("namespace") or "default"
        names = _pod_names(Path(root_dir) if root_dir else None, where)
    except RequestError:
        return []
    return [name for name in names if name.startswith(incomplete) and _NAME.fullmatch(name)]


def _pod_names(root_dir: Path | None, namespace: str) -> list[str]:
    from podstatus.cli.client.https_client import find_agent
    from podstatus.kube.unstructured import nested_str

    agent = find_agent(root_dir, os.environ)
    if agent.is_observer:
        from podstatus.cli.client.query_api_client import QueryClient

        return [pod.name for pod in QueryClient(agent).pods(namespace)]
    return [nested_str(pod, "metadata", "name") for pod in agent.pods(namespace)]
