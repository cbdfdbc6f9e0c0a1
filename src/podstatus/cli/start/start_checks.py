"""What is checked before a node or an observer starts: its root directory and its ports."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from podstatus.agent.errors import EXIT_CONFIG
from podstatus.agent.settings.model import AgentSettings
from podstatus.apiserver.state_dir import LockHolder, StateDirError, lock_holder
from podstatus.cli.client.root_dir_holder import DOWN, WAIT, down_in_progress
from podstatus.cli.errors import fail
from podstatus.cli.program import with_root_dir
from podstatus.cli.start.listen_ports import ListenPort, node_ports


def refuse_used_root_dir(folder: Path, other: str) -> None:
    """Exit if an agent or observer runs in the root directory; `other`: how to choose another."""
    holder = _holder(folder)
    if holder is not None and holder.command == DOWN:
        fail(f"{down_in_progress(folder, holder)}; {WAIT}", EXIT_CONFIG)
    if holder is not None:
        fail(
            f"{folder} is in use by another agent or observer (pid {holder.pid}, since "
            f"{holder.since}); to see its state: {with_root_dir('status', folder)}; to stop it: "
            f"{with_root_dir('stop', folder)}; to run another one beside it, choose another root "
            f"directory: {other}",
            EXIT_CONFIG,
        )


def needed_ports(settings: AgentSettings) -> list[ListenPort]:
    """Return the ports of a node that must be free, or 0, before it starts."""
    ports = node_ports(settings)
    if _holder(settings.root_dir / "apiserver"):  # of a killed agent: it is about to exit
        ports = [it for it in ports if it.setting != "apiserver_port"]
    return ports


def refuse_used_ports(ports: Sequence[ListenPort], remedy: str) -> None:
    """Exit if ports are in use, with a message that has all of them."""
    if used := [port for port in ports if port.is_in_use()]:
        names = ", ".join(f"{it.port} (--{it.flag})" for it in used)
        fail(f"ports in use: {names}; stop the processes that use them, or {remedy}")


def replace_used_ports(settings: AgentSettings) -> AgentSettings:
    """Replace ports of a node that are in use by 0, any free port, and print which."""
    used = [port for port in needed_ports(settings) if port.is_in_use()]
    for it in used:
        typer.echo(f"port {it.port} is in use (--{it.flag}); a free one is used instead")
    any_port: dict[str, Any] = {it.setting: 0 for it in used}
    return replace(settings, **any_port)


def _holder(folder: Path) -> LockHolder | None:
    try:
        return lock_holder(folder)
    except StateDirError:  # reported by the start
        return None
