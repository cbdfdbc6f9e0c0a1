"""`podstatus observe`: watch a whole cluster and serve queries and alerts for it."""

from typing import Annotated

import typer

from podstatus.agent.observer.settings import OBSERVE_SETTINGS
from podstatus.cli.options import StopAtEofOption
from podstatus.cli.paused_gc import paused_gc
from podstatus.cli.setting_options import Flags, with_settings

NamespaceOption = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Observe only this namespace.")
]
SelectorOption = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="SELECTOR",
        help="Observe only pods that match this label selector.",
    ),
]
NodeOption = Annotated[
    str, typer.Option("--node", metavar="NAME", help="Observe only this node and its pods.")
]


def _observe(
    flags: Flags,
    *,
    namespace: NamespaceOption = "",
    selector: SelectorOption = "",
    node: NodeOption = "",
    stop_at_eof: StopAtEofOption = False,
) -> None:
    """Observe a cluster without changing it.

    Serves the agent's query API, metrics, history and alerts for a whole cluster. Each flag except
    --namespace, --selector and --node can also be set with an environment variable, for example
    PODSTATUS_KUBECONFIG for --kubeconfig.
    """
    with paused_gc():
        from podstatus.agent.observer.cluster_view import ObserverScope
        from podstatus.cli.start.run_observer import run_observer

    scope = ObserverScope(namespace=namespace, selector=selector, node=node)
    run_observer(flags, scope, stop_at_eof=stop_at_eof)


_observe.__name__ = "observe"
observe = with_settings(_observe, OBSERVE_SETTINGS)
