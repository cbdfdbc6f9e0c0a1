"""`podstatus watch`: watch the pods of the running agent, without the API server."""

from typing import Annotated

import typer

from podstatus.cli.errors import report_errors, usage_error
from podstatus.cli.options import (
    AllNamespacesOption,
    NamespaceOption,
    OutputOption,
    RootDirOption,
)

KindArgument = Annotated[
    str, typer.Argument(metavar="pods", help="Type of the objects; must be pods.")
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
    """Watch pods and their health.

    On a terminal, prints a table that is updated in place; if the output is redirected, prints one
    line per change.
    """
    if kind.lower() not in ("pods", "pod", "po"):
        usage_error(f"cannot watch {kind!r}, only pods; for other objects use kubectl get --watch")
    query = {} if all_namespaces else {"namespace": namespace or "default"}
    if selector:
        query["labelSelector"] = selector
    from podstatus.cli.watch_pods import watch_pods

    with report_errors():
        watch_pods(root_dir, query, output, namespaces=all_namespaces)
