"""`podstatus watch`: watch the pods of the running agent, without the API server."""

from typing import Annotated

import typer

from podstatus.cli.errors import report_errors, usage_error
from podstatus.cli.options import (
    POD_KINDS,
    AllNamespacesOption,
    NamespaceOption,
    OutputOption,
    RootDirOption,
    parse_output,
)
from podstatus.cli.program import suggested_command

KindArgument = Annotated[
    str, typer.Argument(metavar="pods", help="Type of the objects; only pods are supported.")
]
SelectorOption = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="SELECTOR",
        help="Show only pods that match this label selector.",
    ),
]


def watch(
    kind: KindArgument = "pods",
    *,
    namespace: NamespaceOption = None,
    all_namespaces: AllNamespacesOption = False,
    selector: SelectorOption = "",
    output: OutputOption = None,
    root_dir: RootDirOption = None,
) -> None:
    """Watch the pods of this node and their health.

    With the root directory of an observer, these are the pods of its cluster. On a terminal,
    prints a table that is updated in place, with the load of the node below it; if the output is
    redirected, prints one line per change.
    """
    if kind.lower() not in POD_KINDS:
        watching = suggested_command("get nodes --watch")
        usage_error(f"cannot watch {kind!r}, only pods; to watch nodes or events: {watching}")
    printed = parse_output(output, "get pods --watch", root_dir)
    query = {} if all_namespaces else {"namespace": namespace or "default"}
    if selector:
        query["labelSelector"] = selector
    from podstatus.cli.watch_pods import watch_pods

    with report_errors():
        watch_pods(root_dir, query, printed, namespaces=all_namespaces)
