"""`podstatus observe`: look on at a whole cluster, and answer for it."""

import asyncio
import os
import shlex
import sys
from functools import partial
from typing import Annotated

import typer

from podstatus.agent.daemon.logging_setup import configure_logs
from podstatus.agent.daemon.run import MISTAKE, CannotRunError, Running, run_agent
from podstatus.agent.observer.cluster_view import Observed
from podstatus.agent.observer.observer import build_observer
from podstatus.agent.observer.settings import OBSERVE_SETTINGS, read_observe_settings
from podstatus.agent.settings.load import Found, SettingsError
from podstatus.cli.get import fail
from podstatus.cli.options import Flags, with_settings

_FOLDERS = ("logs", "pki")

Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Pods of this namespace alone.")
]
Selector = Annotated[
    str,
    typer.Option("--selector", "-l", metavar="LABELS", help="Pods with labels like these alone."),
]
Node = Annotated[str, typer.Option("--node", metavar="NAME", help="This node and its pods alone.")]
StopAtEof = Annotated[
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
    namespace: Namespace = "",
    selector: Selector = "",
    node: Node = "",
    stop_at_eof: StopAtEof = False,
) -> None:
    """Look on at a cluster, and answer for it as an agent does for its node, until interrupted.

    It writes nothing to the cluster. Each option but those that choose pods can also be given as
    an environment variable, --kubeconfig as PODSTATUS_KUBECONFIG.
    """
    observed = Observed(namespace=namespace, selector=selector, node=node)
    found = _settings(flags, observed)
    settings = found.settings
    configure_logs(settings.v, settings.log_format)
    for note in found.notes:
        typer.echo(f"podstatus: {note}", err=True)
    build = partial(build_observer, observed=observed)
    announce = partial(_announce, observed)
    running = run_agent(settings, build, announce, stop_at_eof=stop_at_eof, folders=_FOLDERS)
    try:
        asyncio.run(running)
    except CannotRunError as error:
        fail(str(error), error.code)
    typer.echo("stopped")


def _settings(flags: Flags, observed: Observed) -> Found:
    names = {"--namespace": observed.namespace, "--node": observed.node}
    try:
        return read_observe_settings(flags, os.environ, names, on_terminal=sys.stderr.isatty())
    except SettingsError as error:
        fail("these settings cannot be used:\n" + "\n".join(error.mistakes), MISTAKE)


def _announce(observed: Observed, running: Running) -> None:
    root_dir = shlex.quote(str(running.settings.root_dir))
    typer.echo(f"observing {observed} at the API server {running.apiserver}; stop with Ctrl-C")
    typer.echo(f"port {running.agent}, files {running.settings.root_dir}\n")
    typer.echo(f"    podstatus watch -A --root-dir {root_dir}")
    sys.stdout.flush()


_observe.__name__ = "observe"
observe = with_settings(_observe, OBSERVE_SETTINGS)
