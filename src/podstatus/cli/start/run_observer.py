"""Run a cluster observer for `podstatus observe`, until it is stopped."""

import asyncio
import os
import shlex
import sys
from functools import partial

import typer

from podstatus.agent.daemon.health_reporter import HealthReporter
from podstatus.agent.daemon.logging_setup import configure_logging, dump_stacks_on_abort
from podstatus.agent.daemon.root_dir import OBSERVER_FOLDERS
from podstatus.agent.daemon.run_agent import AgentInfo, run_agent
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.observer.cluster_view import ObserverScope
from podstatus.agent.observer.observer import build_observer
from podstatus.agent.observer.settings import LoadedObserveSettings, load_observe_settings
from podstatus.agent.settings.load import SettingsError
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.system_clock import SystemClock
from podstatus.cli.errors import fail, warn
from podstatus.cli.program import suggested_command
from podstatus.cli.setting_options import Flags
from podstatus.cli.start.listen_ports import observer_port
from podstatus.cli.start.start_banner import observer_banner
from podstatus.cli.start.start_checks import refuse_used_ports, refuse_used_root_dir
from podstatus.cli.start_command import record_start, typed_start


def run_observer(flags: Flags, scope: ObserverScope, *, stop_at_eof: bool) -> None:
    """Run until a signal, or the end of standard input; exit with a code after a failure."""
    dump_stacks_on_abort()
    health = HealthReporter.take(os.environ, SystemClock())
    loaded = _load_settings(flags, scope)
    settings = loaded.settings
    configure_logging(settings.v, settings.log_format)
    for warning in loaded.warnings:
        warn(warning)
    _check_start(settings)
    build = partial(build_observer, scope=scope, own=loaded.observer)
    start = typed_start()

    def announce(info: AgentInfo) -> None:
        record_start(settings.root_dir, start)
        typer.echo(observer_banner(str(scope), info))
        sys.stdout.flush()

    running = run_agent(
        settings,
        build,
        announce,
        health=health,
        stop_at_eof=stop_at_eof,
        folders=OBSERVER_FOLDERS,
    )
    try:
        asyncio.run(running)
    except AgentError as error:
        fail(str(error), error.code)
    typer.echo("stopped")


def _load_settings(flags: Flags, scope: ObserverScope) -> LoadedObserveSettings:
    names = {"--namespace": scope.namespace, "--node": scope.node}
    try:
        return load_observe_settings(flags, os.environ, names, on_terminal=sys.stderr.isatty())
    except SettingsError as error:
        fail("invalid settings:\n" + "\n".join(error.errors), EXIT_CONFIG)


def _check_start(settings: AgentSettings) -> None:
    """Exit if the root directory or the port is in use."""
    refuse_used_root_dir(settings.root_dir, suggested_command("observe --root-dir PATH"))
    command = suggested_command(f"{shlex.join(typed_start().words)} --port 0")
    refuse_used_ports([observer_port(settings)], f"use a free port: {command}")
