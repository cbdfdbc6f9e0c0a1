"""The `podstatus` command line: registration of all commands, `run`, `doctor`, `apiserver`."""

import asyncio
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from podstatus import __version__
from podstatus.agent.compose.agent import build_node_agent
from podstatus.agent.compose.apiserver import build_api_server
from podstatus.agent.daemon.apiserver_main import (
    ApiServerSettings,
    ServeError,
    ServerInfo,
    serve_api,
)
from podstatus.agent.daemon.logging_setup import configure_logging
from podstatus.agent.daemon.run import EXIT_CONFIG, AgentError, AgentInfo, run_agent
from podstatus.agent.daemon.supervisor import Supervisor
from podstatus.agent.settings.load import (
    RESTART_REASON_VARIABLE,
    ROOT_DIR_VARIABLE,
    LoadedSettings,
    SettingsError,
    load_settings,
)
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.aio import SystemClock
from podstatus.base.programs import python_module_command
from podstatus.cli import alerts_rule_tests
from podstatus.cli.alerts import alerts
from podstatus.cli.checks import HINT, PROBLEM, Finding, findings_table, has_problems
from podstatus.cli.doctor import run_checks
from podstatus.cli.drain import drain
from podstatus.cli.get import describe, get
from podstatus.cli.logs import logs
from podstatus.cli.observe import observe
from podstatus.cli.options import Flags, with_settings
from podstatus.cli.stop_message import AgentHolder, program_command
from podstatus.cli.terminal import print_table
from podstatus.cli.timeline import timeline
from podstatus.cli.watch import watch
from podstatus.node.machine.system_info import UPSTREAM_VERSION

app = typer.Typer(
    name="podstatus",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its tables cut the names of options off
)

PROGRAM = python_module_command("podstatus.cli")
"""The command line of this program, for the supervisor."""
_SUPERVISED_FLAGS = ("--no-supervise", "--stop-at-eof")
"""Flags that the supervisor adds to those of the agent."""

RootDirOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIRECTORY",
        help="Directory for objects, certificates and the bearer token of clients. Default: none; "
        "all data is kept in memory.",
    ),
]
HostOption = Annotated[str, typer.Option(help="Address to listen on.")]
PortOption = Annotated[
    int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free port.")
]
FaultsOption = Annotated[
    bool,
    typer.Option("--faults", help="Enable fault injection by clients, at /podstatus/faults."),
]
NodeAuthorityOption = Annotated[
    str | None,
    typer.Option(
        "--node-certificate-authority",
        metavar="FILE",
        help="PEM-encoded CA certificate to verify the nodes' serving certificates; required for "
        "logs and exec.",
    ),
]
NodeAddressOption = Annotated[
    str,
    typer.Option(
        "--node-address",
        metavar="ADDRESS",
        help="Connect to this address for every node. Default: the InternalIP of each Node.",
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
StopAtEofOption = Annotated[
    bool,
    typer.Option(
        "--stop-at-eof",
        hidden=True,
        help="Stop when standard input is closed, that is, with the parent process.",
    ),
]


def _show_version(*, requested: bool) -> None:
    if requested:
        typer.echo(f"podstatus {__version__} (Kubernetes v{UPSTREAM_VERSION})")
        raise typer.Exit


@app.callback()
def podstatus(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda requested: _show_version(requested=requested),
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Kubernetes node agent with an embedded API server."""


@with_settings
def run(flags: Flags, *, stop_at_eof: StopAtEofOption = False) -> None:
    """Run a node: start pods, report their status to the API server.

    Each flag can also be set by an environment variable, for example PODSTATUS_MAX_PODS for
    --max-pods. Flags override environment variables, which override the --config file.
    """
    loaded = _load_settings(flags)
    if loaded.settings.supervise:
        raise typer.Exit(asyncio.run(_supervise(loaded.settings)))
    configure_logging(loaded.settings.v, loaded.settings.log_format)
    for warning in loaded.warnings:
        typer.echo(f"podstatus: {warning}", err=True)
    restart_reason = os.environ.get(RESTART_REASON_VARIABLE, "")
    node = AgentHolder(build_node_agent)
    running = run_agent(
        loaded.settings,
        node.build,
        _announce_node,
        report=_print_line,
        restart_reason=restart_reason,
        stop_at_eof=stop_at_eof,
    )
    try:
        drained = asyncio.run(running)
    except AgentError as error:
        _fail(str(error), error.code)
    remaining = "all pods are terminated" if drained else node.describe_remaining()
    typer.echo(f"stopped; {remaining}. To restart: {_restart_command(flags, loaded.settings)}")


@with_settings
def doctor(flags: Flags) -> None:
    """Check whether a node can run on this machine.

    Takes the flags and environment variables of `podstatus run`.
    """
    try:
        loaded = load_settings(flags, os.environ)
        findings = [Finding("settings", HINT, warning) for warning in loaded.warnings]
        findings += run_checks(loaded.settings)
    except SettingsError as error:
        findings = [Finding("settings", PROBLEM, line) for line in error.errors]
    print_table(findings_table(findings))
    if has_problems(findings):
        raise typer.Exit(1)


app.command()(run)
app.command()(doctor)
app.command()(observe)
app.command()(get)
app.command()(describe)
app.command()(timeline)
app.command()(watch)
app.command()(logs)
app.command()(drain)
alerts.command("test")(alerts_rule_tests.test_rules)
alerts.command()(alerts_rule_tests.defaults)
app.add_typer(alerts)


@app.command()
def apiserver(
    *,
    root_dir: RootDirOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 6443,
    faults: FaultsOption = False,
    node_certificate_authority: NodeAuthorityOption = None,
    node_address: NodeAddressOption = "",
    cluster_id: ClusterIdOption = "",
    stop_at_eof: StopAtEofOption = False,
) -> None:
    """Run the embedded Kubernetes API server without a node."""
    if root_dir == "":
        _fail("--root-dir is empty; pass a directory, or leave it out to keep objects in memory")
    folder = None if root_dir is None else Path(root_dir)
    authority = node_certificate_authority
    configure_logging(0, "text")
    settings = ApiServerSettings(
        root_dir=folder,
        host=host,
        port=port,
        faults=faults,
        cluster_id=cluster_id,
        stop_at_eof=stop_at_eof,
        node_authority=None if authority is None else Path(authority),
        node_address=node_address,
    )
    try:
        asyncio.run(serve_api(settings, build_api_server, _announce_server))
    except ServeError as error:
        _fail(str(error))


def _announce_server(info: ServerInfo) -> None:
    typer.echo(f"serving {info.url}, objects {info.where}; press Ctrl-C to stop\n")
    path = shlex.quote(str(info.kubeconfig))
    typer.echo(f"    kubectl --kubeconfig {path} get pods -A")


def _announce_node(info: AgentInfo) -> None:
    settings = info.settings
    kind = "embedded API server" if settings.embedded else "API server"
    typer.echo(f"node {settings.node_name}, {kind} {info.apiserver}; press Ctrl-C to stop")
    agent = info.agent or "(no server)"
    typer.echo(
        f"container runtime {settings.runtime}, agent {agent}, root-dir {settings.root_dir}\n"
    )
    if info.kubeconfig is not None:
        path = shlex.quote(str(info.kubeconfig))
        typer.echo(f"    kubectl --kubeconfig {path} get pods -A")
    root_dir = shlex.quote(str(settings.root_dir))
    typer.echo(f"    {program_command()} get pods -A --root-dir {root_dir}")
    sys.stdout.flush()


def _restart_command(flags: Flags, settings: AgentSettings) -> str:
    words = [word for word in sys.argv[1:] if word not in _SUPERVISED_FLAGS]
    # The variable may not be set in the shell of the next start.
    if flags["root_dir"] is None and os.environ.get(ROOT_DIR_VARIABLE):
        words += ["--root-dir", str(settings.root_dir)]
    return f"{program_command()} {shlex.join(words)}"


def _load_settings(flags: Flags) -> LoadedSettings:
    try:
        return load_settings(flags, os.environ, on_terminal=sys.stderr.isatty())
    except SettingsError as error:
        _fail("invalid settings:\n" + "\n".join(error.errors), EXIT_CONFIG)


async def _supervise(settings: AgentSettings) -> int:
    supervisor = Supervisor(
        [*PROGRAM, *sys.argv[1:], *_SUPERVISED_FLAGS],
        settings.root_dir,
        clock=SystemClock(),
        write_stderr=_write_stderr,
    )
    supervisor.forward_signals()
    return await supervisor.run()


def _write_stderr(text: bytes) -> None:
    sys.stderr.buffer.write(text)
    sys.stderr.buffer.flush()


def _print_line(line: str) -> None:
    typer.echo(line)
    sys.stdout.flush()


def _fail(message: str, code: int = 1) -> NoReturn:
    typer.echo(f"podstatus: {message}", err=True)
    raise typer.Exit(code)
