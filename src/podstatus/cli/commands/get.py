"""`podstatus get` and `podstatus describe`, for machines without kubectl."""

from typing import Annotated

import typer

from podstatus.cli.completion import complete_described_kind, complete_kind, complete_name
from podstatus.cli.errors import fail, report_errors, usage_error
from podstatus.cli.options import (
    AllNamespacesOption,
    DataSource,
    FieldSelectorOption,
    OutputOption,
    SelectorOption,
    SourceOptions,
    check_label_selector,
    with_bundle,
)

_ALERT_KINDS = ("alerts", "alert")


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
    typer.Argument(metavar="NAME", help="Display only this object.", autocompletion=complete_name),
]
DescribedKindArgument = Annotated[
    str,
    typer.Argument(
        metavar="pods|nodes",
        help="Type of objects to describe.",
        autocompletion=complete_described_kind,
    ),
]
DescribedNameArgument = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Describe only this object.", autocompletion=complete_name),
]
WatchOption = Annotated[
    bool, typer.Option("--watch", "-w", help="After listing the objects, watch for changes.")
]


@with_bundle
def get(
    kind: KindArgument,
    name: NameArgument = None,
    *,
    options: SourceOptions,
    all_namespaces: AllNamespacesOption = False,
    selector: SelectorOption = "",
    field_selector: FieldSelectorOption = "",
    output: OutputOption = None,
    watch: WatchOption = False,
) -> None:
    """Display pods, nodes, events or alerts.

    Tables, JSON and YAML have the format of kubectl get.
    """
    if kind.lower() in _ALERT_KINDS:
        from podstatus.cli.get_alerts import get_alerts

        if options.source is DataSource.SERVER or options.kubeconfig is not None:
            fail("only the agent has alerts, not the API server; leave --from and --kubeconfig out")
        if watch:
            fail("--watch does not support alerts; use actions of the rules for notifications")
        if selector or field_selector:
            usage_error("alerts have no selectors; pass the NAME of a rule, or a --namespace")
        where = None if all_namespaces else options.namespace
        with report_errors():
            get_alerts(options.root_dir, name, where, output)
        return
    if name is not None and (all_namespaces or watch or selector or field_selector):
        usage_error("NAME cannot be combined with -A, --watch or a selector")
    if watch and options.source is DataSource.AGENT:
        usage_error("get --watch requires the API server; to watch the agent use podstatus watch")
    check_label_selector(selector)
    from podstatus.cli.client.server_objects import Selectors
    from podstatus.cli.get_objects import ObjectQuery, get_objects

    query = ObjectQuery(
        kind=kind,
        name=name,
        all_namespaces=all_namespaces,
        selectors=Selectors(labels=selector, fields=field_selector),
        watch=watch,
    )
    with report_errors():
        get_objects(query, options, output)


@with_bundle
def describe(
    kind: DescribedKindArgument, name: DescribedNameArgument = None, *, options: SourceOptions
) -> None:
    """Show details of pods or nodes and their events.

    The format is that of kubectl describe. Without NAME, all pods of the namespace or all nodes
    are described.
    """
    from podstatus.cli.get_objects import describe_objects

    with report_errors():
        describe_objects(kind, name, options)
