"""`podstatus delete`: delete pods, for machines without kubectl."""

from typing import Annotated

import typer

from podstatus.cli.completion import complete_pods
from podstatus.cli.errors import report_errors, usage_error
from podstatus.cli.options import (
    POD_KINDS,
    ClusterOptions,
    SelectorOption,
    check_label_selector,
    parse_names,
    with_bundle,
    within,
)

KindArgument = Annotated[
    str,
    typer.Argument(
        metavar="pod",
        help="Type of the objects; only pods are supported. Leave it out with --filename.",
        autocompletion=lambda: ["pod"],
        show_default=False,
    ),
]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME", help="Names of the pods to delete.", autocompletion=complete_pods
    ),
]
EveryNamespaceOption = Annotated[
    bool,
    typer.Option(
        "--all-namespaces", "-A", help="Delete in all namespaces; requires --selector or --all."
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Delete all pods of the namespace.")]
FilenameOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="Delete the pods of this YAML or JSON file, or - for standard input.",
    ),
]
GracePeriodOption = Annotated[
    int,
    typer.Option(
        metavar="SECONDS",
        callback=within(-1),
        help="Time for each pod to terminate gracefully. Default: that of the pod. Without "
        "--force, 0 is treated as 1.",
        show_default=False,
    ),
]
NowOption = Annotated[bool, typer.Option("--now", help="The same as --grace-period=1.")]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Remove the objects immediately, with a grace period of 0, without waiting for the "
        "node to terminate the containers. This may lose data.",
    ),
]
WaitOption = Annotated[
    bool,
    typer.Option(
        "--wait/--no-wait",
        help="Wait until the pods are terminated and gone. Default: true.",
        show_default=False,
    ),
]


class PodDeletionOptions(ClusterOptions, frozen=True, kw_only=True):
    """Which pods to delete, and how."""

    all_namespaces: EveryNamespaceOption = False
    selector: SelectorOption = ""
    all_: AllOption = False
    filename: FilenameOption = None
    grace_period: GracePeriodOption = -1
    now: NowOption = False
    force: ForceOption = False
    wait: WaitOption = True

    def grace_seconds(self) -> int | None:
        """Combine the options as kubectl does; None means the grace period of each pod."""
        if self.now and self.grace_period >= 0:
            usage_error("--now and --grace-period cannot be combined")
        if self.force and self.grace_period > 0:
            usage_error("--force and --grace-period greater than 0 cannot be combined")
        if self.now:
            return 1
        if self.force:
            return 0
        return None if self.grace_period < 0 else max(1, self.grace_period)


@with_bundle
def delete(
    kind: KindArgument = "pod", names: NamesArgument = None, *, options: PodDeletionOptions
) -> None:
    """Delete pods by name, by label, by file, or all of them.

    Options have the same meaning as in kubectl delete. A static pod is recreated unless its
    manifest is removed.
    """
    kind, given = parse_names(kind, names or ())
    if kind.lower() not in POD_KINDS:
        from podstatus.cli.unsupported_type import refuse_type

        root_dir, kubeconfig = options.root_dir, options.kubeconfig
        refuse_type(
            "delete", kind, given, supported="pods", root_dir=root_dir, kubeconfig=kubeconfig
        )
    if sum(map(bool, (given, options.selector, options.all_, options.filename))) != 1:
        usage_error("pass names of pods, --selector, --all or --filename")
    if options.all_namespaces and not (options.selector or options.all_):
        usage_error("--all-namespaces requires --selector or --all")
    grace_seconds = options.grace_seconds()
    check_label_selector(options.selector)
    from podstatus.cli.actions.delete_pods import PodsToDelete, delete_pods

    pods = PodsToDelete(
        names=given,
        selector=options.selector if options.selector or options.all_ else None,
        all_namespaces=options.all_namespaces,
        files=options.filename or (),
    )
    with report_errors():
        delete_pods(pods, options, grace_seconds, wait=options.wait)
