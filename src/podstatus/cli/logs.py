"""`podstatus logs`: what containers wrote, from the running agent, without the API server."""

import os
from pathlib import Path
from typing import Annotated

import typer

from podstatus.cli.client.agent_client import find_node
from podstatus.cli.client.api_server import CannotAskError
from podstatus.cli.completion import complete_pod
from podstatus.cli.default_container import NoContainerError, choose_container
from podstatus.cli.get import Namespace, RootDir, complaining, mistaken
from podstatus.cli.terminal import show, show_bytes
from podstatus.kube.scalars.duration import DurationError, parse_duration

PodName = Annotated[
    str, typer.Argument(metavar="POD", help="Whose logs.", autocompletion=complete_pod)
]
ContainerName = Annotated[
    str | None,
    typer.Option("--container", "-c", metavar="NAME", help="Of this container, or init container."),
]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is written.")]
Previous = Annotated[
    bool, typer.Option("--previous", "-p", help="Of the attempt before, if it was restarted.")
]
Tail = Annotated[
    int, typer.Option(metavar="N", min=-1, help="Only so many of the last lines; -1: all.")
]
Since = Annotated[
    str, typer.Option(metavar="DURATION", help="Only what is newer, such as 5s, 2m or 3h.")
]
Timestamps = Annotated[bool, typer.Option("--timestamps", help="Say when each line was written.")]


def logs(
    pod: PodName,
    *,
    container: ContainerName = None,
    namespace: Namespace = None,
    follow: Follow = False,
    previous: Previous = False,
    tail: Tail = -1,
    since: Since = "",
    timestamps: Timestamps = False,
    root_dir: RootDir = None,
) -> None:
    """Print what a container of this node wrote.

    On a terminal, escape sequences are shown instead of obeyed; a file or a pipe gets every byte.
    """
    flags = {"follow": follow, "previous": previous, "timestamps": timestamps}
    query = {name: "true" for name, wanted in flags.items() if wanted}
    if tail >= 0:
        query["tailLines"] = str(tail)
    if since:
        query["sinceSeconds"] = str(_seconds(since))
    with complaining():
        _show(root_dir, namespace or "default", pod, container, query)


def _show(
    root_dir: Path | None, namespace: str, pod: str, container: str | None, query: dict[str, str]
) -> None:
    node = find_node(root_dir, os.environ)
    try:
        choice = choose_container(node.find_pod(namespace, pod), container)
    except NoContainerError as error:
        raise CannotAskError(str(error)) from error
    for note in choice.notes:
        show(f"{note}\n", err=True)
    show_bytes(node.logs(namespace, pod, choice.name, query))


def _seconds(since: str) -> int:
    """As kubectl: to the nearest second, and at least one."""
    try:
        seconds = parse_duration(since)
    except DurationError as error:
        mistaken(f"--since: {error}")
    if seconds <= 0:
        mistaken("--since must be greater than 0, such as 5m")
    return max(1, int(seconds + 0.5))
