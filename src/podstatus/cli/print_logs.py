"""Print the logs of a container for `podstatus logs`."""

import os
from pathlib import Path

from podstatus.cli.client.https_client import find_agent
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.default_container import ContainerNotFoundError, choose_container
from podstatus.cli.terminal import write, write_bytes


def print_logs(
    root_dir: Path | None, namespace: str, pod: str, container: str | None, query: dict[str, str]
) -> None:
    """Print the log as it arrives; the container as kubectl chooses it. Raises RequestError."""
    node = find_agent(root_dir, os.environ)
    try:
        choice = choose_container(node.get_pod(namespace, pod), container)
    except ContainerNotFoundError as error:
        raise RequestError(str(error)) from error
    for note in choice.notes:
        write(f"{note}\n", err=True)
    write_bytes(node.logs(namespace, pod, choice.name, query))
