"""`podstatus get` and `podstatus describe`, for machines without kubectl."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from podstatus.cli.completion import complete_kind, complete_pod
from podstatus.cli.errors import fail, report_errors, usage_error
from podstatus.cli.options import (
    AllNamespacesOption,
    NamespaceOption,
    OutputOption,
    RootDirOption,
    with_bundle,
)

_ALERT_KINDS = ("alerts", "alert")
_POD_KINDS = ("pod", "pods", "po")


class DataSource(StrEnum):
    """The sources of objects: API server, agent, or automatic."""

    AUTO = "auto"
    SERVER = "server"
    AGENT = "agent"


KindArgument = Annotated[
    str,
    typer.Argument(
        metavar="pods|nodes|events|alerts",
        help="Type of objects to display.",
        autocompletion=complete_kind,
    ),
]
NameArgument = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Display only this object.", autocompletion=complete_pod),
]
PodKindArgument = Annotated[
    str, typer.Argument(metavar="pod", help="Type of the object; must be pod.")
]
PodNameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the pod.", autocompletion=complete_pod)
]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Path to the kubeconfig of the cluster to query instead of the agent's API server.",
    ),
]
FromOption = Annotated[
    DataSource,
    typer.Option(
        "--from",
        metavar="auto|server|agent",
        help="Where to read the objects from; auto means the API server, or the agent if the API "
        "server is unreachable.",
    ),
]
WatchOption = Annotated[
    bool, typer.Option("--watch", "-w", help="After listing the objects, watch for changes.")
]


class SourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the source of objects."""

    root_dir: RootDirOption = None
    kubeconfig: KubeconfigOption = None
    namespace: NamespaceOption = None
    source: FromOption = DataSource.AUTO


@with_bundle
def get(
    kind: KindArgument,
    name: NameArgument = None,
    *,
    options: SourceOptions,
    all_namespaces: AllNamespacesOption = False,
    output: OutputOption = None,
    watch: WatchOption = False,
) -> None:
    """Display pods, nodes, events or alerts.

    The tables and output formats are the same as in kubectl get.
    """
    if kind.lower() in _ALERT_KINDS:
        from podstatus.cli.get_alerts import get_alerts

        if options.source is DataSource.SERVER or options.kubeconfig is not None:
            fail("only the agent has alerts, not the API server; leave --from and --kubeconfig out")
        if watch:
            fail("--watch does not support alerts; use actions of the rules for notifications")
        where = None if all_namespaces else options.namespace
        with report_errors():
            get_alerts(options.root_dir, name, where, output)
        return
    if name is not None and (all_namespaces or watch):
        usage_error("NAME cannot be combined with -A or --watch")
    if watch and options.source is DataSource.AGENT:
        usage_error("get --watch requires the API server; to watch the agent use podstatus watch")
    from podstatus.cli.get_objects import ObjectQuery, get_objects

    query = ObjectQuery(kind=kind, name=name, all_namespaces=all_namespaces, watch=watch)
    with report_errors():
        get_objects(query, options, output)


@with_bundle
def describe(kind: PodKindArgument, name: PodNameArgument, *, options: SourceOptions) -> None:
    """Show details of a pod and its events."""
    if kind not in _POD_KINDS:
        usage_error(f"cannot describe {kind!r}, only pods; for other objects use kubectl")
    from podstatus.cli.get_objects import describe_named_pod

    with report_errors():
        describe_named_pod(name, options)
