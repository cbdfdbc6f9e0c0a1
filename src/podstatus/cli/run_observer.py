"""Run a cluster observer for `podstatus observe`, until it is stopped."""

import asyncio
import os
import shlex
import sys
from functools import partial

import typer

from podstatus.agent.daemon.logging_setup import configure_logging
from podstatus.agent.daemon.root_dir import OBSERVER_FOLDERS
from podstatus.agent.daemon.run_agent import AgentInfo, run_agent
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.observer.cluster_view import ObserverScope
from podstatus.agent.observer.observer import build_observer
from podstatus.agent.observer.settings import load_observe_settings
from podstatus.agent.settings.load import LoadedSettings, SettingsError
from podstatus.cli.errors import fail
from podstatus.cli.setting_options import Flags


def run_observer(flags: Flags, scope: ObserverScope, *, stop_at_eof: bool) -> None:
    """Run until a signal, or the end of standard input; exit with a code after a failure."""
    loaded = _load_settings(flags, scope)
    settings = loaded.settings
    configure_logging(settings.v, settings.log_format)
    for warning in loaded.warnings:
        typer.echo(f"podstatus: {warning}", err=True)
    build = partial(build_observer, scope=scope)
    announce = partial(_announce, scope)
    running = run_agent(
        settings, build, announce, stop_at_eof=stop_at_eof, folders=OBSERVER_FOLDERS
    )
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
        fail("invalid settings:\n" + "\n".join(error.errors), EXIT_CONFIG)


def _announce(scope: ObserverScope, info: AgentInfo) -> None:
    root_dir = shlex.quote(str(info.settings.root_dir))
    typer.echo(f"observing {scope} on the API server {info.apiserver}; press Ctrl-C to stop")
    typer.echo(f"observer: {info.agent}, root-dir: {info.settings.root_dir}\n")
    typer.echo(f"    podstatus watch -A --root-dir {root_dir}")
    sys.stdout.flush()
