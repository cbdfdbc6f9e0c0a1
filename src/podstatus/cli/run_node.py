"""Run a node agent for `podstatus run`, optionally under a supervisor, until it is stopped."""

import asyncio
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from podstatus.agent.compose.agent import NodeAgent, build_node_agent
from podstatus.agent.daemon.logging_setup import configure_logging
from podstatus.agent.daemon.run_agent import (
    AgentContext,
    AgentInfo,
    BuildAgent,
    RunnableAgent,
    run_agent,
)
from podstatus.agent.daemon.supervisor import Supervisor
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.settings.default_root_dir import ROOT_DIR_VARIABLE
from podstatus.agent.settings.load import (
    RESTART_REASON_VARIABLE,
    LoadedSettings,
    SettingsError,
    load_settings,
)
from podstatus.agent.settings.model import AgentSettings
from podstatus.apiserver.state_dir import StateDirError, lock_holder
from podstatus.base.programs import find_program, python_module_command
from podstatus.base.system_clock import SystemClock
from podstatus.cli.errors import fail
from podstatus.cli.listen_ports import listen_ports
from podstatus.cli.setting_options import Flags
from podstatus.cli.start_banner import short_path, start_banner

PROGRAM = python_module_command("podstatus.cli")
"""The command line of this program, for the supervisor."""
_SUPERVISED_FLAGS = ("--no-supervise", "--stop-at-eof")
"""Flags that the supervisor adds to those of the agent."""


def run_node(flags: Flags, *, use_free_ports: bool, stop_at_eof: bool) -> None:
    """Run until a signal, or the end of standard input; exit with a code after a failure."""
    loaded = _load_settings(flags)
    if loaded.settings.supervise:
        raise typer.Exit(asyncio.run(_supervise(loaded.settings)))
    settings = _resolve_ports(loaded.settings, use_free_ports=use_free_ports)
    configure_logging(settings.v, settings.log_format)
    for warning in loaded.warnings:
        typer.echo(f"podstatus: {warning}", err=True)
    restart_reason = os.environ.get(RESTART_REASON_VARIABLE, "")
    node = _AgentHolder(build_node_agent)
    running = run_agent(
        settings,
        node.build,
        _announce_node,
        report=_print_line,
        restart_reason=restart_reason,
        stop_at_eof=stop_at_eof,
    )
    try:
        drained = asyncio.run(running)
    except AgentError as error:
        fail(str(error), error.code)
    remaining = "all pods are terminated" if drained else node.describe_remaining()
    typer.echo(
        f"stopped; {remaining}. To start the node again: {_restart_command(flags, loaded.settings)}"
    )


def _announce_node(info: AgentInfo) -> None:
    _print_line(start_banner(info, _program_command(), _current_dir()))


def _resolve_ports(settings: AgentSettings, *, use_free_ports: bool) -> AgentSettings:
    """Replace ports in use by 0, any free port; or report all of them and exit."""
    if _has_holder(settings.root_dir):  # the start reports the agent that runs there
        return settings
    ports = listen_ports(settings)
    if _has_holder(settings.root_dir / "apiserver"):  # of a killed agent: it is about to exit
        ports = [it for it in ports if it.setting != "apiserver_port"]
    used = [it for it in ports if it.is_in_use()]
    if use_free_ports:
        for it in used:
            _print_line(f"port {it.port} is in use (--{it.flag}); a free one is used instead")
        any_port: dict[str, Any] = {it.setting: 0 for it in used}
        return replace(settings, **any_port)
    if used:
        names = ", ".join(f"{it.port} (--{it.flag})" for it in used)
        fail(
            f"ports in use: {names}; stop the processes that use them, or use free ports: "
            f"{_program_command()} {shlex.join(_own_words())} --use-free-ports"
        )
    return settings


def _has_holder(folder: Path) -> bool:
    try:
        return lock_holder(folder) is not None
    except StateDirError:  # reported by the start
        return False


def _restart_command(flags: Flags, settings: AgentSettings) -> str:
    words = _own_words()
    # The variable may not be set in the shell of the next start.
    if flags["root_dir"] is None and os.environ.get(ROOT_DIR_VARIABLE):
        words += ["--root-dir", str(settings.root_dir)]
    return f"{_program_command()} {shlex.join(words)}"


def _own_words() -> list[str]:
    """The arguments of the user, without those that the supervisor adds."""
    return [word for word in sys.argv[1:] if word not in _SUPERVISED_FLAGS]


def _load_settings(flags: Flags) -> LoadedSettings:
    try:
        return load_settings(flags, os.environ, on_terminal=sys.stderr.isatty())
    except SettingsError as error:
        fail("invalid settings:\n" + "\n".join(error.errors), EXIT_CONFIG)


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
        return "the containers keep running"


def _program_command() -> str:
    """Return the shell command that runs this program."""
    called = Path(sys.argv[0])
    if called.name != "podstatus":
        return f"{shlex.quote(sys.executable)} -P -m podstatus.cli"
    if find_program("podstatus"):
        return "podstatus"
    path = short_path(called.absolute(), _current_dir())
    return shlex.quote(path if "/" in path else f"./{path}")


def _current_dir() -> Path | None:
    """The current directory; None if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None
