"""Run a node agent for `podstatus run`, optionally under a supervisor, until it is stopped."""

import asyncio
import os
import shlex
import sys

import typer

from podstatus.agent.compose.agent import NodeAgent, build_node_agent
from podstatus.agent.daemon.decide.hang import HangLimits
from podstatus.agent.daemon.health_reporter import HealthReporter
from podstatus.agent.daemon.logging_setup import configure_logging, dump_stacks_on_abort
from podstatus.agent.daemon.run_agent import (
    AgentContext,
    AgentInfo,
    BuildAgent,
    RunnableAgent,
    run_agent,
)
from podstatus.agent.daemon.sd_notify import SystemdService
from podstatus.agent.daemon.supervisor import Supervisor
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.settings.load import (
    RESTART_REASON_VARIABLE,
    LoadedSettings,
    SettingsError,
    load_settings,
)
from podstatus.agent.settings.model import AgentSettings
from podstatus.apiserver.storage.sqlite_file import DATABASE
from podstatus.base.system_clock import SystemClock
from podstatus.cli.actions.external_node import end_command
from podstatus.cli.errors import fail, warn
from podstatus.cli.program import (
    PROGRAM,
    PROGRAM_VARIABLE,
    suggested_command,
    typed_program,
)
from podstatus.cli.setting_options import Flags
from podstatus.cli.start.start_banner import node_banner
from podstatus.cli.start.start_checks import (
    needed_ports,
    refuse_used_ports,
    refuse_used_root_dir,
    replace_used_ports,
)
from podstatus.cli.start_command import (
    SUPERVISED_FLAGS,
    format_second_start,
    format_start,
    record_start,
    typed_start,
)

HANG_LIMITS = HangLimits()
_KEEP_RUNNING = "the containers keep running"


def run_node(flags: Flags, *, use_free_ports: bool, stop_at_eof: bool, from_make: bool) -> None:
    """Run until a signal, or the end of standard input; exit with a code after a failure.

    `from_make`: `make run` was typed, not this command.
    """
    dump_stacks_on_abort()
    # Before any child process is started: none may have the variables of systemd.
    health = HealthReporter.take(os.environ, SystemClock())
    loaded = _load_settings(flags)
    if loaded.settings.supervise:
        raise typer.Exit(asyncio.run(_supervise(loaded.settings, health.systemd)))
    settings = _check_start(loaded.settings, use_free_ports=use_free_ports, from_make=from_make)
    configure_logging(settings.v, settings.log_format)
    for warning in loaded.warnings:
        warn(warning)
    restart_reason = os.environ.get(RESTART_REASON_VARIABLE, "")
    node = _AgentHolder(build_node_agent)
    start = typed_start(make=from_make)
    # Unlike `Path.exists`, this raises nothing for a directory that cannot be searched.
    is_new = not os.access(settings.root_dir / "apiserver" / DATABASE, os.F_OK)

    def announce(info: AgentInfo) -> None:
        record_start(settings.root_dir, start)
        _print_line(node_banner(info, is_new=is_new))

    running = run_agent(
        settings,
        node.build,
        announce,
        health=health,
        report=_print_line,
        restart_reason=restart_reason,
        stop_at_eof=stop_at_eof,
    )
    try:
        drained = asyncio.run(running)
    except AgentError as error:
        fail(str(error), error.code)
    remaining = "all pods are terminated" if drained else node.describe_remaining()
    typer.echo(_stopped_message(remaining, format_start(start, settings.root_dir), settings))


def _check_start(
    settings: AgentSettings, *, use_free_ports: bool, from_make: bool
) -> AgentSettings:
    """Return the settings with ports that are free; exit if the node cannot start."""
    refuse_used_root_dir(settings.root_dir, format_second_start(make=from_make))
    if use_free_ports:
        return replace_used_ports(settings)
    command = suggested_command(f"{shlex.join(typed_start().words)} --use-free-ports")
    refuse_used_ports(needed_ports(settings), f"use free ports: {command}")
    return settings


def _stopped_message(remaining: str, start: str, settings: AgentSettings) -> str:
    """What is left of a node that has stopped, how to end it, and how to start the node again."""
    lines = [f"stopped; {remaining}"]
    if remaining == _KEEP_RUNNING:
        end = end_command(settings.root_dir, is_external=not settings.embedded)
        lines.append(f"  to end them               {end}")
    return "\n".join([*lines, f"  to start the node again   {start}"])


def _load_settings(flags: Flags) -> LoadedSettings:
    try:
        return load_settings(flags, os.environ, on_terminal=sys.stderr.isatty())
    except SettingsError as error:
        fail("invalid settings:\n" + "\n".join(error.errors), EXIT_CONFIG)


async def _supervise(settings: AgentSettings, systemd: SystemdService) -> int:
    os.environ[PROGRAM_VARIABLE] = typed_program()
    supervisor = Supervisor(
        [*PROGRAM, *sys.argv[1:], *SUPERVISED_FLAGS],
        settings.root_dir,
        clock=SystemClock(),
        write_stderr=_write_stderr,
        systemd=systemd,
        limits=HANG_LIMITS,
    )
    supervisor.forward_signals()
    return await supervisor.run()


def _write_stderr(text: bytes) -> None:
    sys.stderr.buffer.write(text)
    sys.stderr.buffer.flush()


def _print_line(line: str) -> None:
    typer.echo(line)
    sys.stdout.flush()


class _AgentHolder:
    """Holds the agent that was built, to describe what it leaves behind."""

    def __init__(self, build: BuildAgent) -> None:
        self._build = build
        self._agent: RunnableAgent | None = None

    def build(self, context: AgentContext) -> RunnableAgent:
        """Build the agent and remember it."""
        self._agent = agent = self._build(context)
        return agent

    def describe_remaining(self) -> str:
        """Describe the containers of a node that was stopped without a drain."""
        if isinstance(self._agent, NodeAgent) and not self._agent.has_running_containers():
            return "no containers are running"
        return _KEEP_RUNNING
