"""`podstatus apiserver`: run the embedded API server without a node."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from podstatus.cli.errors import fail
from podstatus.cli.options import StopAtEofOption, parse_positive_duration, with_bundle, within
from podstatus.cli.paused_gc import paused_gc
from podstatus.cli.program import short_path
from podstatus.cli.terminal import write

if TYPE_CHECKING:
    from podstatus.agent.daemon.serve_apiserver import ServerInfo
    from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy

RootDirOption = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Directory where the server stores objects, certificates and the bearer token for "
        "clients. Default: none; all data is kept in memory.",
    ),
]
HostOption = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1.", show_default=False
    ),
]
PortOption = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        callback=within(0, 65535),
        help="Port to listen on; 0 picks a free port. Default: 6443.",
        show_default=False,
    ),
]
FaultsOption = Annotated[
    bool,
    typer.Option("--faults", help="Allow clients to inject faults at /podstatus/faults."),
]
NodeAuthorityOption = Annotated[
    str | None,
    typer.Option(
        "--node-certificate-authority",
        metavar="PATH",
        help="Path to the PEM-encoded CA certificate that serving certificates of nodes are "
        "verified against; required for kubectl logs and kubectl exec.",
    ),
]
NodeAddressOption = Annotated[
    str,
    typer.Option(
        "--node-address",
        metavar="ADDRESS",
        help="Address at which all nodes are reached. Default: the InternalIP of each Node.",
    ),
]
GracePeriodOption = Annotated[
    str,
    typer.Option(
        "--node-monitor-grace-period",
        metavar="DURATION",
        help="How long a Node may be silent, with neither a renewed Lease nor a heartbeat, before "
        "its conditions become Unknown. Default: 40s.",
        show_default=False,
    ),
]
StartupGracePeriodOption = Annotated[
    str,
    typer.Option(
        "--node-startup-grace-period",
        metavar="DURATION",
        help="The same for a Node that has never reported its status. Default: 1m.",
        show_default=False,
    ),
]
MonitorPeriodOption = Annotated[
    str,
    typer.Option(
        "--node-monitor-period",
        metavar="DURATION",
        help="How often it is checked which Nodes are silent. Default: 5s.",
        show_default=False,
    ),
]
ClusterIdOption = Annotated[
    str,
    typer.Option(
        "--cluster-id",
        hidden=True,
        help="Refuse to serve objects of another cluster.",
    ),
]


class NodeFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How nodes are reached, and when one is silent."""

    node_certificate_authority: NodeAuthorityOption = None
    node_address: NodeAddressOption = ""
    node_monitor_grace_period: GracePeriodOption = "40s"
    node_startup_grace_period: StartupGracePeriodOption = "1m"
    node_monitor_period: MonitorPeriodOption = "5s"

    def policy(self) -> "NodeMonitorPolicy":
        """Return the settings of the server; exit with code 2 if a duration is invalid."""
        from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy

        return NodeMonitorPolicy(
            node_monitor_grace_period=parse_positive_duration(
                self.node_monitor_grace_period, "--node-monitor-grace-period"
            ),
            node_startup_grace_period=parse_positive_duration(
                self.node_startup_grace_period, "--node-startup-grace-period"
            ),
            node_monitor_period=parse_positive_duration(
                self.node_monitor_period, "--node-monitor-period"
            ),
        )


@with_bundle
def apiserver(
    *,
    root_dir: RootDirOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 6443,
    faults: FaultsOption = False,
    options: NodeFlags,
    cluster_id: ClusterIdOption = "",
    stop_at_eof: StopAtEofOption = False,
) -> None:
    """Run the embedded Kubernetes API server without a node."""
    with paused_gc():
        import asyncio

        from podstatus.agent.daemon.logging_setup import configure_logging
        from podstatus.agent.daemon.serve_apiserver import ApiServerSettings, serve_api
        from podstatus.agent.errors import AgentError

    if root_dir == "":
        fail("--root-dir is empty; pass a directory, or leave it out to keep objects in memory")
    node_monitor = options.policy()
    folder = None if root_dir is None else Path(root_dir)
    authority = options.node_certificate_authority
    configure_logging(0, "text")
    settings = ApiServerSettings(
        root_dir=folder,
        host=host,
        port=port,
        faults=faults,
        cluster_id=cluster_id,
        stop_at_eof=stop_at_eof,
        node_authority=None if authority is None else Path(authority),
        node_address=options.node_address,
        node_monitor=node_monitor,
    )
    try:
        asyncio.run(serve_api(settings, _announce_server))
    except AgentError as error:
        fail(str(error))


def _announce_server(info: "ServerInfo") -> None:
    path = shlex.quote(short_path(info.kubeconfig))
    write(
        f"serving {info.url}; press Ctrl-C to stop\n  objects are stored {info.where}\n\n"
        f"  kubectl --kubeconfig {path} get pods -A\n"
    )
