"""`podstatus logs`: container logs from the running agent, without the API server."""

from typing import Annotated

import msgspec
import typer

from podstatus.cli.completion import complete_container
from podstatus.cli.errors import report_errors
from podstatus.cli.options import (
    NamespaceOption,
    PodArgument,
    RootDirOption,
    parse_positive_duration,
    with_bundle,
    within,
)

ContainerOption = Annotated[
    str | None,
    typer.Option(
        "--container",
        "-c",
        metavar="NAME",
        help="Print the logs of this container or init container. Default: the container named in "
        "the annotation kubectl.kubernetes.io/default-container, or the first container.",
        autocompletion=complete_container,
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
        metavar="N",
        callback=within(-1),
        help="Number of most recent lines to print. Default: all.",
        show_default=False,
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


class LogsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the lines to print."""

    follow: FollowOption = False
    previous: PreviousOption = False
    tail: TailOption = -1
    since: SinceOption = ""
    timestamps: TimestampsOption = False

    def query(self) -> dict[str, str]:
        """Return the query of the kubelet API."""
        flags = {"follow": self.follow, "previous": self.previous, "timestamps": self.timestamps}
        query = {name: "true" for name, is_set in flags.items() if is_set}
        if self.tail >= 0:
            query["tailLines"] = str(self.tail)
        if self.since:
            seconds = parse_positive_duration(self.since, "--since")
            query["sinceSeconds"] = str(max(1, int(seconds + 0.5)))  # rounded as kubectl does
        return query


@with_bundle
def logs(
    pod: PodArgument,
    *,
    container: ContainerOption = None,
    namespace: NamespaceOption = None,
    options: LogsOptions,
    root_dir: RootDirOption = None,
) -> None:
    """Print the logs of a container on this node.

    On a terminal, control characters are escaped; redirected output is not modified.
    """
    query = options.query()
    from podstatus.cli.print_logs import print_logs

    with report_errors():
        print_logs(root_dir, namespace or "default", pod, container, query)
