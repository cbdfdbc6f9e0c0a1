"""`podstatus logs`: container logs from the running agent, without the API server."""

import os
from pathlib import Path
from typing import Annotated

import typer

from podstatus.cli.client.https_client import find_agent
from podstatus.cli.client.running_agent import RequestError
from podstatus.cli.completion import complete_pod
from podstatus.cli.default_container import ContainerNotFoundError, choose_container
from podstatus.cli.get import NamespaceOption, RootDirOption, report_errors, usage_error
from podstatus.cli.terminal import write, write_bytes
from podstatus.kube.scalars.duration import DurationError, parse_duration

PodNameArgument = Annotated[
    str, typer.Argument(metavar="POD", help="Name of the pod.", autocompletion=complete_pod)
]
ContainerOption = Annotated[
    str | None,
    typer.Option(
        "--container",
        "-c",
        metavar="NAME",
        help="Print the logs of this container or init container.",
    ),
]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Stream the logs.")]
PreviousOption = Annotated[
    bool,
    typer.Option(
        "--previous", "-p", help="Print the logs of the previous instance of the container."
    ),
]
TailOption = Annotated[
    int,
    typer.Option(
        metavar="N", min=-1, help="Number of most recent lines to print; -1 prints all lines."
    ),
]
SinceOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="Print only logs newer than a relative duration, such as 5s, 2m or 3h.",
    ),
]
TimestampsOption = Annotated[
    bool, typer.Option("--timestamps", help="Print a timestamp in front of each line.")
]


def logs(
    pod: PodNameArgument,
    *,
    container: ContainerOption = None,
    namespace: NamespaceOption = None,
    follow: FollowOption = False,
    previous: PreviousOption = False,
    tail: TailOption = -1,
    since: SinceOption = "",
    timestamps: TimestampsOption = False,
    root_dir: RootDirOption = None,
) -> None:
    """Print the logs of a container on this node.

    On a terminal, control characters are escaped; redirected output is not modified.
    """
    flags = {"follow": follow, "previous": previous, "timestamps": timestamps}
    query = {name: "true" for name, is_set in flags.items() if is_set}
    if tail >= 0:
        query["tailLines"] = str(tail)
    if since:
        query["sinceSeconds"] = str(_parse_since(since))
    with report_errors():
        _print_logs(root_dir, namespace or "default", pod, container, query)


def _print_logs(
    root_dir: Path | None, namespace: str, pod: str, container: str | None, query: dict[str, str]
) -> None:
    node = find_agent(root_dir, os.environ)
    try:
        choice = choose_container(node.get_pod(namespace, pod), container)
    except ContainerNotFoundError as error:
        raise RequestError(str(error)) from error
    for note in choice.notes:
        write(f"{note}\n", err=True)
    write_bytes(node.logs(namespace, pod, choice.name, query))


def _parse_since(since: str) -> int:
    """The duration in whole seconds, at least 1, rounded as kubectl does."""
    try:
        seconds = parse_duration(since)
    except DurationError as error:
        usage_error(f"--since: {error}")
    if seconds <= 0:
        usage_error("--since must be greater than 0, such as 5m")
    return max(1, int(seconds + 0.5))
