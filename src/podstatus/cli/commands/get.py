"""`podstatus get` and `podstatus describe`, for machines without kubectl."""

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from podstatus.cli.completion import complete_described_kind, complete_kind, complete_name
from podstatus.cli.errors import fail, report_errors, usage_error
from podstatus.cli.options import (
    AllNamespacesOption,
    DataSource,
    FieldSelectorOption,
    OutputFormat,
    OutputOption,
    SelectorOption,
    SourceOptions,
    check_label_selector,
    parse_names,
    parse_output,
    with_bundle,
)
from podstatus.cli.program import suggested_command

_ALERT_KINDS = ("alerts", "alert")


KindArgument = Annotated[
    str,
    typer.Argument(
        metavar="pods|nodes|events|alerts",
        help="Type of objects to display.",
        autocompletion=complete_kind,
    ),
]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Display only these objects; also as TYPE/NAME.",
        autocompletion=complete_name,
    ),
]
DescribedKindArgument = Annotated[
    str,
    typer.Argument(
        metavar="pods|nodes",
        help="Type of objects to describe.",
        autocompletion=complete_described_kind,
    ),
]
DescribedNamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Describe only these objects; also as TYPE/NAME.",
        autocompletion=complete_name,
    ),
]
WatchOption = Annotated[
    bool, typer.Option("--watch", "-w", help="After listing the objects, watch for changes.")
]


LabelsOption = Annotated[
    bool, typer.Option("--show-labels", help="Show the labels as the last column.")
]


NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Namespace of the objects. Default: default; for alerts, all namespaces.",
    ),
]


class GetOptions(SourceOptions, frozen=True, kw_only=True):
    """Which objects to display, and how."""

    namespace: NamespaceOption = None
    all_namespaces: AllNamespacesOption = False
    selector: SelectorOption = ""
    field_selector: FieldSelectorOption = ""
    output: OutputOption = None
    watch: WatchOption = False
    show_labels: LabelsOption = False

    def check(self, names: Sequence[str]) -> None:
        """Exit with code 2 if the options and names cannot be combined."""
        if names and (self.all_namespaces or self.selector or self.field_selector):
            usage_error("NAME cannot be combined with -A or a selector")
        if len(names) > 1 and self.watch:
            usage_error("--watch takes one NAME; to watch several objects, select them with -l")
        if self.watch and self.source is DataSource.AGENT:
            watching = suggested_command("watch")
            usage_error(f"get --watch requires the API server; to watch the agent: {watching}")
        check_label_selector(self.selector)


@with_bundle
def get(kind: KindArgument, names: NamesArgument = None, *, options: GetOptions) -> None:
    """Display pods, nodes, events or alerts.

    Tables, JSON and YAML have the format of kubectl get.
    """
    kind, given = parse_names(kind, names or ())
    words = shlex.join(["get", kind, *given])
    output = parse_output(options.output, words, options.root_dir, options.kubeconfig)
    if kind.lower() in _ALERT_KINDS:
        _get_alerts(given, options, output)
        return
    options.check(given)
    from podstatus.cli.client.server_objects import Selectors
    from podstatus.cli.get_objects import ObjectQuery, get_objects

    query = ObjectQuery(
        kind=kind,
        names=tuple(given),
        all_namespaces=options.all_namespaces,
        selectors=Selectors(labels=options.selector, fields=options.field_selector),
        watch=options.watch,
        labels=options.show_labels,
    )
    with report_errors():
        is_complete = get_objects(query, options, output)
    if not is_complete:
        raise typer.Exit(1)


def _get_alerts(names: Sequence[str], options: GetOptions, output: OutputFormat | None) -> None:
    from podstatus.cli.get_alerts import get_alerts

    if options.source is DataSource.SERVER or options.kubeconfig is not None:
        fail("only the agent has alerts, not the API server; leave --from and --kubeconfig out")
    if options.watch:
        fail("--watch does not support alerts; use actions of the rules for notifications")
    if options.selector or options.field_selector or options.show_labels or len(names) > 1:
        usage_error("to select alerts, pass the NAME of one rule, or a --namespace")
    where = None if options.all_namespaces else options.namespace
    with report_errors():
        get_alerts(options.root_dir, names[0] if names else None, where, output)


@with_bundle
def describe(
    kind: DescribedKindArgument, names: DescribedNamesArgument = None, *, options: SourceOptions
) -> None:
    """Show details of pods or nodes and their events.

    The format is that of kubectl describe. Without NAME, all pods of the namespace or all nodes
    are described.
    """
    kind, given = parse_names(kind, names or ())
    from podstatus.cli.get_objects import describe_objects

    with report_errors():
        is_complete = describe_objects(kind, given, options)
    if not is_complete:
        raise typer.Exit(1)
