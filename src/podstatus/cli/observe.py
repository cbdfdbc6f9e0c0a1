"""`podstatus observe`: look on at a whole cluster, and answer for it."""

import asyncio
import os
import shlex
import sys
from functools import partial
from typing import Annotated

import typer

from podstatus.agent.daemon.logging_setup import configure_logging
from podstatus.agent.daemon.run import EXIT_CONFIG, AgentError, AgentInfo, run_agent
from podstatus.agent.observer.cluster_view import ObserverScope
from podstatus.agent.observer.observer import build_observer
from podstatus.agent.observer.settings import OBSERVE_SETTINGS, load_observe_settings
from podstatus.agent.settings.load import LoadedSettings, SettingsError
from podstatus.cli.get import fail
from podstatus.cli.options import Flags, with_settings

_FOLDERS = ("logs", "pki")

NamespaceOption = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Pods of this namespace alone.")
]
SelectorOption = Annotated[
    str,
    typer.Option("--selector", "-l", metavar="LABELS", help="Pods with labels like these alone."),
]
NodeOption = Annotated[
    str, typer.Option("--node", metavar="NAME", help="This node and its pods alone.")
]
StopAtEofOption = Annotated[
    bool,
    typer.Option(
        "--stop-at-eof",
        hidden=True,
        help="End when the standard input does: with the process that started this one.",
    ),
]


def _observe(
    flags: Flags,
    *,
    namespace: NamespaceOption = "",
    selector: SelectorOption = "",
    node: NodeOption = "",
    stop_at_eof: StopAtEofOption = False,
) -> None:
    """Look on at a cluster, and answer for it as an agent does for its node, until interrupted.

    It writes nothing to the cluster. Each option but those that choose pods can also be given as
    an environment variable, --kubeconfig as PODSTATUS_KUBECONFIG.
    """
    observed = ObserverScope(namespace=namespace, selector=selector, node=node)
    found = _load_settings(flags, observed)
    settings = found.settings
    configure_logging(settings.v, settings.log_format)
    for note in found.warnings:
        typer.echo(f"podstatus: {note}", err=True)
    build = partial(build_observer, scope=observed)
    announce = partial(_announce, observed)
    running = run_agent(settings, build, announce, stop_at_eof=stop_at_eof, folders=_FOLDERS)
    try:
        asyncio.run(running)
    except AgentError as error:
        fail(str(error), error.code)
    typer.echo("stopped")


def _load_settings(flags: Flags, scope: ObserverScope) -> LoadedSettings:
    names = {"--namespace": scope.namespace, "--node": scope.node}
    try:
        return load_observe_settings(flags, os.environ, names, on_terminal=sys.stderr.isatty())
    except SettingsError as error:
        fail("these settings cannot be used:\n" + "\n".join(error.errors), EXIT_CONFIG)


def _announce(scope: ObserverScope, info: AgentInfo) -> None:
    root_dir = shlex.quote(str(info.settings.root_dir))
    typer.echo(f"observing {scope} at the API server {info.apiserver}; stop with Ctrl-C")
    typer.echo(f"port {info.agent}, files {info.settings.root_dir}\n")
    typer.echo(f"    podstatus watch -A --root-dir {root_dir}")
    sys.stdout.flush()


_observe.__name__ = "observe"
observe = with_settings(_observe, OBSERVE_SETTINGS)
