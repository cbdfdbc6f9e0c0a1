"""Shell completion of object types and of the names of the agent's pods and nodes.

Errors are ignored: a completion must not print anything while the user is typing.
"""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from podstatus.cli.client.request_errors import RequestError

if TYPE_CHECKING:
    from podstatus.cli.client.https_client import AgentClient

_KINDS = ("pods", "nodes", "events", "alerts")
_DESCRIBED_KINDS = ("pods", "nodes")
_PODS = ("pod", "pods", "po")
_NODES = ("node", "nodes", "no")
_NAME = re.compile(r"[a-z0-9.-]+", re.ASCII)
"""Other names are dropped: the shell could interpret their characters."""


def complete_kind(incomplete: str) -> list[str]:
    """Complete the object type of `podstatus get`."""
    return [kind for kind in _KINDS if kind.startswith(incomplete)]


def complete_described_kind(incomplete: str) -> list[str]:
    """Complete the object type of `podstatus describe`."""
    return [kind for kind in _DESCRIBED_KINDS if kind.startswith(incomplete)]


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of an object of the given type."""
    kind = str(ctx.params.get("kind") or "").lower()
    if kind in _NODES:
        return _offer(ctx, incomplete, lambda agent, _: _node_names(agent))
    return complete_pods(ctx, incomplete) if kind in _PODS else []


def complete_pod(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a pod name of the given namespace."""
    return _offer(ctx, incomplete, _pod_names)


def complete_timeline(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a pod name of the given namespace, or `node/NAME`."""
    kind, slash, name = incomplete.partition("/")
    if slash and kind in _NODES:
        nodes = _offer(ctx, name, lambda agent, _: _node_names(agent))
        return [f"{kind}/{node}" for node in nodes]
    return complete_pod(ctx, incomplete)


def complete_pods(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete one more pod name of the given namespace."""
    given = ctx.params.get("names") or ()
    return [name for name in complete_pod(ctx, incomplete) if name not in given]


def complete_container(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a container name of the given pod."""
    # An option without its value ends the parsing: the arguments before it are unassigned.
    pod = str(ctx.params.get("pod") or next(iter(ctx.args), ""))
    return _offer(ctx, incomplete, lambda agent, namespace: _containers(agent, namespace, pod))


def _offer(
    ctx: typer.Context,
    incomplete: str,
    find_names: Callable[["AgentClient", str], Iterable[str]],
) -> list[str]:
    from podstatus.cli.client.https_client import find_agent

    params: dict[str, Any] = ctx.params
    root_dir = params.get("root_dir")
    try:
        agent = find_agent(Path(root_dir) if root_dir else None, os.environ)
        names = [*find_names(agent, params.get("namespace") or "default")]
    except RequestError:
        return []
    return [name for name in names if name.startswith(incomplete) and _NAME.fullmatch(name)]


def _pod_names(agent: "AgentClient", namespace: str) -> list[str]:
    from podstatus.kube.unstructured import nested_str

    if agent.is_observer:
        from podstatus.cli.client.query_api_client import QueryClient

        return [pod.name for pod in QueryClient(agent).pods(namespace)]
    return [nested_str(pod, "metadata", "name") for pod in agent.pods(namespace)]


def _node_names(agent: "AgentClient") -> list[str]:
    from podstatus.cli.client.query_api_client import QueryClient

    return [node.name for node in QueryClient(agent).nodes().nodes]


def _containers(agent: "AgentClient", namespace: str, pod: str) -> list[str]:
    from podstatus.cli.print_logs import container_names

    return container_names(agent.get_pod(namespace, pod))
